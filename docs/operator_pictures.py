"""Pictures from the references: of operators that move elements, the numbered elements of the input and where
they go; of operators that compute, what two elements of the output depend on."""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dmlemu.dml import FeatureLevel
from dmlemu.dml.declared.definition import definition_class
from dmlemu.dml.declared.desc_checks import check_operator
from dmlemu.dml.declared.schema import OperatorDesc, camel
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.dml.operator_example import changed, page_example

__all__ = ["COMPUTED", "PICTURED", "picture"]

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


class Case(NamedTuple):
    """Two ``places`` of the first output of the page's example, and what else ``changes`` in it."""

    places: tuple[tuple[int, ...], tuple[int, ...]]
    changes: Mapping[str, Any] = {}


_RESAMPLED = Case(((0, 0, 1, 1), (0, 0, 3, 4)))
_REGIONS = Case(((0, 0, 0, 0), (0, 0, 1, 1)))
_STATES = Case(((0, 0, 0, 0), (2, 0, 0, 1)))  # the first one, and the second one after 3 steps
_ATTENDED = Case(((0, 0, 0), (0, 1, 3)))

COMPUTED = {
    "CONVOLUTION": Case(((0, 0, 0, 0), (0, 0, 2, 3))),
    **dict.fromkeys(("RESAMPLE", "RESAMPLE1", "RESAMPLE2", "UPSAMPLE_2D"), _RESAMPLED),
    "RESAMPLE3": Case(
        ((0, 0, 0, 0), (0, 0, 1, 2)),
        {
            "input_tensor": [1, 1, 4, 8],
            "output_tensor": [1, 1, 2, 4],
            "scales": [1.0, 1.0, 0.5, 0.5],
            "antialiased": True,
        },
    ),
    "ROI_POOLING": Case(((0, 0, 0, 0), (0, 0, 1, 2))),
    **dict.fromkeys(("ROI_ALIGN", "ROI_ALIGN1"), _REGIONS),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), _STATES),
    "MAX_UNPOOLING": Case(((0, 0, 1, 1), (0, 0, 2, 3))),
    **dict.fromkeys(("MULTIHEAD_ATTENTION", "MULTIHEAD_ATTENTION1"), _ATTENDED),
}


def picture(cls: type[OperatorDesc]) -> tuple[str, str] | None:
    """An SVG and what it shows, if the operator has one and is emulated."""
    name = cls.TYPE.name
    if definition_class(cls.TYPE) is None:
        return None
    if name in PICTURED:
        return _moved(cls), "where the elements of an example go"
    if name in COMPUTED:
        return _computed(cls, COMPUTED[name]), "what two elements of the output depend on"
    return None


# --- elements that move ---


def _moved(cls: type[OperatorDesc]) -> str:
    desc = page_example(cls)
    inputs = _numbered(desc)
    outputs = desc.reference(inputs)
    total = sum(array.size for name, array in _listed(inputs) if not _is_index(name))

    def colour(name: str, place: tuple[int, ...], value: float) -> str:
        """Of an element that was numbered, by its number."""
        known = not _is_index(name) and 1 <= value <= total
        return _colour((value - 1) / total) if known else "white"

    legend = (
        (_colour(0.3), "same colour: the same element, at its new place"),
        ("white", "made anew, or an index"),
    )
    return _drawn((inputs, outputs), colour, legend)


# --- what elements are computed from ---

_FIRST, _SECOND, _BOTH = "#f2b8a8", "#a9c4f5", "#c9a6d9"


