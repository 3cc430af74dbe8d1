"""Distances between floats, in units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ulp_distance"]


def ulp_distance(a: Any, b: Any) -> int | None:
    """How many steps from number to number lie between two floats; None for NaNs and integers."""
    if a.dtype.kind != "f" or np.isnan(a) or np.isnan(b):
        return None
    return abs(_ordered(a) - _ordered(b))


def _ordered(value: Any) -> int:
    """Integers in the order of the floats, without a gap; 0 and -0 are the same."""
    bits = int(value.view(np.dtype(f"i{value.dtype.itemsize}")))
    return bits if bits >= 0 else -(bits & (1 << value.dtype.itemsize * 8 - 1) - 1)
