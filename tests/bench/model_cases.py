"""ONNX models: `dmlemu.onnx` beside ONNX Runtime, from arrays to arrays."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import peers
from cases import Batch, Case
from dmlemu import d3d12, dml

_ROOT = Path(__file__).parents[2]
sys.path += [str(_ROOT / "tests" / "onnx_models"), str(_ROOT / "examples" / "text_recognition")]
import light_models  # noqa: E402
import precision  # noqa: E402

Feeds = dict[str, np.ndarray[Any, np.dtype[Any]]]
Load = Callable[[], onnx.ModelProto]

_FORMS = {
    "int8": "int8 QDQ",
    "int8-operators": "int8 QLinearConv",
    "int8-dynamic": "int8 ConvInteger",
}


def model_cases(device: d3d12.Device) -> Iterator[Case]:
    image = (1, 3, 224, 224)
    for name in ("light_squeezenet", "light_resnet50"):
        yield _case(device, f"ONNX {name}", partial(light_models.network, name), image)
    for form, title in _FORMS.items():
        load = partial(_quantized, light_models.quantizable_resnet50, form, image)
        yield _case(device, f"ONNX light_resnet50 {title}", load, image, tolerance=0.02)
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is not None and spec.origin is not None:
        line, path = (1, 3, 48, 320), Path(spec.origin).parent / "models" / "ch_PP-OCRv4_rec_infer.onnx"
        name, load = "ONNX PP-OCRv4 recogniser", partial(onnx.load, path)
        yield _case(device, name, load, line)
        yield _case(device, f"{name} int8 QDQ", partial(_quantized, load, "int8", line), line, tolerance=0.3)


def _input_of(model: onnx.ModelProto, shape: tuple[int, ...], seed: int = 1) -> Feeds:
    known = {each.name for each in model.graph.initializer}
    [given] = [each.name for each in model.graph.input if each.name not in known]
    return {given: np.random.default_rng(seed).normal(size=shape).astype(np.float32)}


def _quantized(load: Load, form: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    model = load()
    return precision.converted(model, form, (_input_of(model, shape, seed) for seed in (2, 3)))


def _case(
    device: d3d12.Device, name: str, load: Load, shape: tuple[int, ...], tolerance: float = 1e-3
) -> Case:
    """``tolerance``: of the results, as a part of the greatest; those of bytes may differ by steps."""

    @cache
    def model() -> tuple[onnx.ModelProto, Feeds]:
        loaded = load()
        return loaded, _input_of(loaded, shape)

    def ours() -> Batch:
        from dmlemu.onnx import InferenceSession

        loaded, feeds = model()
        session = InferenceSession(loaded, device=dml.create_device(device))
        expected = peers.loaded_model(loaded)(feeds)[0]
        found = session.run(None, feeds)[0]
        if not np.allclose(found, expected, rtol=1e-3, atol=tolerance * np.abs(expected).max()):
            raise AssertionError("the models give different results")
        return Batch(lambda: session.run(None, feeds))

    def peer() -> Batch:
        loaded, feeds = model()
        run = peers.loaded_model(loaded)
        return Batch(lambda: run(feeds))

    return Case(name, "packed", ours, {"ORT": peer})
