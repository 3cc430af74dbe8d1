"""What an ONNX model is run on: arrays that are made by rule, and the command line's words for inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from .usage import UsageError

__all__ = ["as_shape", "given_sizes", "made_array", "pairs", "sizes_of_denotations", "sizes_of_names"]

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_BYTES = (1 << 32) - 4  # of a tensor of DirectML
_AT_ONCE = 1 << 20


def made_array(number: int, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """For the input of this number: floats of [-1, 1), whole numbers of 0 and 1, the same in each run.

    ValueError: the shape is too large for a tensor, or for this machine.
    """
    if prod(shape) * dtype.itemsize > _MOST_BYTES:
        raise ValueError(f"shape {list(shape)} is too large")
    rng = np.random.default_rng(number)
    try:
        made = np.empty(shape, dtype)
    except (ValueError, MemoryError):
        raise ValueError(f"shape {list(shape)} is too large") from None
    flat = made.reshape(-1)
    for start in range(0, flat.size, _AT_ONCE):
        part = flat[start : start + _AT_ONCE]
        part[:] = rng.uniform(-1, 1, part.size) if dtype.kind == "f" else rng.integers(0, 2, part.size)
    return made


def sizes_of_denotations(model: Any, denoted: Mapping[str, int]) -> dict[str, int]:
    """The sizes, by their names, of dimensions of inputs that the model denotes so.

    Those that have no name get their size in ``model``, an ``onnx.ModelProto``.
    """
    found = {}
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.denotation in denoted and not dim.HasField("dim_value"):
                if dim.dim_param:
                    found[dim.dim_param] = denoted[dim.denotation]
                else:
                    dim.dim_value = denoted[dim.denotation]
    return found


def sizes_of_names(
    shapes: Mapping[str, Sequence[int | str | None]], given: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """The sizes of dimensions by name, from the shapes that some inputs are given."""
    found: dict[str, int] = {}
    for name, sizes in given.items():
        for dimension, size in zip(shapes[name], sizes, strict=False):
            if isinstance(dimension, str):
                found.setdefault(dimension, size)
    return found


def as_shape(text: str) -> tuple[int, ...] | None:
    """``1,3,224,224``, with or without brackets; None: it is something else."""
    if not re.fullmatch(r"(\[)?\d{1,18}(,\d{1,18})*(?(1)\])", text):
        return None
    return tuple(int(each) for each in text.strip("[]").split(","))


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """The values of an option by name: ``name=value``, or as DxDispatch has it ``name:value``.

    Names of tensors may have colons, as ``input:0``.  UsageError: one has another form, or is given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=") if "=" in text else text.rpartition(":")
        if not separator or not name or not value:
            raise UsageError(f"{option} {text}: expected NAME=VALUE")
        if name in found:
            raise UsageError(f"{option} {text}: {name} is given twice, {found[name]} before")
        found[name] = value
    return found


def given_sizes(texts: Sequence[str], option: str) -> dict[str, int]:
    """The values of ``-f`` and ``-F``."""
    return {name: _size(text, f"{option} {name}={text}") for name, text in pairs(texts, option).items()}


def _size(text: str, option: str) -> int:
    if not text.isdecimal() or len(text) > 10 or not int(text):
        raise UsageError(f"{option}: expected a size of at least 1, of at most 10 digits")
    return int(text)
