"""The ResNet-50 example, small, beside the same network in NumPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "resnet50"
sys.path.insert(0, str(FOLDER))
import resnet50  # noqa: E402
from resnet50 import Shape  # noqa: E402

import dmlemu  # noqa: E402

Array = np.ndarray[Any, np.dtype[Any]]


def windows(x: Array, size: int, stride: int, padding: int, fill: float) -> Array:
    """[n, c, y, x, size, size] of the windows of an image."""
    around = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    padded = np.pad(x, around, constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))[:, :, ::stride, ::stride]


def in_numpy(shape: Shape, image: Array, weights: list[Array]) -> Array:
    """The network, with the weights taken in order."""
    left = iter([each.astype(np.float64) for each in weights])

    def convolution(x: Array, stride: int = 1, relu: bool = True) -> Array:
        weight, bias = next(left), next(left)
        size = weight.shape[-1]
        y = np.einsum("ncyxij,fcij->nfyx", windows(x, size, stride, size // 2, 0), weight) + bias
        return np.maximum(y, 0) if relu else y

    x = windows(convolution(image.astype(np.float64), 2), 3, 2, 1, -np.inf).max((-1, -2))
    for stage, blocks in enumerate(shape.blocks):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            has_convolution = stride != 1 or x.shape[1] != 4 * shape.width << stage
            shortcut = convolution(x, stride, relu=False) if has_convolution else x
            y = convolution(convolution(convolution(x), stride), relu=False)
            x = np.maximum(y + shortcut, 0)
    scores = x.mean((2, 3)) @ next(left)[0, 0].T + next(left)[0, 0]
    exponentials = np.exp(scores - scores.max(1, keepdims=True))
    return exponentials / exponentials.sum(1, keepdims=True)


def test_a_small_one_gives_what_numpy_gives() -> None:
    shape = Shape(batch=2, size=64, width=8, blocks=(1, 2, 1, 1), classes=10)
    image = np.random.default_rng(5).random((2, 3, 64, 64), np.float32)
    found, seconds, _ = resnet50.classify(shape, image, repeat=2)
    with dmlemu.Session() as session:
        _, weights = resnet50.build(session.dml, shape)
    assert len(seconds) == 2
    assert np.allclose(found.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(found, in_numpy(shape, image, weights), rtol=2e-3, atol=1e-6)


@pytest.mark.long
def test_it_runs_as_printed() -> None:
    program = [sys.executable, FOLDER / "resnet50.py", "--repeat", "1"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert "MiB of temporary memory" in done.stdout and "most probable classes: 476" in done.stdout


@pytest.mark.parametrize("wrong", [["--size", "33"], ["--batch", "0"]])
def test_wrong_arguments_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        resnet50.main(wrong)
    assert caught.value.code == 2 and "--size a positive multiple of 32" in capsys.readouterr().err
