"""Cells in the terminal."""

from __future__ import annotations

import shutil

from .cells_model import CellRow

__all__ = ["text"]

_HATCHED, _INSIDE, _MORE = "\u2591\u2591", "\u00b7", "\u2026"
_LEAST = 24  # columns for cells, however long a label is


def text(cells: CellRow, width: int | None, colour: bool) -> str:
    """The rulers, the row of the cells, and what was done to them."""
    width = width or shutil.get_terminal_size((100, 24)).columns
    names = [each.name for each in cells.rulers] + [cells.name] + [row.label for row in cells.rows]
    room = min(max(map(len, names)), max(1, width - _LEAST))
    table = _table(cells, 0)
    for most in range(len(table) - 1, 0, -1):
        if room + sum(_widths(table)) + len(table) <= width:
            break
        table = _table(cells, most)
    widths = _widths(table)
    lines = [_paint(_cut(cells.title, width), "1", colour), ""]
    for number, name in enumerate(names):
        parts = [column[number].rjust(wide) for column, wide in zip(table, widths, strict=True)]
        shown = [_paint(each, "31;1" if each.endswith("!") else "", colour) for each in parts]
        lines.append(" ".join([_cut(name, room).ljust(room), *shown]).rstrip())
    return "\n".join([*lines, "", *(_cut(note, width) for note in cells.notes)]).rstrip()


def _table(cells: CellRow, most: int) -> list[list[str]]:
    """Of each column what stands in the lines."""
    return [_column(cells, cell) for cell in cells.columns(most)]


def _column(cells: CellRow, cell: int | None) -> list[str]:
    if cell is None:
        return [_MORE] * (len(cells.rulers) + 1) + [""] * len(cells.rows)
    numbers = [each.label(cell) for each in cells.rulers]
    marks = [row.at(cell) for row in cells.rows]
    shown = ["" if mark is None else mark.label + "!" * mark.is_red for mark in marks]
    return [*numbers, _HATCHED if cells.is_hatched(cell) else _INSIDE, *shown]


def _widths(table: list[list[str]]) -> list[int]:
    return [max(map(len, column)) for column in table]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + _MORE


def _paint(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text
