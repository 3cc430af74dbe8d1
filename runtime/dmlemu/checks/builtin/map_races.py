"""Group d: the CPU changes what the GPU is still to read.

Nobody sees the CPU's stores.  So what submitted commands will read of a mapped upload buffer is copied, and
compared twice: when the command is executed, and when the host comes to know that it is done.  It is copied
at ExecuteCommandLists; or, if the queue has to wait for a fence first, when the host lets that wait end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dmlemu_hw.events import READ, Executing, Queued, Signalled, Submitted, Waited
from dmlemu_hw.footprints import dispatch_accesses
from dmlemu_hw.kernels import ffi
from dmlemu_hw.packets import HEADER, Opcode

from ...d3d12.enums import HeapType
from ...d3d12.events import HostMapped
from ..check import Check, on
from ..clocks import Clocks, FenceValue
from ..declarations.hazards import MAP_DECLARATIONS
from ..holds import holds
from ..hostwrites import filling
from ..names import Work
from ..text import hazards as text
from .initialisation import Initialisation

if TYPE_CHECKING:
    from ...d3d12.device import Device
    from ...d3d12.recording import Recording
    from ...d3d12.resource import Resource

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_COPY = Struct("<8xQQQ")  # destination, source, size
_MOST_BYTES = 1 << 28  # that are copied at a time; what is more is not watched
_MOST_OPEN = 4096  # whose end the host does not know; of older ones nothing is known any more


@dataclass(eq=False)
class _Read:
    """A submitted command reads bytes of an upload buffer, those of ``pattern`` (None: all in between).

    ``before`` is what they held when the CPU may have begun to change them; None: it cannot.  Of those
    in ``fresh`` nobody knew that they were written then: see :class:`HostWrites`, which fills and wipes them.
    ``awaited``: what its queue waited for when it was submitted; ``is_held``: that cannot have been reached.
    """

    queue: int
    ticket: int
    packet: int
    work: Work
    buffer: int
    begin: int
    end: int
    pattern: Any
    keeper: object
    before: bytes | None = None
    fresh: tuple[tuple[int, int], ...] = ()
    awaited: FenceValue | None = None
    is_held: bool = False


class MapRaces(Check):
    """Watches reads from ExecuteCommandLists until the host knows of their end."""

    declarations = MAP_DECLARATIONS

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._clocks: Clocks = device.checks.clocks
        self._due: dict[tuple[int, int, int], list[_Read]] = {}  # not executed: by queue, ticket, packet
        self._open: deque[_Read] = deque()  # the host does not know that they are done
        self._held: list[_Read] = []  # cannot begin
        self._waits = 0  # that queues have not passed
        self._copied = 0

    @on(Submitted)
    def submitted(self, event: Submitted) -> None:
        """Bytes of buffers that are mapped now may change from now on."""
        first = event.ticket - len(event.lists) + 1
        for ticket, serial in enumerate(event.lists, first):
            recording = self.device._recordings.get(serial)
            if recording is None:
                continue
            uploads = [each for each in recording.resources if each._heap_type == HeapType.UPLOAD]
            if uploads:
                self._watch(recording, uploads, event.queue, ticket)

    @on(HostMapped)
    def mapped(self, event: HostMapped) -> None:
        """Until now nobody could change the bytes of that buffer."""
        for read in self._open:
            if read.buffer == event.resource._address and not read.is_held:
                self._copy(read)

    @on(Executing)
    def executing(self, event: Executing) -> None:
        """A command reads."""
        if self._due:
            for read in self._due.pop((event.queue, event.ticket, event.command), ()):
                read.is_held = False
                self._compare(read)

    @on(Queued)
    def queued(self, event: Queued) -> None:
        """The host hands something to a queue."""
        self._waits += event.opcode == Opcode.WAIT
        if event.opcode == Opcode.SIGNAL:
            self._release()

    @on(Signalled)
    def signalled(self, event: Signalled) -> None:
        """A fence gets a value."""
        if event.queue == 0:
            self._release()

    @on(Waited)
    def waited(self, event: Waited) -> None:
        """The host may write again what it knows to have been read."""
        self._waits -= event.queue != 0
        if event.queue == 0 and self._open:
            host, seen = self._clocks.host, self._open
            self._open = deque(each for each in seen if each.ticket > host.get(each.queue, 0))
            for read in seen:
                if read.ticket <= host.get(read.queue, 0):
                    self._compare(read)
                    self._drop_copy(read)

    # --- inside ---

    def _watch(self, recording: Recording, uploads: list[Resource], queue: int, ticket: int) -> None:
        """From now on, what the list will read of the buffers."""
        work = Work(recording.commands, recording.owner, self.names.queue(queue))
        hold = holds(self.device._gpu).get(queue) if self._waits else None
        for packet, begin, end, pattern, keeper in self._reads(recording.packets):
            for buffer in uploads:
                start = buffer._address
                if start <= begin < start + buffer._width:
                    read = _Read(queue, ticket, packet, work, start, begin, end, pattern, keeper)
                    self._due.setdefault((queue, ticket, packet), []).append(read)
                    self._open.append(read)
                    if hold is not None:
                        read.awaited, read.is_held = hold.awaited, True
                        self._held.append(read)
                    elif buffer._map_count:
                        self._copy(read)
        while len(self._open) > _MOST_OPEN:
            self._drop_copy(self._open.popleft())

    def _release(self) -> None:
        """The host did what may let queues go on: from now on the CPU must not change what they read."""
        if not self._held:
            return
        held, self._held, still = self._held, [], holds(self.device._gpu)
        for read in held:
            hold = still.get(read.queue)
            if not read.is_held:
                continue
            if hold is not None and hold.ticket < read.ticket:
                read.awaited = hold.awaited
                self._held.append(read)
                continue
            read.is_held = False
            buffer = self.names.buffer(read.buffer)
            if buffer is not None and buffer._map_count:
                self._copy(read)

    def _reads(self, data: bytes) -> Iterator[tuple[int, int, int, Any, object]]:
        """Packet, first byte, byte after the last, pattern and what keeps it, of each read of a list."""
        base, memory = ffi.from_buffer("uint8_t[]", data), self.device._gpu.memory
        at = packet = 0
        while at < len(data):
            opcode, size = HEADER.unpack_from(data, at)
            if opcode == Opcode.COPY_BUFFER:
                _, source, count = _COPY.unpack_from(data, at)
                yield packet, source, source + count, None, None
            elif opcode == Opcode.DISPATCH:
                accesses = dispatch_accesses(data[at : at + size], base + at, memory)
                for i in range(len(accesses)):
                    pattern = accesses.pointer + i
                    if pattern.access & READ:
                        yield packet, pattern.address, pattern.end, pattern, accesses
            at += size
            packet += 1

    def _copy(self, read: _Read) -> None:
        """From now on the CPU can change the bytes."""
        size = read.end - read.begin
        if read.before is not None or self._copied + size > _MOST_BYTES:
            return
        self._copied += size
        read.before = bytes(self.device._gpu.memory.view(read.begin, size))
        shadow = next((each.shadow for each in self.device.checks if isinstance(each, Initialisation)), None)
        if shadow is not None:
            read.fresh = tuple(_between(shadow.written_runs(read.begin, size), read.begin, read.end))

    def _drop_copy(self, read: _Read) -> None:
        read.is_held = False
        if read.before is not None:
            self._copied -= len(read.before)
            read.before = None

    def _compare(self, read: _Read) -> None:
        """Tells of bytes that the CPU has changed, once."""
        buffer = self.names.buffer(read.buffer)
        if read.before is None or buffer is None:
            return
        now = bytes(_seen_by_cpu(buffer)[read.begin - read.buffer : read.end - read.buffer])
        if now == read.before:
            return
        changed = self._changed(read, np.frombuffer(now, np.uint8))
        if len(changed):
            self._drop_copy(read)
            command = read.work.command(read.packet)
            first = read.begin + int(changed[0])
            since = (
                f"{self.names.fence(read.awaited.fence)} could reach {read.awaited.value}"
                if read.awaited
                else ""
            )
            finding = text.Race(command, buffer, read.begin, read.end, first, len(changed), since)
            self.report("MAP_RACE", finding.message, cause=finding.cause, **finding.fields(self._when(read)))

    def _changed(self, read: _Read, new: _Bytes) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Which bytes are read and were changed, counted from the first one that is read."""
        assert read.before is not None
        differs = new != np.frombuffer(read.before, np.uint8)
        for begin, end in read.fresh:
            part = slice(begin - read.begin, end - read.begin)
            filled = filling(begin - read.buffer, end - read.buffer)
            differs[part] &= (new[part] != 0) & (new[part] != filled)
        return np.flatnonzero(differs if read.pattern is None else differs & _touched(read.pattern))

    def _when(self, read: _Read) -> str:
        """Advice: when the CPU may write the bytes."""
        before = ""
        if read.awaited is not None:
            before = f"Write before {self.names.fence(read.awaited.fence)} is set to {read.awaited.value}. "
        done = self._clocks.signal_after(read.queue, read.ticket)
        if done is None:
            queue = next((each for each in self.device._gpu.queues if each.serial == read.queue), None)
            signal = None if queue is None else queue.signal_after(read.ticket)
            if signal is None:
                return (
                    f"{before}Signal a fence on {read.work.queue} behind it, wait for that, and write then."
                )
            fence, value = signal[0].describe(), signal[1]
        else:
            fence, value = self.names.fence(done.fence), done.value
        return (
            f"{before}Write again when {fence} has reached {value}: {read.work.queue} signals that behind it."
        )


def _seen_by_cpu(buffer: Resource) -> memoryview:
    """Its bytes; under chaos the CPU may have written some that the GPU does not see yet."""
    mapped = None if buffer._mapped is None else buffer._mapped._memory
    return buffer._allocation.buffer() if mapped is None else mapped


def _touched(pattern: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which bytes from the first to the last one of a footprint are of an element."""
    rank, width = pattern.rank, pattern.bits // 4
    halves = np.zeros((pattern.end - pattern.address, 2), np.bool_)
    strides = [stride * width for stride in pattern.strides[0:rank]]
    as_strided(halves, (*pattern.sizes[0:rank], width), (*strides, 1))[...] = True
    return halves[:, 0] | halves[:, 1]


def _between(runs: Iterable[tuple[int, int]], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """What the runs leave out of [begin, end)."""
    for first, last in runs:
        if begin < first:
            yield begin, first
        begin = last
    if begin < end:
        yield begin, end


CHECKS = (MapRaces,)
