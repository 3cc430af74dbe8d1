"""Tensors of four bits, and blocks of scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import Array, model, node
from onnx import TensorProto as T
from onnx import helper
from onnx.reference import ReferenceEvaluator

from dmlemu.graph import packed, random_layouts
from dmlemu.onnx import InferenceSession

NARROW = {T.INT4: (-8, 7), T.UINT4: (0, 15)}


def numbers(rng: np.random.Generator, element_type: int, shape: tuple[int, ...]) -> Array:
    low, high = NARROW.get(element_type, (-100, 100))
    low = 0 if element_type == T.UINT8 else low
    dtype = helper.tensor_dtype_to_np_dtype(element_type)
    return np.asarray(rng.integers(low, high + 1, shape)).astype(dtype)


def check(
    op: str, inputs: list[Array | None], output: int, seed: int, host: str = "error", **attributes: Any
) -> None:
    """Against the reference implementation, with the inputs given in each run."""
    names = ["" if each is None else f"x{number}" for number, each in enumerate(inputs)]
    first = inputs[0]
    assert first is not None
    made = model(
        [node(op, names, "y", **attributes)],
        [
            (name, int(helper.np_dtype_to_tensor_dtype(each.dtype)), each.shape)
            for name, each in zip(names, inputs, strict=True)
            if each is not None
        ],
        [("y", output, first.shape)],
        opset=25,
    )
    feeds = {name: each for name, each in zip(names, inputs, strict=True) if each is not None}
    (expected,) = ReferenceEvaluator(made).run(None, feeds)
    session = InferenceSession(made, host=host, policy=random_layouts(seed) if seed % 2 else packed)
    (found,) = session.run(None, feeds)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-3)


def parameters(
    rng: np.random.Generator, shape: tuple[int, ...], whole_blocks: bool
) -> tuple[tuple[int, ...], dict[str, int]]:
    """The shape of scales, for the whole tensor, along an axis or for blocks."""
    axis = int(rng.integers(len(shape)))
    kind = rng.integers(3)
    if kind == 0:
        return (), {}
    if kind == 1:
        return (shape[axis],), {"axis": axis}
    divisors = [each for each in range(1, shape[axis] + 1) if shape[axis] % each == 0]
    block = int(rng.choice(divisors)) if whole_blocks else int(rng.integers(1, shape[axis] + 1))
    blocks = (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :])
    return blocks, {"axis": axis - len(shape), "block_size": block}


@pytest.mark.parametrize("element_type", [T.INT4, T.UINT4, T.INT8, T.UINT8, T.INT16])
@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_numbers_of_few_bits_are_quantized_in_blocks(op: str, element_type: int) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        shape = tuple(int(each) for each in rng.integers(1, 7, int(rng.integers(1, 5))))
        of_scale, attributes = parameters(rng, shape, whole_blocks=element_type in NARROW)
        # The reference implementation divides in float16.
        dtype = [np.float32, np.float16][rng.integers(2) if op == "DequantizeLinear" else 0]
        scale = np.asarray(rng.uniform(0.25, 1, of_scale)).astype(dtype)
        zero = numbers(rng, element_type, of_scale) if rng.integers(2) else None
        if op == "DequantizeLinear":
            x = numbers(rng, element_type, shape)
            check(op, [x, scale, zero], int(helper.np_dtype_to_tensor_dtype(scale.dtype)), seed, **attributes)
            continue
        x = (rng.standard_normal(shape) * 4).astype(dtype)
        if zero is None:
            attributes["output_dtype"] = element_type
        check(op, [x, scale, zero], element_type, seed, **attributes)


@pytest.mark.parametrize("narrow", [T.INT4, T.UINT4])
@pytest.mark.parametrize("wide", [T.FLOAT, T.FLOAT16, T.INT8, T.UINT8, T.INT32, T.INT64, T.BOOL])
def test_numbers_of_four_bits_are_cast(narrow: int, wide: int) -> None:
    """To them the lowest bits are kept, and fractions are cut off; from them nothing is lost."""
    low, high = NARROW[narrow]
    every = np.arange(low, high + 1).astype(helper.tensor_dtype_to_np_dtype(narrow))
    check("Cast", [every], wide, 0, to=wide)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(wide))
    values = np.arange(0 if dtype.kind == "u" else -40, 40)
    if dtype.kind == "f":
        values = np.concatenate([values, [-8.5, -1.5, -0.5, 0.5, 1.5, 2.5, 7.75]])
    check("Cast", [values.astype(dtype)], narrow, 1, to=narrow)


def test_what_has_no_operator_for_four_bits_runs_on_the_host() -> None:
    x = np.arange(-8, 7).reshape(3, 5).astype(helper.tensor_dtype_to_np_dtype(T.INT4))
    made = model(
        [
            node("Cast", ["x"], "a", to=T.INT4),
            node("Transpose", ["a"], "b"),
            node("Cast", ["b"], "y", to=T.FLOAT),
        ],
        [("x", T.INT8, (3, 5))],
        [("y", T.FLOAT, (5, 3)), ("b", T.INT4, (5, 3))],
    )
    session = InferenceSession(made)
    y, b = session.run(None, {"x": x.astype(np.int8)})
    assert y.tolist() == x.T.astype(np.float32).tolist() == b.astype(np.float32).tolist()
    assert [each.where for each in session.placed] == ["device", "host", "device"]
    assert "only QUANTIZE and DEQUANTIZE have elements of 4 bits" in session.describe()


def test_weights_of_four_bits_are_constants() -> None:
    """Computed when compiled, scales and blocks included."""
    rng = np.random.default_rng(0)
    w = numbers(rng, T.INT4, (8, 6))
    scale = rng.uniform(0.1, 1, (4, 6)).astype(np.float32)
    made = model(
        [
            node("DequantizeLinear", ["w", "scale"], "v", axis=0, block_size=2),
            node("MatMul", ["x", "v"], "y"),
        ],
        [("x", T.FLOAT, (2, 8))],
        [("y", T.FLOAT, (2, 6))],
        {"w": w, "scale": scale},
    )
    x = rng.standard_normal((2, 8)).astype(np.float32)
    expected = x @ (w.astype(np.float32) * scale.repeat(2, axis=0))
    session = InferenceSession(made, host="error")
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-5)
