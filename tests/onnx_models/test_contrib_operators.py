"""Operators of the domain ``com.microsoft`` against ONNX Runtime, and against NumPy where it has none."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from models import Array, model, node
from onnx import helper

from dmlemu.graph import packed, random_layouts
from dmlemu.onnx import InferenceSession, ModelError
from dmlemu.onnx.calls import LOWERINGS, MICROSOFT

ort = pytest.importorskip("onnxruntime")

Inputs = list[Array | None]
Rng = np.random.Generator


class Case(NamedTuple):
    """A node; ``known``: the inputs that are constants of the model; ``outputs``: what is wanted of them.

    ``unit``: by how much whole numbers may differ, where two quotients lie on either side of a half.
    """

    inputs: Inputs
    attributes: dict[str, Any] = {}  # noqa: RUF012
    outputs: tuple[int, ...] = (0,)
    known: tuple[int, ...] = ()
    rtol: float = 1e-4
    atol: float = 1e-5
    unit: int = 0


STANDARD = ("SimplifiedLayerNormalization", "ConvInteger", "MatMulInteger", "QLinearMatMul")
"""Those without ONNX Runtime's domain."""

CASES: dict[str, Callable[[Rng], Case]] = {}


def case(*names: str) -> Callable[[Callable[[Rng], Case]], Callable[[Rng], Case]]:
    def enter(function: Callable[[Rng], Case]) -> Callable[[Rng], Case]:
        for name in names:
            CASES[name] = function
        return function

    return enter


def floats(rng: Rng, *shape: int, dtype: Any = np.float32, size: float = 1.0) -> Array:
    return (rng.standard_normal(shape) * size).astype(dtype)


def sizes(rng: Rng, count: int, most: int = 5) -> list[int]:
    return [int(each) for each in rng.integers(1, most + 1, count)]


def maybe(rng: Rng, value: Array) -> Array | None:
    return value if rng.integers(2) else None


RNG = np.random.default_rng(0)


# --- models ---


def single(op: str, made: Case, expected: list[Array]) -> onnx.ModelProto:
    """A model of one node; its outputs have the shapes of what is expected."""
    names = ["" if each is None else f"x{number}" for number, each in enumerate(made.inputs)]
    results = [f"y{number}" if number in made.outputs else "" for number in range(max(made.outputs) + 1)]
    constants = {f"x{number}": made.inputs[number] for number in made.known}
    domain = "" if op in STANDARD else MICROSOFT

    def value(name: str, array: Array) -> tuple[str, int, tuple[int, ...]]:
        return name, int(helper.np_dtype_to_tensor_dtype(array.dtype)), array.shape

    built = model(
        [node(op, names, *results, domain=domain, **made.attributes)],
        [
            value(name, each)
            for name, each in zip(names, made.inputs, strict=True)
            if each is not None and name not in constants
        ],
        [value(name, each) for name, each in zip(filter(None, results), expected, strict=True)],
        {name: each for name, each in constants.items() if each is not None},
    )
    built.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    return built


def feeds(made: Case) -> dict[str, Array]:
    return {
        f"x{number}": each
        for number, each in enumerate(made.inputs)
        if each is not None and number not in made.known
    }


def by_onnxruntime(op: str, made: Case) -> list[Array]:
    built = single(op, made, [np.zeros(0, np.float32)] * len(made.outputs))
    for each in built.graph.output:
        each.type.Clear()  # ONNX Runtime finds it
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(built.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, feeds(made))
    return found


def check(op: str, made: Case, expected: list[Array], seed: int = 0) -> None:
    session = InferenceSession(
        single(op, made, expected), host="error", policy=random_layouts(seed) if seed % 2 else packed
    )
    found = session.run(None, feeds(made))
    for got, want in zip(found, expected, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape)
        if want.dtype.kind in "iu":
            assert np.abs(got.astype(np.int64) - want.astype(np.int64)).max() <= made.unit
        else:
            np.testing.assert_allclose(got, want, made.rtol, made.atol)


# --- activations ---


@case("Gelu")
def _gelu(rng: Rng) -> Case:
    return Case([floats(rng, *sizes(rng, int(rng.integers(1, 5))), size=3)])


@case("BiasGelu", "FastGelu")
def _bias_gelu(rng: Rng) -> Case:
    shape = sizes(rng, int(rng.integers(2, 4)), 9)
    return Case([floats(rng, *shape, size=3), floats(rng, shape[-1])])


@case("QuickGelu")
def _quick_gelu(rng: Rng) -> Case:
    alpha = {"alpha": 1.0} if rng.integers(2) else {}
    return Case([floats(rng, *sizes(rng, 3), size=3)], alpha)


# --- normalizations ---


@case("SkipLayerNormalization")
def _skip_layer_norm(rng: Rng) -> Case:
    b, s, h = sizes(rng, 3, 6)
    h += 2
    dtype = [np.float32, np.float16][rng.integers(2)]
    skip = [(b, s, h), (1, s, h), (s, h)][rng.integers(3)]
    return Case(
        [
            floats(rng, b, s, h, dtype=dtype),
            floats(rng, *skip, dtype=dtype),
            floats(rng, h, dtype=dtype),
            maybe(rng, floats(rng, h, dtype=dtype)),
            maybe(rng, floats(rng, h, dtype=dtype)),
        ],
        {"epsilon": 1e-5},
        (0, 3) if rng.integers(2) else (0,),
        **_near(dtype),
    )


def _near(dtype: Any) -> dict[str, float]:
    return {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-2, "atol": 1e-2}


@case("SkipSimplifiedLayerNormalization")
def _skip_simplified(rng: Rng) -> Case:
    shape = sizes(rng, int(rng.integers(2, 4)), 6)
    dtype = [np.float32, np.float16][rng.integers(2)]
    return Case(
        [
            floats(rng, *shape, dtype=dtype),
            floats(rng, *shape, dtype=dtype),
            floats(rng, shape[-1], dtype=dtype),
            maybe(rng, floats(rng, shape[-1], dtype=dtype)),
        ],
        {"epsilon": 1e-5},
        (0, 3) if rng.integers(2) else (0,),
        **_near(dtype),
    )


