"""The report of a failed layout test: the error, the tensors, and a picture of their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .. import dml
from ..errors import Report
from .memory import Array, Placed, halves, joined, values_of_halves

__all__ = ["LayoutError", "describe", "picture", "replay_call", "spell_value"]

_COLUMNS = 88  # of a picture
_SLOTS = 16
_PADDING, _UNWRITTEN = ".", "?"


class LayoutError(AssertionError):
    """The test's result depends on its tensors' layouts in memory; see :attr:`report`.

    ``replay`` is the call that runs the case again.  ``layouts`` are the tensors of that case, ``tensor``
    names the one that is wrong, ``element`` is the first wrong element, None where a byte is wrong
    that belongs to no element.
    """

    def __init__(
        self,
        report: Report,
        replay: str,
        layouts: Mapping[str, dml.BufferTensorDesc],
        tensor: str,
        element: tuple[int, ...] | None,
    ) -> None:
        super().__init__(f"{report.text()}\n  replay: {replay}" if replay else report.text())
        self.report = report
        self.replay = replay
        self.layouts = dict(layouts)
        self.tensor = tensor
        self.element = element


LayoutError.__module__ = "dmlemu.testing"  # the public module


def spell_value(value: object) -> str:
    """A number with as few digits as distinguish it from all others of its type."""
    if not isinstance(value, np.floating):
        return str(value)
    with np.errstate(over="ignore"):
        texts = (f"{float(value):.{digits}g}" for digits in range(1, 18))
        return next((text for text in texts if type(value)(text) == value), str(float(value)))


def describe(placed: Placed) -> str:
    """ "input 'x': FLOAT32, Sizes [2, 3], Strides [4, 1], 28 bytes at offset 48"."""
    desc = placed.desc
    text = (
        f"{'output' if placed.output else 'input'} '{placed.name}': {desc.data_type.name}, "
        f"Sizes {list(desc.sizes)}, Strides {list(desc.effective_strides)}, "
        f"{desc.size_in_bytes} bytes at offset {placed.offset}"
    )
    if desc.guaranteed_base_offset_alignment:
        text += f", GuaranteedBaseOffsetAlignment {desc.guaranteed_base_offset_alignment}"
    return text + (", OWNED_BY_DML" if desc.owned_by_dml else "")


def replay_call(test: str, cases: Mapping[str, dml.BufferTensorDesc], more: Mapping[str, str]) -> str:
    """The call that runs one case again, in Python's notation."""
    arguments = {name: _arguments(desc) for name, desc in cases.items()} | dict(more)
    return f"{test}.replay({', '.join(f'{name}={value}' for name, value in arguments.items())})"


def _arguments(desc: dml.BufferTensorDesc) -> str:
    """Sizes, strides and so on, as far as they differ from the defaults."""
    least = dml.calc_buffer_tensor_size(desc.data_type, desc.sizes, desc.strides)
    parts: list[object] = [list(desc.sizes), list(desc.effective_strides)]
    rest = [
        (desc.size_in_bytes, desc.size_in_bytes == least),
        (desc.guaranteed_base_offset_alignment, not desc.guaranteed_base_offset_alignment),
        (int(desc.flags), not desc.flags),
    ]
    while rest and rest[-1][1]:
        rest.pop()
    return f"({', '.join(map(str, [*parts, *(value for value, _ in rest)]))})"


def picture(
    placed: Placed,
    before: Array,
    rows: Mapping[str, Array],
    *,
    focus: int = 0,
    unwritten: Array | None = None,
) -> list[str]:
    """A tensor's memory: a line of byte numbers, and for each of ``rows`` the values there.

    ``before`` and the rows (title -> bytes) hold the whole buffer; unchanged padding is drawn as
    ".", and elements of the first row that were never written (``unwritten``, per half byte of the buffer)
    as "?".  Each column is an element wide, and of two in a byte the first one has its number.  ``focus`` is
    the byte, from the tensor's begin, that must be shown; where rows differ they are marked.
    """
    width, end = placed.width, 2 * placed.end
    count = -(-2 * placed.desc.size_in_bytes // width)
    first = max(0, min(2 * focus // width - _SLOTS // 2, count - _SLOTS))
    slots = range(first, min(count, first + _SLOTS))
    elements, old = set(placed.elements.reshape(-1).tolist()), halves(before)
    table = [["" if slot * width % 2 else str(slot * width // 2) for slot in slots]]
    for memory in map(halves, rows.values()):
        table.append([])
        for slot in slots:
            start = 2 * placed.offset + slot * width
            part = slice(start, min(start + width, end))
            text = _number(memory[part], placed)
            if slot not in elements:
                text = _PADDING if (memory[part] == old[part]).all() else text
            elif len(table) == 2 and unwritten is not None and unwritten[part].all():
                text = _UNWRITTEN
            table[-1].append(text)
    if len(rows) > 1:
        columns = list(zip(*table[1:], strict=True))
        table.append(["^" if any(cell != column[0] for cell in column) else "" for column in columns])
    return _aligned(["byte", *rows, ""], table, cut=len(slots) < count)


def _number(part: Array, placed: Placed) -> str:
    if len(part) < placed.width:  # at the end of the tensor
        return joined(part).tobytes().hex()
    return spell_value(values_of_halves(part, placed.desc.dtype)[0])


def _aligned(titles: Sequence[str], table: Sequence[Sequence[str]], cut: bool) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    title = max(map(len, titles))
    lines = []
    for name, cells in zip(titles, table, strict=False):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        text = f"{name.ljust(title)}  {'  '.join(padded)}"
        lines.append(text[:_COLUMNS].rstrip() + (" ..." if cut and name else ""))
    return [line for line in lines if line.strip()]
