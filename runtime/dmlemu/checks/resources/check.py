"""Resources: CPU reads and writes, overlapping placed buffers, and leaked objects (group d)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from dmlemu_hw.events import WRITE, Accesses, Submitted, Waited
from dmlemu_hw.memory import Memory
from dmlemu_hw.packets import HEADER, BarrierPacket, commands, decode, decode_one

from ...d3d12.core.events import ObjectReleased
from ...d3d12.core.recording import Recording
from ...d3d12.core.states import is_write
from ...d3d12.device.device import Device
from ...d3d12.lists.list_recorder import ListRecording
from ...d3d12.memory.resource import HostAccessed, HostMapped, HostUnmapped, Resource
from ...d3d12.memory.rows import UNMAP_RANGE
from ...d3d12.types.enums import HeapType, ResourceBarrierType, WriteBufferImmediateMode
from ..analysis.in_flight import Flight, FlightCheck
from ..analysis.mapped import add_span
from ..analysis.visible import Part, parts_of, place_of, touched_in, touches_of, visible_spans
from ..framework.check import Check, on
from ..hazards.rows import HAZARD_ALIAS
from ..lists.messages import calling
from . import messages
from .rows import HEAP_OVERLAP, READBACK_EARLY, RES_LEAK

CHECKS: tuple[type[Check], ...]

Span = tuple[int, int]  # first byte and the byte after the last one
_IMMEDIATE = commands(lambda effects: effects.immediate)


# --- READBACK_EARLY ---


class _Write(NamedTuple):
    """A write of a list's packet, ``dmlk_footprint *``, what keeps that alive, and its place."""

    packet: int
    pattern: Any
    keeper: Accesses
    parts: list[Part]


class EarlyReads(FlightCheck):
    """Compares CPU reads with the writes of commands that the program cannot know to be done."""

    declarations = (READBACK_EARLY,)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._writes: WeakKeyDictionary[Flight, list[_Write]] = WeakKeyDictionary()

    def took_off(self, flight: Flight, recording: Recording | None) -> None:
        """Keeps the list's writes to CPU-readable memory: the recording may be released earlier."""
        if isinstance(recording, ListRecording):
            self._writes[flight] = list(_writes_of(recording, self.device.context.gpu.memory))

    @on(HostMapped)
    def mapped(self, event: HostMapped) -> None:
        """Map lets the CPU read."""
        if event.resource.heap_type == HeapType.READBACK:
            self._read(event.resource, *event.read, "Map")

    @on(HostAccessed)
    def accessed(self, event: HostAccessed) -> None:
        """The program read, or took a view that can only be for reading."""
        only_reads = event.reads and not event.writes
        if only_reads or (event.reads and event.resource.heap_type == HeapType.READBACK):
            self._read(event.resource, event.begin, event.end, "mapped memory")

    def _read(self, buffer: Resource, begin: int, end: int, operation: str) -> None:
        if begin == end:
            return
        for flight in self.in_flight():
            writes = self._writes.get(flight, ())
            spans = [(_shared(buffer, begin, end, write), write.packet) for write in writes]
            found = min(((span, packet) for span, packet in spans if span is not None), default=None)
            if found is not None:
                span, packet = found
                words = messages.early_read(buffer, *span, flight, packet, self.is_done(flight))
                words["context"] += (calling(operation, "calling" if operation == "Map" else "reading"),)
                self.report(
                    READBACK_EARLY.id,
                    operation=operation,
                    hint=self.advice(flight),
                    properties=self.properties(flight),
                    **words,
                )
                return


def _writes_of(recording: ListRecording, memory: Memory) -> Iterator[_Write]:
    """The writes of a list to CPU-visible memory."""
    # The GPU does not write upload buffers, and DirectML binds no readback buffer: only copies do.
    written = [each for each in recording.resources if each.heap_type != HeapType.UPLOAD]
    visible = {each: spans for each in written if (spans := visible_spans(each))}
    if not visible:
        return
    dispatches, data = any(each.heap_type != HeapType.READBACK for each in visible), recording.packets
    touches = touches_of(data, memory, list(visible), dispatches=dispatches)
    for (packet, at, pattern, keeper), buffer in touches:
        if pattern.access & WRITE and not _is_marker(data, at, pattern.operand):
            yield _Write(packet, pattern, keeper, parts_of(pattern, buffer.address, visible[buffer]))


def _is_marker(data: bytes, at: int, operand: int) -> bool:
    """Immediate writes with a marker mode are meant to be read early."""
    if HEADER.unpack_from(data, at)[0] not in _IMMEDIATE:
        return False
    _, _, mode = decode_one(data, at).stores()[operand]
    return mode != WriteBufferImmediateMode.DEFAULT


def _shared(buffer: Resource, begin: int, end: int, write: _Write) -> Span | None:
    """The first byte of the buffer that is both read and written, and the end of the written range."""
    place = place_of(buffer)
    for part in write.parts:
        low, high = max(place.offset + begin, part.begin), min(place.offset + end, part.end)
        if part.heap != place.heap or low >= high:
            continue
        touched = touched_in(write.pattern, part)
        if touched is not None:
            hits = np.flatnonzero(touched[low - part.begin : high - part.begin])
            if not len(hits):
                continue
            low += int(hits[0])
        return low - place.offset, high - place.offset
    return None