@case("SimplifiedLayerNormalization")
def _simplified(rng: Rng) -> Case:
    shape = sizes(rng, int(rng.integers(2, 5)), 6)
    axis = int(rng.integers(-len(shape), len(shape)))
    return Case([floats(rng, *shape), floats(rng, *shape[axis:])], {"axis": axis, "epsilon": 1e-5})


@case("EmbedLayerNormalization")
def _embed(rng: Rng) -> Case:
    b, s, h = sizes(rng, 3, 6)
    words, places, segments = 11, s + 3, 3
    segment = bool(rng.integers(2))
    position = [None, rng.integers(0, places, (b, s)), rng.integers(0, places, (1, s))][rng.integers(3)]
    return Case(
        [
            rng.integers(0, words, (b, s)).astype(np.int32),
            rng.integers(0, segments, (b, s)).astype(np.int32) if segment else None,
            floats(rng, words, h),
            floats(rng, places, h),
            floats(rng, segments, h) if segment else None,
            floats(rng, h),
            floats(rng, h),
            maybe(rng, (np.arange(s) < rng.integers(1, s + 1, (b, 1))).astype(np.int32)),
            None if position is None else position.astype(np.int32),
        ],
        {"epsilon": 1e-5},
        (0, 1, 2),
    )


# --- products ---


@case("FusedMatMul")
def _fused_matmul(rng: Rng) -> Case:
    m, k, n = sizes(rng, 3, 6)
    batch = sizes(rng, int(rng.integers(0, 3)), 3)
    flags = {name: int(rng.integers(2)) for name in ("transA", "transB")}
    a = [k, m] if flags["transA"] else [m, k]
    b = [n, k] if flags["transB"] else [k, n]
    a, b = [*batch, *a], [*batch, *b]
    for name, shape in (("transBatchA", a), ("transBatchB", b)):
        if batch and rng.integers(2):
            flags[name] = 1
            shape.insert(0, shape.pop(-2))
    return Case([floats(rng, *a), floats(rng, *b)], {**flags, "alpha": 0.5})


