"""Group f, second half: accesses to the same bytes that nothing orders, and barriers that order nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlemu_hw.events import (
    READ,
    Barrier,
    Executing,
    Freed,
    Mapped,
    Queued,
    Submitted,
    Waited,
)
from dmlemu_hw.packets import Opcode, WriteImmediatePacket, decode_one

from ...d3d12.enums import ResourceBarrierFlags, WriteBufferImmediateMode
from ..check import Check, on
from ..clocks import Clocks, FenceValue
from ..declarations.hazards import HAZARD_DECLARATIONS
from ..names import NamedCommand, Work
from ..text import hazards as text
from ..timeline import SHIFT, TRANSITION, UAV_BARRIER, Mark, Timeline
from ..windows import Access, Kind, Pattern, Places, Touch, Window

if TYPE_CHECKING:
    from ...d3d12.device import Device

_FEW_QUEUES = 16
_BEGIN_ONLY = int(ResourceBarrierFlags.BEGIN_ONLY)
_MARKER_OUT = int(WriteBufferImmediateMode.MARKER_OUT)
_LOOKED_AT = 16  # conflicts of one access with one window, of which the newest is told
_ADVICE_KEPT = 4096

# How reads and writes of each command are reached; None: by a way that needs no barriers (query heaps).
_KINDS: dict[int, tuple[Kind | None, Kind | None]] = {
    Opcode.DISPATCH: (Kind.UAV, Kind.UAV),
    Opcode.CLEAR_UAV: (Kind.UAV, Kind.UAV),
    Opcode.DISCARD: (Kind.UAV, Kind.UAV),
    Opcode.COPY_BUFFER: (Kind.COPY_SOURCE, Kind.COPY_DEST),
    Opcode.RESOLVE_QUERY: (None, Kind.COPY_DEST),
    Opcode.WRITE_IMMEDIATE: (None, Kind.COPY_DEST),
}


class Advice:
    """Barriers of one line and one resource: have they ever ordered anything?"""

    def __init__(self, command: NamedCommand, barrier: str) -> None:
        self.command = command
        self.barrier = barrier
        self.is_useful = False


class Hazards(Check):
    """Compares every access with those before it that nothing has ordered yet.

    What conflicts is told by footprints and clocks, however the emulated GPU happened to take its turns.
    """

    declarations = HAZARD_DECLARATIONS

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._clocks: Clocks = device.checks.clocks
        self._places = Places(device._gpu.memory)
        self._timelines: dict[int, Timeline] = {}
        self._most_timelines = _FEW_QUEUES
        self._running = Timeline(0)
        self._advice: dict[object, Advice] = {}

    # --- the host, fences, memory ---

    @on(Submitted, Queued)
    def handed(self, _event: Submitted | Queued) -> None:
        """The host hands something to a queue: what was freed until then is not its."""
        self._places.settle()

    @on(Waited)
    def waited(self, event: Waited) -> None:
        """What nobody can conflict with any more is forgotten."""
        if event.queue == 0 and self._places.has_retired:
            self._places.forget_retired(self._done)
        if event.queue == 0 and len(self._timelines) > self._most_timelines:
            self._forget_queues()

    @on(Mapped)
    def mapped(self, event: Mapped) -> None:
        """Other memory stands behind a reserved buffer."""
        self._places.mapped(event)

    @on(Freed)
    def freed(self, event: Freed) -> None:
        """May come at any moment."""
        self._places.freed(event)

    # --- commands ---

    @on(Executing)
    def executing(self, event: Executing) -> None:
        """A command enters the windows when the next one begins: its parts do not conflict."""
        timeline = self._running
        if timeline.queue != event.queue:
            timeline = self._switch(event.queue)
        if not event.joined or event.ticket != timeline.ticket:
            if timeline.command:
                self._end_command(timeline)
            if event.ticket != timeline.ticket:
                self._begin_list(timeline, event)
        kinds = _KINDS.get(event.opcode)
        if kinds is not None:
            self._touch(timeline, event, kinds)

    @on(Barrier)
    def barrier(self, event: Barrier) -> None:
        """What came before it and what comes now are ordered, as far as the barrier goes."""
        if event.kind == TRANSITION and event.flags & _BEGIN_ONLY:
            return
        timeline = self._running
        addresses = event.address, event.address_after
        phase = timeline.pass_barrier(event.kind, self._places.find(event.address), addresses)
        # The documents ask for the other kinds whenever a state or an active resource changes.
        advice = self._advise(timeline.work, event) if event.kind == UAV_BARRIER else None
        timeline.marks.append(Mark(phase, event.kind, *addresses, advice))
        if advice is not None and not advice.is_useful:
            timeline.unproven[phase] = advice

    def end(self) -> None:
        """Tells of the barriers that never ordered anything."""
        busy = {queue.serial for queue in self.device._gpu.queues if queue.pending}
        open = [
            advice
            for queue in busy & self._timelines.keys()
            for advice in self._timelines[queue].unproven.values()
        ]
        for key, advice in self._advice.items():
            if not advice.is_useful and advice not in open:
                self.report("BARRIER_USELESS", cause=key, **text.useless(advice.command, advice.barrier))

    # --- inside ---

    def _forget_queues(self) -> None:
        """Lets go of queues that are gone, once there are many: each makes every access dearer."""
        kept = {queue.serial for queue in self.device._gpu.queues} | {self._running.queue}
        for queue in self._timelines.keys() - kept:
            if self._places.forget_queue(queue, self._done(queue)):
                del self._timelines[queue]
        self._most_timelines = max(_FEW_QUEUES, 2 * len(self._timelines))

    def _switch(self, queue: int) -> Timeline:
        """Another queue has its turn."""
        if self._running.command:
            self._end_command(self._running)
        timeline = self._timelines.get(queue)
        if timeline is None:
            timeline = self._timelines[queue] = Timeline(queue)
        self._running = timeline
        return timeline

    def _begin_list(self, timeline: Timeline, event: Executing) -> None:
        queue, ticket = event.queue, event.ticket
        if ticket > timeline.call_end:
            end = self._clocks.start(queue, ticket)
            timeline.begin_call(ticket, end, self._clocks.of(queue))
        timeline.begin_list(ticket, self.names.work(event))

    def _end_command(self, timeline: Timeline) -> None:
        queue, phase = timeline.queue, timeline.phase
        for pattern, kind, touch in timeline.command:
            window = pattern.place.own.get(queue << 2 | kind)
            if window is None:
                window = self._places.window(pattern.place, queue, kind)
            if not window.add(pattern, phase, touch):
                window.make_room(min(timeline.call, self._done(queue)))
                window.add(pattern, phase, touch)
        timeline.command.clear()
        timeline.told.clear()
        timeline.temporary = (0, 0)

    def _done(self, queue: int) -> int:
        """Accesses of the queue with a lower phase conflict with nothing on other queues any more."""
        return (self._clocks.done_for_all(queue) + 1) << SHIFT

    def _touch(self, timeline: Timeline, event: Executing, kinds: tuple[Kind | None, Kind | None]) -> None:
        queue, opcode, call = event.queue, event.opcode, timeline.call
        if opcode == Opcode.DISCARD and event.joined:
            kinds = None, Kind.TAIL
        behind_all = _marked_out(event.packet) if opcode == Opcode.WRITE_IMMEDIATE else ()
        low, high = timeline.temporary
        for pattern, operand in self._places.patterns(event.accesses):
            kind = kinds[pattern.changes]
            if kind is None or (pattern.begin >= low and pattern.end <= high):
                continue
            touch = timeline.work, event.command, operand
            changes = pattern.changes
            for window in pattern.place.windows:
                newest = window.last if changes else window.last_change
                if window.queue != queue:
                    known = timeline.clock.get(window.queue, 0) + 1 << SHIFT
                    if newest >= known:
                        self._compare(window, known, pattern, kind, touch)
                elif newest >= call and operand not in behind_all:
                    self._look_back(timeline, window, newest, pattern, kind, touch)
            timeline.command.append((pattern, kind, touch))
        if opcode == Opcode.DISCARD and not event.joined and len(timeline.command) == 1:
            whole = timeline.command[0][0]  # what is in the temporary resource needs no further look
            timeline.temporary = (whole.begin, whole.end)

    def _look_back(
        self, timeline: Timeline, window: Window, newest: int, pattern: Pattern, kind: Kind, touch: Touch
    ) -> None:
        """Compares with accesses of the same call."""
        place = pattern.place
        if kind == window.kind == Kind.COPY_DEST and window.place is place:
            return  # copies to the same bytes keep their order
        ordered = timeline.ordered(window, place, kind)
        if timeline.unproven:
            self._credit(timeline, window, ordered, pattern, kind)
        if newest >= ordered:
            self._compare(window, ordered, pattern, kind, touch)

    def _compare(self, window: Window, phase: int, pattern: Pattern, kind: Kind, touch: Touch) -> None:
        """Tells of the newest access in the window, from that phase on, that conflicts."""
        if Kind.TAIL in (kind, window.kind):
            return
        found: list[int] = []
        count = len(window.phases)
        at = window.find(pattern, window.from_phase(phase), count)
        while at >= 0 and len(found) < _LOOKED_AT:
            if not (window.queue == self._running.queue and _same_command(window.touches[at], touch)):
                found.append(at)
            at = window.find(pattern, at + 1, count)
        if found:
            self._found(window, found[-1], pattern, kind, touch)

    def _credit(self, timeline: Timeline, window: Window, ordered: int, pattern: Pattern, kind: Kind) -> None:
        """Looks for an access that only a barrier without merits so far orders before this one."""
        newest = next(reversed(timeline.unproven))
        start, end = window.from_phase(timeline.call), window.from_phase(min(ordered, newest))
        while start < end:
            at = window.find(pattern, start, end)
            mark = None if at < 0 else timeline.first_mark(window, pattern.place, kind, window.phases[at])
            if mark is None:
                return
            if mark.advice is not None and not mark.advice.is_useful:
                mark.advice.is_useful = True
                timeline.unproven = {
                    phase: advice for phase, advice in timeline.unproven.items() if not advice.is_useful
                }
            start = max(at + 1, window.from_phase(mark.phase))

    # --- telling ---

    def _advise(self, work: Work, event: Barrier) -> Advice | None:
        """What is known of the merits of the barrier's line; None: it is not looked at."""
        site = work.commands[event.command].site if event.command < len(work.commands) else None
        key = site, event.address
        advice = self._advice.get(key)
        if advice is None and site is not None and len(self._advice) < _ADVICE_KEPT:
            barrier = text.barrier(self.names.buffer(event.address) if event.address else None)
            advice = self._advice[key] = Advice(work.command(event.command), barrier)
        return advice

    def _found(self, window: Window, at: int, pattern: Pattern, kind: Kind, touch: Touch) -> None:
        first, then = window.access(at), Access(pattern, kind, touch)
        key = first.number, window.place, window.queue
        byte = pattern.first_byte(first.pattern)
        if byte is None or key in self._running.told:
            return
        self._running.told.append(key)
        shared = range(byte, pattern.last_byte(first.pattern, byte) + 1)
        is_one_queue = window.queue == self._running.queue
        is_one_list = is_one_queue and first.commands is then.commands
        if is_one_queue and first.order > then.order:  # chaos has them run the other way round
            first, then = then, first
        finding = text.Finding(
            self._name(window, first.pattern, then.pattern),
            self._side(first, shared),
            self._side(then, shared),
            text.shares_all(first.pattern, then.pattern, shared),
            is_one_list,
        )
        context: tuple[str, ...] = ()
        if window.queue != self._running.queue:
            context = self._fences(window.queue, window.phases[at] >> SHIFT)
        self.report(finding.id, finding.message, cause=finding.cause, **finding.fields(*context))

    def _side(self, access: Access, shared: range) -> text.Side:
        buffer = self.names.buffer(access.pattern.place.address)
        return text.Side.of(access, buffer, shared)

    def _name(self, window: Window, first: Pattern, then: Pattern) -> str:
        if window.queue != self._running.queue:
            return "HAZARD_QUEUE"
        if first.place is not then.place:
            return "HAZARD_ALIAS"
        if not first.changes:
            return "HAZARD_WAR"
        return "HAZARD_RAW" if then.access & READ else "HAZARD_WAW"

    def _fences(self, queue: int, ticket: int) -> tuple[str, ...]:
        """What would order the two queues, and what does not."""
        names, running = self.names, self._running.queue
        signal = self._clocks.signal_after(queue, ticket) or self._queued_signal(queue, ticket)
        awaited = self._clocks.last_wait(running)
        behind = f"sets {names.fence(signal.fence)} to {signal.value}" if signal else "has signalled no fence"
        before = (
            f"waited for {names.fence(awaited.fence)} to reach {awaited.value}"
            if awaited
            else "has not waited for any"
        )
        return f"{names.queue(queue)} {behind} behind that list", f"{names.queue(running)} {before} before"

    def _queued_signal(self, serial: int, ticket: int) -> FenceValue | None:
        queue = next((each for each in self.device._gpu.queues if each.serial == serial), None)
        signal = None if queue is None else queue.signal_after(ticket)
        return None if signal is None else FenceValue(signal[0].address, signal[1])


def _same_command(a: Touch, b: Touch) -> bool:
    """Are both packets of one command?"""
    return a[0].commands is b[0].commands and a[0].command(a[1]).number == b[0].command(b[1]).number


def _marked_out(packet: bytes) -> tuple[int, ...]:
    """Operands of a WriteBufferImmediate that are written once all commands before are done."""
    decoded = decode_one(packet)
    assert isinstance(decoded, WriteImmediatePacket)
    return tuple(i for i, (_, _, mode) in enumerate(decoded.writes) if mode == _MARKER_OUT)


CHECKS = (Hazards,)
