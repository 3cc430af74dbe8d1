"""GPU virtual address lookup: which allocation holds an address, for Python and for C."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

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


class _Slots:
    """The table that C reads, and the addresses of its rows; rows after these are not in use.

    ``pointer`` keeps the table alive: a thread may still read it when another one has replaced it.
    """

    def __init__(self, ranges: Iterable[_Range]) -> None:
        rows = [(each.address, each.size, each.host) for each in ranges]
        self.starts = [row[0] for row in rows]
        self.table = np.zeros(max(_FEW, 2 * len(rows)), _SEGMENT)
        self.table[: len(rows)] = rows
        self.pointer = ffi.from_buffer("dmlk_segment[]", self.table)


class Addresses(Generic[_Entry]):
    """Sorted address ranges that do not overlap.

    A removed range leaves an empty slot, so that nothing moves; new slots take the place of all when the
    table is full or half of it is empty.

    A signal handler may raise between any two steps: the last step of each method is the one that counts, and
    those before it can be repeated.
    """

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}  # by address, in order
        self._slots = _Slots(())

    def __iter__(self) -> Iterator[_Entry]:
        return iter(list(self._entries.values()))

    def append(self, entry: _Entry) -> None:
        """Adds a range whose addresses are above all others."""
        slots = self._slots
        count = len(slots.starts)
        if count == len(slots.table):
            slots = self._slots = _Slots(self)
            count = len(slots.starts)
        slots.table[count] = entry.address, entry.size, entry.host
        self._entries[entry.address] = entry
        slots.starts.append(entry.address)

    def remove(self, entry: _Entry) -> None:
        """Removes a range; does nothing for one that is not there, or only in part."""
        starts = self._slots.starts
        at = bisect_right(starts, entry.address) - 1
        if at >= 0 and starts[at] == entry.address:
            self._slots.table[at] = entry.address, 0, 0
        self._entries.pop(entry.address, None)
        empty = len(starts) - len(self._entries)
        if empty > _FEW and 2 * empty > len(starts):
            self._slots = _Slots(self)

    def at(self, address: int) -> _Entry | None:
        """The range that contains the address."""
        starts = self._slots.starts
        at = bisect_right(starts, address) - 1
        entry = self._entries.get(starts[at]) if at >= 0 else None
        return entry if entry is not None and address < entry.address + entry.size else None

    def before(self, address: int) -> _Entry | None:
        """The range that starts at the address, or the nearest one below it."""
        starts = self._slots.starts
        found = map(self._entries.get, reversed(starts[: bisect_right(starts, address)]))
        return next((each for each in found if each is not None), None)

    def segments(self) -> tuple[Any, int]:
        """``dmlk_segment *`` of the slots and their number; empty slots have size 0."""
        slots = self._slots
        return slots.pointer, len(slots.starts)
