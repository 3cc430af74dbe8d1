"""Group d: what the CPU reads and writes, buffers over the same bytes, and objects that are left over."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from dmlemu_hw.events import WRITE, Access, Footprint, Submitted, Waited
from dmlemu_hw.faults import GpuFault
from dmlemu_hw.footprints import accesses, meet
from dmlemu_hw.memory import Memory
from dmlemu_hw.packets import HEADER, BarrierPacket, Opcode, WriteImmediatePacket, decode, decode_one

from ...d3d12.device import Device
from ...d3d12.enums import HeapType, ResourceBarrierType, WriteBufferImmediateMode
from ...d3d12.events import HostAccessed, HostMapped, HostUnmapped, ObjectReleased
from ...d3d12.recording import Recording
from ...d3d12.resource import Resource
from ...d3d12.rules import is_cpu_visible
from ...d3d12.states import is_write
from ..check import Check, on
from ..declarations.resources import ADVICE
from ..flights import Flight, FlightCheck
from ..text import resources as text
from ..text.lists import calling

CHECKS: tuple[type[Check], ...]

Span = tuple[int, int]  # first byte and the byte after the last one


# --- READBACK_EARLY ---


class _Write(NamedTuple):
    """What a packet of a list writes."""

    packet: int
    footprint: Footprint


class EarlyReads(FlightCheck):
    """What the CPU reads is compared with what commands write that it cannot know to be done."""

    declarations = tuple(each for each in ADVICE if each.id == "READBACK_EARLY")

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._writes: WeakKeyDictionary[Flight, list[_Write]] = WeakKeyDictionary()

    def took_off(self, flight: Flight, recording: Recording | None) -> None:
        """What the list writes of memory that the CPU reads is kept: the recording may be gone before."""
        if recording is None or not any(_is_read_by_host(each) for each in recording.resources):
            return
        found = []
        for packet, access in _writes_of(recording.packets, self.device._gpu.memory):
            buffer = self.names.buffer(access.footprint.address)
            if buffer is not None and _is_read_by_host(buffer):
                found.append(_Write(packet, access.footprint))
        self._writes[flight] = found

    @on(HostMapped)
    def mapped(self, event: HostMapped) -> None:
        """Map lets the CPU read."""
        if event.resource._heap_type == HeapType.READBACK:
            self._read(event.resource, *event.read, "Map")

    @on(HostAccessed)
    def accessed(self, event: HostAccessed) -> None:
        """The program read, or took a view that can be for nothing else."""
        only_reads = event.reads and not event.writes
        if only_reads or (event.reads and event.resource._heap_type == HeapType.READBACK):
            self._read(event.resource, event.begin, event.end, "mapped memory")

    def _read(self, buffer: Resource, begin: int, end: int, operation: str) -> None:
        if begin == end or not _is_read_by_host(buffer):
            return
        for flight in self.in_flight():
            writes = self._writes.get(flight, ())
            spans = [(_shared(buffer, begin, end, write.footprint), write.packet) for write in writes]
            found = min(((span, packet) for span, packet in spans if span is not None), default=None)
            if found is not None:
                span, packet = found
                words = text.early_read(buffer, *span, flight, packet, self.is_done(flight))
                words["context"] += (calling(operation, "calling" if operation == "Map" else "reading"),)
                self.report(
                    "READBACK_EARLY",
                    operation=operation,
                    hint=self.advice(flight),
                    properties=self.properties(flight),
                    **words,
                )
                return


def _is_read_by_host(buffer: Resource) -> bool:
    """May the CPU read what the GPU writes?  The GPU writes no UPLOAD buffer."""
    properties = buffer._properties
    return properties is not None and properties.type != HeapType.UPLOAD and is_cpu_visible(properties)


def _writes_of(data: bytes, memory: Memory) -> Iterator[tuple[int, Access]]:
    """The number of the packet and what it writes, for all packets of a list.

    Dispatches write no memory that the CPU reads: DirectML binds only buffers of DEFAULT heaps.
    """
    position, packet = 0, 0
    while position < len(data):
        opcode, size = HEADER.unpack_from(data, position)
        if opcode != Opcode.DISPATCH:
            content = data[position : position + size]
            for access in _accesses(content, memory):
                if access.access & WRITE and not _is_marker(content, opcode, access.operand):
                    yield packet, access
        position, packet = position + size, packet + 1


def _accesses(content: bytes, memory: Memory) -> Sequence[Access]:
    try:
        return accesses(decode_one(content), memory)
    except GpuFault:  # executing it will tell
        return ()


def _is_marker(content: bytes, opcode: int, operand: int) -> bool:
    """Writes of WriteBufferImmediate with a marker's mode are made for being looked at."""
    if opcode != Opcode.WRITE_IMMEDIATE:
        return False
    packet = decode_one(content)
    assert isinstance(packet, WriteImmediatePacket)
    return packet.writes[operand][2] != WriteBufferImmediateMode.DEFAULT


def _shared(buffer: Resource, begin: int, end: int, written: Footprint) -> Span | None:
    """The first and the last byte of the buffer that are read and written."""
    memory = buffer._device._gpu.memory
    allocation = memory.find(written.address)
    if allocation is None:
        return None
    # What is written through another buffer over the same memory, as this one's addresses see it.
    shift = (allocation.host - allocation.address) - (buffer._allocation.host - buffer._address)
    read = Footprint(buffer._address + begin, 8, (end - begin,), (1,))
    first = meet(read, written, shift)
    if first is None:
        return None
    _, last = written.byte_range
    return first - buffer._address, min(end, last + shift - buffer._address)


# --- UNMAP_RANGE ---


class _Open:
    """What the program has written into a mapped buffer, and what its Unmaps have told."""

    def __init__(self) -> None:
        self.written: list[Span] = []
        self.told: list[Span] = []


