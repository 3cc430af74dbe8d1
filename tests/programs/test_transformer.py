"""The transformer example, small, beside the same layers in NumPy."""

from __future__ import annotations

import sys
from math import erf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "transformer"
sys.path.insert(0, str(FOLDER))
import transformer  # noqa: E402
from transformer import Encoder, Shape  # noqa: E402

import dmlemu  # noqa: E402
from dmlemu import dml  # noqa: E402

Array = np.ndarray[Any, np.dtype[Any]]


def in_numpy(shape: Shape, x: Array, weights: list[Array]) -> Array:
    """The layers, with the weights taken in order."""
    left = iter(weights)

    def linear(x: Array) -> Array:
        weight, bias = next(left), next(left)
        return x @ weight.astype(np.float64) + bias

    def normalized(x: Array) -> Array:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def heads(x: Array) -> Array:
        return x.reshape(*x.shape[:2], shape.heads, -1).swapaxes(1, 2)

    def gelu(x: Array) -> Array:
        return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))

    x = x[0].astype(np.float64)
    for _ in range(shape.layers):
        normal = normalized(x)
        q, k, v = (heads(linear(normal)) for _ in range(3))
        powers = np.exp(q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]))
        found = (powers / powers.sum(-1, keepdims=True)) @ v
        x = x + linear(found.swapaxes(1, 2).reshape(x.shape))
        x = x + linear(gelu(linear(normalized(x))))
    return x[None]


def test_the_layers_are_those_of_numpy() -> None:
    shape = Shape(batch=2, words=5, width=12, heads=3, layers=2)
    encoder = Encoder(dml.create_device(dmlemu.d3d12.create_device()), shape)
    x = encoder.random.standard_normal(encoder.x.sizes, np.float32)

    found = dmlemu.evaluate(encoder.output, x=x)
    np.testing.assert_allclose(found, in_numpy(shape, x, encoder.weights), rtol=2e-5, atol=2e-5)


def test_the_program_prints_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    transformer.main(["--words", "6", "--layers", "1"])
    graph, output, words = capsys.readouterr().out.splitlines()

    assert graph.startswith("<CompiledGraph compiled operator ") and "'encoder'" in graph
    assert output.startswith("output (1, 2, 6, 64), mean ")
    assert len(words.partition(": ")[2].split()) == 6
