"""What a comparison with a reference has covered: cells of operator, level, tensor, type, layout and rank."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from math import prod

from ..dml import BufferTensorDesc, FeatureLevel, TensorFlags, calc_buffer_tensor_size
from ..dml.declared.schema import OperatorDesc, camel, level_name, tables
from ..dml.lowering.fields import tensor_fields
from ..dml.operator_page import LAYOUTS
from ..dml.overlap import shared_element

__all__ = ["Cell", "cells_of", "layouts_of_desc"]

Cell = tuple[str, str, str, str, str, int]
"""Operator, level of its table, tensor, data type, layout (of ``LAYOUTS``), rank."""


def cells_of(desc: OperatorDesc, offset: int, level: FeatureLevel | None) -> Iterator[Cell]:
    """The cells that a comparison of ``desc`` covers, with its tensors ``offset`` bytes into their ranges."""
    known = tables(type(desc))
    table = max((each for each in known if each <= (level or max(FeatureLevel))), default=min(known))
    for field in tensor_fields(desc):
        if field.desc is not None:
            for layout in layouts_of_desc(field.desc, offset > 0):
                cell = camel(field.name), field.desc.data_type.name, layout, field.desc.rank
                yield (desc.TYPE.name, level_name(table), *cell)


@cache
def layouts_of_desc(desc: BufferTensorDesc, at_an_offset: bool) -> tuple[str, ...]:
    """The words for a tensor's layout; dimensions of one element have none."""
    sizes, strides = desc.sizes, desc.effective_strides
    long = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size > 1]
    moving = [(size, stride) for size, stride in long if stride]
    least = calc_buffer_tensor_size(desc.data_type, desc.sizes, desc.strides)
    overlapping = shared_element([size for size, _ in moving], [stride for _, stride in moving]) is not None
    extent = sum((size - 1) * stride for size, stride in moving) + 1
    found = {
        "permuted": any(a < b for (_, a), (_, b) in pairwise(moving)),
        "padded": not overlapping and (extent > prod(size for size, _ in moving)),
        "broadcast": len(moving) < len(long),
        "overlapping": overlapping,
    }
    found["packed"] = not any(found.values())
    found["longer than needed"] = desc.size_in_bytes > least
    found["at an offset"] = at_an_offset
    found["owned by DirectML"] = bool(desc.flags & TensorFlags.OWNED_BY_DML)
    return tuple(layout for layout in LAYOUTS if found[layout])
