"""A buffer as text, number by number as C++ streams print it: six significant digits, ``nan``, ``inf``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["format_bytes", "format_values", "format_values_verbose"]


def format_values(values: np.ndarray[Any, Any]) -> str:
    """``1, 2.5, nan``.  8-bit integers are numbers too (DxDispatch prints them as characters)."""
    if values.dtype.kind == "f":
        return ", ".join(map(_float, values.astype(np.float64).tolist()))
    return ", ".join(map(str, values.tolist()))


def format_values_verbose(values: np.ndarray[Any, Any]) -> str:
    """One line per element: ``[ 3] 1.5 (0x3FC00000)``; the bits are padded with blanks, not zeros."""
    bits = values.view(f"u{values.itemsize}").tolist()
    width, digits = len(str(len(bits))), 2 * values.itemsize
    show = _float if values.dtype.kind == "f" else str
    numbers = values.astype(np.float64).tolist() if values.dtype.kind == "f" else values.tolist()
    return "".join(
        f"[{i:{width}}] {show(number)} (0x{raw:{digits}X})\n"
        for i, (number, raw) in enumerate(zip(numbers, bits, strict=True))
    )


def _float(value: float) -> str:
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    return f"{value:g}"


def format_bytes(size: int) -> str:
    """``7.82 GB``; a size that is exactly one unit is shown in the next smaller one, as in DxDispatch."""
    for unit, name in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if size > unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"
