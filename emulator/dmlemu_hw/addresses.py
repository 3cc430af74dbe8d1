"""GPU virtual address lookup: which allocation holds an address, for Python and for C."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import numpy as np

from .kernels import ffi

__all__ = ["Addresses"]

_SEGMENT = np.dtype([("address", "<u8"), ("size", "<u8"), ("host", "<u8")])  # struct dmlk_segment
_FEW = 64


class _Range(Protocol):
    @property
    def address(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def host(self) -> int: ...


_Entry = TypeVar("_Entry", bound=_Range)


class Addresses(Generic[_Entry]):
    """Sorted address ranges that do not overlap.

    A removed range leaves an empty slot, so that nothing moves; the slots are compacted when half of them are
    empty.  ``pointer``: a ``dmlk_segment *`` for each of the ``entries``; empty slots have size 0.
    """

    def __init__(self, entries: Iterable[_Entry] = ()) -> None:
        self._fill(entries)

    def _fill(self, entries: Iterable[_Entry]) -> None:
        """Lets these ranges, sorted, take the place of all."""
        self.entries: list[_Entry | None] = [*entries]
        rows = [(each.address, each.size, each.host) for each in self]
        self._starts = [row[0] for row in rows]
        self._table = np.zeros(max(_FEW, 2 * len(rows)), _SEGMENT)
        self._table[: len(rows)] = rows
        self.pointer = ffi.cast("dmlk_segment *", self._table.ctypes.data)
        self._removed = 0

    def __iter__(self) -> Iterator[_Entry]:
        return (each for each in self.entries if each is not None)

    def append(self, entry: _Entry) -> None:
        """Adds a range whose addresses are above all others."""
        count = len(self.entries)
        if count == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
            self.pointer = ffi.cast("dmlk_segment *", self._table.ctypes.data)
        self._table[count] = entry.address, entry.size, entry.host
        self.entries.append(entry)
        self._starts.append(entry.address)

    def remove(self, entry: _Entry) -> None:
        """Removes a range that was added before."""
        at = bisect_right(self._starts, entry.address) - 1
        self.entries[at] = None
        self._table[at] = entry.address, 0, 0
        self._removed += 1
        if self._removed > _FEW and 2 * self._removed > len(self.entries):
            self._fill(list(self))

    def at(self, address: int) -> _Entry | None:
        """The range that contains the address."""
        at = bisect_right(self._starts, address) - 1
        entry = self.entries[at] if at >= 0 else None
        return entry if entry is not None and address < entry.address + entry.size else None

    def before(self, address: int) -> _Entry | None:
        """The range that starts at the address, or the nearest one below it."""
        rest = reversed(self.entries[: bisect_right(self._starts, address)])
        return next((each for each in rest if each is not None), None)