# --- UNMAP_RANGE ---


class _Open:
    """What the program has written into a mapped buffer, and the ranges given to Unmap."""

    def __init__(self) -> None:
        self.written: list[Span] = []
        self.declared: list[Span] = []


class UnmapRanges(Check):
    """Compares the bytes written through the map with the ranges given to Unmap."""

    declarations = (UNMAP_RANGE,)

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
        """By the last Unmap all written bytes must have been covered."""
        state = self._open.get(event.resource)
        if state is None:
            return
        if event.written != (0, 0):
            add_span(state.declared, *event.written)
        if event.maps == 0:
            del self._open[event.resource]
            missing = next((each for each in state.written if not _covers(state.declared, each)), None)
            if missing is not None:
                self.report(UNMAP_RANGE.id, **messages.unmap_range(event.resource, missing, state.declared))


def _covers(declared: list[Span], written: Span) -> bool:
    """Is the range within one of those?"""
    at = bisect_right(declared, written[0], key=_begin_of) - 1
    return at >= 0 and written[1] <= declared[at][1]


_begin_of = itemgetter(0)


# --- HEAP_OVERLAP ---


class _Found(NamedTuple):
    """A finding, reported when the call of ``ticket`` is done."""

    queue: int
    ticket: int
    words: dict[str, Any]


class Overlaps(Check):
    """Placed buffers that overlap and are used together; HAZARD_ALIAS reports actual conflicts."""

    declarations = (HEAP_OVERLAP,)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._found: list[_Found] = []
        self._known: set[tuple[int, int]] = set()

    @on(Submitted)
    def submitted(self, event: Submitted) -> None:
        """Notes the pairs; whether they conflict is known when the call is done."""
        recordings = [self.device.context.recordings.get(serial) for serial in event.lists]
        lists = [each for each in recordings if isinstance(each, ListRecording)]
        placed = {each for recording in lists for each in recording.resources if each.heap is not None}
        for first, second in _overlapping(placed):
            key = first.number, second.number
            if key not in self._known and _written(lists, first, second) and not _has_aliasing(lists):
                self._known.add(key)
                words = messages.overlap(
                    first, second, *_common(first, second), [each.owner for each in lists]
                )
                self._found.append(_Found(event.queue, event.ticket, words))

    @on(Waited)
    def waited(self, event: Waited) -> None:
        """The host has waited: reports findings of calls that are done."""
        if event.queue or not self._found:
            return
        queues = {queue.serial: queue for queue in self.device.context.gpu.queues}
        found, self._found = self._found, []
        conflict = any(stored.report.id == HAZARD_ALIAS.id for stored in self.device.reports.kept())
        for each in found:
            queue = queues.get(each.queue)
            if queue is not None and not queue.done(each.ticket):
                self._found.append(each)
            elif not conflict:
                self.report(HEAP_OVERLAP.id, **each.words)


def _span(buffer: Resource) -> Span:
    """The range of a placed buffer in its heap."""
    start = buffer.allocation.offset
    return start, start + buffer.width


def _common(first: Resource, second: Resource) -> Span:
    (begin, end), (other_begin, other_end) = _span(first), _span(second)
    return max(begin, other_begin), min(end, other_end)


def _overlapping(placed: set[Resource]) -> Iterator[tuple[Resource, Resource]]:
    """Each buffer that overlaps an earlier one in its heap, with that one; the older one first."""
    rows = sorted(placed, key=lambda each: (id(each.heap), _span(each), each.number))
    widest: Resource | None = None
    for each in rows:
        if widest is not None and widest.heap is each.heap:
            if _span(each)[0] < _span(widest)[1]:
                yield (widest, each) if widest.number < each.number else (each, widest)
            if _span(each)[1] <= _span(widest)[1]:
                continue
        widest = each


def _written(lists: list[ListRecording], first: Resource, second: Resource) -> bool:
    """Does a command of the lists use one of them in a state in which it is written?"""
    for recording in lists:
        tracks = (recording.tracks.get(each) for each in (first, second))
        if any(is_write(each.uses | (each.before or 0) | each.state) for each in tracks if each is not None):
            return True
    return False


def _has_aliasing(lists: list[ListRecording]) -> bool:
    for recording in lists:
        for packet in decode(recording.packets):
            if isinstance(packet, BarrierPacket) and packet.kind == ResourceBarrierType.ALIASING:
                return True
    return False


# --- RES_LEAK ---


class Leaks(Check):
    """Lists the objects left when a program that releases its objects releases the device."""

    declarations = (RES_LEAK,)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._releases = False  # most programs leave this to garbage collection

    @on(ObjectReleased)
    def released(self, event: ObjectReleased) -> None:
        """The last object released is the device."""
        if not isinstance(event.object, Device):
            self._releases = True
            return
        living = event.object.report_live_device_objects()
        if living and self._releases:
            self.report(RES_LEAK.id, **messages.leak(str(event.object), list(living.lines())))


CHECKS = (EarlyReads, UnmapRanges, Overlaps, Leaks)
