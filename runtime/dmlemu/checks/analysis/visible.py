"""CPU-visible accesses: bytes of heaps that commands access and the CPU can map.

Ranges are places in heaps, so that buffers and tiles over the same bytes match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dmlemu_hw.events import MAYBE_READ, READ, WRITE, Accesses
from dmlemu_hw.faults import GpuFault
from dmlemu_hw.footprints import DispatchReader, accesses
from dmlemu_hw.kernels import ffi
from dmlemu_hw.memory import Memory
from dmlemu_hw.memory_spans import Span, heap_number, spans, spans_after
from dmlemu_hw.packets import HEADER, MapTilesPacket, Opcode, commands, decode_one, skip
from dmlemu_hw.stretches import Finder

from ...d3d12.memory.checks import is_cpu_visible

if TYPE_CHECKING:
    from ...d3d12.memory.resource import Resource

__all__ = [
    "Part",
    "Touched",
    "parts_of",
    "place_of",
    "planned_spans",
    "touched_in",
    "touches_of",
    "visible_spans",
]

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_COPY = Struct("<8xQQQ")  # destination, source, size
_ON_BUFFERS = commands(lambda effects: effects.on_buffers)


class Part(NamedTuple):
    """Bytes [begin, end) of a heap, which are mapped at an address."""

    heap: int
    begin: int
    end: int
    address: int


class Touched(NamedTuple):
    """A footprint, ``dmlk_footprint *``, and its owner; the packet is at byte ``at`` of the list."""

    packet: int
    at: int
    pattern: Any
    keeper: Accesses


def touches_of(
    data: bytes, memory: Memory, buffers: Sequence[Resource], *, dispatches: bool
) -> Iterator[tuple[Touched, Resource]]:
    """A list's accesses to buffers that are known before it runs; ``dispatches``: include dispatches.

    Data-dependent reads of a kernel (GATHER_ELEMENTS: the elements that the indices choose) are not
    included.
    """
    for each in _touches_of(data, memory, buffers, dispatches=dispatches):
        for buffer in buffers:
            if buffer.address <= each.pattern.address < buffer.address + buffer.width:
                yield each, buffer


def _touches_of(
    data: bytes, memory: Memory, buffers: Sequence[Resource], *, dispatches: bool
) -> Iterator[Touched]:
    base, reader, finder = ffi.from_buffer("uint8_t[]", data), DispatchReader(memory), Finder(memory)
    at = packet = 0
    while at < len(data):
        opcode, size = HEADER.unpack_from(data, at)
        found: Accesses | None = None
        if opcode == Opcode.COPY_BUFFER:
            found = _copied(*_COPY.unpack_from(data, at))
        elif opcode == Opcode.DISPATCH:
            together = finder.find(data, base, at) if dispatches else 0
            if together:
                for number, found in _found_in(finder, buffers):
                    yield from _followed(packet + number, skip(data, at, number), found)
                at, packet = skip(data, at, together), packet + together
                continue
            if dispatches:
                found = reader.read(data[at : at + size], base + at, planned=True)
        elif opcode in _ON_BUFFERS:
            try:
                found = accesses(decode_one(data, at), memory)
            except GpuFault:  # known when it is executed
                found = None
        if found is not None:
            yield from _followed(packet, at, found)
        at += size
        packet += 1


def _found_in(finder: Finder, buffers: Sequence[Resource]) -> list[tuple[int, Accesses]]:
    """Those of the packets just found that access the buffers, by their numbers."""
    ends = np.cumsum(finder.counts)
    addresses = finder.addresses[: ends[-1]]
    is_there = np.zeros(len(addresses), np.bool_)
    for each in buffers:
        is_there |= (addresses >= each.address) & (addresses < each.address + each.width)
    made = []
    for number in np.unique(np.searchsorted(ends, np.flatnonzero(is_there), side="right")).tolist():
        count = finder.counts[number]
        array = ffi.new("dmlk_footprint[]", count)
        ffi.memmove(array, finder.footprints + (int(ends[number]) - count), ffi.sizeof(array))
        made.append((number, Accesses(array, count)))
    return made


def _followed(packet: int, at: int, found: Accesses) -> Iterator[Touched]:
    for i in range(len(found)):
        if found.pointer[i].access != MAYBE_READ:
            yield Touched(packet, at, found.pointer + i, found)


def visible_spans(buffer: Resource, queue: int = 0, ticket: int = 0) -> list[Span]:
    """:func:`planned_spans`, restricted to memory that the CPU can map."""
    if buffer.properties is not None:
        return planned_spans(buffer, queue, ticket) if is_cpu_visible(buffer.properties) else []
    heaps = buffer.context.host_heaps
    visible = {heap_number(heap) for heap in heaps if not heap.closed}
    planned = planned_spans(buffer, queue, ticket) if visible else []
    return [span for span in planned if span.heap in visible]


def planned_spans(buffer: Resource, queue: int = 0, ticket: int = 0) -> list[Span]:
    """The spans the buffer is mapped to once all pending queue operations are done.

    Operations submitted to ``queue``, if given, behind the ticket are left out.
    """
    allocation, gpu = buffer.allocation, buffer.context.gpu
    if allocation.closed:
        return []
    if allocation.heap is not None:
        return spans(allocation)
    held = (
        entry
        for each in gpu.queues
        for entry in list(each.pending)
        if each.serial != queue or entry.ticket < ticket
    )
    packets = [decode_one(each) for each in held if HEADER.unpack_from(each)[0] == Opcode.MAP_TILES]
    changes = [each for each in packets if isinstance(each, MapTilesPacket)]
    return spans_after(allocation, gpu.memory, changes)


def _copied(destination: int, source: int, size: int) -> Accesses:
    """The accesses of a copy."""
    array = ffi.new("dmlk_footprint[]", 2)
    for entry, address, access in zip(array, (source, destination), (READ, WRITE), strict=True):
        entry.address, entry.end, entry.access = address, address + size, access
        entry.bits, entry.rank, entry.sizes[0], entry.strides[0] = 8, 1, size, 1
    return Accesses(array, 2 if size else 0)


def parts_of(pattern: Any, address: int, spans: list[Span]) -> list[Part]:
    """Where the bytes of a footprint in the buffer at the address are in heaps."""
    found = []
    for start, size, heap, offset in spans:
        first = address + start
        low, high = max(pattern.address, first), min(pattern.end, first + size)
        if low < high:
            found.append(Part(heap, offset + low - first, offset + high - first, low))
    return found


def touched_in(pattern: Any, part: Part) -> Mask | None:
    """Which bytes of the part belong to an element; None: all of them."""
    rank, width = pattern.rank, pattern.bits // 4
    if rank == 1 and pattern.strides[0] == 1:
        return None
    halves = np.zeros((pattern.end - pattern.address, 2), np.bool_)
    strides = [stride * width for stride in pattern.strides[0:rank]]
    as_strided(halves, (*pattern.sizes[0:rank], width), (*strides, 1))[...] = True
    start = part.address - pattern.address
    return (halves[:, 0] | halves[:, 1])[start : start + part.end - part.begin]


def place_of(resource: Resource) -> Span:
    """The place of a buffer that is not reserved in its heap."""
    [place] = spans(resource.allocation)
    return place
