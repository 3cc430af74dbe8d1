"""Number conversion: the rules of CAST, used for every conversion between data types.

* float to narrower float: nearest even, overflow to infinity, NaN stays NaN;
* float to integer: toward zero, then to the nearest limit of the type, NaN to 0;
* integer to narrower integer: the low bits;
* integer to float: nearest even.

DirectML's documentation states only the first part of the second rule; docs/reference/left-open.md gives the
reasons for the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...enums import TensorDataType
from ...tensor_desc import BufferTensorDesc

Array = np.ndarray[Any, Any]

FLOATS = frozenset({TensorDataType.FLOAT64, TensorDataType.FLOAT32, TensorDataType.FLOAT16})


def dtype_of(data_type: TensorDataType) -> np.dtype[Any]:
    """The NumPy type of a tensor's elements."""
    return BufferTensorDesc(data_type, [1]).dtype


def convert(values: Any, data_type: TensorDataType) -> Array:
    """``values`` in the NumPy type of ``data_type``."""
    source, target = np.asarray(values), dtype_of(data_type)
    with np.errstate(over="ignore", invalid="ignore"):
        if source.dtype.kind != "f" or target.kind == "f":
            return source.astype(target)
        limits = np.iinfo(target)
        whole = np.trunc(np.where(np.isnan(source), 0.0, source.astype(np.float64)))
        # The lower limit and the upper limit plus 1 are powers of two (or 0), so they are exact as floats.
        too_high, too_low = whole >= float(limits.max) + 1.0, whole < float(limits.min)
        inside: Array = np.where(too_high | too_low, 0.0, whole).astype(target)
        inside[too_high], inside[too_low] = limits.max, limits.min
        return inside


def float64(values: Any) -> Array:
    """``values`` in FLOAT64 with quiet NaNs: NumPy's fmin and fmax return a signaling NaN."""
    with np.errstate(invalid="ignore"):
        exact: Array = np.asarray(values).astype(np.float64)
    return np.where(np.isnan(exact), np.nan, exact)


def raw_bits(value: float, data_type: TensorDataType) -> int:
    """The bits of ``value``, converted to ``data_type``, as an unsigned number."""
    return int.from_bytes(convert(np.float32(value), data_type).tobytes(), "little")


def unsigned(values: Array) -> Array:
    """The bits of each element as an unsigned number of the same width."""
    bits: Array = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").reshape(values.shape)
    return bits


def low_bits(values: Array, dtype: np.dtype[Any]) -> Array:
    """Python's integers, whatever their size, in an integer type: the low bits."""
    bits: Array = np.asarray(values.astype(object) & ((1 << 8 * dtype.itemsize) - 1))
    return bits.astype(f"u{dtype.itemsize}").view(dtype)
