"""Map races: the CPU changes bytes that a submitted command is still to read or write (group d).

CPU stores are not observable.  So the mapped bytes that submitted commands will access are copied, and
compared: when the command is executed, when the same bytes are submitted again, and when the host
learns that the command is done.  They are copied at ExecuteCommandLists or, if the queue waits for a
fence first, when the host ends that wait.  Stores by the GPU and the emulator are known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw.events import (
    READ,
    Accesses,
    Accessing,
    Executed,
    Executing,
    Foresight,
    Freed,
    Mapped,
    Place,
    Queued,
    Signalled,
    Stretch,
    Submitted,
    Waited,
)
from dmlemu_hw.kernels import ffi
from dmlemu_hw.packets import Opcode

from ...d3d12.lists.list_recorder import ListRecording
from ...d3d12.memory.resource import HostMapped, HostUnmapped
from ...d3d12.types.enums import HeapType
from ..analysis.blocked_queues import Hold, holds
from ..analysis.happens_before import FenceValue, HappensBefore
from ..analysis.host_writes import PatternStored
from ..analysis.mapped import MappedHeap, add_span
from ..analysis.visible import Part, parts_of, place_of, touched_in, touches_of, visible_spans
from ..framework.check import Check, on
from ..framework.names import Work
from ..hazards import messages
from .rows import MAP_RACE

if TYPE_CHECKING:
    from ...d3d12.device.device import Device
    from ...d3d12.memory.resource import Resource


@dataclass(eq=False)
class _Use:
    """A submitted command accesses CPU-visible bytes: those of ``pattern`` in ``buffer``.

    ``parts``: their places.  ``watched``: those that the CPU may have begun to change.
    ``awaited``: the queue's wait at submission; ``is_held``: its value cannot have been reached yet.
    ``is_replaced``: a later command accesses the same bytes.
    """

    queue: int
    ticket: int
    packet: int
    work: Work
    buffer: int
    pattern: Any
    keeper: Accesses
    parts: Sequence[Part] = ()
    watched: list[Part] = field(default_factory=list)
    awaited: FenceValue | None = None
    is_held: bool = False
    is_executed: bool = False
    is_replaced: bool = False

    @property
    def writes(self) -> bool:
        return bool(self.pattern.access & ~READ)

    @property
    def key(self) -> Hashable:
        """Equal for all uses that access the same bytes in the same way."""
        return self.queue, bytes(ffi.buffer(self.pattern))


class MapRaces(Check, Foresight):
    """Watches the accesses of commands from ExecuteCommandLists until the host knows that they are done."""

    declarations = (MAP_RACE,)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._clocks: HappensBefore = device.checks.clocks
        self._heaps: dict[int, MappedHeap] = {}  # parts of them are mapped or watched
        self._due: dict[tuple[int, int, int], list[_Use]] = {}  # not executed: by queue, ticket, packet
        self._open: dict[_Use, None] = {}  # not known to the host to be done; oldest first
        self._newest: dict[Hashable, _Use] = {}  # by their keys
        self._held: list[_Use] = []  # held
        self._waits = 0  # waits that queues have not passed
        self._running: list[_Use] = []  # writes of the running command
        self._is_subscribed_to_ends = False
        self._freed: deque[int] = deque()

    # --- the host ---

    @on(HostMapped)
    def mapped(self, event: HostMapped) -> None:
        """Until now the CPU could not change the bytes of that buffer."""
        self._settle()
        try:
            number = place_of(event.resource).heap
            heap = self._heaps.get(number)
            if heap is None:
                heap = self._heaps[number] = MappedHeap(event.resource)
            here = heap.map(event.resource)
        except ValueError:  # another thread has released it in the meantime
            here = None
        if here is None:
            self._forget_heaps()
            return
        begin, end = here
        for use in self._open:
            if any(part.heap == number and part.begin < end and begin < part.end for part in use.parts):
                self._watch(use)

    @on(HostUnmapped)
    def unmapped(self, event: HostUnmapped) -> None:
        """The CPU can no longer change what commands access from now on."""
        if event.maps == 0:
            for heap in self._heaps.values():
                heap.maps.pop(event.resource.address, None)
            self._forget_heaps()

    @on(Submitted)
    def submitted(self, event: Submitted) -> None:
        """The CPU may change bytes of memory that is mapped at submission."""
        self._settle()
        first = event.ticket - len(event.lists) + 1
        for ticket, serial in enumerate(event.lists, first):
            recording = self.device.context.recordings.get(serial)
            if isinstance(recording, ListRecording):
                self._add(recording, event.queue, ticket)

    @on(Queued)
    def queued(self, event: Queued) -> None:
        """The host submits something to a queue."""
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
        """The host may change bytes again whose commands it now knows to be done."""
        self._waits -= event.queue != 0
        if event.queue == 0 and self._open:
            host = self._clocks.host
            done = [use for use in self._open if self._clocks.is_done(host, use.queue, use.ticket)]
            for use in done:
                self._compare(use)
            self._drop(done)

    # --- memory ---

    @on(PatternStored)
    def stored(self, event: PatternStored) -> None:
        """A check, not the CPU, has changed the bytes."""
        heap = self._heaps.get(event.heap)
        if heap is not None:
            heap.store(event.begin, event.end)

    @on(Mapped)
    def remapped(self, event: Mapped) -> None:
        """Commands executed from now on access other bytes, unless that was planned at submission."""
        for use in chain.from_iterable(self._due.values()):
            buffer = self.names.buffer(use.buffer)
            if buffer is not None and buffer.allocation.serial == event.allocation:
                spans = visible_spans(buffer, use.queue, use.ticket)
                parts = parts_of(use.pattern, use.buffer, spans)
                if parts != use.parts:
                    use.parts, use.watched = parts, []
                    self._watch(use)

    @on(Freed)
    def freed(self, event: Freed) -> None:
        """May be called at any moment."""
        is_mapped = any(event.address in heap.maps for heap in list(self._heaps.values()))
        if event.address and (is_mapped or self._open):
            self._freed.append(event.address)

    # --- the GPU ---

    def foresees(self, stretch: Stretch, place: Place) -> int:
        """Commands that access nothing that the CPU sees."""
        if not self._due:
            return stretch.count
        queue, ticket, _, first = place
        due = (i for i in range(stretch.count) if (queue, ticket, first + i) in self._due)
        return next(due, stretch.count)

    @on(Accessing)
    def executing(self, event: Executing) -> None:
        """A command reads and writes."""
        if not self._due:
            return
        for use in self._due.pop((event.queue, event.ticket, event.command), ()):
            use.is_held, use.is_executed = False, True
            self._compare(use)
            if use.writes and use.parts:
                self._running.append(use)
            if use.is_replaced:
                self._open.pop(use, None)
        if (
            self._running and not self._is_subscribed_to_ends
        ):  # subscribed only while needed: unobserved events cost nothing
            self._is_subscribed_to_ends = True
            stream = self.device.events
            stream.subscribe(self._executed, Executed, kept=self._subscriptions, foresight=self)

    def _executed(self, _event: Executed) -> None:
        """The CPU sees what the command wrote from now on."""
        for use in self._running:
            for part in use.parts:
                heap = self._heaps.get(part.heap)
                if heap is not None:
                    heap.store(part.begin, part.end, touched_in(use.pattern, part))
        self._running.clear()

    # --- internals: which bytes ---

    def _add(self, recording: ListRecording, queue: int, ticket: int) -> None:
        """Adds the accesses of a list to CPU-visible memory."""
        # DirectML binds no readback buffers: only copies use them.
        visible = {each: spans for each in recording.resources if (spans := visible_spans(each))}
        if not visible:
            return
        work = Work(recording.commands, recording.owner, self.names.queue(queue))
        hold = holds(self.device.context.gpu).get(queue) if self._waits else None
        dispatches = any(each.heap_type != HeapType.READBACK for each in visible)
        memory = self.device.context.gpu.memory
        touches = touches_of(recording.packets, memory, list(visible), dispatches=dispatches)
        for (packet, _, pattern, keeper), buffer in touches:
            parts = parts_of(pattern, buffer.address, visible[buffer])
            if parts:
                use = _Use(queue, ticket, packet, work, buffer.address, pattern, keeper, parts)
                self._open_use(use, hold)

    def _open_use(self, use: _Use, hold: Hold | None) -> None:
        self._due.setdefault((use.queue, use.ticket, use.packet), []).append(use)
        self._open[use] = None
        if hold is not None:
            use.awaited, use.is_held = hold.awaited, True
            self._held.append(use)
            return
        self._watch(use)
        before = self._newest.get(use.key)
        if before is not None and len(before.watched) <= len(use.watched) and not before.is_held:
            before.is_replaced = True  # a report on it would repeat that on this one
            if before.is_executed:
                self._open.pop(before, None)
        self._newest[use.key] = use

    # --- internals: changes by the CPU ---

    def _watch(self, use: _Use) -> None:
        """From now on the CPU can change the bytes, where they are mapped."""
        if use.is_held:
            return
        for part in use.parts:
            heap = self._heaps.get(part.heap)
            if heap is not None and part not in use.watched and heap.is_mapped(part.begin, part.end):
                heap.watch(part.begin, part.end, self._look)
                use.watched.append(part)

    def _look(self) -> None:
        """Compares everything that is watched."""
        for use in list(self._open):
            self._compare(use)

    def _release(self) -> None:
        """The host may have ended a wait: the CPU must not change what the queues access from now on."""
        if not self._held:
            return
        held, self._held, still = self._held, [], holds(self.device.context.gpu)
        for use in held:
            hold = still.get(use.queue)
            if not use.is_held:
                continue
            if hold is not None and hold.ticket < use.ticket:
                use.awaited = hold.awaited
                self._held.append(use)
                continue
            use.is_held = False
            self._watch(use)

    def _settle(self) -> None:
        """Stops watching freed memory."""
        if not self._freed:
            return
        freed = set()
        while self._freed:
            freed.add(self._freed.popleft())
        for heap in self._heaps.values():
            for address in freed & heap.maps.keys():
                del heap.maps[address]
        self._drop([use for use in self._open if use.buffer in freed])

    def _drop(self, uses: list[_Use]) -> None:
        """Removes uses that are done."""
        for use in uses:
            use.is_held, use.watched = False, []
            del self._open[use]
            if self._newest.get(use.key) is use:
                del self._newest[use.key]
        for heap in self._heaps.values():
            heap.watched = []
        for use in self._open:
            for part in use.watched:
                add_span(self._heaps[part.heap].watched, part.begin, part.end)
        self._forget_heaps()

    def _forget_heaps(self) -> None:
        """Removes heaps with nothing mapped or watched."""
        self._heaps = {number: heap for number, heap in self._heaps.items() if heap.maps or heap.watched}

    def _compare(self, use: _Use) -> None:
        """Reports bytes that the CPU has changed, once."""
        buffer = self.names.buffer(use.buffer) if use.watched else None
        if buffer is None:
            return
        changed: list[int] = []  # addresses
        for part in use.watched:
            differs = self._heaps[part.heap].changed(part.begin, part.end)
            if differs is not None:
                touched = touched_in(use.pattern, part)
                differs = differs if touched is None else differs & touched
                changed += (part.address + np.flatnonzero(differs)).tolist()
        if changed:
            shown = self._mapped_there(use, changed[0])
            use.watched = []
            pattern = use.pattern
            since = (
                f"{self.names.fence(use.awaited.fence)} could reach {use.awaited.value}"
                if use.awaited
                else ""
            )
            finding = messages.Race(
                use.work.command(use.packet),
                pattern.access,
                buffer,
                pattern.address,
                pattern.end,
                changed[0],
                len(changed),
                shown,
                since,
            )
            self.report(MAP_RACE.id, finding.message, cause=finding.cause, **finding.fields(self._when(use)))

    def _mapped_there(self, use: _Use, address: int) -> tuple[Resource, int] | None:
        """The mapped buffer through which the CPU sees the byte, and its offset, if it is another buffer."""
        part = next(each for each in use.watched if 0 <= address - each.address < each.end - each.begin)
        byte = part.begin + address - part.address
        for start, ((begin, end), _) in self._heaps[part.heap].maps.items():
            if begin <= byte < end:
                buffer = None if start == use.buffer else self.names.buffer(start)
                return None if buffer is None else (buffer, byte - begin)
        return None

    def _when(self, use: _Use) -> str:
        """Hint: when the CPU may write the bytes."""
        before = ""
        if use.awaited is not None:
            before = f"Write before {self.names.fence(use.awaited.fence)} is set to {use.awaited.value}. "
        done = self._clocks.signal_after(use.queue, use.ticket)
        if done is None:
            queue = next((each for each in self.device.context.gpu.queues if each.serial == use.queue), None)
            signal = None if queue is None else queue.signal_after(use.ticket)
            if signal is None:
                signals = f"Signal a fence on {use.work.queue} after it"
                return f"{before}{signals}, wait for that value, and write then."
            fence, value = signal[0].describe(), signal[1]
        else:
            fence, value = self.names.fence(done.fence), done.value
        return (
            f"{before}Write again when {fence} has reached {value}: {use.work.queue} signals that after it."
        )


CHECKS = (MapRaces,)
