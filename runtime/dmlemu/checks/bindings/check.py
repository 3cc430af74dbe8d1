"""Group c: descriptors changed under recorded work, persistent resources, and overlapping bindings.

Binding calls and RecordDispatch refuse what they can detect; these checks find what only submission and
execution show.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dmlemu_hw.allocation import Allocation
from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor
from dmlemu_hw.events import (
    UNDEFINE,
    WRITE,
    Accessing,
    Allocated,
    Executing,
    Footprint,
    Foresight,
    Mapped,
    Place,
    Recorded,
    Stretch,
    Submitted,
)
from dmlemu_hw.footprints import meet
from dmlemu_hw.memory_spans import spans
from dmlemu_hw.packets import ClearUavPacket, Opcode, decode

from ...d3d12.core.descriptor_uses import ByPlace, Reader
from ...d3d12.core.events import DescriptorsWritten
from ...dml.binding import aliasing
from ...dml.binding.aliasing import Meeting, alias_reason, find_clash
from ...dml.events import DispatchRecorded
from ...dml.lowering.dispatchable import CompiledOperator, Dispatchable, OperatorInitializer
from ...dml.rows import (
    BIND_ALIAS,
    BIND_OUT_OUT,
    BIND_PERSISTENT_CHANGED,
    DESC_OVERWRITTEN,
    OP_NOT_INITIALIZED,
)
from ...errors import spell_site
from ..analysis.happens_before import HappensBefore
from ..analysis.in_flight import Flight, FlightCheck
from ..framework.check import Check, on
from ..framework.names import NamedCommand
from . import messages
from .rows import DESC_NOT_COPIED

if TYPE_CHECKING:
    from ...d3d12.core.recording import Recording
    from ...d3d12.device.device import Device

_UNWRITTEN = bytes(DESCRIPTOR_SIZE)
_CHANGES = WRITE | UNDEFINE
_WITH_NOTES = frozenset((int(Opcode.DISPATCH), int(Opcode.DISCARD)))
_NEEDS_LOOKED_AT = 8  # readers of one descriptor, before finished ones are looked for
_LISTS_KEPT = 256  # lists with clears, before released ones are looked for
_ROWS_KEPT = 4096  # ranges whose physical memory is cached


class _Need(NamedTuple):
    """A list in flight needs a descriptor, number ``at`` of its reader, with this content."""

    flight: Flight
    reader: Reader
    at: int
    content: bytes


class Descriptors(FlightCheck):
    """Tracks writes to descriptors, and compares descriptors with what recorded commands were bound to."""

    declarations = (DESC_OVERWRITTEN, DESC_NOT_COPIED)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        descriptors = device.context.gpu.descriptors
        self._writers: ByPlace[DescriptorsWritten] = ByPlace(descriptors)  # the last change of each
        self._needs: ByPlace[list[_Need]] = ByPlace(descriptors)
        self._clears: dict[int, list[int]] = {}  # by list: its commands that clear

    @on(Recorded)
    def recorded(self, event: Recorded) -> None:
        """Clears read a descriptor too."""
        if event.opcode == Opcode.CLEAR_UAV:
            if len(self._clears) >= _LISTS_KEPT:  # most of these lists are released by now
                known = self.device.context.recordings
                self._clears = {serial: rows for serial, rows in self._clears.items() if serial in known}
            self._clears.setdefault(event.list_serial, []).append(event.command)

    def took_off(self, flight: Flight, recording: Recording | None) -> None:
        """A list is executed: from now on the descriptors its commands read must not change."""
        if recording is None:
            return
        self._needs.tidy()
        self._writers.tidy()
        readers = [*recording.readers, *self._clear_readers(recording)]
        for reader in readers:
            content = self._content(reader.start, len(reader.operands))
            if content is None:
                continue
            self._look(reader, content)
            for at, data in enumerate(reader.expected):
                needs = self._needs.setdefault(reader.start + at * DESCRIPTOR_SIZE, [])
                count = len(needs)
                if count >= _NEEDS_LOOKED_AT and not count & (count - 1):
                    needs[:] = [each for each in needs if self._is_in_flight(each.flight)]
                late = data is None or reader.volatile
                needs.append(_Need(flight, reader, at, _part(content, at) if late else data or b""))

    @on(DescriptorsWritten)
    def written(self, event: DescriptorsWritten) -> None:
        """Some descriptors were written: does a list that may still run read one that changed?"""
        if event.before == event.after:
            return
        self._writers.tidy()
        hits: dict[Reader, list[_Need]] = {}
        for at in range(0, len(event.before), DESCRIPTOR_SIZE):
            after = event.after[at : at + DESCRIPTOR_SIZE]
            if event.before[at : at + DESCRIPTOR_SIZE] == after:
                continue
            self._writers[event.place + at] = event
            self._arrive(event.place + at)
            for need in self._needs.get(event.place + at, ()):
                if need.content != after and self._is_in_flight(need.flight):
                    hits.setdefault(need.reader, []).append(need)
        for reader, needs in hits.items():
            self._overwritten(event, reader, needs)

    # --- internals ---

    def _is_in_flight(self, flight: Flight) -> bool:
        return not self._clocks.is_done(self._clocks.host, flight.queue, flight.ticket)

    def _clear_readers(self, recording: Recording) -> Iterator[Reader]:
        """Readers for the clears of a list: descriptors count as correct as they are when it is executed."""
        clears = self._clears.pop(recording.serial, ())
        packets = list(decode(recording.packets)) if clears else []
        for index in clears:
            packet, command = packets[index], recording.commands[index]
            assert isinstance(packet, ClearUavPacket)
            where = weakref.ref(recording)
            yield Reader(command, where, packet.table, command.operands, (None,), volatile=True)

    def _look(self, reader: Reader, content: bytes) -> None:
        """Do the descriptors hold what the command was bound to?"""
        expected = reader.expected
        if reader.volatile:  # they may have been bound since
            expected = self._late(reader, content)
        slots = [i for i, data in enumerate(expected) if data is not None and _part(content, i) != data]
        if not slots:
            return
        contents = expected[slots[0]] or _UNWRITTEN, _part(content, slots[0])
        cause = reader.command.site or reader, reader.command.name
        if reader.source and not reader.arrived:
            words = messages.not_copied(self.device, self.names, reader, slots, contents)
            self.report(DESC_NOT_COPIED.id, cause=cause, api="DML", **words)
            return
        writer = self._writers.get(reader.start + slots[0] * DESCRIPTOR_SIZE)
        hint = "write the descriptors of a binding table only through the table"
        if reader.table is None:  # those of a shader
            hint = "write them before Dispatch, or let their range be DESCRIPTORS_VOLATILE"
        if writer is not None and writer.operation.startswith("CopyDescriptors"):
            done = f"the GPU has executed {reader.list_name}"
            hint = f"copy to slots that no recorded command needs, or once {done}"
        words = messages.overwritten(
            self.device, self.names, reader, slots, contents, writer, hint, in_flight=False
        )
        self.report(DESC_OVERWRITTEN.id, cause=(cause, writer and writer.site), **words)

    def _late(self, reader: Reader, content: bytes) -> tuple[bytes | None, ...]:
        """For descriptors that may be bound until now: pending copies into slots that are empty."""
        source = self._content(reader.source, len(reader.operands)) if reader.source else None
        if source is None:
            return ()
        rows = ((_part(source, i), _part(content, i)) for i in range(len(reader.operands)))
        return tuple(data if found == _UNWRITTEN != data else None for data, found in rows)

    def _arrive(self, place: int) -> None:
        """Notes that a table's descriptors were copied to where the GPU reads them for a recorded command."""
        for reader in self.device.context.descriptor_uses.readers(place):
            if reader.source and not reader.arrived:
                content = self._content(reader.start, len(reader.operands))
                reader.arrived = content is not None and reader.differs(content) is None

    def _overwritten(self, event: DescriptorsWritten, reader: Reader, needs: Sequence[_Need]) -> None:
        flight, slots = needs[0].flight, [need.at for need in needs]
        at = reader.start + slots[0] * DESCRIPTOR_SIZE - event.place
        contents = event.before[at : at + DESCRIPTOR_SIZE], event.after[at : at + DESCRIPTOR_SIZE]
        hint = self.advice(flight)
        words = messages.overwritten(
            self.device, self.names, reader, slots, contents, event, hint, in_flight=True
        )
        words["properties"] |= self.properties(flight)
        self.report(
            DESC_OVERWRITTEN.id,
            cause=(reader.command.site or reader, reader.command.name, event.site),
            **words,
        )

    def _content(self, place: int, count: int) -> bytes | None:
        try:
            return self.device.context.gpu.descriptors.content(place, count)
        except ValueError:  # the heap was released, which another check reports
            return None


