"""ONNX models: `dmlemu.onnx` beside ONNX Runtime, from arrays to arrays."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import peers
from cases import Batch, Case
from dmlemu import d3d12, dml

sys.path.append(str(Path(__file__).parents[1] / "onnx_models"))
import light_models

Feeds = dict[str, np.ndarray[Any, np.dtype[Any]]]


def model_cases(device: d3d12.Device) -> Iterator[Case]:
    image = {"shape": (1, 3, 224, 224)}
    for name in ("light_squeezenet", "light_resnet50"):
        yield _case(device, f"ONNX {name}", lambda name=name: light_models.network(name), **image)
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "models" / "ch_PP-OCRv4_rec_infer.onnx"
        yield _case(device, "ONNX PP-OCRv4 recogniser", lambda: onnx.load(path), shape=(1, 3, 48, 320))


def _case(
    device: d3d12.Device, name: str, load: Callable[[], onnx.ModelProto], shape: tuple[int, ...]
) -> Case:
    @cache
    def model() -> tuple[onnx.ModelProto, Feeds]:
        loaded = load()
        known = {each.name for each in loaded.graph.initializer}
        [given] = [each.name for each in loaded.graph.input if each.name not in known]
        return loaded, {given: np.random.default_rng(1).normal(size=shape).astype(np.float32)}

    def ours() -> Batch:
        from dmlemu.onnx import InferenceSession

        loaded, feeds = model()
        session = InferenceSession(loaded, device=dml.create_device(device))
        expected = peers.loaded_model(loaded)(feeds)[0]
        found = session.run(None, feeds)[0]
        if not np.allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max()):
            raise AssertionError("the models give different results")
        return Batch(lambda: session.run(None, feeds))

    def peer() -> Batch:
        loaded, feeds = model()
        run = peers.loaded_model(loaded)
        return Batch(lambda: run(feeds))

    return Case(name, "packed", ours, {"ORT": peer})
