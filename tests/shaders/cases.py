"""A compute shader with what it is bound to, for tests that compare what several devices make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Buffer", "Case", "cbuffer", "raw", "structured", "typed"]

R32G32B32A32_FLOAT, R32_FLOAT, R32_UINT, R32_SINT = 2, 41, 42, 43
R8G8B8A8_UNORM, R8G8B8A8_UINT, R16_FLOAT, R8_UINT = 28, 30, 54, 62


@dataclass(frozen=True)
class Buffer:
    """A view of a whole buffer, and the bytes in it.

    ``kind``: cbuffer, raw, structured or typed.  ``stride``: of a structured element; ``format``: a
    DXGI_FORMAT; ``counter``: the counter of a structured UAV.
    """

    kind: str
    data: bytes
    stride: int = 0
    format: int = 0
    counter: int | None = None


def _bytes(values: NDArray[np.generic] | bytes) -> bytes:
    return values if isinstance(values, bytes) else np.ascontiguousarray(values).tobytes()


def cbuffer(values: NDArray[np.generic] | bytes) -> Buffer:
    data = _bytes(values)
    return Buffer("cbuffer", data + bytes(-len(data) % 256))


def raw(values: NDArray[np.generic] | bytes) -> Buffer:
    return Buffer("raw", _bytes(values))


def structured(values: NDArray[np.generic] | bytes, stride: int = 0, counter: int | None = None) -> Buffer:
    """``stride``: by default the size of a number."""
    size = stride or (1 if isinstance(values, bytes) else values.itemsize)
    return Buffer("structured", _bytes(values), size, 0, counter)


def typed(values: NDArray[np.generic] | bytes, format: int) -> Buffer:
    return Buffer("typed", _bytes(values), 0, format)


@dataclass(frozen=True)
class Case:
    """``buffers``: by register, such as ``u1`` or ``t0, space2``."""

    name: str
    source: str
    buffers: Mapping[str, Buffer]
    groups: tuple[int, int, int] = (1, 1, 1)
    entry: str = "main"
    target: str = "cs_6_0"
    arguments: tuple[str, ...] = ()
    expected: Mapping[str, bytes] = field(default_factory=dict)
    """By register; the counter of ``u0`` is ``u0.counter``."""

    def with_groups(self, *groups: int) -> Case:
        return replace(self, groups=groups)