def _part(content: bytes, at: int) -> bytes:
    return content[at * DESCRIPTOR_SIZE : (at + 1) * DESCRIPTOR_SIZE]


class _Initialization(NamedTuple):
    """An initializer that was submitted to a queue, in words."""

    queue: int
    ticket: int
    context: str


class _Row(NamedTuple):
    """Consecutive bytes by GPU address, and their place in physical memory."""

    address: int
    end: int
    physical: int


class _Kept:
    """An initialized persistent resource; who has ``written`` it since, and the first byte written."""

    def __init__(self, operator: CompiledOperator, address: int, size: int, rows: list[_Row]) -> None:
        self.operator = operator.title()
        self.address = address
        self.size = size
        self.rows = rows
        self.written: tuple[NamedCommand, str, int] | None = None
        self.remapped = False


class _Notes(dict[int, DispatchRecorded]):
    """The dispatches of a list, by their first commands.

    ``sound``: (queue, command) pairs whose operator is initialized, which stays true.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sound: set[tuple[int, int]] = set()


class Dispatches(Check, Foresight):
    """Looks at each dispatch when the GPU executes it: initialization, persistent resource, overlaps."""

    declarations = (BIND_PERSISTENT_CHANGED, OP_NOT_INITIALIZED, BIND_ALIAS, BIND_OUT_OUT)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._clocks: HappensBefore = device.checks.clocks
        self._clocks.watchers.append(self._forget_queues)
        self._notes: weakref.WeakKeyDictionary[Recording, _Notes] = weakref.WeakKeyDictionary()
        self._list: tuple[int, weakref.ref[_Notes] | None] = (0, None)  # serial and notes of the last one
        self._initializers: weakref.WeakKeyDictionary[Recording, list[DispatchRecorded]]
        self._initializers = weakref.WeakKeyDictionary()
        self._running: dict[int, tuple[int, tuple[_Kept, ...]]] = {}  # by queue: ticket, resources
        self._initialized: weakref.WeakKeyDictionary[CompiledOperator, list[_Initialization]]
        self._initialized = weakref.WeakKeyDictionary()
        self._kept: weakref.WeakKeyDictionary[CompiledOperator, _Kept] = weakref.WeakKeyDictionary()
        self._index: list[tuple[int, int, _Kept]] = []  # physical begin and end, sorted
        self._begins: list[int] = []
        self._reach = 0  # bytes of the longest row of the index
        self._apart: set[bytes] = set()  # contents of accesses that overlap nothing in the index
        self._has_tiles = False
        self._is_spoiled = False  # some persistent resource was modified after initialization
        self._places_of: dict[tuple[int, int], list[_Row]] = {}

    @on(Allocated)
    def allocated(self, event: Allocated) -> None:
        """Only reserved buffers can overlap in ways that binding does not show."""
        self._has_tiles |= event.kind == "reserved"

    @on(DispatchRecorded)
    def recorded(self, event: DispatchRecorded) -> None:
        """Keeps what the packets do not contain."""
        recording = self.device.context.recordings.get(event.list_serial)
        if recording is None:
            return
        notes = self._notes.get(recording)
        if notes is None:
            notes = self._notes[recording] = _Notes()
        notes[event.first] = event
        if isinstance(event.dispatchable, OperatorInitializer):  # dispatches without commands share a number
            self._initializers.setdefault(recording, []).append(event)

    @on(Submitted)
    def handed(self, event: Submitted) -> None:
        """Initializers count from submission on: those with nothing to copy execute no command."""
        ticket = event.ticket - len(event.lists)
        for serial in event.lists:
            ticket += 1
            recording = self.device.context.recordings.get(serial)
            for note in () if recording is None else self._initializers.get(recording, ()):
                assert recording is not None
                self._initialize(note, event.queue, ticket, recording)

    @on(Mapped)
    def mapped(self, event: Mapped) -> None:
        """Tiles were remapped: what an initializer wrote is no longer there."""
        self._places_of.clear()
        for kept in list(self._kept.values()):
            if kept.rows != self._rows(kept.address, kept.address + kept.size):
                kept.remapped = self._is_spoiled = True
        self._apart.clear()

    def foresees(self, stretch: Stretch, place: Place) -> int:
        """Dispatches of operators that are initialized, apart from all persistent resources."""
        _, filled = self._running.get(place.queue, (0, ()))
        if self._has_tiles or self._is_spoiled or (filled and stretch.joined[0]):
            return 0
        if self._index and not self._apart.issuperset(stretch.contents):
            return 0
        notes = self._notes_of(place.list_serial)
        for i, accesses in enumerate(stretch.accesses if notes else ()):
            if accesses and not stretch.joined[i]:
                assert notes is not None
                command = place.command + i
                if (place.queue, command) not in notes.sound and command in notes:
                    return i
        return stretch.count

    def passed(self, stretch: Stretch, place: Place, first: int, end: int) -> None:
        """They may have begun a list."""
        if self._running.get(place.queue, (0, ()))[0] != place.ticket:
            self._clocks.start(place.queue, place.ticket)
        self._running[place.queue] = place.ticket, ()

    @on(Accessing)
    def executing(self, event: Executing) -> None:
        """A command is about to be executed."""
        ticket, filled = self._running.get(event.queue, (0, ()))
        if event.ticket != ticket:
            self._clocks.start(event.queue, event.ticket)
        if not event.joined or event.ticket != ticket:
            filled = self._start(event) if event.opcode in _WITH_NOTES else ()
            self._running[event.queue] = event.ticket, filled
        if self._index and event.accesses.content not in self._apart:
            self._watch(filled, event)

    def _forget_queues(self, released: Container[int]) -> None:
        self._running = {queue: each for queue, each in self._running.items() if queue not in released}

    # --- one dispatch ---

    def _start(self, event: Executing) -> tuple[_Kept, ...]:
        """First packet of a possible dispatch; returns the persistent resources that it initializes."""
        notes = self._notes_of(event.list_serial)
        is_same = not self._has_tiles and not self._is_spoiled
        if notes is None or (is_same and (event.queue, event.command) in notes.sound):
            return ()
        note = notes.get(event.command)
        if note is None:
            return ()
        return self._begin(notes, note, event)

    def _notes_of(self, serial: int) -> _Notes | None:
        """The notes on a list."""
        last, reference = self._list
        if reference and last == serial:
            return reference()
        recording = self.device.context.recordings.get(serial)
        notes = None if recording is None else self._notes.get(recording)
        self._list = serial, None if notes is None else weakref.ref(notes)
        return notes

    def _begin(self, notes: _Notes, note: DispatchRecorded, event: Executing) -> tuple[_Kept, ...]:
        """Checks a dispatch; returns the persistent resources that it initializes."""
        dispatchable = note.dispatchable
        if self._has_tiles or dispatchable.volatile:
            self._check_aliases(note, event)
        if isinstance(dispatchable, CompiledOperator):
            is_behind = self._check_order(dispatchable, event)
            self._check_kept(dispatchable, event)
            if is_behind and not dispatchable.volatile:
                notes.sound.add((event.queue, event.command))
            return ()
        filled = []
        for operator, address, size in note.persistent:
            if size and address:
                kept = _Kept(operator, address, size, self._rows(address, address + size))
                self._kept[operator] = kept
                filled.append(kept)
        self._build_index()
        return tuple(filled)

    # --- initialisation ---

    def _initialize(self, note: DispatchRecorded, queue: int, ticket: int, recording: Recording) -> None:
        at = f" at {spell_site(note.site)}" if note.site else ""
        context = f"{note.dispatchable} was recorded{at} into {recording.owner}"
        for operator, _, _ in note.persistent:
            rows = self._initialized.setdefault(operator, [])
            if all(row.queue != queue for row in rows):  # the first one is enough: later ones follow it
                rows.append(_Initialization(queue, ticket, context))

    def _check_order(self, operator: CompiledOperator, event: Executing) -> bool:
        """Is the queue ordered behind the initializer?  Once true, this stays true."""
        rows = self._initialized.get(operator)
        if not rows:
            return False
        for row in rows:
            if row.queue == event.queue and row.ticket <= event.ticket:
                return True
            if self._clocks.is_done(self._clocks.of(event.queue), row.queue, row.ticket):
                return True
        last, command = rows[-1], self.names.command(event)
        words = messages.unordered(
            command, operator.title(), last.context, self.names.queue(last.queue), self._signal(last)
        )
        cause = command.command.site or event.packet, command.command.name
        self.report(OP_NOT_INITIALIZED.id, cause=cause, api="DML", **words)
        return False

    def _signal(self, row: _Initialization) -> str:
        """``fence 'ready' to reach 1``: the first signal behind the initializer."""
        signal = self._clocks.signal_after(row.queue, row.ticket)
        if signal is not None:
            return f"{self.names.fence(signal.fence)} to reach {signal.value}"
        queue = next((each for each in self.device.context.gpu.queues if each.serial == row.queue), None)
        queued = None if queue is None else queue.signal_after(row.ticket)
        return "" if queued is None else f"{queued[0].describe()} to reach {queued[1]}"

    # --- persistent resources ---

    def _check_kept(self, operator: CompiledOperator, event: Executing) -> None:
        kept = self._kept.get(operator)
        if kept is None or (kept.written is None and not kept.remapped):
            return
        command, place = self.names.command(event), self.names.bytes(kept.address, kept.address + kept.size)
        if kept.written is None:
            words = messages.remapped(command, kept.operator, place)
        else:
            writer, operand, byte = kept.written
            words = messages.changed(command, kept.operator, place, writer, operand, self.names.byte(byte))
        cause = kept.operator, kept.written and kept.written[0].command.site
        self.report(BIND_PERSISTENT_CHANGED.id, cause=cause, api="DML", **words)

    def _build_index(self) -> None:
        self._apart.clear()
        self._is_spoiled = any(kept.written or kept.remapped for kept in self._kept.values())
        rows = ((row, kept) for kept in self._kept.values() for row in kept.rows)
        index = [(row.physical, row.physical + row.end - row.address, kept) for row, kept in rows]
        self._index = sorted(index, key=lambda entry: entry[:2])
        self._begins = [begin for begin, _, _ in self._index]
        self._reach = max((end - begin for begin, end, _ in self._index), default=0)

    def _watch(self, filled: tuple[_Kept, ...], event: Executing) -> None:
        """Does the command write to an initialized persistent resource?"""
        pointer, is_near = event.accesses.pointer, False
        hits: dict[_Kept, tuple[int, int]] = {}  # the lowest byte of each, and the access
        for i in range(len(event.accesses)):
            entry = pointer[i]
            if not entry.access & _CHANGES:
                continue
            for row in self._rows(entry.address, entry.end):
                low, high = row.physical, row.physical + row.end - row.address
                at = bisect_left(self._begins, high)
                while at > 0 and self._begins[at - 1] + self._reach > low:
                    at -= 1
                    begin, end, kept = self._index[at]
                    is_near |= end > low
                    if end > low and kept.written is None and kept not in filled:
                        shift, footprint = row.address - row.physical, event.accesses[i].footprint
                        begin, end = max(begin, low) + shift, min(end, high) + shift
                        byte = meet(footprint, Footprint(begin, 8, (end - begin,), (1,)))
                        if byte is not None and (kept not in hits or byte < hits[kept][0]):
                            hits[kept] = byte, i
        for kept, (byte, i) in hits.items():
            command = self.names.command(event)
            kept.written = command, command.operand(event.accesses[i]), byte
            self._is_spoiled = True
        if not is_near:
            if len(self._apart) >= _ROWS_KEPT:
                self._apart.clear()
            self._apart.add(event.accesses.content)

    # --- overlapping bindings ---

    def _check_aliases(self, note: DispatchRecorded, event: Executing) -> None:
        """The check of RecordDispatch, with the descriptors and tile mappings at execution."""
        dispatchable = note.dispatchable
        places = list(self._places(dispatchable, note.table))
        clash = find_clash(dispatchable, places, self._meet, self._is_same)
        if clash is None:
            return
        command = self.names.command(event)
        words = messages.aliased(command, dispatchable, clash, self.names)
        cause = (
            command.command.site or event.packet,
            command.command.name,
            clash.first.slot,
            clash.second.slot,
        )
        self.report(alias_reason(dispatchable, clash)[0], cause=cause, api="DML", **words)

    def _places(self, dispatchable: Dispatchable, table: int) -> Iterator[aliasing.Place]:
        for slot in dispatchable.slots():
            if slot.descriptor is None or not slot.size:
                continue
            try:
                content = self.device.context.gpu.descriptors.content(
                    table + slot.descriptor * DESCRIPTOR_SIZE, 1
                )
                view = Descriptor.decode(content)
            except ValueError:  # the GPU reports what is wrong
                continue
            if view.address and view.size >= slot.size:
                yield aliasing.Place(slot, view.address)

    def _meet(self, a: Footprint, b: Footprint) -> Meeting | None:
        found: list[Meeting] = []
        for here in self._rows(*a.byte_range):
            for there in self._rows(*b.byte_range):
                low = max(here.physical, there.physical)
                high = min(
                    here.physical + here.end - here.address, there.physical + there.end - there.address
                )
                shift = here.address - here.physical - (there.address - there.physical)
                to_here = here.address - here.physical
                byte = meet(a, b, shift, low + to_here, high + to_here) if low < high else None
                if byte is not None:
                    found.append(Meeting(byte, byte - shift))
        return min(found, default=None)

    def _is_same(self, a: aliasing.Place, b: aliasing.Place) -> bool:
        def seen(place: aliasing.Place) -> list[tuple[int, int, int]]:
            rows = self._rows(place.address, place.address + place.slot.size)
            return [(row.address - place.address, row.end - row.address, row.physical) for row in rows]

        return a.address == b.address or seen(a) == seen(b)

    def _rows(self, begin: int, end: int) -> list[_Row]:
        """The physical rows of bytes; NULL tiles and dead memory have none."""
        rows = self._places_of.get((begin, end))
        if rows is None:
            if len(self._places_of) >= _ROWS_KEPT:
                self._places_of.clear()
            allocation = self.device.context.gpu.memory.find(begin)
            rows = [] if allocation is None or allocation.closed else list(_rows(allocation, begin, end))
            self._places_of[begin, end] = rows
        return rows


def _rows(allocation: Allocation, begin: int, end: int) -> Iterator[_Row]:
    for span in spans(allocation):
        first = allocation.address + span.start
        low, high = max(begin, first), min(end, first + span.size)
        if low < high:
            yield _Row(low, high, span.heap + span.offset + low - first)


CHECKS = (Descriptors, Dispatches)
