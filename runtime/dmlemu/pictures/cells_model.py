"""A few cells in a row, such as bytes or lanes, and what was done to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["SOMEWHERE", "CellRow", "Mark", "Row", "Ruler"]

_SHORT, _FEW = 16, 10  # cells

SOMEWHERE = -1
"""The number of a cell outside of which no more is known."""


class Ruler(NamedTuple):
    """Numbers above the cells: that of cell i is ``(begin + i * step) // unit``."""

    name: str
    begin: int = 0
    step: int = 1
    unit: int = 1

    def label(self, cell: int) -> str:
        return "?" if cell == SOMEWHERE else str((self.begin + cell * self.step) // self.unit)


class Mark(NamedTuple):
    """Cells from ``begin`` to ``end``, without it.

    ``kind``: ``"read"``, ``"write"`` or ``"both"``, which are colours, or empty.  ``is_red``: the picture is
    about them.
    """

    begin: int
    end: int
    label: str
    kind: str = ""
    is_red: bool = False


class Row(NamedTuple):
    """What one did to cells."""

    label: str
    marks: tuple[Mark, ...]

    def at(self, cell: int) -> Mark | None:
        return next((each for each in self.marks if each.begin <= cell < each.end), None)


@dataclass(frozen=True, repr=False)
class CellRow:
    """``count`` cells in a row, and rows of what was done to them.

    ``name``: of the cells' own row.  Marked cells from ``count`` on, or ``SOMEWHERE``, are outside, and
    hatched; so are the cells from the first number of ``hatched`` to the second, without it.  Of many cells
    the first and last are shown, and those around marks.
    """

    title: str
    name: str
    count: int
    rulers: tuple[Ruler, ...]
    rows: tuple[Row, ...]
    hatched: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()

    def is_hatched(self, cell: int) -> bool:
        return not 0 <= cell < self.count or self.hatched[0] <= cell < self.hatched[1]

    def columns(self, most: int = 0) -> list[int | None]:
        """The cells that are shown, ``most`` and those alone between two; None: some are left out.

        ``most`` 0: all of a short row, and few of a longer one.
        """
        most = most or (_SHORT if self.count <= _SHORT else _FEW)
        chosen: set[int] = set()
        for cell in self._by_weight(most):
            chosen.add(cell)
            if len(chosen) >= most:
                break
        result: list[int | None] = []
        for cell in sorted(chosen, key=lambda cell: (cell == SOMEWHERE, cell)):
            before = result[-1] if result else None
            if before is not None and cell - before > 1:
                result.append(cell - 1 if cell - before == 2 else None)
            result.append(cell)
        return result

    def _by_weight(self, most: int) -> Iterator[int]:
        """Cells, those first that must be shown: the ends of marks, those of the row, and what is around."""
        marks = sorted((mark for row in self.rows for mark in row.marks), key=lambda mark: not mark.is_red)
        ends = [cell for mark in marks for cell in (mark.begin, mark.end - 1)]
        yield from ends
        whole = range(self.count)
        edges = [cell for cell in (0, self.count - 1) if cell in whole]
        yield from edges
        for distance in range(1, most):
            for cell in (*ends, *edges):
                yield from (each for each in (cell - distance, cell + distance) if each in whole)
