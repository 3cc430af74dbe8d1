"""Operators along axes: any axis of a packed tensor, in the caches and in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

import peers
from cases import Call, Case, Work, beside, listed, tensor
from dmlemu import d3d12, dml
from dmlemu.dml.enums import TensorDataType as T

# sizes, axes
LINES = [
    ([1000, 1000], [0]),
    ([1000, 1000], [1]),
    ([250, 1000, 100], [0]),
    ([250, 1000, 100], [1]),
    ([250, 1000, 100], [2]),
    ([25_000_000], [0]),
]
_INCREASING, _DECREASING = dml.AxisDirection.INCREASING, dml.AxisDirection.DECREASING


def line_cases(device: d3d12.Device) -> Iterator[Case]:
    for sizes, axes in LINES:
        x = np.random.default_rng(6).normal(0, 1, sizes).astype(np.float32)
        layout = f"{'x'.join(map(str, sizes))} axis {axes[0]}"
        yield from _reductions(device, layout, x, axes)
        if len(sizes) > 1:
            yield _softmax(device, layout, x, axes)
            yield _top_k(device, layout, x, axes[0])
        yield _cumulative(device, layout, x, axes[0])


def _reductions(device: d3d12.Device, layout: str, x: np.ndarray, axes: list[int]) -> Iterator[Case]:
    small = [1 if d in axes else size for d, size in enumerate(x.shape)]
    f32, along = tensor(T.FLOAT32, list(x.shape)), tuple(axes)
    for function, node, numpy, torch in (
        (dml.ReduceFunction.SUM, "ReduceSum", np.sum, "sum"),
        (dml.ReduceFunction.MAX, "ReduceMax", np.max, "amax"),
        (dml.ReduceFunction.LOG_SUM_EXP, "ReduceLogSumExp", None, "logsumexp"),
    ):
        desc = dml.ReduceOperatorDesc(
            function=function, input_tensor=f32, output_tensor=tensor(T.FLOAT32, small), axes=axes
        )
        # ReduceSum has its axes as an input.
        constants = {"axes": np.array(axes, np.int64)} if node == "ReduceSum" else None
        attributes = {} if constants else {"axes": axes}
        session = peers.onnx_session(node, {"x": x}, TensorProto.FLOAT, x.ndim, constants, **attributes)
        calls: dict[str, Call] = {"ORT": session}
        if numpy is not None:
            calls["numpy"] = lambda f=numpy: f(x, along)  # type: ignore[misc]
        if peers.torch() is not None:
            calls["torch"] = peers.torch_function(torch, x, axes)
        ours = listed(device, desc, {"input_tensor": x})
        yield Case(f"reduce {function.name} f32", layout, ours, beside(calls), Work(x.nbytes, "read"))
    desc = dml.ArgmaxOperatorDesc(
        input_tensor=f32, output_tensor=tensor(T.UINT32, small), axes=axes, axis_direction=_INCREASING
    )
    calls = {"numpy": lambda: np.argmax(x, axes[0])}
    if peers.torch() is not None:
        calls["torch"] = peers.torch_function("argmax", x, axes[0])
    ours = listed(device, desc, {"input_tensor": x})
    yield Case("argmax f32", layout, ours, beside(calls), Work(x.nbytes, "read"))


def _softmax(device: d3d12.Device, layout: str, x: np.ndarray, axes: list[int]) -> Case:
    f32 = tensor(T.FLOAT32, list(x.shape))
    desc = dml.ActivationSoftmax1OperatorDesc(input_tensor=f32, output_tensor=f32, axes=axes)
    calls = {"ORT": peers.onnx_session("Softmax", {"x": x}, TensorProto.FLOAT, x.ndim, axis=axes[0])}
    if peers.torch() is not None:
        calls["torch"] = peers.torch_function("softmax", x, axes[0])
    ours = listed(device, desc, {"input_tensor": x})
    return Case("softmax f32", layout, ours, beside(calls), Work(2 * x.nbytes, "copy"))


def _cumulative(device: d3d12.Device, layout: str, x: np.ndarray, axis: int) -> Case:
    f32 = tensor(T.FLOAT32, list(x.shape))
    desc = dml.CumulativeSummationOperatorDesc(
        input_tensor=f32,
        output_tensor=f32,
        axis=axis,
        axis_direction=_INCREASING,
        has_exclusive_sum=False,
    )
    constants = {"axis": np.array(axis, np.int64)}
    out = np.empty_like(x)
    calls: dict[str, Call] = {
        "numpy": lambda: np.cumsum(x, axis, out=out),
        "ORT": peers.onnx_session("CumSum", {"x": x}, TensorProto.FLOAT, x.ndim, constants),
    }
    if peers.torch() is not None:
        calls["torch"] = peers.torch_function("cumsum", x, axis)
    ours = listed(device, desc, {"input_tensor": x})
    return Case("cumulative sum f32", layout, ours, beside(calls), Work(2 * x.nbytes, "copy"))


def _top_k(device: d3d12.Device, layout: str, x: np.ndarray, axis: int) -> Case:
    k = 10
    sizes = [k if d == axis else size for d, size in enumerate(x.shape)]
    desc = dml.TopK1OperatorDesc(
        input_tensor=tensor(T.FLOAT32, list(x.shape)),
        output_value_tensor=tensor(T.FLOAT32, sizes),
        output_index_tensor=tensor(T.UINT32, sizes),
        axis=axis,
        k=k,
        axis_direction=_DECREASING,
    )
    calls: dict[str, Call] = {"numpy argpartition": lambda: np.argpartition(x, -k, axis)}
    if peers.torch() is not None:
        calls["torch"] = peers.torch_function("topk", x, k, axis)
    ours = listed(device, desc, {"input_tensor": x})
    return Case(f"top {k} f32", layout, ours, beside(calls), Work(x.nbytes, "read"))
