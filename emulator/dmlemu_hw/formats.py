"""The DXGI formats of views: their elements, which of them a shader can have, and what a clear writes.

``kernels_c/shaders/memory.c`` has those with a type once more, and the API theirs from the names
(``dmlemu.d3d12.types.formats``); tests compare all three.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

# DXGI_FORMAT: kind, and bits of each component, the lowest first; raw (typeless) formats store the bits
# unchanged.
_FORMATS = {
    1: ("raw", (32, 32, 32, 32)),  # R32G32B32A32
    2: ("float", (32, 32, 32, 32)),
    3: ("uint", (32, 32, 32, 32)),
    4: ("sint", (32, 32, 32, 32)),
    6: ("float", (32, 32, 32)),  # R32G32B32
    7: ("uint", (32, 32, 32)),
    8: ("sint", (32, 32, 32)),
    9: ("raw", (16, 16, 16, 16)),  # R16G16B16A16
    10: ("float", (16, 16, 16, 16)),
    11: ("unorm", (16, 16, 16, 16)),
    12: ("uint", (16, 16, 16, 16)),
    13: ("snorm", (16, 16, 16, 16)),
    14: ("sint", (16, 16, 16, 16)),
    15: ("raw", (32, 32)),  # R32G32
    16: ("float", (32, 32)),
    17: ("uint", (32, 32)),
    18: ("sint", (32, 32)),
    24: ("unorm", (10, 10, 10, 2)),  # R10G10B10A2
    25: ("uint", (10, 10, 10, 2)),
    26: ("float", (11, 11, 10)),  # R11G11B10
    28: ("unorm", (8, 8, 8, 8)),  # R8G8B8A8
    30: ("uint", (8, 8, 8, 8)),
    31: ("snorm", (8, 8, 8, 8)),
    32: ("sint", (8, 8, 8, 8)),
    34: ("float", (16, 16)),  # R16G16
    35: ("unorm", (16, 16)),
    36: ("uint", (16, 16)),
    37: ("snorm", (16, 16)),
    38: ("sint", (16, 16)),
    39: ("raw", (32,)),  # R32
    41: ("float", (32,)),
    42: ("uint", (32,)),
    43: ("sint", (32,)),
    49: ("unorm", (8, 8)),  # R8G8
    50: ("uint", (8, 8)),
    51: ("snorm", (8, 8)),
    52: ("sint", (8, 8)),
    53: ("raw", (16,)),  # R16
    54: ("float", (16,)),
    56: ("unorm", (16,)),
    57: ("uint", (16,)),
    58: ("snorm", (16,)),
    59: ("sint", (16,)),
    61: ("unorm", (8,)),  # R8
    62: ("uint", (8,)),
    63: ("snorm", (8,)),
    64: ("sint", (8,)),
    65: ("unorm", (8,)),  # A8
    85: ("unorm", (5, 6, 5)),  # B5G6R5
    86: ("unorm", (5, 5, 5, 1)),  # B5G5R5A1
    87: ("unorm", (8, 8, 8, 8)),  # B8G8R8A8
    115: ("unorm", (4, 4, 4, 4)),  # B4G4R4A4
    191: ("unorm", (4, 4, 4, 4)),  # A4B4G4R4
}
# Which of the four values (R, G, B, A) each component takes, for formats in another order.
_ORDERS = {
    65: (3,),
    85: (2, 1, 0),
    86: (2, 1, 0, 3),
    87: (2, 1, 0, 3),
    115: (2, 1, 0, 3),
    191: (3, 2, 1, 0),
}


def element_size(format: int) -> int | None:
    """Bytes of one element; None: the format cannot be cleared."""
    known = _FORMATS.get(format)
    return None if known is None else sum(known[1]) // 8


def number_type(format: int) -> str:
    """The type of the numbers as they are stored, such as ``"FLOAT16"``; "": they are no whole bytes."""
    kind, bits = _FORMATS.get(format, ("", ()))
    if not bits or bits[0] not in (8, 16, 32) or len(set(bits)) > 1:
        return ""
    name = {"float": "FLOAT", "sint": "INT", "snorm": "INT"}.get(kind, "UINT")
    return f"{name}{bits[0]}"


# The kinds of formats that a typed buffer of a shader can have, by DXIL's name of its components.  Those of
# 64 bits are two components of type uint.
_OF_COMPONENTS = {
    "float": ("float", "unorm", "snorm"),
    "half": ("float", "unorm", "snorm"),
    "uint": ("uint",),
    "ushort": ("uint",),
    "int": ("sint",),
    "short": ("sint",),
}


@lru_cache
def formats_of(element: str) -> bytes:
    """For each DXGI_FORMAT below 256 the bytes of an element; 0: a shader's typed buffer cannot have it.

    ``element``: the type of its components, ``Range.element`` of ``dmlemu.shaders``.
    """
    kinds = _OF_COMPONENTS.get(element, ())
    sizes = bytearray(256)
    for number, (kind, bits) in _FORMATS.items():
        if kind in kinds:
            sizes[number] = sum(bits) // 8
    return bytes(sizes)


@lru_cache(maxsize=1024)
def clear_pattern(
    format: int, values: tuple[int, int, int, int], is_float: bool
) -> npt.NDArray[np.uint8] | None:
    """The bytes of one cleared element; None: the format cannot be cleared.

    ``values`` are raw u32.  A uint clear stores the low bits of each, as many as its component has.  A float
    clear converts them from FLOAT32 by the Direct3D data conversion rules; typeless formats store the bits.
    """
    known = _FORMATS.get(format)
    if known is None:
        return None
    kind, bits = known
    convert = _CONVERSIONS[kind] if is_float else _low_bits
    element, shift = 0, 0
    for width, component in zip(bits, _ORDERS.get(format, range(len(bits))), strict=True):
        element |= convert(values[component], width) << shift
        shift += width
    return np.frombuffer(element.to_bytes(shift // 8, "little"), np.uint8)


def _low_bits(raw: int, bits: int) -> int:
    return raw & ((1 << bits) - 1)


def _float(raw: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", raw))[0]
    return value


def _clamped(raw: int, low: float, high: float) -> float:
    """The FLOAT32 value clamped to the limits; NaN gives 0."""
    value = _float(raw)
    return 0.0 if math.isnan(value) else min(max(value, low), high)


def _to_unorm(raw: int, bits: int) -> int:
    """To the nearest, halves away from 0."""
    return int(_clamped(raw, 0.0, 1.0) * ((1 << bits) - 1) + 0.5)


def _to_snorm(raw: int, bits: int) -> int:
    """To the nearest, halves away from 0; the lowest integer, a second encoding of -1, is not used."""
    scaled = _clamped(raw, -1.0, 1.0) * ((1 << (bits - 1)) - 1)
    return _low_bits(int(scaled + math.copysign(0.5, scaled)), bits)


def _to_uint(raw: int, bits: int) -> int:
    """Truncated."""
    return int(_clamped(raw, 0, (1 << bits) - 1))


def _to_sint(raw: int, bits: int) -> int:
    """Truncated."""
    highest = (1 << (bits - 1)) - 1
    return _low_bits(int(_clamped(raw, -highest - 1, highest)), bits)


def _to_float(raw: int, bits: int) -> int:
    if bits == 32:
        return raw
    if bits == 16:  # rounds to nearest even, overflows to infinity
        with np.errstate(over="ignore"):
            return int(np.uint32(raw).view(np.float32).astype(np.float16).view(np.uint16))
    return _to_small_float(raw, bits)


def _to_small_float(raw: int, bits: int) -> int:
    """To 11 or 10 bits: no sign, 5 bits of exponent.

    Rounds towards 0: overflow gives the largest finite number.  Negative numbers give 0.
    """
    mantissa, infinite = bits - 5, 31 << (bits - 5)
    value = _float(raw)
    if math.isnan(value):
        return infinite | 1 << (mantissa - 1)
    if math.isinf(value) and value > 0:
        return infinite
    if value <= 0:
        return 0
    exponent = max(math.frexp(value)[1] - 1, -14)
    steps = int(math.ldexp(value, mantissa - exponent))  # includes the implicit bit
    return min(((exponent + 14) << mantissa) + steps, infinite - 1)


_CONVERSIONS: dict[str, Callable[[int, int], int]] = {
    "raw": _low_bits,
    "float": _to_float,
    "uint": _to_uint,
    "sint": _to_sint,
    "unorm": _to_unorm,
    "snorm": _to_snorm,
}
