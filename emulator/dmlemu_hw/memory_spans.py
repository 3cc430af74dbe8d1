"""The heap memory behind an allocation: two allocations share bytes where their spans overlap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .allocation import Allocation, Heap
from .memory import Memory
from .packets import MapTilesPacket
from .reservation import Reservation
from .storage import TILE_SIZE, Storage

__all__ = ["Span", "heap_number", "spans", "spans_after"]


class Span(NamedTuple):
    """``size`` bytes of an allocation at ``start`` that map to a heap at ``offset``.

    ``heap`` is a number unique to the heap, and ``heap + offset`` is unique to the byte: all heaps are ranges
    of one file.
    """

    start: int
    size: int
    heap: int
    offset: int


def spans(allocation: Allocation) -> list[Span]:
    """Spans in address order; NULL tiles have none.  ValueError: the allocation is closed."""
    mapped = allocation.opened()
    if isinstance(mapped, Storage):
        return [Span(0, allocation.size, mapped.file_offset, allocation.offset)]
    assert isinstance(mapped, Reservation)
    return [
        Span(run.first * TILE_SIZE, run.count * TILE_SIZE, run.storage.file_offset, run.heap_tile * TILE_SIZE)
        for run in mapped.runs
        if run.storage is not None
    ]


def heap_number(heap: Heap) -> int:
    """``Span.heap`` of everything placed on or mapped to the heap.  ValueError: the heap is closed."""
    return heap.storage().file_offset


def spans_after(allocation: Allocation, memory: Memory, changes: Iterable[MapTilesPacket]) -> list[Span]:
    """:func:`spans` as they will be after these queued tile mapping updates."""
    found = spans(allocation)
    for packet in changes:
        if packet.allocation != allocation.address:
            continue
        for tile, count, serial, heap_tile, reuse in packet.regions:
            begin, end = tile * TILE_SIZE, (tile + count) * TILE_SIZE
            found = [part for each in found for part in _outside(each, begin, end)]
            heap = memory.find_heap(serial)
            if heap is not None:
                size = TILE_SIZE if reuse else end - begin
                place = heap_number(heap), heap_tile * TILE_SIZE
                found += [Span(start, size, *place) for start in range(begin, end, size)]
    return sorted(found)


def _outside(span: Span, begin: int, end: int) -> Iterator[Span]:
    """The parts of the span before and after those bytes of the allocation."""
    last = span.start + span.size
    if span.start < begin:
        yield span._replace(size=min(last, begin) - span.start)
    if last > end:
        first = max(span.start, end)
        yield Span(first, last - first, span.heap, span.offset + first - span.start)
