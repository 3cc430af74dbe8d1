"""Models of the tests, and a session that runs one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from dmlemu.graph import Policy, packed
from dmlemu.onnx import InferenceSession

Array = np.ndarray[Any, np.dtype[Any]]
INF, NAN = np.inf, np.nan


def f32(*values: Any) -> Array:
    return np.array(values, np.float32)


def f16(*values: Any) -> Array:
    return np.array(values, np.float16)


def i32(*values: Any) -> Array:
    return np.array(values, np.int32)


def i64(*values: Any) -> Array:
    return np.array(values, np.int64)


def u8(*values: Any) -> Array:
    return np.array(values, np.uint8)


def i8(*values: Any) -> Array:
    return np.array(values, np.int8)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, int, Sequence[Any] | None]],
    outputs: Sequence[tuple[str, int, Sequence[Any] | None]],
    constants: dict[str, Array] | None = None,
    opset: int = 21,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def node(op: str, inputs: Sequence[str], *outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, **attributes)


def check_node(
    op: str,
    inputs: Sequence[Any],
    *expected: Any,
    opset: int = 21,
    policy: Policy = packed,
    host: str = "error",
    numerics: str = "directml",
    rtol: float = 1e-5,
    atol: float = 1e-6,
    **attributes: Any,
) -> InferenceSession:
    """Runs a model of one node, all of whose inputs are the model's, and compares its outputs.

    None: an input or output that is left out.  ``host="run"`` lets the node run on the host.
    """
    arrays = [None if each is None else np.asarray(each) for each in inputs]
    wanted = [None if each is None else np.asarray(each) for each in expected]
    names = ["" if each is None else f"x{number}" for number, each in enumerate(arrays)]
    results = ["" if each is None else f"y{number}" for number, each in enumerate(wanted)]
    made = model(
        [node(op, names, *results, **attributes)],
        _described(names, arrays),
        _described(results, wanted),
        opset=opset,
    )
    session = InferenceSession(made, policy=policy, host=host, numerics=numerics)
    feeds = {name: each for name, each in zip(names, arrays, strict=True) if each is not None}
    present = [each for each in wanted if each is not None]
    for got, want in zip(session.run(None, feeds), present, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape)
        np.testing.assert_allclose(got, want, rtol, atol)
    return session


def _described(
    names: Sequence[str], arrays: Sequence[Array | None]
) -> list[tuple[str, int, Sequence[Any] | None]]:
    return [
        (name, int(helper.np_dtype_to_tensor_dtype(each.dtype)), each.shape)
        for name, each in zip(names, arrays, strict=True)
        if each is not None
    ]
