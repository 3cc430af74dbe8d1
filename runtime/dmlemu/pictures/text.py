"""Layouts in the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from .model import Buffer, Cell, Grid, Row, Unit
from .tensor import Tensor

__all__ = ["text"]

Paint = Callable[[str, str], str]

_NOTHING, _MORE, _GAP = "\u2591", "\u2026", "\u00b7\u00b7"
_COLOURS = {"shared": "31;1", "padding": "2", "title": "1"}


def text(buffer: Buffer, width: int | None, colour: bool) -> str:
    """The grids of all tensors and the ruler, in lines of ``width`` columns."""
    width = width or shutil.get_terminal_size((100, 24)).columns
    paint = _paint if colour else _plain
    lines: list[str] = []
    for tensor in buffer.tensors:
        lines += [paint(str(tensor), "title"), ""]
        if not tensor.element_count:
            continue
        lines += ["byte of each element" + (" (+: upper half)" if tensor.bits == 4 else "")]
        lines += [*_side_by_side(_blocks(buffer, tensor, width), width), ""]
    lines += [*_ruler(buffer, width, paint)]
    return "\n".join(line.rstrip() for line in lines)


def _plain(text: str, kind: str) -> str:
    return text


def _paint(text: str, kind: str) -> str:
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if kind in _COLOURS else text


# --- grids ---


def _blocks(buffer: Buffer, tensor: Tensor, width: int) -> Iterator[list[str]]:
    longest = len(_place(_last(tensor))) + 2
    for grid in buffer.grids(tensor, max(3, (width - 4) // longest)):
        yield [_MORE] if grid is None else _block(grid)


def _last(tensor: Tensor) -> Cell:
    return Cell((), tensor.bit([size - 1 for size in tensor.sizes]) // 8, tensor.bits == 4, "\u2191")


def _block(grid: Grid) -> list[str]:
    rows = [[_MORE] if row is None else [_place(cell) for cell in row] for row in grid.rows]
    longest = max(len(cell) for row in rows for cell in row)
    lines = [" ".join(cell.rjust(longest) for cell in row) for row in rows]
    return [grid.title, *(f"  {line}" for line in lines)]


def _place(cell: Cell | None) -> str:
    return _MORE if cell is None else f"{cell.repeats}{cell.byte}{'+' if cell.half else ''}"


def _side_by_side(blocks: Iterator[list[str]], width: int) -> Iterator[str]:
    """As many blocks beside each other as fit."""
    beside: list[list[str]] = []
    for block in blocks:
        if beside and sum(_width(each) + 3 for each in beside) + _width(block) > width:
            yield from _joined(beside)
            beside = []
        beside.append(block)
    yield from _joined(beside)


def _joined(blocks: list[list[str]]) -> Iterator[str]:
    for lines in zip_longest(*blocks, fillvalue=""):
        yield "   ".join(line.ljust(_width(block)) for line, block in zip(lines, blocks, strict=True))


def _width(block: list[str]) -> int:
    return max(map(len, block))


# --- the ruler ---


def _ruler(buffer: Buffer, width: int, paint: Paint) -> Iterator[str]:
    names = ["byte", *(each.name or "element" for each in buffer.tensors)]
    margin = max(map(len, names)) + 1
    cell = max(2, *(_longest(each) for each in buffer.tensors))
    cell = max(cell, len(str(max(each.offset + each.size for each in buffer.tensors))))
    rows = buffer.rows(max(1, (width - margin) // (cell + 1)))
    for row in rows:
        if row.gap:
            yield f"{_MORE} {row.gap} bytes further"
        for name, line in zip(names, _lines(row, buffer.tensors, cell, paint), strict=True):
            yield name.ljust(margin) + line
    units = [unit for row in rows for unit in row.units]
    if any(not each for unit in units for each in unit.elements):
        yield f"{_NOTHING} belongs to no element"
    if any(unit.is_shared for unit in units):
        yield "! holds more than one element"


def _longest(tensor: Tensor) -> int:
    return len(tensor.spell(tuple(max(0, size - 1) for size in tensor.sizes))) + 1


def _lines(row: Row, tensors: Sequence[Tensor], cell: int, paint: Paint) -> Iterator[str]:
    yield " ".join((str(unit.bit // 8) if unit.bit % 8 == 0 else "+").rjust(cell) for unit in row.units)
    for number, tensor in enumerate(tensors):
        yield " ".join(_element(unit, tensor, number, cell, paint) for unit in row.units)


def _element(unit: Unit, tensor: Tensor, number: int, cell: int, paint: Paint) -> str:
    found = unit.elements[number]
    if not found:
        return paint((_NOTHING * 2).rjust(cell), "padding")
    label = tensor.spell(found[0]) if unit.begins[number] else _GAP
    if unit.is_shared:
        return paint(f"{label}!".rjust(cell), "shared")
    return label.rjust(cell)
