"""Shared by the tests of gathers and scatters."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import ALL_TYPES, Array, dtype_of, elements, logical, tensors

from dmlemu.dml import BufferTensorDesc
from dmlemu.dml import TensorDataType as T

INDEX_TYPES = [T.INT64, T.INT32, T.UINT64, T.UINT32]


def packed(array: Array) -> BufferTensorDesc:
    types = {dtype_of(each): each for each in ALL_TYPES}
    return BufferTensorDesc(types[array.dtype], array.shape)


def last(sizes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The sizes after 1s."""
    return (1,) * (rank - len(sizes)) + tuple(sizes)


def any_tensor(data: st.DataObject, sizes: tuple[int, ...], data_type: T) -> BufferTensorDesc:
    return data.draw(tensors(data_type, sizes))


def any_indices(data: st.DataObject, desc: BufferTensorDesc, size: int) -> Array:
    """Indices into about ``size`` elements, now and then outside."""
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    outside = data.draw(st.integers(0, 2))
    least = 0 if desc.dtype.kind == "u" else -size - outside
    memory = generator.integers(least, size + outside, elements(desc)).astype(desc.dtype)
    return logical(memory, desc)


def tuple_shapes(data: st.DataObject, batch: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes of a table and of tuples that index it, both after ``batch`` common ones."""
    size = st.integers(1, 4)

    def drawn(least: int, most: int) -> tuple[int, ...]:
        return tuple(data.draw(st.lists(size, min_size=least, max_size=most)))

    common, table, own = drawn(batch, batch), drawn(1, 4), drawn(0, 2)
    return (*common, *table), (*common, *own, data.draw(st.integers(1, len(table))))


def fields_of_tuples(
    data: st.DataObject, batch: int, values: str, output: bool
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Fields that GATHER_ND and SCATTER_ND share, and the indices; ``values``: the field with the blocks."""
    table, indices = tuple_shapes(data, batch)
    blocks = (*indices[:-1], *table[batch + indices[-1] :])
    rank = data.draw(st.integers(max(1, len(table), len(indices), len(blocks)), 8))
    differ = data.draw(st.booleans())  # the dimensions of each tensor are counted from the last one

    def other(sizes: tuple[int, ...]) -> int:
        return data.draw(st.integers(max(1, len(sizes)), 8)) if differ else rank

    data_type = data.draw(st.sampled_from(ALL_TYPES))
    fields = {
        "input_tensor": any_tensor(data, last(table, rank), data_type),
        "indices_tensor": any_tensor(
            data, last(indices, other(indices)), data.draw(st.sampled_from(INDEX_TYPES))
        ),
        values: data.draw(tensors(data_type, last(blocks, other(blocks)), output=output)),
        "input_dimension_count": len(table),
        "indices_dimension_count": len(indices),
    }
    size = min(table[batch : batch + indices[-1]])
    return fields, {"indices_tensor": any_indices(data, fields["indices_tensor"], size)}
