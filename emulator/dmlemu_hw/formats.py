"""The DXGI formats whose views can be cleared, and what a clear writes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

# DXGI_FORMAT: components and the type of each; raw (typeless) ones take the bits as they come.
_FORMATS = {
    1: (4, "raw32"),  # R32G32B32A32
    2: (4, "float32"),
    3: (4, "uint32"),
    4: (4, "int32"),
    9: (4, "raw16"),  # R16G16B16A16
    10: (4, "float16"),
    12: (4, "uint16"),
    14: (4, "int16"),
    15: (2, "raw32"),  # R32G32
    16: (2, "float32"),
    17: (2, "uint32"),
    18: (2, "int32"),
    30: (4, "uint8"),  # R8G8B8A8
    32: (4, "int8"),
    34: (2, "float16"),  # R16G16
    36: (2, "uint16"),
    38: (2, "int16"),
    39: (1, "raw32"),  # R32
    41: (1, "float32"),
    42: (1, "uint32"),
    43: (1, "int32"),
    50: (2, "uint8"),  # R8G8
    52: (2, "int8"),
    53: (1, "raw16"),  # R16
    54: (1, "float16"),
    57: (1, "uint16"),
    59: (1, "int16"),
    62: (1, "uint8"),  # R8
    64: (1, "int8"),
}


def element_size(format: int) -> int | None:
    """Bytes of one element; None: the format cannot be cleared."""
    pattern = clear_pattern(format, (0, 0, 0, 0), False)
    return None if pattern is None else len(pattern)


@cache
def clear_pattern(
    format: int, values: tuple[int, int, int, int], is_float: bool
) -> npt.NDArray[np.uint8] | None:
    """The bytes of one cleared element; None: the format cannot be cleared.

    ``values`` are raw u32.  A uint clear cuts them to the component's width.  A float clear takes
    them as FLOAT32 and converts: to FLOAT16 rounding to nearest even, to integers truncating and
    saturating with NaN as 0; typeless formats get the bits.
    """
    known = _FORMATS.get(format)
    if known is None:
        return None
    count, name = known
    raw = np.array(values[:count], np.uint32)
    if is_float and not name.startswith("raw"):
        return _convert(raw.view(np.float32), np.dtype(name)).view(np.uint8)
    width = np.dtype(name.replace("raw", "uint")).itemsize
    return raw.astype(f"u{width}").view(np.uint8)


def _convert(values: npt.NDArray[np.float32], to: np.dtype[Any]) -> npt.NDArray[Any]:
    if to.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(to)
    limits = np.iinfo(to)
    whole = np.trunc(np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=2.0**63, neginf=-(2.0**63)))
    return np.clip(whole, limits.min, limits.max).astype(to)
