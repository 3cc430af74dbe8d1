"""ONNX models: `dmlemu.onnx` beside ONNX Runtime: runs, and start and memory in new processes."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

import model_start
import peers
from cases import Batch, Case
from dmlemu import d3d12, dml

_ROOT = Path(__file__).parents[2]
sys.path += [str(_ROOT / "tests" / "onnx_models"), str(_ROOT / "examples" / "text_recognition")]
import light_models  # noqa: E402
import precision  # noqa: E402

Feeds = dict[str, np.ndarray[Any, np.dtype[Any]]]


class Model(NamedTuple):
    load: Callable[[], onnx.ModelProto]
    tolerance: float = 1e-3
    """Of the results, as a part of the greatest; those of bytes may differ by steps."""


_FORMS = {
    "int8": "int8 QDQ",
    "int8-operators": "int8 QLinearConv",
    "int8-dynamic": "int8 ConvInteger",
}


def models() -> dict[str, Model]:
    """By name, as far as the packages that ship them are installed."""
    found = {
        name: Model(partial(light_models.network, name)) for name in ("light_squeezenet", "light_resnet50")
    }
    for form, title in _FORMS.items():
        load = partial(_quantized, light_models.quantizable_resnet50, form)
        found[f"light_resnet50 {title}"] = Model(load, tolerance=0.02)
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is not None and spec.origin is not None:
        load = partial(onnx.load, Path(spec.origin).parent / "models" / "ch_PP-OCRv4_rec_infer.onnx")
        found["PP-OCRv4 recogniser"] = Model(load)
        found["PP-OCRv4 recogniser int8 QDQ"] = Model(partial(_quantized, load, "int8"), tolerance=0.3)
    return found


def _quantized(load: Callable[[], onnx.ModelProto], form: str) -> onnx.ModelProto:
    model = load()
    return precision.converted(model, form, (feeds_of(model, seed) for seed in (2, 3)))


def feeds_of(model: onnx.ModelProto, seed: int = 1) -> Feeds:
    """Random numbers for its inputs; a text line of 320 columns where sizes are not fixed."""
    known = {each.name for each in model.graph.initializer}
    rng = np.random.default_rng(seed)
    return {
        each.name: rng.normal(size=_shape(each)).astype(np.float32)
        for each in model.graph.input
        if each.name not in known
    }


def _shape(value: onnx.ValueInfoProto) -> list[int]:
    unknown = (1, 3, 48, 320)
    dims = value.type.tensor_type.shape.dim
    return [each.dim_value or unknown[axis] for axis, each in enumerate(dims)]


def model_cases(device: d3d12.Device) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        for name, each in models().items():
            model = each._replace(load=cache(each.load))
            yield _run_case(device, f"ONNX {name}", model)
            for what in model_start.UNITS:
                yield _start_case(Path(folder), name, model.load, what)


def _run_case(device: d3d12.Device, name: str, given: Model) -> Case:
    model = given.load

    def ours() -> Batch:
        from dmlemu.onnx import InferenceSession

        loaded = model()
        feeds = feeds_of(loaded)
        session = InferenceSession(loaded, device=dml.create_device(device))
        expected = peers.loaded_model(loaded)(feeds)[0]
        found = session.run(None, feeds)[0]
        if not np.allclose(found, expected, rtol=1e-3, atol=given.tolerance * np.abs(expected).max()):
            raise AssertionError("the models give different results")
        return Batch(lambda: session.run(None, feeds))

    def peer() -> Batch:
        feeds, run = feeds_of(model()), peers.loaded_model(model())
        return Batch(lambda: run(feeds))

    return Case(name, "packed", ours, {"ORT": peer})


def _start_case(folder: Path, name: str, load: Callable[[], onnx.ModelProto], what: str) -> Case:
    """The first run, in processes of their own that read the model from a file."""

    def path() -> Path:
        found = folder / f"{name}.onnx"
        if not found.exists():
            model = load()
            np.savez(found.with_suffix(".npz"), **feeds_of(model))  # type: ignore[arg-type]
            onnx.save(model, found)
        return found

    def measured(library: str) -> Callable[[], Batch]:
        return lambda: Batch(partial(model_start.measured, library, path(), what), measured=True)

    return Case(f"ONNX {name}", what, measured("dmlemu"), {"ORT": measured("onnxruntime")},
                unit=model_start.UNITS[what], overhead=True)  # fmt: skip
