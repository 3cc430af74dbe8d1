"""Tiles: accesses to tiles of reserved buffers, and the lifetime of tiles (group g, second half)."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Hashable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from dmlemu_hw.allocation import Allocation
from dmlemu_hw.events import (
    READ,
    WRITE,
    Accesses,
    Accessing,
    Allocated,
    Executing,
    Freed,
    Mapped,
    Queued,
    TilesMapped,
)
from dmlemu_hw.kernels import ffi, lib
from dmlemu_hw.memory_spans import Span, heap_number, spans
from dmlemu_hw.packets import HEADER, MapTilesPacket, Opcode, commands, decode_one
from dmlemu_hw.storage import TILE_SIZE

from ...d3d12.core.events import Evicted, ObjectReleased
from ...d3d12.core.recording import Recording
from ...d3d12.core.rows import OBJECT_DELETED_IN_USE
from ...d3d12.lists.list_recorder import ListRecording
from ...d3d12.lists.rows import COPY_SAME
from ...d3d12.memory.resource import Heap, Resource
from ...d3d12.queues.rows import RES_NOT_RESIDENT
from ...dml.rows import TENSOR_OUT_OVERLAP
from ...errors import CallSite, Strictness, call_site, spell_site
from ..analysis.happens_before import Clock, HappensBefore
from ..analysis.in_flight import Flight, FlightCheck
from ..analysis.visible import planned_spans, touches_of
from ..framework.check import Check, on
from ..framework.names import Work
from ..hazards.rows import HAZARD_QUEUE
from ..lists.rows import OBJECT_EVICTED_IN_USE
from . import messages
from .rows import MEM_NULL_TILE

if TYPE_CHECKING:
    from ...d3d12.device.device import Device


_FEW = 64  # mappings or commands of a buffer kept before completed ones are looked for


_PARTS_WITHOUT_ORDER = commands(lambda effects: effects.copies) | {Opcode.DISPATCH}


class _Table(NamedTuple):
    """The tile mappings of a reserved buffer: runs of NULL tiles, as footprints, and the others by heap.

    ``is_shared``: some of them share bytes.
    """

    null: list[Any]
    placed: list[Span]
    is_shared: bool


class Tiles(Check):
    """Checks every access through a reserved buffer; without such buffers it costs nothing."""

    declarations = (MEM_NULL_TILE, TENSOR_OUT_OVERLAP, COPY_SAME)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._looks = False
        self._tables: WeakKeyDictionary[Allocation, _Table] = WeakKeyDictionary()
        self._byte = ffi.new("uint64_t *")

    @on(Allocated)
    def allocated(self, event: Allocated) -> None:
        """Subscribes with the first reserved buffer."""
        if event.kind == "reserved" and not self._looks:
            self._looks = True
            self.device.events.subscribe(self._executing, Accessing, kept=self._subscriptions)

    @on(Mapped)
    def mapped(self, event: Mapped) -> None:
        """Tiles were remapped."""
        for allocation in [each for each in self._tables if each.serial == event.allocation]:
            del self._tables[allocation]

    def _executing(self, event: Executing) -> None:
        memory, pointer = self.device.context.gpu.memory, event.accesses.pointer
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
            if event.opcode in _PARTS_WITHOUT_ORDER and entry.access & WRITE and table.is_shared:
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
            self.report(
                MEM_NULL_TILE.id, **messages.null_tile(command, access, buffer, address - buffer.address)
            )

    def _tell_shared(self, event: Executing, i: int, byte: int, other: int) -> None:
        buffer = self.names.buffer(byte)
        if buffer is not None:
            first, second = sorted(each - buffer.address for each in (byte, other))
            words = messages.overlaps_itself(
                self.names.command(event), event.accesses[i], buffer, first, second
            )
            if event.opcode == Opcode.DISPATCH:
                self.report(TENSOR_OUT_OVERLAP.id, api="DML", **words)
            else:
                self.report(COPY_SAME.id, **words)


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
    """A packet of a list accesses a reserved buffer."""

    packet: int
    buffer: int  # address of the buffer
    pattern: Any
    keeper: Accesses
    heaps: set[int]  # heaps whose tiles it accesses, by the current mapping, or the planned one at submission


class TileHeaps(FlightCheck):
    """Heaps released or evicted while their tiles are in use, and tiles used after that.

    A heap may be released or evicted while its tiles are mapped, as long as nothing accesses them.
    """

    declarations = (OBJECT_DELETED_IN_USE, OBJECT_EVICTED_IN_USE, RES_NOT_RESIDENT)
    level = Strictness.DEBUG

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._numbers: WeakKeyDictionary[Heap, int] = WeakKeyDictionary()  # heaps whose tiles are mapped
        self._uses: WeakKeyDictionary[Flight, list[_Use]] = WeakKeyDictionary()
        self._released: dict[int, str] = {}
        self._open: dict[tuple[int, int], Flight] = {}  # by queue and ticket: to be looked at when executed
        self._looks = False

    def took_off(self, flight: Flight, recording: Recording | None) -> None:
        """Tiles are mapped, or a list is executed that accesses some."""
        if not isinstance(recording, ListRecording):
            for thing in (reference() for reference in flight.needs):
                if isinstance(thing, Heap) and not thing.released:
                    self._numbers[thing] = heap_number(thing.hardware)
            return
        reserved = [each for each in recording.resources if each.created_as == "reserved"]
        if not reserved:
            return
        uses = self._uses[flight] = list(self._touched(recording, reserved))
        if self._may_be_mapped_anew(flight, {each.address for each in reserved}):
            self._open_until_executed(flight)
            return
        for use in uses:
            if self._look_at_use(flight, use):
                return

    def _may_be_mapped_anew(self, flight: Flight, buffers: set[int]) -> bool:
        """Whether other queues may map these buffers before the list begins: one is to, or the list waits."""
        own = next((each for each in self.device.context.gpu.queues if each.serial == flight.queue), None)
        entries = [] if own is None else list(own.pending)
        waits = (each for each in entries if HEADER.unpack_from(each)[0] == Opcode.WAIT)
        return any(each.ticket < flight.ticket for each in waits) or self._others_map(flight, buffers)

    def _others_map(self, flight: Flight, buffers: set[int]) -> bool:
        """Whether another queue is to map tiles of these buffers."""
        queues = (each for each in self.device.context.gpu.queues if each.serial != flight.queue)
        packets = (
            decode_one(entry)
            for queue in queues
            for entry in list(queue.pending)
            if HEADER.unpack_from(entry)[0] == Opcode.MAP_TILES
        )
        return any(isinstance(each, MapTilesPacket) and each.allocation in buffers for each in packets)

    def _open_until_executed(self, flight: Flight) -> None:
        if not self._looks:
            self._looks = True
            self.device.events.subscribe(self._executing, Accessing, kept=self._subscriptions)
        self._open = {key: each for key, each in self._open.items() if not self.is_done(each)}
        self._open[flight.queue, flight.ticket] = flight

    def _executing(self, event: Executing) -> None:
        """A command of a list that was left open begins: its tiles are those of now."""
        flight = self._open.get((event.queue, event.ticket)) if self._open else None
        if flight is None:
            return
        for use in self._uses.get(flight, ()):
            buffer = self.names.buffer(use.buffer) if use.packet == event.command else None
            if buffer is None:
                continue
            heaps = _heaps_of(buffer, use.pattern, spans(buffer.allocation))
            if self._look_at_use(flight, use._replace(heaps=heaps)):
                del self._open[event.queue, event.ticket]
                return

    def _look_at_use(self, flight: Flight, use: _Use) -> bool:
        """Reports a command that needs tiles of a heap that was released or evicted."""
        evicted = {number: heap for heap, number in self._numbers.items() if heap.residency <= 0}
        number = next(iter(use.heaps & (self._released.keys() | evicted.keys())), None)
        buffer = self.names.buffer(use.buffer)
        if number is None or buffer is None:
            return False
        command = flight.commands[use.packet]
        if number in self._released:
            id = OBJECT_DELETED_IN_USE.id
            words = messages.used_heap(self._released[number], buffer, flight, command)
        else:
            id = RES_NOT_RESIDENT.id
            words = messages.evicted_heap(evicted[number], buffer, flight, command)
        self.report(id, properties=self.properties(flight), **words)
        return True

    @on(Mapped)
    def mapped(self, event: Mapped) -> None:
        """Commands executed from now on access other tiles."""
        for flight, uses in list(self._uses.items()):
            for use in uses:
                buffer = self.names.buffer(use.buffer)
                if buffer is None or buffer.allocation.serial != event.allocation or self.is_done(flight):
                    continue
                use.heaps.clear()
                use.heaps.update(_heaps_of(buffer, use.pattern, spans(buffer.allocation)))

    @on(ObjectReleased)
    def released(self, event: ObjectReleased) -> None:
        """An object, possibly a heap, was released."""
        heap = event.object
        if isinstance(heap, Heap) and heap in self._numbers:
            self._released[self._numbers[heap]] = heap.title()
            self._look(OBJECT_DELETED_IN_USE.id, heap, "Release", "released")

    @on(Evicted)
    def evicted(self, event: Evicted) -> None:
        """An object, possibly a heap, was evicted."""
        if isinstance(event.object, Heap) and event.object in self._numbers:
            self._look(OBJECT_EVICTED_IN_USE.id, event.object, "Evict", "evicted")

    def _look(self, id: str, heap: Heap, call: str, happens: str) -> None:
        """Does the GPU still need tiles of the heap?"""
        number = self._numbers[heap]
        for flight in self.in_flight():
            is_done, uses = self.is_done(flight), self._uses.get(flight, [])
            if not is_done and uses and self._others_map(flight, {use.buffer for use in uses}):
                self._open_until_executed(flight)  # it may begin before that
            for use in uses:
                buffer = self.names.buffer(use.buffer)
                if buffer is None:
                    continue
                heaps = use.heaps
                if not is_done:  # it uses the mapping of that time
                    planned = planned_spans(buffer, flight.queue, flight.ticket)
                    heaps = _heaps_of(buffer, use.pattern, planned)
                if number in heaps:
                    command, advice = flight.commands[use.packet], self.advice(flight)
                    words = messages.needed_heap(
                        heap, buffer, flight, command, is_done, advice, call=call, happens=happens
                    )
                    self.report(id, properties=self.properties(flight), **words)
                    self._open.pop((flight.queue, flight.ticket), None)
                    return

    def _touched(self, recording: ListRecording, reserved: list[Resource]) -> Iterator[_Use]:
        memory = self.device.context.gpu.memory
        touches = touches_of(recording.packets, memory, reserved, dispatches=True)
        for (packet, _, pattern, keeper), buffer in touches:
            heaps = _heaps_of(buffer, pattern, planned_spans(buffer))
            yield _Use(packet, buffer.address, pattern, keeper, heaps)


def _heaps_of(buffer: Resource, pattern: Any, placed: list[Span]) -> set[int]:
    """The heaps (``Span.heap``) whose tiles a footprint accesses."""
    start, found = buffer.address, set()
    for span in placed:
        begin = start + span.start
        if span.heap not in found and begin < pattern.end and pattern.address < begin + span.size:
            tile = _bytes(begin, begin + span.size)
            if lib.dmlk_footprints_meet(pattern, tile, 0, 0, 2**64 - 1, ffi.new("uint64_t *")) == 1:
                found.add(span.heap)
    return found


# --- the page table, which queues write ---


class _Mapping(NamedTuple):
    """A queue's UpdateTileMappings call changes tiles [begin, end), as addresses, of a buffer."""

    queue: int
    ticket: int
    begin: int
    end: int
    tiles: Any  # the same as a footprint
    label: str
    site: CallSite | None
    known: Clock  # number of the host's call that submitted it