class UnmapRanges(Check):
    """What the program wrote through the map is compared with what it tells Unmap."""

    declarations = tuple(each for each in ADVICE if each.id == "UNMAP_RANGE")

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._open: WeakKeyDictionary[Resource, _Open] = WeakKeyDictionary()

    @on(HostAccessed)
    def accessed(self, event: HostAccessed) -> None:
        """Bytes were written, for certain."""
        if event.writes and not event.reads:
            state = self._open.setdefault(event.resource, _Open())
            add_span(state.written, event.begin, event.end)

    @on(HostUnmapped)
    def unmapped(self, event: HostUnmapped) -> None:
        """With the last Unmap all must have been told."""
        state = self._open.get(event.resource)
        if state is None:
            return
        if event.written != (0, 0):
            add_span(state.told, *event.written)
        if event.maps == 0:
            del self._open[event.resource]
            missing = next((each for each in state.written if not _covers(state.told, each)), None)
            if missing is not None:
                self.report("UNMAP_RANGE", **text.unmap_range(event.resource, missing, state.told))


def add_span(spans: list[Span], begin: int, end: int) -> None:
    """Adds bytes to ranges that are as few as there can be, sorted."""
    first = bisect_left(spans, begin, key=_end_of)  # the first that reaches this one
    last = bisect_right(spans, end, first, key=_begin_of)
    if first < last:
        begin, end = min(begin, spans[first][0]), max(end, spans[last - 1][1])
    spans[first:last] = [(begin, end)]


def _covers(told: list[Span], written: Span) -> bool:
    """Is the range within one of those?"""
    at = bisect_right(told, written[0], key=_begin_of) - 1
    return at >= 0 and written[1] <= told[at][1]


_begin_of, _end_of = itemgetter(0), itemgetter(1)


# --- HEAP_OVERLAP ---


class _Found(NamedTuple):
    """What is to be said when the call of ``ticket`` is done."""

    queue: int
    ticket: int
    words: dict[str, Any]


class Overlaps(Check):
    """Placed buffers that share bytes and are used together; where they conflict, HAZARD_ALIAS tells."""

    declarations = tuple(each for each in ADVICE if each.id == "HEAP_OVERLAP")

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._found: list[_Found] = []
        self._known: set[tuple[int, int]] = set()

    @on(Submitted)
    def submitted(self, event: Submitted) -> None:
        """Notes the pairs; whether they conflict is known when the call is done."""
        recordings = [self.device._recordings.get(serial) for serial in event.lists]
        lists = [each for each in recordings if each is not None]
        placed = {each for recording in lists for each in recording.resources if each._heap is not None}
        for first, second in _overlapping(placed):
            key = first._number, second._number
            if key not in self._known and _written(lists, first, second) and not _has_aliasing(lists):
                self._known.add(key)
                words = text.overlap(first, second, *_common(first, second), [each.owner for each in lists])
                self._found.append(_Found(event.queue, event.ticket, words))

    @on(Waited)
    def waited(self, event: Waited) -> None:
        """The host has awaited something: what is done by now is told."""
        if event.queue or not self._found:
            return
        queues = {queue.serial: queue for queue in self.device._gpu.queues}
        found, self._found = self._found, []
        conflict = any(stored.report.id == "HAZARD_ALIAS" for stored in self.device.reports)
        for each in found:
            queue = queues.get(each.queue)
            if queue is not None and not queue.done(each.ticket):
                self._found.append(each)
            elif not conflict:
                self.report("HEAP_OVERLAP", **each.words)


def _span(buffer: Resource) -> Span:
    """Where in its heap a placed buffer lies."""
    start = buffer._allocation.offset
    return start, start + buffer._width


def _common(first: Resource, second: Resource) -> Span:
    (begin, end), (other_begin, other_end) = _span(first), _span(second)
    return max(begin, other_begin), min(end, other_end)


def _overlapping(placed: set[Resource]) -> Iterator[tuple[Resource, Resource]]:
    """Each buffer that shares bytes with one before it in its heap, and that one; the older one first."""
    rows = sorted(placed, key=lambda each: (id(each._heap), _span(each), each._number))
    widest: Resource | None = None
    for each in rows:
        if widest is not None and widest._heap is each._heap:
            if _span(each)[0] < _span(widest)[1]:
                yield (widest, each) if widest._number < each._number else (each, widest)
            if _span(each)[1] <= _span(widest)[1]:
                continue
        widest = each


def _written(lists: list[Recording], first: Resource, second: Resource) -> bool:
    """Does a command of the lists use one of them in a state in which it is written?"""
    for recording in lists:
        tracks = (recording.tracks.get(each) for each in (first, second))
        if any(is_write(each.uses | (each.before or 0) | each.state) for each in tracks if each is not None):
            return True
    return False


def _has_aliasing(lists: list[Recording]) -> bool:
    for recording in lists:
        for packet in decode(recording.packets):
            if isinstance(packet, BarrierPacket) and packet.kind == ResourceBarrierType.ALIASING:
                return True
    return False


# --- RES_LEAK ---


class Leaks(Check):
    """Looks at what is left when a program that releases its objects releases the device."""

    declarations = tuple(each for each in ADVICE if each.id == "RES_LEAK")

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._releases = False  # garbage collection does it in most programs

    @on(ObjectReleased)
    def released(self, event: ObjectReleased) -> None:
        """The last one is the device."""
        if not isinstance(event.object, Device):
            self._releases = True
            return
        living = event.object.report_live_device_objects()
        if living and self._releases:
            self.report("RES_LEAK", **text.leak(str(event.object), list(living.lines())))


CHECKS = (EarlyReads, UnmapRanges, Overlaps, Leaks)
