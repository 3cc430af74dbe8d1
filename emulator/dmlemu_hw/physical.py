"""Which memory stands behind an allocation: two allocations share bytes where their spans do."""

from __future__ import annotations

from typing import NamedTuple

from .memory import TILE_SIZE, Allocation, _Reservation, _Storage

__all__ = ["Span", "spans"]


class Span(NamedTuple):
    """``size`` bytes of an allocation from byte ``start`` on are those of a heap from ``offset`` on.

    ``heap`` is a number that no other heap of the GPU ever has, and ``heap + offset`` one that no other
    byte has: all heaps lie in one file.
    """

    start: int
    size: int
    heap: int
    offset: int


def spans(allocation: Allocation) -> list[Span]:
    """In the order of the addresses; NULL tiles have none.  ValueError: the allocation is closed."""
    mapped = allocation._opened()
    if isinstance(mapped, _Storage):
        return [Span(0, allocation.size, mapped.file_offset, allocation.offset)]
    assert isinstance(mapped, _Reservation)
    return [
        Span(run.first * TILE_SIZE, run.count * TILE_SIZE, run.storage.file_offset, run.heap_tile * TILE_SIZE)
        for run in mapped.runs
        if run.storage is not None
    ]
