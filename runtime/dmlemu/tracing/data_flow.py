"""Who wrote the bytes that a command reads: the last writer of each range of addresses."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Generic, TypeVar

__all__ = ["LastWriters"]

_Writer = TypeVar("_Writer")


class LastWriters(Generic[_Writer]):
    """Ranges of addresses and what wrote them last; byte ranges, in which elements may leave gaps."""

    def __init__(self) -> None:
        self._begins: list[int] = []  # of ranges that do not overlap, ascending
        self._ends: list[int] = []
        self._writers: list[_Writer] = []

    def of(self, begin: int, end: int) -> list[_Writer]:
        """The writers of bytes [begin, end)."""
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        found = self._writers[first:last]
        return [each for i, each in enumerate(found) if each not in found[:i]]

    def write(self, begin: int, end: int, writer: _Writer) -> None:
        """From now on bytes [begin, end) are the writer's."""
        first, last = bisect_right(self._ends, begin), bisect_left(self._begins, end)
        rows = [(begin, end, writer)]
        if first < last and self._begins[first] < begin:
            rows.insert(0, (self._begins[first], begin, self._writers[first]))
        if first < last and self._ends[last - 1] > end:
            rows.append((end, self._ends[last - 1], self._writers[last - 1]))
        self._begins[first:last] = [row[0] for row in rows]
        self._ends[first:last] = [row[1] for row in rows]
        self._writers[first:last] = [row[2] for row in rows]
