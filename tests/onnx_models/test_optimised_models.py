"""Models as ONNX Runtime's optimiser and quantiser write them, with operators of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import Array

from dmlemu.onnx import InferenceSession, compare

ort = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)


def parsed(text: str, opset: int, **weights: tuple[int, ...]) -> onnx.ModelProto:
    """A model, with random weights of these shapes."""
    made = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> {text}')
    for name, shape in weights.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(floats(*shape) / 2, name))
    return made


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def optimised(model: onnx.ModelProto, folder: Path) -> tuple[onnx.ModelProto, Any]:
    """What ONNX Runtime makes of it, and its session."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(options.optimized_model_filepath), session


def check(model: onnx.ModelProto, folder: Path, operators: set[str], **feeds: Array) -> None:
    """Runs it optimised, on the device alone; ``operators``: those of ONNX Runtime that are in it then."""
    made, session = optimised(model, folder)
    assert {node.op_type for node in made.graph.node if node.domain == "com.microsoft"} == operators
    found = InferenceSession(made, host="error").run(None, feeds)
    for got, want in zip(found, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)


def test_a_feed_forward_block(tmp_path: Path) -> None:
    text = """
    g (float[b, 5, 8] x, float[b, 5, 8] t) => (float[b, 5, 8] y, float[b, 5, 5] z)
    <float half = {0.5}, float one = {1.0}, float root = {1.4142135}> {
        h = MatMul(x, w1) a = Add(h, b1)
        d = Div(a, root) e = Erf(d) f = Add(e, one) m = Mul(a, f) p = Mul(m, half)
        o = MatMul(p, w2) q = Add(o, b2) r = Add(q, x)
        y = LayerNormalization <axis = -1, epsilon = 0.00001> (r, s, c)
        u = Transpose <perm = [0, 2, 1]> (t) v = MatMul(x, u) z = Mul(v, half)
    }"""
    model = parsed(text, 17, w1=(8, 16), b1=(16,), w2=(16, 8), b2=(8,), s=(8,), c=(8,))
    operators = {"BiasGelu", "SkipLayerNormalization", "FusedMatMul"}
    check(model, tmp_path, operators, x=floats(2, 5, 8), t=floats(2, 5, 8))


def test_normalizations_of_operator_sets_that_have_none(tmp_path: Path) -> None:
    """ONNX Runtime writes them without its domain."""
    text = """
    g (float[b, 5, 8] x) => (float[b, 5, 8] y) <float two = {2.0}, float small = {0.00001}> {
        m = ReduceMean <axes = [-1]> (x) d = Sub(x, m) p = Pow(d, two) v = ReduceMean <axes = [-1]> (p)
        e = Add(v, small) r = Sqrt(e) n = Div(d, r) t = Mul(n, s) y = Add(t, c)
    }"""
    model = parsed(text, 13, s=(8,), c=(8,))
    made, _ = optimised(model, tmp_path)
    assert [(node.domain, node.op_type) for node in made.graph.node] == [("", "LayerNormalization")]
    check(model, tmp_path, set(), x=floats(2, 5, 8))
    assert compare(made, {"x": floats(2, 5, 8)}, against="onnxruntime") is None


def test_convolutions_with_what_is_behind_them(tmp_path: Path) -> None:
    text = """
    g (float[b, 3, 8, 8] x) => (float[b, 4, 8, 8] y) {
        a = Conv <pads = [1, 1, 1, 1]> (x, w1, b1) r = LeakyRelu <alpha = 0.2> (a)
        c = Conv <pads = [1, 1, 1, 1]> (r, w2, b2) s = Add(c, r) y = Relu(s)
    }"""
    model = parsed(text, 17, w1=(4, 3, 3, 3), b1=(4,), w2=(4, 4, 3, 3), b2=(4,))
    check(model, tmp_path, {"FusedConv"}, x=floats(2, 3, 8, 8))


def test_products_of_inputs_that_are_quantized_at_run_time(tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    text = "g (float[b, 8] x) => (float[b, 4] y) {h = MatMul(x, w) y = Add(h, c)}"
    source, target = tmp_path / "net.onnx", tmp_path / "quantized.onnx"
    onnx.save(parsed(text, 17, w=(8, 4), c=(4,)), source)
    # Weights of 7 bits: without VNNI, ONNX Runtime adds pairs of products in 16 bits, which saturate.
    quantization.quantize_dynamic(source, target, per_channel=True, reduce_range=True)
    check(onnx.load(target), tmp_path, {"DynamicQuantizeMatMul"}, x=floats(3, 8))


def test_sums_of_bytes_are_exact_on_both_sides() -> None:
    """Without VNNI, ONNX Runtime's sums of two products saturate, unless its precision mode is on."""
    made = parsed("g (uint8[b, 64] x) => (int32[b, 4] y) {y = MatMulInteger(x, w)}", 17)
    weights = np.full((64, 4), 127, np.int8)
    made.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    assert compare(made, {"x": np.full((3, 64), 255, np.uint8)}, against="onnxruntime") is None


def test_weights_that_are_quantized_in_blocks() -> None:
    """By the function with which ONNX Runtime's quantiser packs them."""
    state = pytest.importorskip("onnxruntime.capi._pybind_state")
    k, n, block = 80, 12, 32  # the last block is not whole
    weights, x = floats(k, n), floats(3, k)
    for symmetric in (True, False):
        packed = np.zeros((n, 3, block // 2), np.uint8)
        scales, zeros = np.zeros(n * 3, np.float32), np.zeros((n, 2), np.uint8)
        state.quantize_matmul_4bits(packed, weights, scales, zeros.reshape(-1), block, n, k, symmetric)
        model = parsed(
            f"g (float[b, {k}] x) => (float[b, {n}] y) {{y = com.microsoft.MatMulNBits <K = {k}, N = {n}, "
            f"block_size = {block}> (x, packed, scales{'' if symmetric else ', zeros'})}}",
            17,
        )
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
        given = {"packed": packed, "scales": scales} | ({} if symmetric else {"zeros": zeros})
        model.graph.initializer.extend(
            onnx.numpy_helper.from_array(each, name) for name, each in given.items()
        )
        (found,) = InferenceSession(model, host="error").run(None, {"x": x})
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(found, session.run(None, {"x": x})[0], 1e-4, 1e-4)
        assert np.corrcoef(found.ravel(), (x @ weights).ravel())[0, 1] > 0.98
