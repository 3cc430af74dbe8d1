"""What is made of fields of the desc, and bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rows import Array, Node, number_of, row

__all__: list[str] = []


# --- matrices ---


def _diagonal(o: Any) -> Node | None:
    y = o.output_tensor
    inputs = [np.zeros(y.sizes[-2:], y.dtype)]
    value = np.array(o.value).astype(y.dtype)
    return Node("EyeLike", inputs, {"k": o.offset}, lambda eye: np.broadcast_to(eye * value, y.sizes))


def _torch_band(t: Any, sizes: Any, begin: int, end: int) -> Any:
    """True on the diagonals from ``begin`` to before ``end``; otherwise on those that are not from ``end``
    to before ``begin``."""
    if begin > end:
        return ~_torch_band(t, sizes, end, begin)
    return t.ones(tuple(sizes), dtype=t.bool).triu(begin).tril(end - 1)


def _torch_diagonal(t: Any, o: Any) -> Any:
    y = o.output_tensor
    band = _torch_band(t, y.sizes, o.offset, o.offset + 1)
    return t.where(band, float(np.array(o.value).astype(y.dtype)), 0.0)


row("DIAGONAL_MATRIX", _diagonal, _torch_diagonal)


def _trilu(o: Any, x: Array | None) -> Node | None:
    """An upper triangle without its upper diagonals: zeros in a matrix of ones."""
    y = o.output_tensor
    begin, end = sorted((o.diagonal_fill_begin, o.diagonal_fill_end))
    ones = np.triu(np.ones(y.sizes[-2:], np.float32), begin)
    is_turned = o.diagonal_fill_begin > o.diagonal_fill_end
    value = number_of(o.value, o.value_data_type, y.dtype)

    def finish(band: Array) -> Array:
        return np.where((band != 0) ^ is_turned, value, np.zeros(y.sizes, y.dtype) if x is None else x)

    return Node("Trilu", [ones, np.array(end - 1, np.int64)], {"upper": 0}, finish)


def _scipy_band(s: Any, o: Any, x: Array | None) -> Any:
    """By the diagonals of a sparse matrix."""
    y = o.output_tensor
    height, width = y.sizes[-2:]
    begin, end = sorted((o.diagonal_fill_begin, o.diagonal_fill_end))
    diagonals = [d for d in range(begin, end) if -height < d < width]
    band = np.zeros((height, width))
    if diagonals:
        band = s.sparse.diags([1.0] * len(diagonals), diagonals, shape=(height, width)).toarray()
    is_turned = o.diagonal_fill_begin > o.diagonal_fill_end
    value = o.value.value(o.value_data_type)
    return np.where((band != 0) ^ is_turned, value, np.zeros(y.sizes) if x is None else x)


def _torch_diagonals(t: Any, o: Any, x: Any) -> Any:
    y = o.output_tensor
    x = t.zeros(tuple(y.sizes), dtype=getattr(t, y.dtype.name)) if x is None else x
    band = _torch_band(t, y.sizes, o.diagonal_fill_begin, o.diagonal_fill_end)
    return x.masked_fill(band, o.value.value(o.value_data_type))


row("DIAGONAL_MATRIX1", _trilu, _torch_diagonals, _scipy_band)

# --- values ---


def _constant(o: Any) -> Node:
    y = o.output_tensor
    value = number_of(o.value, o.value_data_type, y.dtype)
    return Node("Expand", [value, np.array(y.sizes, np.int64)])


row(
    "FILL_VALUE_CONSTANT",
    _constant,
    lambda t, o: t.full(
        tuple(o.output_tensor.sizes),
        o.value.value(o.value_data_type),
        dtype=getattr(t, o.output_tensor.dtype.name),
    ),
)


def _ends(o: Any) -> tuple[Any, Any, Any] | None:
    """Start, delta, and a limit between the last element and the one behind it; None: the type cannot hold
    them."""
    y = o.output_tensor
    start, delta = (each.value(o.value_data_type) for each in (o.value_start, o.value_delta))
    count = y.element_count
    limit = start + count * delta if y.dtype.kind != "f" else start + (count - 0.5) * delta
    info = np.iinfo(y.dtype) if y.dtype.kind != "f" else np.finfo(y.dtype)
    if delta == 0 or not info.min <= limit <= info.max:
        return None
    return start, delta, limit


def _sequence(o: Any) -> Node | None:
    found, y = _ends(o), o.output_tensor
    if found is None:
        return None
    start, delta, limit = found
    inputs = [np.array(each, y.dtype) for each in (start, limit, delta)]
    return Node("Range", inputs, finish=lambda values: values.reshape(y.sizes))


def _torch_sequence(t: Any, o: Any) -> Any:
    found, y = _ends(o), o.output_tensor
    if found is None:
        return None
    start, delta, limit = found
    values = t.arange(start, limit, delta, dtype=getattr(t, y.dtype.name))
    return values.reshape(tuple(y.sizes))


row("FILL_VALUE_SEQUENCE", _sequence, _torch_sequence, passes="a delta of 0, integers that wrap")


def _torch_bits(t: Any, o: Any, x: Any) -> Any:
    """Shifted out one by one."""
    width = o.input_tensor.dtype.itemsize * 8
    wide = (x.view(getattr(t, f"int{width}")) if x.is_floating_point() else x).long()
    return sum((wide >> bit) & 1 for bit in range(width))


row("ELEMENT_WISE_BIT_COUNT", None, _torch_bits)
