"""The example with shaders beside DirectML: its numbers, and what is reported where a barrier is missing."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu import Error

pytest.importorskip("llvmlite", reason="the extra hlsl is not installed")

__dmlemu_helper__ = True  # reports name lines of what it runs

FOLDER = Path(__file__).parents[2] / "examples" / "shaders"
SOURCE = (FOLDER / "pixels.py").read_text(encoding="utf-8").splitlines(keepends=True)
BARRIERS = [i for i, line in enumerate(SOURCE) if re.match(r" +session\.(barrier|transition)\(", line)]
# What is reported without each of them, and what the hint asks for.
MISSING = [
    ("STATE_BEFORE", "Record a transition of buffer 'pixels' from COPY_DEST to NON_PIXEL_SHADER_RESOURCE"),
    ("HAZARD_RAW", "ResourceBarrier(UAV('tensor'))"),
    ("STATE_BEFORE", "a transition of buffer 'scores' from UNORDERED_ACCESS to NON_PIXEL_SHADER_RESOURCE"),
    ("STATE_BEFORE", "Record a transition of buffer 'classes' from UNORDERED_ACCESS to COPY_SOURCE"),
]

Array = np.ndarray[Any, np.dtype[Any]]


def program(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the lines of the example define."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    made: dict[str, Any] = {"__name__": "pixels", "__file__": str(FOLDER / "pixels.py")}
    exec(compile("".join(lines), made["__file__"], "exec"), made)
    return made


def drawn(seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    weights = random.standard_normal((4, 3, 3, 3), np.float32)
    return random.integers(0, 256, (64, 64, 4), np.uint8), weights - weights.mean((1, 2, 3), keepdims=True)


def expected(image: Array, weights: Array) -> Array:
    """By NumPy, in doubles."""
    tensor = np.pad((image[..., :3] / 255).transpose(2, 0, 1), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(tensor, (3, 3), (1, 2))
    scores = np.einsum("cyxij,kcij->kyx", windows, weights.astype(np.float64))
    best = np.sort(scores, axis=0)
    assert (best[-1] - best[-2]).min() > 1e-5, "rounding could decide"
    return scores.argmax(axis=0)


@pytest.mark.parametrize("seed", [1, 5])
def test_its_numbers_are_those_of_numpy(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    image, weights = drawn(seed)
    classes = program(SOURCE, monkeypatch)["classify"](image, weights)
    assert classes.tolist() == expected(image, weights).tolist()


@pytest.mark.parametrize(
    ("line", "id", "hint"),
    [
        pytest.param(line, id, hint, marks=pytest.mark.dmlemu(expect=[id]), id=f"{id}-{line}")
        for line, (id, hint) in zip(BARRIERS, MISSING, strict=True)
    ],
)
def test_each_barrier_that_is_missing_is_named(
    line: int, id: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = [*SOURCE[:line], "\n", *SOURCE[line + 1 :]]
    with pytest.raises(Error) as raised:
        program(without, monkeypatch)["classify"](*drawn(1))
    report = raised.value.report
    assert (report.id, hint in report.hint) == (id, True), report.hint