class _Through(NamedTuple):
    """A command of a list accessed memory through a reserved buffer."""

    queue: int
    ticket: int
    pattern: Any
    keeper: Accesses
    work: Work
    packet: int


class TileOrder(Check):
    """UpdateTileMappings against other queues' use of the same tiles: a fence has to order the two."""

    declarations = (HAZARD_QUEUE,)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._clocks: HappensBefore = device.checks.clocks
        self._clocks.watchers.append(self._forget_queues)
        self._handed: dict[tuple[int, int], list[_Mapping]] = {}  # not executed yet: by queue and ticket
        # Of equal ones only the newest: if it is ordered, so are the others.  By buffer.
        self._made: dict[int, dict[Hashable, _Mapping]] = {}
        self._through: dict[int, dict[Hashable, _Through]] = {}
        self._most = _FEW
        self._looks = False
        self._freed: deque[int] = deque()

    @on(Allocated)
    def allocated(self, event: Allocated) -> None:
        """Subscribes with the first reserved buffer."""
        if event.kind == "reserved" and not self._looks:
            self._looks = True
            self.device.events.subscribe(self._executing, Accessing, kept=self._subscriptions)

    @on(Queued)
    def queued(self, event: Queued) -> None:
        """A tile mapping was queued."""
        if event.opcode != Opcode.MAP_TILES:
            return
        queue = next(each for each in self.device.context.gpu.queues if each.serial == event.queue)
        packet = decode_one(queue.pending[-1])
        assert isinstance(packet, MapTilesPacket)
        rows = []
        for tile, count, *_ in packet.regions:
            begin, end = (packet.allocation + each * TILE_SIZE for each in (tile, tile + count))
            tiles, known = _bytes(begin, end), self._clocks.host
            rows.append(
                _Mapping(event.queue, event.ticket, begin, end, tiles, queue.label, call_site(), known)
            )
        self._handed[event.queue, event.ticket] = rows

    @on(TilesMapped)
    def mapped(self, event: TilesMapped) -> None:
        """A queue has executed it."""
        self._settle()
        for made in self._handed.pop((event.queue, event.ticket), ()):
            buffer = self.names.buffer(made.begin)
            if buffer is not None:
                self._make(made, buffer)

    @on(Freed)
    def freed(self, event: Freed) -> None:
        """May be called at any moment."""
        if event.address in self._made or event.address in self._through:
            self._freed.append(event.address)

    def _executing(self, event: Executing) -> None:
        pointer = event.accesses.pointer
        for i in range(len(event.accesses)):
            entry = pointer + i
            buffer = self.names.buffer(entry.address)
            if buffer is None or buffer.created_as != "reserved":
                continue
            self._clocks.start(event.queue, event.ticket)
            through = _Through(
                event.queue, event.ticket, entry, event.accesses, self.names.work(event), event.command
            )
            known = self._clocks.of(event.queue)
            for made in list(self._made.get(buffer.address, {}).values()):
                if made.queue != event.queue and not self._clocks.is_done(known, made.queue, made.ticket):
                    self._compare(made, through, buffer)
            uses = self._through.setdefault(buffer.address, {})
            uses[event.queue, bytes(ffi.buffer(entry))] = through
            self._tidy(uses)

    def _make(self, made: _Mapping, buffer: Resource) -> None:
        clock = self._clocks.of(made.queue)
        for through in list(self._through.get(buffer.address, {}).values()):
            if through.queue != made.queue and not self._is_behind(made, clock, through):
                self._compare(made, through, buffer)
        rows = self._made.setdefault(buffer.address, {})
        for other in list(rows.values()):
            shared = max(made.begin, other.begin)
            meet = other.queue != made.queue and shared < min(made.end, other.end)
            if meet and not self._is_behind(made, clock, other):
                tile = (shared - buffer.address) // TILE_SIZE
                self.report(HAZARD_QUEUE.id, **messages.mapped_twice(_call(other), _call(made), buffer, tile))
        rows[made.queue, made.begin, made.end] = made
        self._tidy(rows)

    def _tidy(self, rows: dict[Hashable, _Mapping] | dict[Hashable, _Through]) -> None:
        """Occasionally removes what everyone knows to be done."""
        if len(rows) < self._most:
            return
        done = {queue: self._clocks.done_for_all(queue) for queue in {each.queue for each in rows.values()}}
        for key in [key for key, each in rows.items() if each.ticket <= done[each.queue]]:
            del rows[key]
        self._most = max(_FEW, 2 * len(rows))

    def _is_behind(self, made: _Mapping, clock: Clock, other: _Through | _Mapping) -> bool:
        """Is the mapping, executed on a queue with that clock, ordered behind the other?"""
        is_done = self._clocks.is_done
        return is_done(clock, other.queue, other.ticket) or is_done(made.known, other.queue, other.ticket)

    def _forget_queues(self, released: Container[int]) -> None:
        """Removes queues whose work nothing can conflict with."""
        for made in self._made.values():
            for key in [key for key, each in made.items() if each.queue in released]:
                del made[key]
        for through in self._through.values():
            for use in [use for use, each in through.items() if each.queue in released]:
                del through[use]

    def _compare(self, made: _Mapping, through: _Through, buffer: Resource) -> None:
        """Reports a command that accesses the tiles and is not ordered against the mapping."""
        byte = ffi.new("uint64_t *")
        if lib.dmlk_footprints_meet(through.pattern, made.tiles, 0, 0, 2**64 - 1, byte) == 1:
            tile = (byte[0] - buffer.address) // TILE_SIZE
            command = through.work.command(through.packet)
            self.report(HAZARD_QUEUE.id, **messages.unordered(command, _call(made), buffer, tile))

    def _settle(self) -> None:
        while self._freed:
            address = self._freed.popleft()
            self._made.pop(address, None)
            self._through.pop(address, None)


def _call(made: _Mapping) -> str:
    at = f" (called at {spell_site(made.site)})" if made.site else ""
    return f"UpdateTileMappings on {made.label}{at}"


CHECKS = (Tiles, TileHeaps, TileOrder)
