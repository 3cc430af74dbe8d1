"""A compute shader with what it is bound to, for tests that compare what several devices make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Buffer", "Case", "Expected", "cbuffer", "differences", "raw", "structured", "typed"]

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
class Expected:
    """What a buffer begins with after the dispatch.

    Numbers are compared bit by bit, NaN with any NaN; ``ulps``: how many steps floats may be away, and
    ``absolute``: or how far; ``unordered``: the rows (of one element, or of the last axis) in any order.
    """

    values: NDArray[Any]
    ulps: int = 0
    absolute: float = 0.0
    unordered: bool = False

    def difference(self, data: bytes) -> str:
        """The first number that is not as expected, as text; empty if all are."""
        values = np.ascontiguousarray(self.values)
        got = np.frombuffer(data[: values.nbytes], values.dtype)
        if len(got) < values.size:
            return f"{len(data)} bytes, expected {values.nbytes}"
        got = got.reshape(values.shape)
        if self.unordered:
            values, got = _sorted(values), _sorted(got)
        wrong = ~self._same(got.ravel(), values.ravel())
        if not wrong.any():
            return ""
        first = int(np.argmax(wrong))
        places = f"[{first}] and {int(wrong.sum()) - 1} more of {wrong.size}"
        return f"{places}: {_shown(got.ravel()[first])}, expected {_shown(values.ravel()[first])}"

    def _same(self, got: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
        unsigned = np.dtype(f"u{values.itemsize}")
        same = got.view(unsigned) == values.view(unsigned)
        if values.dtype.kind != "f":
            return same
        same |= np.isnan(got) & np.isnan(values)
        if self.ulps:
            same |= _steps(got, values) <= self.ulps
        if self.absolute:
            with np.errstate(all="ignore"):
                same |= np.abs(got.astype(np.float64) - values.astype(np.float64)) <= self.absolute
        return same


def _sorted(values: NDArray[Any]) -> NDArray[Any]:
    rows = values.reshape(len(values), -1)
    return rows[np.lexsort(rows.T[::-1])]


def _steps(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers between two floats; infinite for a NaN."""
    steps = np.abs(_place(a) - _place(b))
    return np.where(np.isnan(a) | np.isnan(b), np.inf, steps)


def _place(values: NDArray[Any]) -> NDArray[np.float64]:
    bits = values.view(np.dtype(f"i{values.itemsize}")).astype(np.float64)
    least = float(np.iinfo(np.dtype(f"i{values.itemsize}")).min)
    return np.where(bits < 0, least - bits, bits)


def _shown(value: Any) -> str:
    bits = value.view(np.dtype(f"u{value.dtype.itemsize}"))
    return f"{value} (0x{int(bits):0{2 * value.dtype.itemsize}x})"


@dataclass(frozen=True)
class Case:
    """``buffers``, ``expected``: by register, such as ``u1`` or ``t0, space2``; ``u0.counter``: its counter.

    ``lavapipe``: false where lavapipe must not decide.
    """

    name: str
    source: str
    buffers: Mapping[str, Buffer]
    groups: tuple[int, int, int] = (1, 1, 1)
    entry: str = "main"
    target: str = "cs_6_0"
    arguments: tuple[str, ...] = ()
    expected: Mapping[str, Expected] = field(default_factory=dict)
    lavapipe: bool = True


def differences(case: Case, outputs: Mapping[str, bytes]) -> list[str]:
    """A line for each buffer that is not as expected.  What the compiler found unused is as it was."""
    lines = []
    for register, expected in case.expected.items():
        data = outputs[register] if register in outputs else case.buffers[register].data
        found = expected.difference(data)
        if found:
            lines.append(f"{case.name}: {register}{found}")
    return lines
