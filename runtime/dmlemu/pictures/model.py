"""Tensors in one buffer: grids of their elements, and the bytes with the elements in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import NamedTuple

from .tensor import Index, Tensor, shown

__all__ = ["Buffer", "Cell", "Grid", "Row", "Unit"]

_PLANES, _LINES = 8, 9  # of a tensor, of a plane: more are left out in part
_UNITS = 256  # of memory: more are left out in part


@dataclass(frozen=True)
class Cell:
    """An element in a grid."""

    index: Index
    byte: int
    half: bool  # the upper four bits of the byte
    repeats: str  # an arrow to the element that it repeats, along an axis of stride 0; "": it does not


class Grid(NamedTuple):
    """A plane of a tensor: rows of cells; None: some are left out."""

    title: str
    rows: list[list[Cell | None] | None]


class Unit(NamedTuple):
    """A piece of memory: of each tensor the elements in it, and whether one of them begins here."""

    bit: int
    elements: list[list[Index]]
    begins: list[bool]

    @property
    def is_shared(self) -> bool:
        """Whether elements that are not repetitions of one lie here."""
        return sum(map(len, self.elements)) > 1

    @property
    def is_padding(self) -> bool:
        return not any(self.elements)


class Row(NamedTuple):
    """Units in a row of the ruler; ``gap``: bytes left out before it."""

    units: list[Unit]
    gap: int


class Buffer:
    """Tensors in one buffer; ``focus``: a byte that is shown wherever parts are left out."""

    def __init__(self, tensors: Sequence[Tensor], focus: int | None = None) -> None:
        self.tensors = tuple(tensors)
        self._focus = focus

    def grids(self, tensor: Tensor, columns: int) -> list[Grid | None]:
        """The planes of a tensor, with ``columns`` columns at most; None: some are left out."""
        at_focus = [] if self._focus is None else tensor.at(self._focus * 8)
        focus = at_focus[0] if at_focus else None
        if not tensor.element_count:
            return []
        return [
            None if plane is None else _grid(tensor, plane, columns, focus)
            for plane in tensor.planes(_PLANES, focus)
        ]

    @property
    def unit_bits(self) -> int:
        """Bits of a unit of the ruler: every element begins at one."""
        return reduce(gcd, (number for each in self.tensors for number in (each.bits, each.offset * 8)))

    def rows(self, most: int) -> list[Row]:
        """The memory, in rows of ``most`` units at most."""
        bits = self.unit_bits
        begin = min(each.offset for each in self.tensors) * 8 // bits
        end = -(-max(each.offset + each.size for each in self.tensors) * 8 // bits)
        width = self._row_width(most)
        lines = -(-(end - begin) // width)
        focus = None if self._focus is None else (self._focus * 8 // bits - begin) // width
        rows: list[Row] = []
        gap = 0
        for line in shown(lines, max(9, _UNITS // width), focus):
            if line is None:
                gap = 1
                continue
            first = begin + line * width
            units = [self._unit(i * bits) for i in range(first, min(first + width, end))]
            if gap:
                gap = (units[0].bit - rows[-1].units[-1].bit) // 8
            rows.append(Row(units, gap))
            gap = 0
        return rows

    def _row_width(self, most: int) -> int:
        """A stride of the first tensor, so that its rows are below each other, or a power of two."""
        tensor = self.tensors[0]
        step = tensor.bits // self.unit_bits
        widths = {stride * step for axis, stride in enumerate(tensor.strides) if tensor.sizes[axis] > 1}
        fitting = [width for width in widths if most // 2 < width <= most]
        return max(fitting, default=1 << (most.bit_length() - 1))

    def _unit(self, bit: int) -> Unit:
        elements = [each.at(bit) for each in self.tensors]
        begins = [
            any(tensor.bit(index) == bit for index in found)
            for tensor, found in zip(self.tensors, elements, strict=True)
        ]
        return Unit(bit, elements, begins)


def _grid(tensor: Tensor, plane: Index, columns: int, focus: Index | None) -> Grid:
    height, width = ([1, 1, *tensor.sizes])[-2:]
    at = ([0, 0, *focus])[-2:] if focus is not None else [None, None]
    names = [*map(str, plane), *("y", "x")[2 - min(2, len(tensor.sizes)) :]]
    rows: list[list[Cell | None] | None] = []
    for y in shown(height, _LINES, at[0]):
        if y is None:
            rows.append(None)
            continue
        line = [
            None if x is None else (*plane, y, x)[-len(tensor.sizes) :] for x in shown(width, columns, at[1])
        ]
        rows.append([None if index is None else _cell(tensor, index) for index in line])
    return Grid(f"({', '.join(names)})", rows)


def _cell(tensor: Tensor, index: Index) -> Cell:
    bit, axis = tensor.bit(index), tensor.repeats(index)
    arrow = "" if axis is None else {1: "\u2190", 2: "\u2191"}.get(len(index) - axis, "=")
    return Cell(index, bit // 8, bit % 8 >= 4, arrow)