@case("FusedGemm")
def _fused_gemm(rng: Rng) -> Case:
    m, k, n = sizes(rng, 3, 6)
    attributes = [
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_alpha": 0.2},
        {"activation": "Tanh"},
        {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
        {"activation": "Sigmoid", "transB": 1, "alpha": 0.5, "beta": 2.0},
    ][rng.integers(5)]
    b = (n, k) if attributes.get("transB") else (k, n)
    return Case([floats(rng, m, k), floats(rng, *b), maybe(rng, floats(rng, n))], attributes)


@case("MatMulNBits")
def _matmul_n_bits(rng: Rng) -> Case:
    bits = [4, 8][rng.integers(2)]
    block = [16, 32][rng.integers(2)]
    k, n = int(rng.integers(1, 80)), int(rng.integers(1, 10))
    blocks = -(-k // block)
    dtype = [np.float32, np.float16][rng.integers(2)]
    zero = [
        None,
        rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8),
        rng.uniform(0, 1 << bits, (n, blocks)).astype(dtype),
    ][rng.integers(3 if bits == 4 else 2)]
    return Case(
        [
            floats(rng, *sizes(rng, int(rng.integers(1, 3)), 4), k, dtype=dtype),
            rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
            (floats(rng, n, blocks) / 16).astype(dtype),
            zero,
            None,
            maybe(rng, floats(rng, n, dtype=dtype)),
        ],
        {"K": k, "N": n, "bits": bits, "block_size": block},
        known=tuple(number for number in (1, 2, 3) if number != 3 or zero is not None),
        rtol=1e-4 if dtype == np.float32 else 1e-2,
        atol=1e-4 if dtype == np.float32 else 0.3,
    )


@case("GatherBlockQuantized")
def _gather_block_quantized(rng: Rng) -> Case:
    bits, block, blocks = [4, 8][rng.integers(2)], 16, int(rng.integers(1, 4))
    rows, width = int(rng.integers(1, 9)), blocks * bits * 2
    zero = rng.integers(0, 256, (rows, -(-blocks * bits // 8))).astype(np.uint8)
    return Case(
        [
            rng.integers(0, 256, (rows, width)).astype(np.uint8),
            rng.integers(-rows, rows, sizes(rng, int(rng.integers(0, 3)))).astype(
                [np.int32, np.int64][rng.integers(2)]
            ),
            floats(rng, rows, blocks, dtype=[np.float32, np.float16][rng.integers(2)]),
            maybe(rng, zero),
        ],
        {"bits": bits, "block_size": block},
        rtol=1e-3,
    )


# --- convolutions ---


@case("FusedConv")
def _fused_conv(rng: Rng) -> Case:
    n, c, m = sizes(rng, 3, 3)
    attributes = [
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_params": [0.2]},
        {"activation": "Clip", "activation_params": [-0.5, 0.75]},
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
        {"activation": "Tanh"},
    ][rng.integers(5)]
    return Case(
        [
            floats(rng, n, c, 6, 5),
            floats(rng, m, c, 3, 2),
            maybe(rng, floats(rng, m)),
            maybe(rng, floats(rng, n, m, 6, 4)),
        ],
        {**attributes, "pads": [1, 0, 1, 0], "kernel_shape": [3, 2]},
    )


@case("ConvTransposeWithDynamicPads")
def _dynamic_pads(rng: Rng) -> Case:
    n, c, m = sizes(rng, 3, 3)
    pads = rng.integers(0, 2, 4)
    return Case(
        [floats(rng, n, c, 4, 3), floats(rng, c, m, 3, 3), pads, maybe(rng, floats(rng, m))],
        {"strides": [2, 1], "kernel_shape": [3, 3]},
    )


# --- quantized ---


class Quantized(NamedTuple):
    x: Array
    scale: Array
    zero: Array | None


def quantized(rng: Rng, *shape: int, dtype: Any, optional: bool = False) -> Quantized:
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    zero = np.array(rng.integers(info.min, info.max + 1), dtype)
    scale = np.array(rng.uniform(0.005, 0.1), np.float32)
    return Quantized(x, scale, maybe(rng, zero) if optional else zero)


def weights(rng: Rng, *shape: int, dtype: Any, optional: bool = False) -> Quantized:
    """INT8 of 7 bits: without VNNI, ONNX Runtime adds pairs of products in 16 bits, which saturate."""
    made = quantized(rng, *shape, dtype=dtype, optional=optional)
    return made._replace(x=made.x // 2) if dtype == np.int8 else made


def parameters(rng: Rng, dtype: Any, optional: bool = False) -> tuple[Array, Array | None]:
    return quantized(rng, dtype=dtype, optional=optional)[1:]


def eight_bits(rng: Rng) -> Any:
    return [np.uint8, np.int8][rng.integers(2)]


@case("QLinearAdd", "QLinearMul")
def _qlinear_binary(rng: Rng) -> Case:
    dtype = eight_bits(rng)
    shape = sizes(rng, int(rng.integers(0, 5)))
    other = [1 if rng.integers(2) else each for each in shape][int(rng.integers(len(shape) + 1)) :]
    a, b = (quantized(rng, *each, dtype=dtype) for each in (shape, other))
    scale, zero = parameters(rng, dtype, optional=True)
    return Case([*a, *b, scale, *([] if zero is None else [zero])], unit=1)


@case("QLinearSigmoid", "QLinearLeakyRelu")
def _qlinear_unary(rng: Rng) -> Case:
    dtype = eight_bits(rng)
    x = quantized(rng, *sizes(rng, int(rng.integers(0, 5))), dtype=dtype, optional=True)
    return Case([*x, *parameters(rng, dtype, optional=True)], unit=1)


@case("QLinearSoftmax")
def _qlinear_softmax(rng: Rng) -> Case:
    dtype = eight_bits(rng)
    rank = int(rng.integers(1, 5))
    x = quantized(rng, *sizes(rng, rank), dtype=dtype)
    scale, zero = np.array(1 / 256, np.float32), np.array(np.iinfo(dtype).min, dtype)
    opset = [12, 13][rng.integers(2)]
    return Case([*x, scale, zero], {"opset": opset, "axis": int(rng.integers(-rank, rank))}, unit=1)


@case("QLinearWhere")
def _qlinear_where(rng: Rng) -> Case:
    dtype = eight_bits(rng)
    shape = sizes(rng, 3)
    x, y = (quantized(rng, *each, dtype=dtype) for each in (shape, shape[1:]))
    return Case([rng.integers(0, 2, shape).astype(np.bool_), *x, *y, *parameters(rng, dtype)], unit=1)


@case("QLinearConcat")
def _qlinear_concat(rng: Rng) -> Case:
    dtype = eight_bits(rng)
    shape = sizes(rng, 3)
    axis = int(rng.integers(-3, 3))
    inputs: Inputs = [*parameters(rng, dtype)]
    for _ in range(int(rng.integers(1, 4))):
        shape[axis] = int(rng.integers(1, 5))
        inputs += quantized(rng, *shape, dtype=dtype)
    return Case(inputs, {"axis": axis}, unit=1)


@case("QLinearAveragePool")
def _qlinear_average_pool(rng: Rng) -> Case:
    dtype = eight_bits(rng)
    n, c = sizes(rng, 2, 3)
    last = int(rng.integers(2))
    x = quantized(rng, *((n, 7, 6, c) if last else (n, c, 7, 6)), dtype=dtype)
    attributes = {
        "kernel_shape": [3, 2],
        "strides": [2, 1],
        "pads": [1, 0, 1, 1],
        "channels_last": last,
        "count_include_pad": int(rng.integers(2)),
        "ceil_mode": int(rng.integers(2)),
    }
    return Case([*x, *parameters(rng, dtype)], attributes, unit=1)


@case("QLinearGlobalAveragePool")
def _qlinear_global_average_pool(rng: Rng) -> Case:
    dtype = eight_bits(rng)
    n, c, *spatial = sizes(rng, int(rng.integers(3, 6)))
    last = int(rng.integers(2))
    x = quantized(rng, *((n, *spatial, c) if last else (n, c, *spatial)), dtype=dtype)
    return Case([*x, *parameters(rng, dtype)], {"channels_last": last}, unit=1)


@case("QLinearConv")
def _qlinear_conv(rng: Rng) -> Case:
    dtype = eight_bits(rng)
    n, c, m = sizes(rng, 3, 3)
    last = int(rng.integers(2))
    x = quantized(rng, *((n, 5, 6, c) if last else (n, c, 5, 6)), dtype=dtype)
    w = weights(rng, m, c, 3, 3, dtype=np.int8)
    y = np.array(5.0, np.float32), np.array(3, dtype)
    bias = maybe(rng, rng.integers(-1000, 1000, m).astype(np.int32))
    return Case(
        [*x, w.x, w.scale, np.array(0, np.int8), *y, bias],
        {"channels_last": last, "pads": [1, 0, 0, 1], "kernel_shape": [3, 3]},
        unit=1,
    )


def _mixed(rng: Rng) -> tuple[Any, Any]:
    """Types of two factors; ONNX Runtime has no product of int8 with uint8 for all operators."""
    pairs: list[tuple[Any, Any]] = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]
    return pairs[rng.integers(3)]


@case("MatMulInteger")
def _matmul_integer(rng: Rng) -> Case:
    a_type, b_type = _mixed(rng)
    m, k, n = sizes(rng, 3)
    batch = sizes(rng, int(rng.integers(0, 3)), 3)
    a = quantized(rng, *batch, m, k, dtype=a_type, optional=True)
    b = weights(rng, *batch[int(rng.integers(len(batch) + 1)) :], k, n, dtype=b_type, optional=True)
    zero = b.zero
    if zero is not None and b.x.ndim == 2 and rng.integers(2):
        zero = rng.integers(0, 100, n).astype(b_type)
    return Case([a.x, b.x, a.zero, zero])


@case("QLinearMatMul")
def _qlinear_matmul(rng: Rng) -> Case:
    a_type, b_type = _mixed(rng)
    m, k, n = sizes(rng, 3)
    batch = sizes(rng, int(rng.integers(0, 3)), 3)
    a = quantized(rng, *batch, m, k, dtype=a_type)
    b = weights(rng, k, n, dtype=b_type)
    scale, _ = _columns(rng, n, b_type)
    zero = rng.integers(0, 100, scale.shape).astype(b_type)
    return Case([*a, b.x, scale, zero, *parameters(rng, a_type)], unit=1)


@case("ConvInteger")
def _conv_integer(rng: Rng) -> Case:
    x_type, w_type = _mixed(rng)
    spatial = int(rng.integers(1, 3))
    groups = int(rng.integers(1, 3))
    c, m = (groups * each for each in sizes(rng, 2, 3))
    x = quantized(rng, 2, c, *[5] * spatial, dtype=x_type, optional=True)
    w = weights(rng, m, c // groups, *[3] * spatial, dtype=w_type, optional=True)
    attributes = {"group": groups, "pads": [1, 0] * spatial, "strides": [2] * spatial}
    return Case([x.x, w.x, x.zero, w.zero], attributes)


def _columns(rng: Rng, n: int, dtype: Any) -> tuple[Array, Array | None]:
    """A scale and a zero point, for all columns or one for each."""
    shape = (n,) if rng.integers(2) else ()
    info = np.iinfo(dtype)
    zero = np.array(rng.integers(info.min, info.max + 1, shape), dtype)
    return np.array(rng.uniform(0.01, 0.1, shape), np.float32), maybe(rng, zero)


@case("MatMulIntegerToFloat")
def _matmul_integer_to_float(rng: Rng) -> Case:
    a_type, b_type = _mixed(rng)
    m, k, n = sizes(rng, 3, 8)
    batch = sizes(rng, int(rng.integers(0, 3)), 3)
    a = quantized(rng, *batch, m, k, dtype=a_type, optional=True)
    b = weights(rng, k, n, dtype=b_type)
    scale, zero = _columns(rng, n, b_type)
    return Case([a.x, b.x, a.scale, scale, a.zero, zero, maybe(rng, floats(rng, n))], atol=1e-3)


@case("DynamicQuantizeMatMul")
def _dynamic_quantize_matmul(rng: Rng) -> Case:
    dtype = eight_bits(rng)
    m, k, n = sizes(rng, 3, 8)
    scale, zero = _columns(rng, n, dtype)
    b = weights(rng, k, n, dtype=dtype)
    x = floats(rng, *sizes(rng, int(rng.integers(0, 3)), 3), m, k)
    return Case([x, b.x, scale, zero, maybe(rng, floats(rng, n))], atol=0.2)


@case("QGemm")
def _qgemm(rng: Rng) -> Case:
    a_type, b_type = _mixed(rng)
    m, k, n = sizes(rng, 3, 8)
    flags = {name: int(rng.integers(2)) for name in ("transA", "transB")}
    a = quantized(rng, *((k, m) if flags["transA"] else (m, k)), dtype=a_type)
    b = weights(rng, *((n, k) if flags["transB"] else (k, n)), dtype=b_type)
    scale, _ = _columns(rng, n, b_type)
    zero = np.array(rng.integers(0, 100, scale.shape), b_type)
    bias = maybe(rng, rng.integers(-1000, 1000, n).astype(np.int32))
    y: Inputs = [np.array(2.5, np.float32), np.array(7, a_type)] if rng.integers(2) else []
    return Case([*a, b.x, scale, zero, bias, *y], {**flags, "alpha": 0.5}, unit=1, atol=1e-2)


@case("QuantizeLinear")
def _quantize(rng: Rng) -> Case:
    shape, dtype = sizes(rng, 3), [np.uint8, np.int8, np.uint16, np.int16][rng.integers(4)]
    along = int(rng.integers(2))
    size = (shape[1],) if along else ()
    scale = np.array(rng.uniform(0.01, 0.1, size), np.float32)
    zero = np.array(rng.integers(0, 100, size), dtype)
    return Case([floats(rng, *shape, size=3), scale, zero], {"axis": 1} if along else {}, unit=1)


@case("DequantizeLinear")
def _dequantize(rng: Rng) -> Case:
    shape, dtype = sizes(rng, 3), [np.uint8, np.int8, np.uint16, np.int16][rng.integers(4)]
    along = int(rng.integers(2))
    size = (shape[1],) if along else ()
    scale = np.array(rng.uniform(0.01, 0.1, size), np.float32)
    zero = np.array(rng.integers(0, 100, size), dtype)
    x = rng.integers(0, 120, shape).astype(dtype)
    return Case([x, scale, zero], {"axis": 1} if along else {})


# --- attention ---


def _lengths(rng: Rng, b: int, keys: int) -> Array:
    return rng.integers(1, keys + 1, b).astype(np.int32)


def _bits(rng: Rng, *shape: int) -> Array:
    """A mask, each of whose rows has a 1."""
    mask = rng.integers(0, 2, shape).astype(np.int32)
    mask[..., 0] = 1
    return mask


def _score_bias(rng: Rng, b: int, n: int, s: int, t: int) -> Array:
    return floats(rng, [1, b][rng.integers(2)], [1, n][rng.integers(2)], s, t)


def _attention_mask(rng: Rng, b: int, s: int, t: int) -> Array | None:
    starts = rng.integers(0, t, b)
    ends = starts + 1 + rng.integers(0, t, b) % (t - starts)
    return [
        None,
        _lengths(rng, b, t),
        np.concatenate([ends, starts]).astype(np.int32),
        _bits(rng, b, t),
        _bits(rng, b, s, t),
    ][rng.integers(5)]


@case("Attention")
def _attention(rng: Rng) -> Case:
    b, s, n, e = sizes(rng, 4, 4)
    width, past = int(rng.integers(1, 6)), int(rng.integers(0, 4))
    h = n * e
    attributes: dict[str, Any] = {"num_heads": n, "unidirectional": int(rng.integers(2))}
    columns, v = 3 * h, h
    with_past = bool(rng.integers(2)) and past > 0
    if not with_past and rng.integers(2):
        v = n * int(rng.integers(1, 4))
        columns = 2 * h + v
        attributes["qkv_hidden_sizes"] = [h, h, v]
    if rng.integers(2):
        attributes["scale"] = 0.3
    t = s + (past if with_past else 0)
    return Case(
        [
            floats(rng, b, s, width),
            floats(rng, width, columns),
            floats(rng, columns),
            _attention_mask(rng, b, s, t),
            floats(rng, 2, b, n, past, e) if with_past else None,
            None if with_past else maybe(rng, _score_bias(rng, b, n, s, t)),
        ],
        attributes,
        (0, 1) if with_past else (0,),
    )


@case("QAttention")
def _qattention(rng: Rng) -> Case:
    b, s, n, e = sizes(rng, 4, 4)
    width, past = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    h = n * e
    with_past = bool(rng.integers(2))
    dtype = eight_bits(rng)
    x, w = quantized(rng, b, s, width, dtype=np.uint8), weights(rng, width, 3 * h, dtype=dtype)
    t = s + (past if with_past else 0)
    return Case(
        [
            x.x,
            w.x,
            floats(rng, 3 * h),
            x.scale,
            w.scale,
            maybe(rng, _lengths(rng, b, t)),
            x.zero,
            w.zero,
            floats(rng, 2, b, n, past, e) if with_past else None,
        ],
        {"num_heads": n, "unidirectional": int(rng.integers(2))},
        (0, 1) if with_past else (0,),
        rtol=1e-3,
        atol=1e-3,
    )


@case("MultiHeadAttention")
def _multi_head_attention(rng: Rng) -> Case:
    """Keys and values with a past or without, or with their heads first."""
    b, s, n, e = sizes(rng, 4, 4)
    keys = int(rng.integers(1, 5))
    form = ["separate", "past", "heads first"][rng.integers(3)]
    v = int(rng.integers(1, 4)) if form == "separate" else e
    past = int(rng.integers(1, 4)) if form == "past" else 0
    inputs: Inputs = [floats(rng, b, s, n * e), floats(rng, b, keys, n * e), floats(rng, b, keys, n * v)]
    inputs += [None] * 5
    if form == "heads first":
        inputs[1:3] = floats(rng, b, n, keys, e), floats(rng, b, n, keys, v)
    else:
        inputs[3] = maybe(rng, floats(rng, n * (2 * e + v)))
    if past:
        inputs[6:8] = floats(rng, b, n, past, e), floats(rng, b, n, past, v)
    t = keys + past
    inputs[4] = [None, _lengths(rng, b, t), _bits(rng, b, t), _bits(rng, b, s, t)][rng.integers(4)]
    inputs[5] = maybe(rng, _score_bias(rng, b, n, s, t))
    attributes: dict[str, Any] = {"num_heads": n}
    if keys == s:  # otherwise ONNX Runtime lets the last query read all keys
        attributes["unidirectional"] = int(rng.integers(2))
    return Case(inputs, attributes, (0,) if form == "heads first" else (0, 1, 2))


@case("RotaryEmbedding")
def _rotary(rng: Rng) -> Case:
    b, s, n = sizes(rng, 3, 4)
    e, most = 2 * int(rng.integers(1, 5)), s + 4
    dtype = [np.float32, np.float16][rng.integers(2)]
    half = e // 2
    attributes: dict[str, Any] = {"interleaved": int(rng.integers(2))}
    if half > 1 and rng.integers(2):
        half = int(rng.integers(1, half))
        attributes |= {"rotary_embedding_dim": 2 * half, "num_heads": n}
    angles = rng.uniform(0, 6, (most, half))
    shape = (b, n, s, e) if rng.integers(2) else (b, s, n * e)
    positions = [np.array([3]), rng.integers(0, most, (b, s))][rng.integers(2)]
    return Case(
        [
            floats(rng, *shape, dtype=dtype),
            positions.astype(np.int64),
            np.cos(angles).astype(dtype),
            np.sin(angles).astype(dtype),
        ],
        attributes,
        **_near(dtype),
    )


@case("GroupQueryAttention")
def _group_query(rng: Rng) -> Case:
    """A prompt, or new tokens behind a past of its own length, or in a buffer of a maximum length."""
    b, s, groups = sizes(rng, 3, 3)
    n, e = groups * int(rng.integers(1, 4)), 16 * int(rng.integers(1, 3))
    form = ["prompt", "past", "buffer"][rng.integers(3)]
    past = int(rng.integers(1, 5)) if form != "prompt" else 0
    b = 1 if s > 1 and past else b
    total, room = past + s, past + s + (3 if form == "buffer" else 0)
    attributes: dict[str, Any] = {"num_heads": n, "kv_num_heads": groups}
    lengths = np.full(b, total - 1, np.int32)
    if rng.integers(2):
        attributes["local_window_size"] = int(rng.integers(1, 5))
    inputs: Inputs = [None] * 11
    inputs[0] = floats(rng, b, s, n * e)
    inputs[1], inputs[2] = floats(rng, b, s, groups * e), floats(rng, b, s, groups * e)
    if rng.integers(2):
        inputs[0] = np.concatenate([each for each in inputs[:3] if each is not None], axis=2)
        inputs[1] = inputs[2] = None
    held = room if form == "buffer" else past
    empty = np.arange(held).reshape(-1, 1) >= past
    inputs[3:5] = (np.where(empty, 0, floats(rng, b, groups, held, e)).astype(np.float32) for _ in range(2))
    inputs[5], inputs[6] = lengths, np.array(total, np.int32)
    if rng.integers(2):
        angles = rng.uniform(0, 6, (room + 2, e // 2))
        inputs[7], inputs[8] = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(rng.integers(2))}
    inputs[10] = maybe(rng, _score_bias(rng, b, n, s, total))
    if rng.integers(3) == 0:
        attributes["softcap"] = 2.0
    if rng.integers(3) == 0:
        attributes["smooth_softmax"] = 1
    elif rng.integers(3) == 0:
        inputs += [floats(rng, n)]
    return Case(inputs, attributes, (0, 1, 2))


# --- what ONNX Runtime's CPU provider runs ---


def agree(op: str, made: Case) -> None:
    check(op, made, by_onnxruntime(op, made))


MANY_OPTIONS = (
    "Attention",
    "FusedMatMul",
    "GroupQueryAttention",
    "MatMulNBits",
    "MultiHeadAttention",
    "QGemm",
)


@pytest.mark.parametrize("op", sorted(CASES))
def test_operators_agree_with_onnxruntime(op: str) -> None:
    for seed in range(8 if op in MANY_OPTIONS else 3):
        made = CASES[op](np.random.default_rng(seed))
        check(op, made, by_onnxruntime(op, made), seed)


HALVES = (
    *("Gelu", "BiasGelu", "FastGelu", "QuickGelu", "FusedMatMul", "FusedGemm", "FusedConv"),
    *("Attention", "MultiHeadAttention", "GroupQueryAttention", "EmbedLayerNormalization"),
)


@pytest.mark.parametrize("op", HALVES)
def test_float16_is_near_float32(op: str) -> None:
    """Of the same numbers; ONNX Runtime's CPU provider has most of them in FLOAT32 alone."""

    def halves(arrays: list[Any]) -> list[Any]:
        return [
            each.astype(np.float16) if each is not None and each.dtype == np.float32 else each
            for each in arrays
        ]

    for seed in range(200, 203):
        made = CASES[op](np.random.default_rng(seed))
        made = made._replace(inputs=halves(made.inputs), rtol=2e-2, atol=2e-2)
        wide = [
            each.astype(np.float32) if each is not None and each.dtype == np.float16 else each
            for each in made.inputs
        ]
        check(op, made, halves(by_onnxruntime(op, made._replace(inputs=wide))), seed)


@pytest.mark.long
@pytest.mark.parametrize("op", sorted(CASES))
def test_operators_agree_with_onnxruntime_at_length(op: str) -> None:
    for seed in range(100, 180):
        made = CASES[op](np.random.default_rng(seed))
        check(op, made, by_onnxruntime(op, made), seed)


def test_masks_of_all_positions_and_of_packed_batches() -> None:
    x, w, bias = floats(RNG, 2, 3, 5), floats(RNG, 5, 12), floats(RNG, 12)
    past = floats(RNG, 2, 2, 2, 2, 2)
    whole = np.tril(np.ones((2, 1, 7, 7), np.int32))
    whole[1, 0, :, 1] = 0
    made = Case([x, w, bias, np.ascontiguousarray(whole[:, 0, 2:5, :5]), past], {"num_heads": 2}, (0, 1))
    expected = by_onnxruntime("Attention", made)
    run("Attention", made._replace(inputs=[x, w, bias, whole, past]), *expected)
    packed_batch = np.array([2, 3, 0, 3, 6, 0, 3, 6], np.int32)  # lengths, starts of queries, starts of keys
    q = floats(RNG, 2, 3, 4)
    lengths = Case([q, q, q, None, packed_batch[:2]], {"num_heads": 2})
    expected = by_onnxruntime("MultiHeadAttention", lengths)
    run("MultiHeadAttention", lengths._replace(inputs=[q, q, q, None, packed_batch]), *expected)


def test_positions_of_tokens_may_be_given() -> None:
    q, k, v = (floats(RNG, 1, 2, count * 16) for count in (2, 1, 1))
    empty = np.zeros((1, 1, 0, 16), np.float32)
    angles = RNG.uniform(0, 6, (9, 8))
    lengths = [np.array([1], np.int32), np.array(2, np.int32)]
    caches = [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]
    inputs = [q, k, v, empty, empty, *lengths, *caches, np.array([[3, 4]])]
    agree("GroupQueryAttention", Case(inputs, {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1}, (0, 1, 2)))


def test_rows_outside_of_a_table_are_zeros() -> None:
    table, scales = RNG.integers(0, 256, (3, 16)).astype(np.uint8), floats(RNG, 3, 2)
    made = Case([table, np.array([[-4, -3], [2, 3]]), scales], {"block_size": 16}, known=(0, 2))
    agree("GatherBlockQuantized", made)


def test_blocks_may_be_numbered() -> None:
    weights, scales = RNG.integers(0, 256, (3, 2, 8)).astype(np.uint8), floats(RNG, 3, 2)
    numbered = (np.arange(32) // 16).astype(np.int32)
    attributes = {"K": 32, "N": 3, "block_size": 16}
    made = Case([floats(RNG, 2, 32), weights, scales, None, numbered], attributes, known=(1, 2, 4))
    agree("MatMulNBits", made)
    agree("MatMulNBits", made._replace(known=()))


# --- extremes ---


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "QuickGelu"])
def test_activations_of_extreme_numbers(op: str) -> None:
    values = [0, -0.0, 1e4, -1e4, 1e38, -1e38, np.inf, -np.inf, np.nan, 1e-40, 10, -10]
    agree(op, Case([np.array([values], np.float32)]))


def test_attention_of_extreme_scores() -> None:
    x = np.array([[[1e10, -1e10], [3e4, 2e4], [1, 2]]], np.float32)
    mask = np.array([[1, 0, 1]], np.int32)
    agree("MultiHeadAttention", Case([x, x, x], {"num_heads": 1}))
    for more in ({}, {"mask_filter_value": -3.4e38, "unidirectional": 1}):
        agree("MultiHeadAttention", Case([x, x, x, None, mask], {"num_heads": 1, **more}))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("scale", [1e-6, 1e4])
def test_extremes_of_quantized_numbers(dtype: Any, scale: float) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, info.min + 1, info.max - 1], dtype)
    by, one = np.array(scale, np.float32), np.array(1, np.float32)
    for zero in (np.array(info.min, dtype), np.array(info.max, dtype)):
        agree("QLinearAdd", Case([x, by, zero, x[::-1].copy(), by, zero, one, zero]))
        agree("QLinearSigmoid", Case([x, by, zero, one, zero]))
        agree("QLinearLeakyRelu", Case([x, by, zero, one, zero]))
        least = [np.array(1 / 256, np.float32), np.array(info.min, dtype)]
        agree("QLinearSoftmax", Case([x[None], by, zero, *least], {"opset": 13, "axis": -1}))


def test_a_product_that_is_far_too_large_saturates() -> None:
    """ONNX Runtime 1.32 gives the least number for products above 2 to the power of 31."""
    a, b = np.array([255, 255, 0], np.uint8), np.array([255, 0, 0], np.uint8)
    by, zero = np.array(1e4, np.float32), np.array(128, np.uint8)
    made = Case([a, by, zero, b, by, zero, np.array(1, np.float32), zero])
    run("QLinearMul", made, np.array([255, 0, 255], np.uint8))


def test_weights_of_one_byte_throughout() -> None:
    for bits, byte in ((4, 0), (4, 255), (8, 0), (8, 255)):
        weights = np.full((2, 1, 2 * bits), byte, np.uint8)
        scales = np.array([[1e4], [1e-4]], np.float32)
        attributes = {"K": 16, "N": 2, "bits": bits, "block_size": 16}
        agree("MatMulNBits", Case([np.ones((1, 16), np.float32), weights, scales], attributes))


# --- what it does not run, or not as it should ---


def run(op: str, made: Case, *expected: Any, seed: int = 0) -> None:
    wanted = [np.asarray(each) for each in expected]
    for each in range(seed, seed + 2):
        check(op, made, wanted, each)


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def test_a_bias_and_what_is_beside_it_are_added() -> None:
    x, bias, skip = floats(RNG, 2, 3, 4), floats(RNG, 4), floats(RNG, 2, 3, 4)
    run("BiasAdd", Case([x, bias, skip]), x + bias + skip)


def test_one_half_is_multiplied_by_the_gelu_of_the_other() -> None:
    x, bias = floats(RNG, 2, 3, 8), floats(RNG, 8)
    left, right = np.split(x + bias, 2, axis=2)
    run("BiasSplitGelu", Case([x, bias]), (left * gelu(right)).astype(np.float32))


def group_norm(x: Array, scale: Array, bias: Array, groups: int, silu: bool) -> Array:
    """Of channels that are last."""
    n, h, w, c = x.shape
    parts = x.astype(np.float64).reshape(n, h, w, groups, c // groups)
    centred = parts - parts.mean((1, 2, 4), keepdims=True)
    y = centred / np.sqrt((centred**2).mean((1, 2, 4), keepdims=True) + 1e-5)
    y = y.reshape(x.shape) * scale + bias
    return (y / (1 + np.exp(-y)) if silu else y).astype(x.dtype)


@pytest.mark.parametrize("last", [1, 0])
@pytest.mark.parametrize(
    ("dtype", "of_scale"), [(np.float32,) * 2, (np.float16,) * 2, (np.float16, np.float32)]
)
def test_channels_are_normalized_in_groups(last: int, dtype: Any, of_scale: Any) -> None:
    x, scale, bias = floats(RNG, 2, 3, 2, 6, dtype=dtype), floats(RNG, 6, dtype=of_scale), floats(RNG, 6)
    bias = bias.astype(of_scale)
    near = _near(dtype)
    for silu in (0, 1):
        expected = group_norm(x, scale, bias, 3, bool(silu))
        order = (0, 1, 2, 3) if last else (0, 3, 1, 2)
        attributes = {"groups": 3, "activation": silu, "channels_last": last}
        made = Case([x.transpose(order), scale, bias], attributes, **near)
        run("GroupNorm", made, expected.transpose(order))


@pytest.mark.parametrize("shape", [(2, 3, 2, 6), (2, 1, 1, 6), (2, 6)])
def test_groups_are_normalized_behind_a_sum(shape: tuple[int, ...]) -> None:
    x, skip, scale, bias, more = (floats(RNG, *each) for each in ((2, 3, 2, 6), shape, (6,), (6,), (6,)))
    total = x + (skip.reshape(2, 1, 1, 6) if len(shape) == 2 else skip) + more
    made = Case([x, scale, bias, skip, more], {"groups": 2, "activation": 1}, (0, 1))
    run("SkipGroupNorm", made, group_norm(total, scale, bias, 2, True), total)


def test_filters_of_nhwc_convolutions() -> None:
    """Those of NhwcConv have their channels last, those of NhwcFusedConv do not."""
    attributes = {"group": 2, "kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    x = floats(RNG, 2, 5, 6, 4)
    w = floats(RNG, 6, 2, 3, 3)
    bias = floats(RNG, 6)
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    (expected,) = by_onnxruntime("FusedConv", Case([first, w, bias], attributes))
    expected = np.ascontiguousarray(expected.transpose(0, 2, 3, 1))
    z = floats(RNG, *expected.shape)
    inputs = [x, np.ascontiguousarray(w.transpose(0, 2, 3, 1)), bias]
    run("NhwcConv", Case(inputs, attributes), expected)
    fused = {**attributes, "activation": "Relu"}
    run("NhwcFusedConv", Case([x, w, bias, z], fused), np.maximum(expected + z, 0))


def test_a_product_behind_an_activation() -> None:
    a, b = floats(RNG, 2, 4, 3), floats(RNG, 4, 5)
    attributes = {"transA": 1, "alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.25}
    y = 0.5 * (a.transpose(0, 2, 1) @ b)
    run("FusedMatMulActivation", Case([a, b], attributes), np.where(y > 0, y, 0.25 * y).astype(np.float32))


def attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, *, causal: bool = False, past: int = 0
) -> Array:
    """With heads before positions; ``past``: how many keys lie before the first query."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + np.where(mask != 0, 0, -10000)
    if causal:
        later = np.arange(k.shape[2]) > np.arange(q.shape[2])[:, None] + past
        scores = np.where(later, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1).astype(np.float32)


def _heads(x: Array, n: int) -> Array:
    return x.reshape(*x.shape[:2], n, -1).transpose(0, 2, 1, 3)


def test_queries_keys_and_values_may_be_stacked() -> None:
    stacked = floats(RNG, 2, 3, 4, 3, 5)
    q, k, v = (stacked[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
    run("MultiHeadAttention", Case([stacked], {"num_heads": 4}), attention(q, k, v))
    query, both = floats(RNG, 2, 2, 20), floats(RNG, 2, 3, 4, 2, 5)
    k, v = (both[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2))
    run("MultiHeadAttention", Case([query, both], {"num_heads": 4}), attention(_heads(query, 4), k, v))


def test_a_query_reads_no_later_key() -> None:
    """Where there are more keys, ONNX Runtime lets the last query read all of them."""
    q, k, v = floats(RNG, 1, 2, 6), floats(RNG, 1, 4, 6), floats(RNG, 1, 4, 6)
    expected = attention(*(_heads(each, 2) for each in (q, k, v)), causal=True)
    made = Case([q, k, v], {"num_heads": 2, "unidirectional": 1})
    run("MultiHeadAttention", made, expected)
    (other,) = by_onnxruntime("MultiHeadAttention", made)
    np.testing.assert_allclose(other[:, 0], expected[:, 0], 1e-4, 1e-5)


def test_a_row_without_keys_is_an_ordinary_softmax() -> None:
    """The mask adds to scores, as in ONNX Runtime, also where it is given as lengths."""
    q, k, v = (floats(RNG, 2, 3, 4) for _ in range(3))
    expected = attention(_heads(q, 2), _heads(k, 2), _heads(v, 2))
    for mask in (np.zeros(2, np.int32), np.zeros((2, 3), np.int32)):
        made = Case([q, k, v, None, mask], {"num_heads": 2}, atol=2e-3)
        run("MultiHeadAttention", made, expected)
        np.testing.assert_allclose(by_onnxruntime("MultiHeadAttention", made)[0], expected, 1e-2, 2e-3)


def test_a_past_of_no_elements_is_none() -> None:
    q, k, v = (floats(RNG, 1, 3, 4) for _ in range(3))
    empty = np.zeros((1, 2, 0, 2), np.float32)
    key, value = _heads(k, 2), _heads(v, 2)
    made = Case([q, k, v, None, None, None, empty, empty], {"num_heads": 2}, (0, 1, 2))
    run("MultiHeadAttention", made, attention(_heads(q, 2), key, value), key, value)
    made = Case(
        [q, k, v, empty, empty, np.array([2], np.int32), np.array(3, np.int32)],
        {"num_heads": 2, "kv_num_heads": 2},
        (0, 1, 2),
    )
    run("GroupQueryAttention", made, attention(_heads(q, 2), key, value, causal=True), key, value)


def test_tokens_of_a_batch_may_have_pasts_of_different_lengths() -> None:
    n, groups, e, room = 4, 2, 16, 6
    lengths = np.array([2, 5, 0], np.int32)  # of the past
    q, k, v = (floats(RNG, 3, 1, count * e) for count in (n, groups, groups))
    past = floats(RNG, 2, 3, groups, room, e)
    rows, keys, values = [], past[0].copy(), past[1].copy()
    for item, length in enumerate(lengths):
        for cache, new in ((keys, k), (values, v)):
            cache[item, :, length] = new[item, 0].reshape(groups, e)
        part = slice(item, item + 1)
        wide = [np.repeat(cache[part, :, : length + 1], n // groups, axis=1) for cache in (keys, values)]
        rows.append(attention(_heads(q[part], n), *wide))
    inputs = [q, k, v, *past, lengths, np.array(room, np.int32)]
    made = Case(inputs, {"num_heads": n, "kv_num_heads": groups}, (0, 1, 2))
    run("GroupQueryAttention", made, np.concatenate(rows), keys, values)
    np.testing.assert_allclose(
        by_onnxruntime("GroupQueryAttention", made)[0], np.concatenate(rows), 1e-4, 1e-5
    )


def test_optional_zero_points_may_be_absent() -> None:
    """ONNX Runtime's inference of types refuses QLinearAdd without them."""
    a, b = np.array([0, 10, 255], np.uint8), np.array([3, 0, 255], np.uint8)
    half, one = np.array(0.5, np.float32), np.array(1, np.float32)
    run("QLinearAdd", Case([a, half, None, b, half, None, one]), np.array([2, 5, 255], np.uint8))
    run("QLinearMul", Case([a, half, None, b, half, None, one]), np.array([0, 0, 255], np.uint8))


def test_an_operator_without_a_domain_may_have_constants_only() -> None:
    made = Case([np.float32([[3, 4]]), np.float32([1, 2])], {"epsilon": 0.0}, known=(0, 1))
    run("SimplifiedLayerNormalization", made, np.float32([[3, 8]]) / np.float32(12.5**0.5))


# --- what cannot run ---

NBITS = (np.zeros((1, 1, 8), np.uint8), np.ones((1, 1), np.float32), None)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "reason"),
    [
        ("Inverse", [np.eye(3, dtype=np.float32)], {}, "no DirectML operators are known for Inverse"),
        (
            "RotaryEmbedding",
            [floats(RNG, 1, 2, 4), np.array([0]), floats(RNG, 4, 2), floats(RNG, 4, 2)],
            {"is_packed_batching": 1},
            "RotaryEmbedding of packed batches",
        ),
        (
            "MatMulNBits",
            [floats(RNG, 1, 16), np.zeros((1, 1, 4), np.uint8), np.ones((1, 1), np.float32)],
            {"K": 16, "N": 1, "block_size": 16, "bits": 2},
            "DirectML has no weights of 2 bits",
        ),
        (
            "MatMulNBits",
            [floats(RNG, 1, 16), *NBITS, np.arange(16, dtype=np.int32) % 2],
            {"K": 16, "N": 1, "block_size": 16},
            "MatMulNBits with a g_idx that reorders rows",
        ),
        (
            "Attention",
            [floats(RNG, 1, 2, 4), floats(RNG, 4, 12), floats(RNG, 12)],
            {"num_heads": 2, "do_rotary": 1},
            "Attention with do_rotary 1",
        ),
        (
            "MultiHeadAttention",
            [*[floats(RNG, 1, 2, 4)] * 3, *[None] * 5, np.array([0], np.int32)],
            {"num_heads": 2},
            "MultiHeadAttention with past_sequence_length",
        ),
        (
            "GroupQueryAttention",
            [*[floats(RNG, 1, 2, 4)] * 3, *[None] * 4],
            {"num_heads": 1, "kv_num_heads": 1, "k_quant_type": "PER_TENSOR"},
            "GroupQueryAttention with k_quant_type PER_TENSOR",
        ),
        (
            "FusedGemm",
            [floats(RNG, 2, 2), floats(RNG, 2, 2)],
            {"activation": "Mish"},
            "FusedGemm with the activation Mish",
        ),
    ],
)
def test_what_neither_device_nor_host_runs_is_refused(
    op: str, inputs: Inputs, attributes: dict[str, Any], reason: str
) -> None:
    built = single(op, Case(inputs, attributes), [np.zeros((1, 1), np.float32)])
    for host in ("run", "error"):
        session = InferenceSession(built, host=host)
        with pytest.raises(ModelError, match=rf"{op} 'y0' cannot run on the device: {reason}"):
            session.run(None, feeds(Case(inputs)))


def test_the_guide_lists_the_operators() -> None:
    text = (Path(__file__).parents[2] / "docs/guide/onnx.md").read_text()
    section = text.split("## Operators of ONNX Runtime")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(name for domain, name in LOWERINGS if domain == MICROSOFT)
    untested = (
        set(listed) - set(CASES) - set(re.findall(r'\b(?:run|check)\(\s*"(\w+)"', Path(__file__).read_text()))
    )
    assert untested <= {
        "LayerNormalization",
        "TransposeMatMul",
    }  # FusedMatMul was named so
