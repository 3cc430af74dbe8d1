"""Whole networks: the architectures that the onnx package ships, with random weights (light_models.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from light_models import NAMES, network
from onnx.reference import ReferenceEvaluator

from dmlemu import d3d12, dml
from dmlemu.graph import random_layouts
from dmlemu.onnx import InferenceSession

Array = np.ndarray[Any, np.dtype[Any]]

QUICK = "light_squeezenet"


def image_of(session: InferenceSession) -> dict[str, Array]:
    [argument] = session.get_inputs()
    shape = [size if isinstance(size, int) else 1 for size in argument.shape]
    return {argument.name: np.random.default_rng(3).normal(0, 1, shape).astype(np.float32)}


def expected(model: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    """By ONNX Runtime where it is installed, else by the reference implementation, which takes longer."""
    try:
        import onnxruntime
    except ImportError:
        with np.errstate(all="ignore"):
            found: Array = ReferenceEvaluator(model).run(None, feeds)[0]
        return found
    runtime = onnxruntime.InferenceSession(model.SerializeToString())
    made: Array = runtime.run(None, feeds)[0]
    return made


def test_the_package_ships_nine() -> None:
    assert len(NAMES) == 9 and QUICK in NAMES


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name", [name if name == QUICK else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
)
def test_a_network_is_right_in_any_layout(name: str) -> None:
    model = network(name)
    device = dml.create_device(d3d12.create_device(d3d12.Adapter()))
    session = InferenceSession(model, device=device, host="error")  # all of it runs on the device
    feeds = image_of(session)
    reference = expected(model, feeds)
    assert len(np.unique(reference.round(8))) > 100, "the outputs are all alike, and show no mistake"
    (made,) = session.run(None, feeds)
    np.testing.assert_allclose(made, reference, rtol=2e-3, atol=1e-5 * float(np.abs(reference).max()))
    (other,) = InferenceSession(model, device=device, policy=random_layouts(1)).run(None, feeds)
    np.testing.assert_allclose(other, made, rtol=1e-3, atol=1e-5 * float(np.abs(reference).max()))
