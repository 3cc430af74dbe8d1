"""Mapped heaps: snapshots of mapped bytes, to find what the CPU has changed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .visible import place_of

if TYPE_CHECKING:
    from ...d3d12.memory.resource import Resource

__all__ = ["Bytes", "MappedHeap", "Range", "add_span", "without"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Range = tuple[int, int]  # first byte and the byte after the last one


class MappedHeap:
    """A heap with buffers that the CPU has mapped.

    ``maps``: by address, the range of each mapped buffer in the heap, and its bytes as the CPU sees them.
    For the ranges ``watched`` two copies are kept: what the CPU saw last, and the current contents. They
    differ only under chaos, where the CPU sees the stores of others later.
    """

    def __init__(self, resource: Resource) -> None:
        memory = resource.allocation.heap_buffer()
        self._gpu: Bytes = np.frombuffer(memory, np.uint8)
        self._is_late = resource.context.late_visibility is not None
        self._before: Bytes = np.empty(len(memory), np.uint8)  # allocates memory only where it is used
        self._stored: Bytes = np.empty(len(memory), np.uint8) if self._is_late else self._before
        self.watched: list[Range] = []
        self.maps: dict[int, tuple[Range, Bytes]] = {}

    def map(self, resource: Resource) -> Range | None:
        """The CPU may change the bytes of the buffer from now on; returns their place in the heap.

        None: another thread has unmapped the buffer in the meantime.
        """
        mapped = resource.mapped
        memory = None if mapped is None else mapped.unwatched
        if memory is None:
            return None
        place = place_of(resource)
        here = place.offset, place.offset + resource.width
        self.maps[resource.address] = here, np.frombuffer(memory, np.uint8)
        return here

    def is_mapped(self, begin: int, end: int) -> bool:
        """Whether the CPU can change one of the bytes."""
        return any(first < end and begin < last for (first, last), _ in self.maps.values())

    def watch(self, begin: int, end: int, look: Callable[[], None]) -> None:
        """Takes a snapshot of the bytes; ``look`` is called first if the CPU has already changed some."""
        for shared in _both((begin, end), self.watched):
            if self.changed(*shared) is not None:
                look()
                self._take(*shared)
        for new in without((begin, end), self.watched):
            self._take(*new)
        add_span(self.watched, begin, end)

    def changed(self, begin: int, end: int) -> Mask | None:
        """Which of these watched bytes the CPU has changed; None if none."""
        now, before, stored = self._seen(begin, end), self._before[begin:end], self._stored[begin:end]
        if np.array_equal(now, before):
            return None
        differs: Mask = now != before
        if self._is_late:
            differs &= now != stored
        return differs if differs.any() else None

    def store(self, begin: int, end: int, touched: Mask | None = None) -> None:
        """The GPU or the emulator has stored to the bytes, or to those in ``touched``."""
        part = slice(begin, end)
        if self._is_late:  # what the CPU sees by now is as good as what it saw before
            seen = self._seen(begin, end)
            np.copyto(self._before[part], seen, where=seen == self._stored[part])
        if touched is None:
            self._stored[part] = self._gpu[part]
        else:
            np.copyto(self._stored[part], self._gpu[part], where=touched)

    def _take(self, begin: int, end: int) -> None:
        self._before[begin:end] = self._seen(begin, end)
        if self._is_late:
            self._stored[begin:end] = self._gpu[begin:end]

    def _seen(self, begin: int, end: int) -> Bytes:
        """The bytes as the CPU sees them."""
        seen = self._gpu[begin:end]
        if self._is_late:
            seen = seen.copy()
            for (first, last), memory in self.maps.values():
                for low, high in _both((begin, end), [(first, last)]):
                    seen[low - begin : high - begin] = memory[low - first : high - first]
        return seen


def add_span(ranges: list[Range], begin: int, end: int) -> None:
    """Adds a span to sorted ranges, and merges those that meet."""
    first = bisect_left(ranges, begin, key=itemgetter(1))  # the first range that reaches this one
    last = bisect_right(ranges, end, first, key=itemgetter(0))
    if first < last:
        begin, end = min(begin, ranges[first][0]), max(end, ranges[last - 1][1])
    ranges[first:last] = [(begin, end)]


def without(span: Range, ranges: Iterable[Range]) -> Iterator[Range]:
    """The parts of a span outside of the ranges."""
    begin, end = span
    for first, last in sorted(ranges):
        if first >= end:
            break
        if begin < first:
            yield begin, first
        begin = max(begin, last)
    if begin < end:
        yield begin, end


def _both(span: Range, ranges: list[Range]) -> Iterator[Range]:
    """The intersections of a span with sorted ranges."""
    at = bisect_right(ranges, span[0], key=itemgetter(1))
    while at < len(ranges) and ranges[at][0] < span[1]:
        yield max(span[0], ranges[at][0]), min(span[1], ranges[at][1])
        at += 1
