"""Uninitialized reads: commands that read bytes nothing has written (group g, first half).

The hardware's shadow memory knows for every byte whether it was written.  Copies copy this state without
a report; the first command that computes with unwritten bytes is reported.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dmlemu_hw import kernels
from dmlemu_hw.events import (
    NO_ACCESSES,
    READ,
    UNDEFINE,
    WRITE,
    Access,
    Accesses,
    Accessing,
    Allocated,
    Executed,
    Executing,
    Footprint,
    Foresight,
    Freed,
    LeftUndefined,
    Mapped,
    Place,
    Queued,
    Signalled,
    Stretch,
    Submitted,
)
from dmlemu_hw.kernels import ffi, lib
from dmlemu_hw.packets import (
    KERNEL,
    DispatchShaderPacket,
    ExecuteIndirectPacket,
    Opcode,
    commands,
    decode_one,
    is_tail,
)
from dmlemu_hw.shader_watch import Watched
from dmlemu_hw.shadow import Shadow

from ...d3d12.memory.resource import HostAccessed, HostMapped, HostUnmapped
from ...d3d12.types.enums import HeapFlags
from ...errors import Severity
from ..analysis.host_writes import HostEvent, HostWrites
from ..analysis.mapped import Range, add_span
from ..framework.check import Check, on
from . import messages
from .messages import Write
from .rows import MEM_POISON_READ, MEM_UNINIT_READ

if TYPE_CHECKING:
    from dmlemu_hw.programs import Program

    from ...d3d12.core.recording import Command
    from ...d3d12.device.device import Device
    from ...d3d12.memory.resource import Resource

_KEPT = 8192  # commands whose writes are remembered, and causes
_CONTENTS_KEPT = 2048  # cached contents of accesses
_LONG = 128  # maximum number of accesses in a cached set
_DISPATCH, _DISCARD = int(Opcode.DISPATCH), int(Opcode.DISCARD)
_SHADERS = (int(Opcode.DISPATCH_SHADER), int(Opcode.EXECUTE_INDIRECT))
_COPIES = commands(lambda effects: effects.copies)
_NEAR = 4096  # bytes searched for a neighbour
_MOST = 1 << 22  # bytes of a tensor whose undefined rows are looked for
# Kernels that make each element of the output from one element of an operand, and that operand.
_ROW_BY_ROW = {"copy": 0, "cast": 0, "take_slice": 0, "gather": 1}


class _Change(NamedTuple):
    """An access that writes, or leaves bytes undefined: its index, and its bytes.

    ``is_part``: what a kernel leaves undefined of an output that it writes.
    """

    at: int
    begin: int
    end: int
    undefined: bool
    is_part: bool = False


_Copies = list[tuple[Write, str]]


class Initialisation(Check, Foresight):
    """Keeps the shadow memory up to date and checks every read."""

    declarations = (
        MEM_UNINIT_READ,
        MEM_POISON_READ,
    )

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.shadow = Shadow(device.context.gpu.memory)
        self._writes: OrderedDict[Hashable, Write] = OrderedDict()  # oldest first
        self._reported: dict[tuple[str, Hashable], int] = {}  # causes, and the byte at which each was found
        self._known_changes: dict[bytes, list[_Change]] = {}  # by the contents of accesses
        self._undefined: list[Range] = []  # by writes that are no longer remembered
        # By content, the newest last: commands that repeat known writes, still to be noted in ``_writes``.
        self._repeated: dict[bytes, tuple[int, int, tuple[list[Command], str], Accesses]] = {}
        self._list: tuple[int, tuple[list[Command], str]] = (0, ([], ""))  # serial of the last one
        self._is_subscribed_to_ends = False
        self._host = HostWrites(device.context.gpu.memory, self.shadow, device.events, self._note_host)

    @on(Allocated, Freed, Mapped)
    def memory(self, event: Allocated | Freed | Mapped) -> None:
        """Updates the shadow on allocation, freeing and mapping."""
        self.shadow.on_event(event)
        if not isinstance(event, Allocated):  # new memory does not change a known cause
            self._reported.clear()
        if isinstance(event, Freed):
            self._host.freed(event.address)

    def stop(self) -> None:
        """Ends the subscriptions, and removes patterns from memory."""
        super().stop()
        self._host.end()

    # --- the CPU ---

    @on(HostMapped, HostAccessed, HostUnmapped, Submitted, Queued, Signalled)
    def host(self, event: HostEvent) -> None:
        """What the CPU wrote becomes visible at Unmap, at ExecuteCommandLists and when a queue may go on."""
        if not (isinstance(event, Signalled) and event.queue):
            self._host.on_event(event)

    def _note_host(self, begin: int, end: int) -> None:
        self._note_repeated()
        self._note((begin, end), Write(begin, end, None, False, None, 0, "", None))

    # --- the GPU ---

    def foresees(self, stretch: Stretch, place: Place) -> int:
        """Commands that read only what is written by now, or by those before them."""
        return 0 if self._host.patterned else self.shadow.foresees(stretch)

    def passed(self, stretch: Stretch, place: Place, first: int, end: int) -> None:
        """What they wrote is noted later."""
        self.shadow.passed(stretch, first, end)
        repeated, recorded = self._repeated, self._recorded(place)
        for i in range(first, end):
            accesses = stretch.accesses[i]
            if accesses is not NO_ACCESSES:
                repeated.pop(accesses.content, None)  # the newest is the last
                repeated[accesses.content] = place.list_serial, place.command + i, recorded, accesses
        if len(repeated) > _CONTENTS_KEPT:
            self._note_repeated()

    @on(Accessing)
    def look(self, event: Executing) -> None:
        """Checks reads first, then applies writes."""
        accesses, opcode = event.accesses, event.opcode
        patterned = self._host.patterned
        if opcode == _DISPATCH and not patterned and (content := accesses.content) in self.shadow.settled:
            repeated = self._repeated
            repeated.pop(content, None)  # the newest is the last
            repeated[content] = event.list_serial, event.command, self._recorded(event), accesses
            if len(repeated) > _CONTENTS_KEPT:
                self._note_repeated()
            return
        if accesses is NO_ACCESSES or not accesses or (opcode == _DISCARD and is_tail(event.packet)):
            return  # tails keep their contents
        pointer = accesses.pointer
        if patterned and (opcode == _DISPATCH or opcode in _COPIES):
            self._watch_ends()
            self._host.before_read(accesses)
        if opcode in _COPIES:
            source, target = pointer[0], pointer[1]
            self.shadow.copy(target.address, source.address, target.end - target.address)
            change = _Change(1, target.address, target.end, False)
            self._note_command(event, change, accesses, source.address)
            return
        moved: list[Accesses] = []
        looks = opcode == _DISPATCH or (opcode in _SHADERS and self._is_watched(event))
        if not self.shadow.command(accesses, look=looks):
            moved = self._look_at_each(event) if looks else self._apply(accesses)
        for change in self._changes(accesses):
            self._note_command(event, change, accesses)
        for left in moved:
            self._leave_undefined(event, left)

    def _changes(self, accesses: Accesses) -> list[_Change]:
        """The changes made by commands with such accesses."""
        content = accesses.content
        changes = self._known_changes.get(content)
        if changes is None:
            entries = [accesses.pointer + i for i in range(len(accesses))]
            changes = [
                _Change(i, each.address, each.end, not each.access & WRITE)
                for i, each in enumerate(entries)
                if each.access & (WRITE | UNDEFINE)
            ]
            if len(self._known_changes) >= _CONTENTS_KEPT:
                self._known_changes.clear()
            if len(accesses) <= _LONG:  # data-dependent accesses rarely repeat: not cached
                self._known_changes[content] = changes
        return changes

    def _is_watched(self, event: Executing) -> bool:
        """Whether it is known which bytes a shader reads: otherwise its accesses are whole views."""
        if not self.device.events.callbacks[Watched]:
            return False
        packet = decode_one(event.packet)
        assert isinstance(packet, DispatchShaderPacket | ExecuteIndirectPacket)
        program: Program | None = self.device.context.gpu.memory.programs.find(packet.program)
        return program is not None and program.watched is not None

    def _look_at_each(self, event: Executing) -> list[Accesses]:
        """Returns the parts of outputs that are undefined, too."""
        accesses = event.accesses
        moved: list[Accesses] = []
        if event.opcode == Opcode.EXECUTE_INDIRECT:  # its dispatches may read what those before them wrote
            for i in range(len(accesses)):
                moved += self._look_at(event, i)
                self._mark(accesses.pointer + i)
            return moved
        for i in range(len(accesses)):
            moved += self._look_at(event, i)
        return moved + self._apply(accesses)

    def _look_at(self, event: Executing, index: int) -> list[Accesses]:
        """One access; returns as :meth:`_look_at_each`."""
        pointer = event.accesses.pointer + index
        first = self.shadow.first_unwritten(pointer) if pointer.access & READ else None
        if first is None:
            return []
        left = self._moved(event, event.accesses[index], first)
        self._found(event, index, first, is_moved=left is not None)
        return [] if left is None else [left]

    def _apply(self, accesses: Accesses) -> list[Accesses]:
        """Marks what a command writes and undefines; nothing of that is left for later."""
        for i in range(len(accesses)):
            self._mark(accesses.pointer + i)
        return []

    def _mark(self, pointer: Any) -> None:
        if pointer.access & WRITE:
            self.shadow.mark_written(pointer)
        elif pointer.access & UNDEFINE:
            self.shadow.mark_undefined(pointer)

    def _moved(self, event: Executing, read: Access, first: int) -> Accesses | None:
        """The part of a graph's tensor that a node makes of undefined rows of another tensor, row by row.

        A graph does not know how many rows past a count are undefined: its nodes work on all of them.
        None: anything else is undefined, or the node does not keep the order of elements.
        """
        if event.opcode != _DISPATCH:
            return None
        kernel = kernels.name(KERNEL.unpack_from(event.packet)[0])
        if _ROW_BY_ROW.get(kernel) != read.operand:
            return None
        if not _is_temporary(self.names.command(event).operand(read)):
            return None
        last = self._last(first)
        if last is None or not last.is_part:
            return None
        targets = [each for each in event.accesses if each.access & WRITE]
        if len(targets) != 1 or targets[0].footprint.sizes != read.footprint.sizes:
            return None
        rest = self._undefined_rest(read.footprint)
        if rest is None:
            return None
        axis, defined = rest
        address, bits, sizes, strides = targets[0].footprint
        sizes = (*sizes[:axis], sizes[axis] - defined, *sizes[axis + 1 :])
        start = address + defined * strides[axis] * bits // 8
        return Accesses.of([Access(targets[0].operand, UNDEFINE, Footprint(start, bits, sizes, strides))])

    def _undefined_rest(self, read: Footprint) -> tuple[int, int] | None:
        """The axis along which exactly the elements from some index on are unwritten, and that index."""
        address, bits, sizes, strides = read
        begin, end = read.byte_range
        if bits < 8 or end - begin > _MOST:
            return None
        written = np.zeros(end - begin, np.bool_)
        for start, stop in self.shadow.written_runs(begin, end - begin):
            written[start - begin : stop - begin] = True
        steps = [stride * bits // 8 for stride in strides]
        undefined = ~np.lib.stride_tricks.as_strided(written[address - begin :], sizes, steps)
        for axis in range(len(sizes)):
            lines = undefined.any(axis=tuple(i for i in range(len(sizes)) if i != axis))
            defined = int(np.argmax(lines))
            if (
                undefined[(slice(None),) * axis + (slice(defined, None),)].sum()
                == undefined.sum()
                == (undefined.size // sizes[axis] * (sizes[axis] - defined))
            ):
                return axis, defined
        return None

    @on(LeftUndefined)
    def undefined(self, event: LeftUndefined) -> None:
        """A kernel reports bytes that it left undefined."""
        self._leave_undefined(event, Accesses.of([event.access]))

    def _leave_undefined(self, event: Executing | LeftUndefined, left: Accesses) -> None:
        self.shadow.mark_undefined(left.pointer)
        entry = left.pointer[0]
        self._note_command(event, _Change(0, entry.address, entry.end, True, is_part=True), left)

    def _watch_ends(self) -> None:
        """Subscribes to Executed events from now on: unobserved events cost nothing."""
        if not self._is_subscribed_to_ends:
            self._is_subscribed_to_ends = True
            stream = self.device.events
            stream.subscribe(
                lambda _: self._host.after_read(), Executed, kept=self._subscriptions, foresight=self
            )

    # --- who wrote what ---

    def _recorded(self, event: Executing | LeftUndefined | Place) -> tuple[list[Command], str]:
        """The commands of the event's list, and its name."""
        serial, recorded = self._list
        if serial != event.list_serial:
            recording = self.device.context.recordings.get(event.list_serial)
            recorded = ([], "") if recording is None else (recording.commands, recording.owner)
            self._list = event.list_serial, recorded
        return recorded

    def _note_command(
        self, event: Executing | LeftUndefined, change: _Change, accesses: Accesses, source: int = 0
    ) -> None:
        self._note_repeated()
        self._note_change(event.list_serial, event.command, self._recorded(event), change, accesses, source)

    def _note_repeated(self) -> None:
        """Repeated commands, whose writes are known, are noted before anything else is."""
        if self._repeated:
            repeated, self._repeated = self._repeated, {}
            for serial, number, recorded, accesses in repeated.values():
                for change in self._changes(accesses):
                    self._note_change(serial, number, recorded, change, accesses)

    def _note_change(
        self,
        serial: int,
        number: int,
        recorded: tuple[list[Command], str],
        change: _Change,
        accesses: Accesses,
        source: int = 0,
    ) -> None:
        (commands, owner), (index, begin, end, undefined, is_part) = recorded, change
        pattern = accesses.pointer + index
        write = Write._make(
            (begin, end, pattern, undefined, commands, number, owner, accesses, source, is_part)
        )
        self._note((serial, number, index, undefined), write)

    def _note(self, key: Hashable, write: Write) -> None:
        """Notes the newest write; it replaces those before with the same key."""
        writes = self._writes
        if self._reported and (write.undefined or write.source):
            reported = self._reported.items()
            self._reported = {cause: byte for cause, byte in reported if not write.begin <= byte < write.end}
        writes[key] = write
        writes.move_to_end(key)
        if len(writes) > _KEPT:
            _, oldest = writes.popitem(last=False)
            if oldest.undefined and _has_no_gaps(oldest.pattern):  # nearly all of them
                find = self.device.context.gpu.memory.find
                self._undefined = [each for each in self._undefined if find(each[0]) is not None]
                add_span(self._undefined, oldest.begin, oldest.end)

    def _last(self, address: int) -> Write | None:
        """The last write to a byte, None if its memory has been freed."""
        if self.device.context.gpu.memory.find(address) is None:  # addresses are never reused
            return None
        self._note_repeated()
        return next((write for write in reversed(self._writes.values()) if write.holds(address)), None)

    # --- reporting ---

    def _found(self, event: Executing, index: int, address: int, *, is_moved: bool) -> None:
        """``is_moved``: what the dispatch makes of it is undefined, too, and reported where that is read."""
        access, command = event.accesses[index], self.names.command(event)
        resource = self.names.buffer(address)
        if resource is None:
            return
        operand = command.operand(access)
        id = MEM_POISON_READ.id if _is_temporary(operand) else MEM_UNINIT_READ.id
        cause = command.command.site or event.packet, command.command.name, operand, str(resource), is_moved
        if self._reported.get((id, cause)) == address and self.device.reports.again(id, cause):
            return  # no write to that byte since
        copies, origin, last = self._origin(resource, address)
        forgotten = (
            last is None and not copies and any(begin <= address < end for begin, end in self._undefined)
        )
        undefined = forgotten or (last is not None and last.undefined)
        undefined_by = "a command long ago" if forgotten else ""
        if last is not None and last.undefined:
            undefined_by = messages.author(last)
        zeros = not undefined and not _is_not_zeroed(origin)
        is_harmless = is_moved if id == MEM_POISON_READ.id else zeros
        words = messages.Read(
            command=command,
            operand=operand,
            element=() if event.opcode in _SHADERS else element(event.accesses.pointer + index, address),
            byte=address - resource.address,
            buffer=resource,
            zeros=zeros,
            is_moved=is_moved,
            undefined_by=undefined_by,
            copies=[(messages.author(write), source) for write, source in copies],
        )
        self.report(
            id,
            words.message,
            operation=command.place,
            object=str(resource),
            created_at=resource.created_at,
            severity=Severity.WARNING if is_harmless else self._declared[id].severity,
            ranges=tuple(messages.picture(self.shadow, resource, access, address)),
            context=(
                command.context,
                *self._neighbours(resource, access.footprint.byte_range, address, copies),
            ),
            cause=cause,
            **messages.drawn(self.shadow, resource, access, address, operand),
        )
        if len(self._reported) < _KEPT:
            self._reported[id, cause] = address

    def _origin(self, resource: Resource, address: int) -> tuple[_Copies, Resource, Write | None]:
        """Where an unwritten byte came from: the copies on the way, last first, each with its source;
        the first buffer, and what left the byte undefined there."""
        copies: _Copies = []
        while True:
            last = self._last(address)
            is_known = any(write is last for write, _ in copies)  # two buffers were copied back and forth
            if last is None or last.undefined or not last.source or is_known:
                return copies, resource, last
            address += last.source - last.begin
            source = self.names.buffer(address)
            copies.append((last, "a buffer that is gone" if source is None else source.title()))
            if source is None:
                return copies, resource, None
            resource = source

    def _neighbours(
        self, resource: Resource, span: tuple[int, int], address: int, copies: _Copies
    ) -> Iterator[str]:
        """The writers of bytes around the first unwritten one, nearest first, except copies of that byte."""
        named = [write for write, _ in copies[:1]]
        for near in self._written_around(*span, address):
            write = self._last(near)
            if write is not None and not write.undefined and write not in named:
                named.append(write)
                yield messages.wrote(write, resource)

    def _written_around(self, begin: int, end: int, address: int) -> Iterator[int]:
        """The last written byte before the address, and the first one after it."""
        begin = max(begin, address - _NEAR)
        for _, stop in deque(self.shadow.written_runs(begin, address - begin), maxlen=1):
            yield stop - 1
        for start, _ in islice(self.shadow.written_runs(address, end - address), 1):
            yield start


def element(pattern: Any, address: int) -> tuple[int, ...]:
    """The coordinates of the element that contains the byte."""
    index = ffi.new("uint64_t[8]")
    lib.dmlk_footprint_index(pattern, address, index)
    return tuple(index[0 : pattern.rank])


def _is_temporary(operand: str) -> bool:
    """Whether an operand of that name lies in the temporary resource; names in graphs say more than that."""
    return "TemporaryResource" in operand


def _has_no_gaps(pattern: Any) -> bool:
    """Of a footprint whose elements do not overlap."""
    return bool(prod(pattern.sizes[0 : pattern.rank]) * pattern.bits == 8 * (pattern.end - pattern.address))


def _is_not_zeroed(resource: Resource) -> bool:
    flags = resource.heap_flags if resource.heap is None else resource.heap.get_desc().flags
    return bool(flags & HeapFlags.CREATE_NOT_ZEROED)


CHECKS = (Initialisation,)
