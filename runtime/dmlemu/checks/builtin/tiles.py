"""Group g, second half: what commands do with tiles of reserved buffers, and what becomes of the tiles."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from dmlemu_hw.events import READ, WRITE, Accesses, Allocated, Executing, Mapped
from dmlemu_hw.kernels import ffi, lib
from dmlemu_hw.memory import Allocation
from dmlemu_hw.packets import Opcode
from dmlemu_hw.physical import Span, heap_number, spans

from ...d3d12.events import ObjectReleased
from ...d3d12.recording import Recording
from ...d3d12.resource import Heap, Resource
from ...errors import Strictness
from ..check import Check, on
from ..declarations.lists import LIFETIMES
from ..declarations.tensors import DECLARATIONS as TENSORS
from ..declarations.tiles import DECLARATIONS
from ..flights import Flight, FlightCheck
from ..text import tiles as text
from ..visible import planned_spans, touches_of

if TYPE_CHECKING:
    from ...d3d12.device import Device


class _Table(NamedTuple):
    """Where the tiles of a reserved buffer stand: runs of NULL tiles, as footprints, and the others by heap.

    ``is_shared``: some of them share bytes.
    """

    null: list[Any]
    placed: list[Span]
    is_shared: bool


class Tiles(Check):
    """Looks at every access through a reserved buffer; without such buffers it costs nothing."""

    declarations = (*DECLARATIONS, *(row for row in TENSORS if row.id == "TENSOR_OUT_OVERLAP"))

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._looks = False
        self._tables: WeakKeyDictionary[Allocation, _Table] = WeakKeyDictionary()
        self._byte = ffi.new("uint64_t *")

    @on(Allocated)
    def allocated(self, event: Allocated) -> None:
        """From the first reserved buffer on."""
        if event.kind == "reserved" and not self._looks:
            self._looks = True
            self._subscriptions.append(self.device.events.subscribe(self._executing, Executing))

    @on(Mapped)
    def mapped(self, event: Mapped) -> None:
        """Tiles stand elsewhere."""
        for allocation in [each for each in self._tables if each.serial == event.allocation]:
            del self._tables[allocation]

    def _executing(self, event: Executing) -> None:
        memory, pointer = self.device._gpu.memory, event.accesses.pointer
        for i in range(len(event.accesses)):
            entry = pointer + i
            allocation = memory.find(entry.address)
            if allocation is None or allocation.heap is not None or not entry.access & (READ | WRITE):
                continue
            table = self._tables.get(allocation)
            if table is None:
                table = self._tables[allocation] = _table(allocation)
            for null in table.null:
                if self._meet(entry, null):
                    self._tell_null(event, i, self._byte[0])
                    break
            if event.opcode == Opcode.DISPATCH and entry.access & WRITE and table.is_shared:
                self._look_at_shared(event, i, allocation, table.placed)

    def _meet(self, a: Any, b: Any, shift: int = 0, low: int = 0, high: int = 2**64 - 1) -> bool:
        return bool(lib.dmlk_footprints_meet(a, b, shift, low, high, self._byte) == 1)

    def _look_at_shared(self, event: Executing, i: int, allocation: Allocation, placed: list[Span]) -> None:
        entry = event.accesses.pointer + i
        begin, end = entry.address - allocation.address, entry.end - allocation.address
        touched = [span for span in placed if span.start < end and begin < span.start + span.size]
        for one, other in _shared(touched):
            first = allocation.address + one.start - one.offset  # the address of the heap's byte 0
            second = allocation.address + other.start - other.offset
            low = max(one.offset, other.offset)
            high = min(one.offset + one.size, other.offset + other.size)
            if self._meet(entry, entry, first - second, first + low, first + high):
                byte = self._byte[0]
                self._tell_shared(event, i, byte, byte - first + second)
                return

    def _tell_null(self, event: Executing, i: int, address: int) -> None:
        buffer = self.names.buffer(address)
        if buffer is not None:
            command, access = self.names.command(event), event.accesses[i]
            self.report("MEM_NULL_TILE", **text.null_tile(command, access, buffer, address - buffer._address))

    def _tell_shared(self, event: Executing, i: int, byte: int, other: int) -> None:
        buffer = self.names.buffer(byte)
        if buffer is not None:
            first, second = sorted(each - buffer._address for each in (byte, other))
            words = text.overlaps_itself(self.names.command(event), event.accesses[i], buffer, first, second)
            self.report("TENSOR_OUT_OVERLAP", api="DML", **words)


def _table(allocation: Allocation) -> _Table:
    placed = spans(allocation)
    end, null = 0, []
    for span in [*placed, Span(allocation.size, 0, 0, 0)]:
        if end < span.start:
            null.append(_bytes(allocation.address + end, allocation.address + span.start))
        end = span.start + span.size
    placed.sort(key=lambda span: (span.heap, span.offset))
    return _Table(null, placed, next(_shared(placed), None) is not None)


def _bytes(begin: int, end: int) -> Any:
    """A footprint of all bytes of a range."""
    row = {"address": begin, "end": end, "bits": 8, "rank": 1, "sizes": [end - begin], "strides": [1]}
    return ffi.new("dmlk_footprint *", row)


def _shared(placed: list[Span]) -> Iterator[tuple[Span, Span]]:
    """Spans, sorted by their place in heaps, that share bytes."""
    for i, span in enumerate(placed):
        for other in islice(placed, i + 1, None):
            if other.heap != span.heap or other.offset >= span.offset + span.size:
                break
            yield span, other


# --- heaps whose tiles are in use ---


class _Use(NamedTuple):
    """A packet of a list touches a reserved buffer."""

    packet: int
    buffer: int  # its address
    pattern: Any
    keeper: Accesses
    heaps: set[int]  # whose tiles it touches


class TileHeaps(FlightCheck):
    """Heaps that are released while tiles of them are in use, and tiles of released heaps that are used.

    As long as nobody touches its tiles, a heap may be released while they are mapped.
    """

    declarations = tuple(row for row in LIFETIMES if row.id == "OBJECT_DELETED_IN_USE")
    level = Strictness.DEBUG

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._numbers: WeakKeyDictionary[Heap, int] = WeakKeyDictionary()  # of heaps whose tiles are mapped
        self._uses: WeakKeyDictionary[Flight, list[_Use]] = WeakKeyDictionary()
        self._released: dict[int, str] = {}

    def took_off(self, flight: Flight, recording: Recording | None) -> None:
        """Tiles are mapped, or a list is executed that touches some."""
        if recording is None:
            for thing in (reference() for reference in flight.needs):
                if isinstance(thing, Heap) and not thing._released:
                    self._numbers[thing] = heap_number(thing._heap)
            return
        reserved = [each for each in recording.resources if each.created_as == "reserved"]
        if not reserved or (not self._numbers and not self._released):
            return
        uses = self._uses[flight] = list(self._touched(recording, reserved))
        for use in uses:
            for number in use.heaps & self._released.keys():
                command, buffer = flight.commands[use.packet], self.names.buffer(use.buffer)
                assert buffer is not None
                words = text.used_heap(self._released[number], buffer, flight, command)
                self.report("OBJECT_DELETED_IN_USE", properties=self.properties(flight), **words)
                return

    @on(ObjectReleased)
    def released(self, event: ObjectReleased) -> None:
        """A heap, maybe."""
        if not isinstance(event.object, Heap):
            return
        number = self._numbers.get(event.object)
        if number is None:
            return
        self._released[number] = event.object._title()
        for flight in self.in_flight():
            is_done = self.is_done(flight)
            for use in self._uses.get(flight, ()):
                buffer = self.names.buffer(use.buffer)
                if buffer is None:
                    continue
                # What is still to be executed finds the tiles as they are mapped by then.
                if number in (use.heaps if is_done else _heaps_of(buffer, use.pattern)):
                    command, advice = flight.commands[use.packet], self.advice(flight)
                    words = text.released_heap(event.object, buffer, flight, command, is_done, advice)
                    self.report("OBJECT_DELETED_IN_USE", properties=self.properties(flight), **words)
                    return

    def _touched(self, recording: Recording, reserved: list[Resource]) -> Iterator[_Use]:
        memory = self.device._gpu.memory
        for packet, _, pattern, keeper in touches_of(recording.packets, memory, dispatches=True):
            for buffer in reserved:
                if buffer._address <= pattern.address < buffer._address + buffer._width:
                    yield _Use(packet, buffer._address, pattern, keeper, _heaps_of(buffer, pattern))


def _heaps_of(buffer: Resource, pattern: Any) -> set[int]:
    """The heaps (``Span.heap``) whose tiles a footprint touches."""
    start, found = buffer._address, set()
    for span in planned_spans(buffer):
        begin = start + span.start
        if span.heap not in found and begin < pattern.end and pattern.address < begin + span.size:
            tile = _bytes(begin, begin + span.size)
            if lib.dmlk_footprints_meet(pattern, tile, 0, 0, 2**64 - 1, ffi.new("uint64_t *")) == 1:
                found.add(span.heap)
    return found


CHECKS = (Tiles, TileHeaps)