def _computed(cls: type[OperatorDesc], case: Case) -> str:
    desc, definition = changed(page_example(cls), case.changes), definition_class(cls.TYPE)
    assert definition is not None  # see picture()
    given = definition.PAGE_INPUTS
    check_operator(desc, max(FeatureLevel), f"the picture of {cls.TYPE.name}")
    inputs, random = {}, np.random.default_rng(7)
    for field in tensor_fields(desc):
        if not field.output and field.desc is not None:
            all_different = random.choice([*range(-99, 0), *range(1, 100)], field.desc.sizes, replace=False)
            values = given.get(field.name, all_different / 100)
            inputs[field.name] = np.asarray(values).astype(field.desc.dtype).reshape(field.desc.sizes)
    outputs = desc.reference(inputs)
    first = next(iter(outputs))
    influence = {
        camel(name): _influence(desc, inputs, name, first, case.places)
        for name, array in inputs.items()
        if array.dtype.kind == "f" and name not in given
    }

    def colour(name: str, place: tuple[int, ...], value: float) -> str:
        if name == camel(first) and place in case.places:
            return _FIRST if place == case.places[0] else _SECOND
        of_first, of_second = influence[name][place] if name in influence else (False, False)
        return _BOTH if of_first and of_second else _FIRST if of_first else _SECOND if of_second else "white"

    names = [f"{camel(first)}[{', '.join(map(str, place))}]" for place in case.places]
    legend = (
        (_FIRST, f"{names[0]} and what it depends on"),
        (_SECOND, f"{names[1]} and what it depends on"),
        (_BOTH, "what both depend on"),
    )
    return _drawn((inputs, outputs), colour, legend)


def _influence(
    desc: OperatorDesc, inputs: dict[str, Array], name: str, output: str, places: Sequence[tuple[int, ...]]
) -> Array:
    """For each element of an input whether each place of the output changes with it."""
    before = desc.reference(inputs)[output]
    found = np.zeros((*inputs[name].shape, len(places)), bool)
    for at in np.ndindex(inputs[name].shape):
        array = inputs[name].copy()
        array[at] += 3  # more than all others: it becomes a maximum
        after = desc.reference({**inputs, name: array})[output]
        found[at] = [after[place] != before[place] for place in places]
    return found


# --- drawing ---

_Colour = Callable[[str, tuple[int, ...], float], str]


def _drawn(columns: Sequence[Mapping[str, Any]], colour: _Colour, legend: Sequence[tuple[str, str]]) -> str:
    """``legend``: colours with their meanings, below the columns."""
    x, height, parts = _GAP, 0, []
    for fields in columns:
        y, right = _GAP, x
        for name, array in _listed(fields):
            drawn, width, y = _grid(name, array, colour, x, y)
            parts += drawn
            right, height, y = max(right, x + width), max(height, y), y + _GAP
        x = right + 2 * _GAP
    drawn_cells = "".join(parts)
    used = [each for each in legend[1:] if f'fill="{each[0]}"' in drawn_cells]
    for fill, meaning in (legend[0], *used):
        height += _LINE
        parts.append(
            f'<rect x="{_GAP}" y="{height}" width="14" height="14" fill="{fill}" stroke="gray"/>'
            f'<text x="{_GAP + 22}" y="{height + 12}">{meaning}</text>'
        )
        x = max(x, 3 * _GAP + 7 * len(meaning))
    head = f'width="{x - _GAP}" height="{height + _GAP}" font-family="sans-serif" font-size="12"'
    paper = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {head}>', paper, *parts, "</svg>", ""])


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


def _grid(name: str, array: Array, colour: _Colour, x: int, y: int) -> tuple[list[str], int, int]:
    """A table of the elements, one line for each along the last dimension, a space between matrices; its
    width, and where it ends."""
    sizes = ", ".join(map(str, array.shape))
    parts = [f'<text x="{x}" y="{y}">{name} {{{sizes}}}</text>']
    columns = array.shape[-1]
    rows_of_matrix = array.shape[-2] if array.ndim > 1 else 1
    cell = max(_CELL, 6 + 7 * max(len(f"{value:.3g}") for value in array.flat))
    y += 8
    for i, outer in enumerate(np.ndindex(array.shape[:-1])):
        y += _LINE // 3 if i and i % rows_of_matrix == 0 else 0
        for k, value in enumerate(array[outer].tolist()):
            left = x + k * cell
            fill = colour(name, (*outer, k), value)
            parts.append(
                f'<rect x="{left}" y="{y}" width="{cell}" height="{_LINE}" fill="{fill}" stroke="gray"/>'
                f'<text x="{left + cell // 2}" y="{y + 16}" text-anchor="middle">{value:.3g}</text>'
            )
        y += _LINE
    return parts, max(columns * cell, 7 * len(f"{name} {{{sizes}}}")), y
