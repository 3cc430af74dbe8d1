"""The command processor: executes queue entries and the packets of command lists."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from . import chaos, packets
from .chaos import Mode
from .clock import Clock
from .dispatch_faults import dispatch_fault
from .events import (
    NO_ACCESSES,
    READ,
    UNDEFINE,
    WRITE,
    Access,
    Accesses,
    Accessing,
    Barrier,
    Decided,
    EventStream,
    Executed,
    Executing,
    Footprint,
    LeftUndefined,
    Place,
    Stretch,
    TilesMapped,
    Waited,
)
from .faults import FaultKind, GpuFault, OutOfMemory, Progress
from .fence import Fences
from .footprints import DispatchReader, accesses, read_descriptor, view_bytes, view_to_clear
from .formats import clear_pattern
from .kernels import ffi, lib, take_interrupt
from .memory import POISON_BYTE, Memory
from .packets import (
    ClearUavPacket,
    DiscardPacket,
    DispatchPacket,
    DispatchShaderPacket,
    ExecuteIndirectPacket,
    MapTilesPacket,
    Opcode,
    Packet,
    WaitPacket,
    decode_one,
)
from .queue import Entry, Queue
from .shader_runs import ShaderRuns
from .shader_watch import Watched
from .stretches import Stretches

if TYPE_CHECKING:
    from .reordering import Step

# Every command is compared with these; looking up an enum member takes longer.
_BARRIER, _DISPATCH, _SET_HEAPS = int(Opcode.BARRIER), int(Opcode.DISPATCH), int(Opcode.SET_DESCRIPTOR_HEAPS)
_RUN_AHEAD, _RUN_MANY = frozenset((_BARRIER, _DISPATCH)), frozenset((_DISPATCH, _SET_HEAPS))
_IN_LISTS = packets.commands(lambda effects: True)
_TOUCH_NOTHING = packets.commands(lambda effects: not effects.on_memory)
_SHADERS = frozenset((int(Opcode.DISPATCH_SHADER), int(Opcode.EXECUTE_INDIRECT)))
_HEADER_SIZE, _NO_SLOT = packets.HEADER.size, packets.SLOT_NONE
_new = tuple.__new__  # creates an event in less time than its class does
_AT_ONCE = 0.001  # seconds for which C code runs packets; signal handlers wait for its end
_TRAIL = 64  # commands kept for the report when the GPU is removed
_TURN = 8  # most commands that a queue executes before another may run


@dataclass
class _Group:
    """The lists of one ExecuteCommandLists call under chaos, with their packets in random order."""

    entries: list[Entry]
    lists: list[tuple[int, bytes]]  # serial and packets
    steps: list[Step]
    done: int = 0  # steps


@dataclass
class _Ahead:
    """A stretch that begins at a place; nobody needs the events of its packets before ``end``.

    ``done`` packets were executed; the next one is at byte ``position`` of the list.  It holds as long as
    ``emitted`` and ``callbacks`` of the event stream stay the same.
    """

    stretch: Stretch
    place: Place
    end: int
    position: int
    emitted: int
    callbacks: object
    done: int = 0


class Processor:
    """Executes packets on one GPU's memory; it handles only bytes and addresses.

    ``shader_limit``: seconds that a dispatch of a shader may take; 0: any number.

    ``draw`` returns the random generator of a chaos mode, None for one that is off.  ``give_way`` is called
    between two commands: other threads may then change anything, and even remove the device.
    """

    def __init__(
        self,
        memory: Memory,
        fences: Fences,
        clock: Clock,
        events: EventStream,
        draw: Callable[[Mode], Random | None],
        give_way: Callable[[], None],
    ) -> None:
        self._memory = memory
        self._fences = fences
        self._clock = clock
        self._events = events
        self._give_way = give_way
        self._order = draw(Mode.ORDER)
        self._groups: dict[int, _Group] = {}  # being executed, by queue serial
        self._fillings = {packets.FLAG_TAIL: draw(Mode.PADDING), 0: draw(Mode.POISON)}
        self._reader = DispatchReader(memory)
        self._stretches = Stretches(memory)
        self._ahead: _Ahead | None = None
        self._not_before = (0, 0, 0)  # queue, ticket, byte: until there, nothing is looked for ahead
        self._refused = 0  # how often in a row a stretch of that list was refused
        self._fault = ffi.new("dmlk_fault *")
        self._shaders = ShaderRuns(memory, self._order)
        self.shader_limit = 0.0
        self._by_view: dict[int, Callable[[Any], int]] = {
            Opcode.CLEAR_UAV: self._clear_uav,
            Opcode.DISCARD: self._discard,
            Opcode.DISPATCH_SHADER: self._shaders.dispatch,
            Opcode.EXECUTE_INDIRECT: self._shaders.execute_indirect,
        }

    # --- queue entries ---

    def run(self, queue: Queue, end: float | None = None) -> None:
        """Executes the entry at the head of the queue and removes it.

        A list is suspended when ``time.monotonic()`` reaches ``end``; the next call resumes it.  GpuFault: a
        command cannot be executed, or the host stopped a kernel while it ran.  Any other exception comes from
        an event subscriber, and the next call continues with the next command; or from a signal handler, and
        it continues with the first command that has not been executed.
        """
        entry = queue.pending[0]
        opcode = packets.HEADER.unpack_from(entry)[0]
        self._shaders.limit = self.shader_limit if queue.has_timeout else 0.0
        if queue.position == 0:
            self._clock.advance()
        if opcode == Opcode.EXECUTE:
            if self._order is not None:
                self._run_group(queue, self._order, end)
            elif self._run_list(queue, entry, end):
                queue.pop()
            return
        try:
            if opcode == Opcode.SIGNAL:
                fence, value = packets.SIGNAL.unpack_from(entry, _HEADER_SIZE)
                self._fences.write(fence, value)
                queue.pop()
                self._fences.emit_signalled(fence, value, queue.serial)
                return
            packet = decode_one(entry)
            if isinstance(packet, MapTilesPacket):
                entry.promise = None
                self._map_tiles(packet)
                queue.pop()
                if self._events:
                    self._events.emit(TilesMapped(queue.serial, entry.ticket))
            elif isinstance(packet, WaitPacket):
                queue.pop()
                if self._events:
                    self._events.emit(Waited(queue.serial, packet.fence, packet.value))
        except GpuFault as fault:
            fault.locate(queue.label, 0, 0, entry)
            raise

    def _run_list(self, queue: Queue, entry: Entry, until: float | None) -> bool:
        """False: the time ran out before the end of the list, or the device was removed."""
        base = ffi.from_buffer("uint8_t[]", entry)
        end = len(entry)
        position, command = queue.progress
        position = position or packets.EXECUTE_HEADER_SIZE
        header, events, fault = packets.HEADER.unpack_from, self._events, self._fault
        number, ticket, lock = queue.serial, entry.ticket, self._memory.lock
        ran, watched, is_alone = 0, False, False
        try:
            while position < end:
                fault.ran = fault.ran_bytes = 0  # before the start changes, for the handlers below
                start, command = position, command + ran
                opcode, size = header(entry, start)
                if size < packets.HEADER.size or size % 8 or start + size > end:
                    self._decode(entry, start)
                watched = bool(events.subscriptions) and events.callbacks.foresights != ()
                # NULL tiles lose what one kernel writes, before the next one reads it.
                may_run_many = opcode in (_RUN_AHEAD if watched else _RUN_MANY)
                may_run_many = may_run_many and not self._memory.has_null_tiles
                is_alone = False
                if watched:
                    place = Place(number, ticket, _serial(entry), command)
                    if not (may_run_many and self._run_ahead(place, entry, base, start, until)):
                        is_alone = True
                        self._run_watched(place, opcode, size, entry, base, start)
                elif not may_run_many:
                    self._run_command(opcode, entry, base, start, size)
                else:
                    self._run_many(entry, base, start, len(entry), until)
                    if not fault.ran:
                        self._run_command(opcode, entry, base, start, size)  # says what is wrong
                position, ran = start + fault.ran_bytes, fault.ran
                queue.reach(entry, position, command + ran)
                is_over = until is not None and time.monotonic() >= until
                if not (lock.waiting or is_over) or position >= end:
                    continue
                if watched and packets.is_joined(entry, position):
                    continue
                self._ahead = None  # other threads may change descriptors
                self._give_way()
                if is_over or not queue.is_head(entry):
                    return False
        except GpuFault as error:
            if not is_alone:  # packets before the one that failed may have been executed
                start, command = start + fault.ran_bytes, command + fault.ran
                queue.reach(entry, start, command)
            error.locate(queue.label, _serial(entry), command, entry[start : packets.skip(entry, start, 1)])
            raise
        except BaseException:
            queue.reach(entry, start + fault.ran_bytes, command + fault.ran)
            raise
        return True

    def _run_many(self, data: bytes, base: Any, start: int, end: int, until: float | None) -> None:
        """Runs a dispatch, or sets heaps, and what follows of these and of barriers while there is time."""
        self._finish(self._run_packets(base, start, end, until), data, start)

    def _run_packets(self, base: Any, start: int, end: int, until: float | None) -> int:
        pause = time.monotonic() + _AT_ONCE
        last = pause if until is None else min(pause, until)
        segments, count = self._memory.segments()
        status: int = lib.dmlk_run_packets(base + start, end - start, segments, count, last, self._fault)
        return status

    def _run_ahead(self, place: Place, data: bytes, base: Any, start: int, until: float | None) -> bool:
        """Runs packets that no subscriber needs to look at, while there is time; False: there are none."""
        events, fault, ahead = self._events, self._fault, self._ahead
        if (
            ahead is None
            or (ahead.position, ahead.emitted) != (start, events.emitted)
            or ahead.callbacks is not events.callbacks
            or ahead.place[:3] != place[:3]
        ):
            ahead = self._ahead = self._look_ahead(place, data, base, start)
            if ahead is None:
                return False
        stretch, first = ahead.stretch, ahead.done
        end = start + stretch.offsets[ahead.end] - stretch.offsets[first]
        try:
            status = self._run_packets(base, start, end, until)
            done = first + fault.ran + (status != lib.DMLK_OK)
            for each in events.callbacks.foresights or ():
                each.passed(stretch, ahead.place, first, done)
        except BaseException as error:  # not all subscribers know what was executed
            if events.on_exception is not None:
                events.on_exception(error)
            raise
        ahead.done, ahead.position = done, start + fault.ran_bytes
        if done == ahead.end:
            self._ahead = None
        self._finish(status, data, start)
        if fault.partial_tensor != _NO_SLOT and events.callbacks[LeftUndefined]:
            last = ahead.place._replace(command=ahead.place.command + done - 1)
            self._emit_undefined(last, stretch.accesses[done - 1])
        return True

    def _look_ahead(self, place: Place, data: bytes, base: Any, start: int) -> _Ahead | None:
        """The stretch that begins here, if nobody needs to look at its first packet."""
        events, (queue, ticket, position) = self._events, self._not_before
        is_same = (queue, ticket) == place[:2]
        foresights = events.callbacks.foresights
        if foresights is None or (is_same and start < position):
            return None
        if not is_same:
            self._refused = 0
        stretch, behind = self._stretches.find(place.list_serial, data, base, start)
        if stretch is None:
            self._not_before = *place[:2], behind
            return None
        end = stretch.count
        try:
            for each in foresights:
                end = min(end, each.foresees(stretch, place)) if end else 0
        except BaseException as error:
            if events.on_exception is not None:
                events.on_exception(error)
            raise
        if not end:  # the next attempt is the further away, the more have failed
            self._refused += 1
            skipped = min(1 << min(self._refused, 8), stretch.count)
            self._not_before = *place[:2], start + stretch.offsets[skipped]
            return None
        self._refused = 0
        return _Ahead(stretch, place, end, start, events.emitted, events.callbacks)

    def _run_group(self, queue: Queue, random: Random, until: float | None) -> None:
        """Runs some commands of the lists at the head in random order; removes the lists after the last one.

        After an exception the group resumes as described in :meth:`run`.
        """
        group, turn = self._group(queue, random), random.randint(1, _TURN)
        for ran, step in enumerate(group.steps[group.done :]):
            serial, data = group.lists[step.list]
            is_over = ran >= turn or (ran and until is not None and time.monotonic() >= until)
            if (is_over or self._memory.lock.waiting) and not packets.is_joined(data[step.start : step.end]):
                if is_over:
                    return
                self._give_way()
                if not queue.is_head(group.entries[0]):
                    return
            place = Place(queue.serial, group.entries[step.list].ticket, serial, step.command)
            self._fault.ran = 0
            try:
                opcode, size = packets.HEADER.unpack_from(data, step.start)
                if size != step.end - step.start:
                    self._decode(data, step.start)
                base = ffi.from_buffer("uint8_t[]", data)
                self._run_watched(place, opcode, size, data, base, step.start)
            except GpuFault as fault:
                fault.locate(queue.label, serial, step.command, data[step.start : step.end])
                raise
            except BaseException:
                group.done += self._fault.ran
                raise
            group.done += 1
        while queue.pending and queue.pending[0].group == group.entries[-1].ticket:
            queue.pop()
        del self._groups[queue.serial]

    def _group(self, queue: Queue, random: Random) -> _Group:
        """The group of the lists at the head of the queue."""
        last = queue.pending[0].group
        group = self._groups.get(queue.serial)
        if group is None or group.entries[-1].ticket != last:
            from .reordering import shuffled  # only chaos needs it

            entries = [entry for entry in list(queue.pending) if entry.ticket <= last]
            lists = [(_serial(entry), entry[packets.EXECUTE_HEADER_SIZE :]) for entry in entries]
            group = _Group(entries, lists, shuffled([data for _, data in lists], self._memory, random))
            self._groups[queue.serial] = group
            what = f"the order of the {len(group.steps)} packets of {len(lists)} lists is drawn"
            self._decided(Mode.ORDER, what, queue.serial)
        return group

    def _decided(self, mode: Mode, what: str, queue: int = 0) -> None:
        if self._events.wants(Decided):
            self._events.emit(Decided(mode.value, what, queue))

    def progress(self, queue: Queue) -> Progress:
        """The progress of the queue."""
        executed: list[tuple[int, int]] = []
        head, group = queue.pending[0] if queue.pending else None, self._groups.get(queue.serial)
        if head is not None and packets.HEADER.unpack_from(head)[0] == Opcode.EXECUTE:
            if self._order is None:
                serial, last = _serial(head), queue.progress[1]
                executed = [(serial, command) for command in range(max(0, last - _TRAIL), last)]
            elif group is not None and group.entries[-1].ticket == head.group:
                steps = group.steps[max(0, group.done - _TRAIL) : group.done]
                executed = [(group.lists[step.list][0], step.command) for step in steps]
        return Progress(queue.serial, queue.completed, tuple(executed), len(queue.pending))

    def _run_watched(self, place: Place, opcode: int, size: int, data: bytes, base: Any, start: int) -> None:
        """Runs one command and emits its events: its accesses before, its execution after."""
        events, touched = self._events, NO_ACCESSES
        try:
            if opcode in _TOUCH_NOTHING:
                if events.callbacks[Executing]:
                    content = data[start : start + size]
                    events.emit(Executing(*place, opcode, content, False, NO_ACCESSES))
            elif events.callbacks[Accessing]:
                content, is_joined = data[start : start + size], packets.is_joined
                if opcode == _DISPATCH:
                    touched = self._reader.read(content, base + start)
                else:
                    touched = self._accesses(opcode, data, start)
                is_part, continues = is_joined(content), is_joined(data, start + size)
                events.emit(_new(Accessing, (*place, opcode, content, is_part, touched, continues)))
                if opcode in _SHADERS and (ahead := self._shaders.ahead) is not None:
                    events.emit(ahead.event(place))
        except Exception:  # a subscriber rejected the command
            self._shaders.forget_ahead()
            self._ran(size)
            raise
        before = self._clock.now
        self._run_command(opcode, data, base, start, size)
        callbacks = events.callbacks  # which the subscribers may have changed
        if opcode == _BARRIER:
            if callbacks[Barrier]:
                kind, flags, *rest = packets.BARRIER.unpack_from(data, start + _HEADER_SIZE)
                events.emit(_new(Barrier, (*place, kind, *rest, flags)))
        elif opcode == _DISPATCH and self._fault.partial_tensor != _NO_SLOT and callbacks[LeftUndefined]:
            content = data[start : start + size]
            self._emit_undefined(place, touched or self._reader.read(content, base + start))
        if callbacks[Executed]:
            content = data[start : start + size]
            events.emit(Executed(*place, opcode, content, before, self._clock.now))

    def _accesses(self, opcode: int, data: bytes, start: int) -> Accesses:
        """Of any command but a dispatch of an operator.

        One of a shader runs ahead of its turn, if anybody wants to know what it does wrong.
        """
        packet = self._decode(data, start)
        if opcode in _SHADERS and self._events.callbacks[Watched]:
            assert isinstance(packet, DispatchShaderPacket | ExecuteIndirectPacket)
            ahead = self._shaders.run_ahead(packet)
            if ahead is not None:
                return Accesses.of(ahead.accesses)
        return accesses(packet, self._memory)

    def _emit_undefined(self, place: Place, touched: Accesses) -> None:
        undefined = self._left_undefined(touched)
        if undefined is not None:
            self._events.emit(LeftUndefined(*place, undefined))

    def _left_undefined(self, touched: Accesses) -> Access | None:
        """The part of an output that the kernel left undefined."""
        fault = self._fault
        written = [each for each in touched if each.operand == fault.partial_tensor]
        if not written:
            return None
        address, bits, sizes, strides = written[0].footprint
        axis, defined = fault.partial_dimension, fault.partial_count
        if defined >= sizes[axis]:
            return None
        rest = (*sizes[:axis], sizes[axis] - defined, *sizes[axis + 1 :])
        start = address + defined * strides[axis] * bits // 8
        return Access(fault.partial_tensor, UNDEFINE, Footprint(start, bits, rest, strides))

    def _decode(self, data: bytes, start: int) -> Packet:
        try:
            return decode_one(data, start, packets.EXECUTE_HEADER_SIZE if isinstance(data, Entry) else 0)
        except ValueError as error:
            raise GpuFault(FaultKind.BAD_PACKET, str(error)) from None

    def _map_tiles(self, packet: MapTilesPacket) -> None:
        allocation = self._memory.find(packet.allocation)
        if allocation is None or allocation.closed:
            where = self._memory.describe_address(packet.allocation)
            message = f"Tiles are mapped at address {packet.allocation:#x}, which lies in {where}."
            raise GpuFault(FaultKind.BAD_ADDRESS, message, address=packet.allocation)
        for tile, count, serial, heap_tile, reuse in packet.regions:
            heap = self._memory.find_heap(serial)
            if serial and heap is None:
                raise GpuFault(
                    FaultKind.HEAP_RELEASED,
                    f"Tiles of {allocation.describe()} are mapped to heap {serial}, which has been released.",
                    address=packet.allocation,
                )
            try:
                self._memory.map_tiles(allocation, tile, count, heap, heap_tile, reuse=reuse)
            except OutOfMemory as error:
                raise GpuFault(FaultKind.OUT_OF_MEMORY, str(error), address=packet.allocation) from None
            self._clock.advance()

    # --- commands of a list ---

    def _run_command(self, opcode: int, data: bytes, base: Any, start: int, size: int) -> None:
        if opcode == _DISPATCH:
            self._dispatch(data, base, start, size)
        elif (opcode == _BARRIER and size == packets.BARRIER_SIZE) or (
            opcode == _SET_HEAPS and packets.names_heaps(data, start, size)
        ):  # nothing to do or decode
            self._ran(size)
            self._clock.advance()
            return
        else:
            packet = self._decode(data, start)
            if opcode not in _IN_LISTS:
                message = f"A command list holds a {packet.opcode.name} packet, which only a queue may hold."
                raise GpuFault(FaultKind.BAD_PACKET, message)
            by_view = self._by_view.get(opcode)
            moved = self._move_and_store(packet) if by_view is None else by_view(packet)
            self._ran(size)
            self._clock.advance(moved)
        self._memory.drop_null_writes()

    def _dispatch(self, data: bytes, base: Any, start: int, size: int) -> None:
        segments, count = self._memory.segments()
        status = lib.dmlk_dispatch(base + start, size, segments, count, self._fault)
        self._finish(status, data, start)

    def _finish(self, status: int, data: bytes, start: int) -> None:
        """After dispatches in C: advances the clock; GpuFault if one failed."""
        fault = self._fault
        self._clock.advance_by(fault.ran, fault.ticks)
        if status != lib.DMLK_OK:
            packet = self._decode(data, start + fault.ran_bytes)
            assert isinstance(packet, DispatchPacket)
            error = dispatch_fault(status, fault, packet, self._memory)
            if status == lib.DMLK_STOPPED:
                error.interrupt = take_interrupt()
            raise error

    def _ran(self, size: int) -> None:
        """Records that a command was executed, as the C code does."""
        self._fault.ran_bytes = size
        self._fault.ran = 1

    def _move_and_store(self, packet: Packet) -> int:
        """Does what the packet declares; returns the number of bytes that it reads and writes."""
        moved = 0
        for destination, source, size in packet.moves():
            self._copy(destination, source, size)
            moved += 2 * size
        for address, data, _ in packet.stores(self._clock.now):
            size = len(data)
            self._memory.view(address, size)[:] = data
            moved += size
        return moved

    def _copy(self, destination: int, source: int, size: int) -> None:
        if size:
            to, origin = self._find(destination, size, WRITE), self._find(source, size, READ)
            ffi.memmove(ffi.cast("uint8_t *", to), ffi.cast("uint8_t *", origin), size)

    def _find(self, address: int, size: int, access: int) -> int:
        """Host address of the bytes at a GPU virtual address."""
        try:
            return self._memory.translate(address, size)
        except GpuFault as fault:
            fault.access, fault.needed = access, size
            raise

    def _clear_uav(self, packet: ClearUavPacket) -> int:
        view = view_to_clear(packet, self._memory)
        if view.address == 0:
            return 0
        pattern = clear_pattern(view.format, packet.values, packet.is_float)
        if pattern is None:
            raise GpuFault(
                FaultKind.NOT_IMPLEMENTED,
                f"Views of DXGI_FORMAT {view.format} cannot be cleared yet.",
                address=view.address,
            )
        width = len(pattern)
        data = view_bytes(packet.table, view, 0, view.size // width * width, self._memory)
        word = np.dtype(f"u{min(width & -width, 8)}")  # an element is a whole number of words
        elements = np.ndarray((len(data) // width, width // word.itemsize), word, data)
        moved = 0
        for first, end in packet.ranges or ((0, len(elements)),):
            part = elements[first:end]
            part[:] = pattern.view(word)
            moved += part.nbytes
        return moved

    def _discard(self, packet: DiscardPacket) -> int:
        view = read_descriptor(packet.handle, self._memory)
        if view.address == 0 or not packet.flags & packets.FLAG_POISON:
            return 0
        size = min(packet.byte_count, view.size - packet.start)
        if size > 0:
            data = view_bytes(packet.handle, view, packet.start, size, self._memory)
            random = self._fillings[packet.flags & packets.FLAG_TAIL]
            if random is None:
                np.frombuffer(data, np.uint8)[:] = POISON_BYTE
            else:
                chaos.fill(data, random)
                mode = Mode.PADDING if packet.flags & packets.FLAG_TAIL else Mode.POISON
                self._decided(mode, f"{size} bytes at {view.address + packet.start:#x} become random")
        return max(0, size)


def _serial(entry: bytes) -> int:
    """The list serial in an EXECUTE entry."""
    return int.from_bytes(entry[8:16], "little")
