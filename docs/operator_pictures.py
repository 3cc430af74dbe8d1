"""Pictures of the operators that move elements: the example of the definition, with the elements of the input
numbered, and where the reference puts them."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dmlemu.dml import BufferTensorDesc
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.dml.operators.definition import definition_class, example_of
from dmlemu.dml.operators.schema import OperatorDesc, camel

__all__ = ["PICTURED", "picture"]

Array = np.ndarray[Any, Any]

PICTURED = {
    *(
        "SLICE",
        "SLICE1",
        "SLICE_GRAD",
        "SPLIT",
        "JOIN",
        "PADDING",
        "PADDING1",
        "TILE",
        "REVERSE_SUBSEQUENCES",
    ),
    *("SPACE_TO_DEPTH", "SPACE_TO_DEPTH1", "DEPTH_TO_SPACE", "DEPTH_TO_SPACE1", "DIAGONAL_MATRIX1"),
    *("FOLD", "UNFOLD", "GATHER", "GATHER_ELEMENTS", "GATHER_ND", "GATHER_ND1"),
    *("SCATTER_ELEMENTS", "SCATTER_ND", "ONE_HOT"),
    *("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2"),
}

_CELL, _LINE, _GAP = 34, 24, 28


def picture(cls: type[OperatorDesc]) -> str | None:
    """An SVG, if the operator is one that moves elements and is emulated."""
    if cls.TYPE.name not in PICTURED or definition_class(cls.TYPE) is None:
        return None
    desc = _smaller(example_of(cls))
    inputs = _numbered(desc)
    outputs = desc.reference(inputs)
    total = sum(array.size for name, array in _listed(inputs) if not _is_index(name))
    x, height, parts = _GAP, 0, []
    for fields in (inputs, outputs):
        y, right = _GAP, x
        for name, array in _listed(fields):
            drawn, width, y = _grid(name, array, total, x, y)
            parts += drawn
            right, height, y = max(right, x + width), max(height, y), y + _GAP
        x = right + 2 * _GAP
    head = f'width="{x - _GAP}" height="{height + _GAP}" font-family="sans-serif" font-size="12"'
    paper = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {head}>', paper, *parts, "</svg>", ""])


def _smaller(desc: OperatorDesc) -> OperatorDesc:
    """With 3 elements along axes of 9, which examples have where indices are small: here they are below 3."""
    changes = {
        field.name: BufferTensorDesc(
            field.desc.data_type, [3 if size == 9 else size for size in field.desc.sizes]
        )
        for field in tensor_fields(desc)
        if field.desc is not None and field.index is None and 9 in field.desc.sizes
    }
    return replace(desc, **changes) if changes else desc


def _numbered(desc: OperatorDesc) -> dict[str, Any]:
    """Elements 1, 2, 3 ...; lengths and indices 0, 1, 2, 0 ..."""
    found: dict[str, Any] = {}
    start = 1
    for field in tensor_fields(desc):
        if field.output or field.desc is None:
            continue
        count = field.desc.element_count
        is_index = _is_index(field.name)
        numbers = np.arange(count) % 3 if is_index else np.arange(start, start + count)
        start += 0 if is_index else count
        array = numbers.reshape(field.desc.sizes).astype(field.desc.dtype)
        if field.index is None:
            found[field.name] = array
        else:
            found.setdefault(field.name, []).append(array)
    return found


def _is_index(name: str) -> bool:
    return "indices" in name.lower() or "lengths" in name.lower()


def _listed(fields: Mapping[str, Any]) -> Iterator[tuple[str, Array]]:
    """The C path of each tensor, and its elements."""
    for name, value in fields.items():
        if isinstance(value, list):
            yield from ((f"{camel(name)}[{i}]", each) for i, each in enumerate(value))
        else:
            yield camel(name), value


def _colour(part: float) -> str:
    """Pale, from red (0) to violet (1)."""
    channels = colorsys.hls_to_rgb(5 / 6 * part, 0.82, 0.7)
    return "#" + "".join(f"{round(255 * each):02x}" for each in channels)


def _grid(name: str, array: Array, total: int, x: int, y: int) -> tuple[list[str], int, int]:
    """A table of the elements, one line for each along the last dimension, a space between matrices; its
    width, and where it ends.  Elements that were numbered have a colour by their number."""
    sizes = ", ".join(map(str, array.shape))
    parts = [f'<text x="{x}" y="{y}">{name} {{{sizes}}}</text>']
    columns = array.shape[-1]
    rows_of_matrix = array.shape[-2] if array.ndim > 1 else 1
    y += 8
    for i, row in enumerate(array.reshape(-1, columns)):
        y += _LINE // 3 if i and i % rows_of_matrix == 0 else 0
        for k, value in enumerate(row.tolist()):
            known = not _is_index(name) and 1 <= value <= total
            colour = _colour((value - 1) / total) if known else "white"
            left = x + k * _CELL
            parts.append(
                f'<rect x="{left}" y="{y}" width="{_CELL}" height="{_LINE}" fill="{colour}" stroke="gray"/>'
                f'<text x="{left + _CELL // 2}" y="{y + 16}" text-anchor="middle">{value:g}</text>'
            )
        y += _LINE
    return parts, max(columns * _CELL, 7 * len(f"{name} {{{sizes}}}")), y
