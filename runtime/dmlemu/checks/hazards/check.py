"""Hazards: unordered conflicting accesses, and barriers that order nothing (group f)."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dmlemu_hw.events import (
    READ,
    Accessing,
    Barrier,
    Executing,
    Foresight,
    Freed,
    Mapped,
    Place,
    Queued,
    Stretch,
    Submitted,
    Waited,
)
from dmlemu_hw.packets import HEADER, Opcode, commands, decode_one, is_tail

from ...d3d12.lists.rows import COPY_SAME
from ...d3d12.types.enums import ResourceBarrierFlags, ResourceStates, WriteBufferImmediateMode
from ...diagnostics.declaration import Declaration
from ...dml.events import DispatchRecorded
from ...dml.lowering.dispatchable import OperatorInitializer
from ..analysis.access_history import Access, Kind, Kinds, Pattern, Places, Reached, Touched, Window, touched
from ..analysis.barrier_epochs import SHIFT, Advice, BarrierEpochs, Mark
from ..analysis.happens_before import FenceValue, HappensBefore
from ..analysis.order import TRANSITION, UAV_BARRIER, Done, holds
from ..framework.check import Check, on
from ..framework.names import Work
from . import messages
from .rows import (
    BARRIER_ELSEWHERE,
    BARRIER_USELESS,
    HAZARD_ALIAS,
    HAZARD_QUEUE,
    HAZARD_RAW,
    HAZARD_WAR,
    HAZARD_WAW,
)

if TYPE_CHECKING:
    from ...d3d12.device.device import Device
    from ...errors import CallSite

_DISPATCH, _DISCARD = int(Opcode.DISPATCH), int(Opcode.DISCARD)
_COPY_DEST, _TAIL = int(Kind.COPY_DEST), int(Kind.TAIL)
_BEGIN_ONLY = int(ResourceBarrierFlags.BEGIN_ONLY)
_MARKER_OUT = int(WriteBufferImmediateMode.MARKER_OUT)

_OF_STATE = {
    int(ResourceStates.UNORDERED_ACCESS): Kind.UAV,
    int(ResourceStates.COPY_SOURCE): Kind.COPY_SOURCE,
    int(ResourceStates.COPY_DEST): Kind.COPY_DEST,
}


def _kind(states: int) -> Kind | None:
    """How a command accesses memory; None: what is in no state needs no barriers, as query heaps.

    A shader reads in several states.  What else is written there is written by views: the transition between
    is what its state asks for.
    """
    return next((kind for state, kind in _OF_STATE.items() if states & state), None)


# How reads and writes of each command access memory.
_KINDS: dict[int, Kinds] = {
    int(each): (_kind(each.effects.reads), _kind(each.effects.writes))
    for each in Opcode
    if each.effects.on_buffers
}
_BY_UAV: Kinds = (Kind.UAV, Kind.UAV)
_TAIL_KINDS: Kinds = (None, Kind.TAIL)
_BY_VIEW = commands(lambda effects: effects.by_view)
_IMMEDIATE = commands(lambda effects: effects.immediate)
_NOTHING = (0, 0)  # bytes
_MOST_POSTPONED = 1024  # maximum number of postponed commands
_MOST_WALKED = 10_000  # commands of a call that are looked at, again and again, for orders by accident
_MOST_USEFUL = 4096  # maximum number of barriers known to be useful without looking up their lines
_LISTS_KEPT = 256  # lists with initializers, before released ones are looked for
_INITIALIZER = f"Dispatch of {OperatorInitializer.kind}"
_phase = itemgetter(0)  # of a postponed command


class _Shape:
    """A stretch as hazards see it: what each packet reached, None for a barrier, in one state of the places.

    ``parts``: whether each belongs to a command of several; the others are ``singles`` and ``barriers``.
    ``end``: where a command of several ends, or two follow each other without a barrier.  ``is_level``:
    whether a barrier comes before the first of the singles.
    """

    def __init__(self, stretch: Stretch, places: Places) -> None:
        self.state = places.state
        self.reached = [places.reached(each) if each else None for each in stretch.accesses]
        self.parts = [a or b for a, b in zip(stretch.joined, stretch.continues, strict=True)]
        self.singles: list[int] = []
        self.barriers: list[int] = []
        self.is_level = False
        is_behind_barrier = True  # until a command says otherwise
        self.end = stretch.count
        for i in range(stretch.count):
            if self.reached[i] is None:
                is_behind_barrier = True
                self.barriers.append(i)
                self.is_level |= not self.singles
            elif (self.parts[i] and not stretch.continues[i]) or not (self.parts[i] or is_behind_barrier):
                self.end = i
                return
            elif not self.parts[i]:
                is_behind_barrier = False
                self.singles.append(i)


class Hazards(Check, Foresight):
    """Compares every access with the earlier accesses that it is not ordered behind.

    Conflicts follow from footprints and clocks, independently of the emulated GPU's scheduling.
    """

    declarations = (
        HAZARD_RAW,
        HAZARD_WAR,
        HAZARD_WAW,
        HAZARD_QUEUE,
        HAZARD_ALIAS,
        BARRIER_ELSEWHERE,
        BARRIER_USELESS,
        COPY_SAME,
    )

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._clocks: HappensBefore = device.checks.clocks
        self._clocks.watchers.append(self._forget_queues)
        self._places = Places(device.context.gpu.memory)
        self._timelines: dict[int, BarrierEpochs] = {}
        self._running = BarrierEpochs(0)
        self._handed: dict[int, deque[tuple[int, int]]] = {}  # calls not begun: last ticket, number
        self._calls = 0
        self._advice: dict[tuple[CallSite | None, int], Advice] = {}
        self._useful: set[tuple[int, int]] = set()  # list and command of useful UAV barriers on any resource
        self._initializers: dict[int, list[int]] = {}  # by list: where they begin
        self._shapes: WeakKeyDictionary[Stretch, _Shape] = WeakKeyDictionary()

    # --- the host, fences, memory ---

    @on(Submitted, Queued)
    def handed(self, event: Submitted | Queued) -> None:
        """The host submits something to a queue: memory freed before is not used by it."""
        if isinstance(event, Submitted):
            self._calls += 1
            self._handed.setdefault(event.queue, deque()).append((event.ticket, self._calls))
        if not self._places.has_freed:
            return
        self._enter_postponed(self._running)
        freed = self._places.settle()
        if freed:  # barriers on these are useful already and are not tracked
            for key in [key for key, each in self._advice.items() if key[1] in freed and each.is_useful]:
                del self._advice[key]

    @on(Waited)
    def waited(self, event: Waited) -> None:
        """Removes accesses that nothing can conflict with any more."""
        if event.queue == 0 and self._places.has_retired:
            self._enter_postponed(self._running)
            self._places.forget_retired(self._done)

    @on(Mapped)
    def mapped(self, event: Mapped) -> None:
        """A reserved buffer was remapped."""
        self._places.mapped(event)

    @on(Freed)
    def freed(self, event: Freed) -> None:
        """May be called at any moment."""
        self._places.freed(event)

    # --- commands ---

    @on(DispatchRecorded)
    def recorded(self, event: DispatchRecorded) -> None:
        """A barrier behind an initializer is of use: the program cannot know that it writes nothing."""
        if isinstance(event.dispatchable, OperatorInitializer):
            if len(self._initializers) >= _LISTS_KEPT:  # most of these lists are released by now
                known = self.device.context.recordings
                self._initializers = {each: at for each, at in self._initializers.items() if each in known}
            self._initializers.setdefault(event.list_serial, []).append(event.first)

    def foresees(self, stretch: Stretch, place: Place) -> int:
        """Dispatches that pass by, with useful barriers between, and parts of commands except the last."""
        timeline, is_joined = self._running, stretch.joined[0]
        is_there = timeline.queue == place.queue and timeline.ticket == place.ticket
        if not is_there or (timeline.parts and not is_joined):
            timeline = self._reach(place, is_joined)
        shape = self._shapes.get(stretch)
        if shape is None or shape.state is not self._places.state:
            shape = self._shapes[stretch] = _Shape(stretch, self._places)
        if not (shape.singles or shape.barriers):
            return shape.end
        is_apart = self._places.queues == timeline.only_queue or all(
            self._is_apart(timeline, each) for each in shape.reached if each is not None
        )
        if not timeline.is_level or not is_apart:
            return min(shape.end, *shape.singles[:1], *shape.barriers[:1])
        if shape.singles and not shape.is_level and timeline.level != len(timeline.commands):
            return min(shape.end, shape.singles[0])
        useless = (i for i in shape.barriers if not self._is_useful(place, place.command + i))
        return min(shape.end, next(useless, stretch.count))

    def _is_useful(self, place: Place, command: int) -> bool:
        """Whether a barrier on any resource is known to be useful."""
        key = place.list_serial, command
        if key not in self._useful:
            commands = self._running.work.commands
            site = commands[command].site if command < len(commands) else None
            advice = self._advice.get((site, 0))
            if site is not None and (advice is None or not advice.is_useful):
                return False
            self._is_of_use(key)
        return True

    def _is_of_use(self, barrier: tuple[int, int]) -> None:
        if len(self._useful) >= _MOST_USEFUL:
            self._useful.clear()
        self._useful.add(barrier)

    def passed(self, stretch: Stretch, place: Place, first: int, end: int) -> None:
        """Enters them as :meth:`executing` and :meth:`barrier` do."""
        timeline, shape = self._running, self._shapes[stretch]
        reached, known = shape.reached, len(timeline.parts)
        for i in range(first, end):
            here = reached[i]
            if here is None:
                timeline.pass_level_barrier()
                continue
            part = here, _BY_UAV, place.command + i, timeline.temporary
            if shape.parts[i]:
                if not stretch.joined[i]:
                    timeline.by_view, timeline.addresses = True, here.addresses
                timeline.parts.append(part)
            else:
                timeline.postpone(here, [part])
                timeline.commands.append(here.by_views)
        begun = (part[0].addresses for part in timeline.parts[known:])
        timeline.addresses = tuple(dict.fromkeys(chain(timeline.addresses, *begun)))
        if len(timeline.postponed) > _MOST_POSTPONED:
            self._enter_postponed(timeline)

    @on(Accessing)
    def executing(self, event: Executing) -> None:
        """When all parts of a command are known, compares it and enters it into the windows."""
        timeline = self._running
        is_there = timeline.queue == event.queue and timeline.ticket == event.ticket
        if not is_there or (timeline.parts and not event.joined):
            timeline = self._reach(event, event.joined)
        if timeline.is_level and not timeline.parts and self._passes_by(timeline, event):
            return
        kinds = _KINDS.get(event.opcode)
        if kinds is not None:
            self._collect(timeline, event, kinds)
            if not event.continues:
                self._end_command(timeline)

    @on(Barrier)
    def barrier(self, event: Barrier) -> None:
        """Orders earlier and later accesses according to the barrier."""
        if event.kind == TRANSITION and event.flags & _BEGIN_ONLY:
            return
        timeline = self._running
        if timeline.queue != event.queue or timeline.ticket != event.ticket or timeline.parts:
            timeline = self._reach(event, joined=False)
        if timeline.is_level and event.kind == UAV_BARRIER and event.address == 0:
            if (event.list_serial, event.command) in self._useful:
                timeline.pass_level_barrier()
                return
            advice = self._advise(timeline.work, event)
            if advice is None or advice.is_useful:
                timeline.pass_level_barrier()
                self._is_of_use((event.list_serial, event.command))
                return
        # The other kinds are required whenever a state or the active resource changes.
        advice = self._advise(timeline.work, event) if event.kind == UAV_BARRIER else None
        timeline.pass_barrier(event.kind, event.address, event.address_after, advice)

    def end(self) -> None:
        """Reports the barriers that never ordered anything."""
        busy = {queue.serial for queue in self.device.context.gpu.queues if queue.pending}
        open = [
            mark.advice for queue in busy & self._timelines.keys() for mark in self._timelines[queue].unproven
        ]
        for key, advice in self._advice.items():
            if not advice.is_useful and not advice.is_told and advice not in open:
                advice.is_told = True
                self.report(BARRIER_USELESS.id, cause=key, **messages.useless(advice.command, advice.barrier))

    # --- internals ---

    def _reach(self, event: Executing | Barrier | Place, joined: bool) -> BarrierEpochs:
        """Another queue runs, a list begins, or the last part of a command was not executed."""
        timeline = self._timelines.get(event.queue)
        if timeline is None:
            timeline = self._timelines[event.queue] = BarrierEpochs(event.queue)
        if self._running is not timeline:
            self._enter_postponed(self._running)
            self._running = timeline
        if timeline.parts and not joined:
            self._end_command(timeline)
        if timeline.ticket != event.ticket:
            self._begin_list(timeline, event)
        return timeline

    def _forget_queues(self, released: Container[int]) -> None:
        """Removes queues whose work nothing can conflict with."""
        self._timelines = {queue: each for queue, each in self._timelines.items() if queue not in released}
        if self._running.queue in released:
            self._running = BarrierEpochs(0)
        self._handed = {queue: each for queue, each in self._handed.items() if queue not in released}
        self._places.forget_queues(released)

    def _begin_list(self, timeline: BarrierEpochs, event: Executing | Barrier | Place) -> None:
        queue, ticket = event.queue, event.ticket
        if ticket > timeline.call_end:
            end = self._clocks.start(queue, ticket)
            timeline.begin_call(ticket, end, self._clocks.of(queue), self._number(queue, ticket))
        timeline.begin_list(ticket, self.names.work(event))

    def _number(self, queue: int, ticket: int) -> int:
        """Number of the host call that submitted that ticket."""
        calls = self._handed.get(queue)
        while calls:
            last, number = calls.popleft()
            if last >= ticket:
                return number
        return 0

    def _collect(self, timeline: BarrierEpochs, event: Executing, kinds: Kinds) -> None:
        """Collects the accesses of a part of a command."""
        opcode = event.opcode
        is_discard = opcode == _DISCARD
        if is_discard and is_tail(event.packet):
            kinds = _TAIL_KINDS
        elif opcode in _IMMEDIATE:
            timeline.behind_all = _marked_out(event.packet)
        reached = self._places.reached(event.accesses)
        if not event.joined:
            timeline.by_view, timeline.addresses = opcode in _BY_VIEW, reached.addresses
        elif reached.addresses != timeline.addresses:
            timeline.addresses = tuple(dict.fromkeys(timeline.addresses + reached.addresses))
        timeline.parts.append((reached, kinds, event.command, timeline.temporary))
        if is_discard and not event.joined and len(reached.patterns) == 1:
            whole = reached.patterns[0][0]  # accesses to the temporary resource are compared as a whole
            timeline.temporary = (whole.begin, whole.end)

    def _end_command(self, timeline: BarrierEpochs) -> None:
        timeline.begin_command()
        reached = [part[0] for part in timeline.parts]
        is_quiet = timeline.by_view and timeline.is_behind_all and self._is_named(timeline)
        if is_quiet and all(self._is_apart(timeline, each) for each in reached):
            timeline.postpone(tuple((part[0], part[1]) for part in timeline.parts), timeline.parts)
            timeline.end_command()
            if len(timeline.postponed) > _MOST_POSTPONED:
                self._enter_postponed(timeline)
            return
        self._enter_postponed(timeline)
        timeline.command = touched(timeline.work, timeline.parts)
        if not timeline.by_view:
            self._follow_copies(timeline)
        if timeline.unproven and timeline.by_view:
            self._credit_named(timeline)
        try:
            self._compare(timeline)
            if not timeline.by_view and len(timeline.command) > 1:
                self._compare_sides(timeline)
        finally:
            phase = timeline.call + len(timeline.commands)
            self._enter(timeline.command, timeline.queue, phase, timeline.call, timeline.proven_done)
            timeline.end_command()

    def _passes_by(self, timeline: BarrierEpochs, event: Executing) -> bool:
        """Fast path for a dispatch of one packet that conflicts with nothing; False: it may conflict."""
        if timeline.level != len(timeline.commands) or event.opcode != _DISPATCH:
            return False
        if event.joined or event.continues:
            return False
        places = self._places
        reached = places.known.get(event.accesses.content) or places.reached(event.accesses)
        if places.queues != timeline.only_queue and not self._is_apart(timeline, reached):
            return False
        timeline.postpone(reached, [(reached, _BY_UAV, event.command, _NOTHING)])
        timeline.commands.append(reached.by_views)
        if len(timeline.postponed) > _MOST_POSTPONED:
            self._enter_postponed(timeline)
        return True

    def _is_named(self, timeline: BarrierEpochs) -> bool:
        """Whether barriers that name its memory order the command behind all that it conflicts with."""
        linked = any(place.linked for part in timeline.parts for place in part[0].places)
        return not linked and timeline.named.awaits_all(timeline.accessed)

    def _is_apart(self, timeline: BarrierEpochs, reached: Reached) -> bool:
        """Whether all work of other queues on the memory of the current command has ended."""
        queue, clock = timeline.queue, timeline.clock
        for place in reached.places:
            for window in place.windows:
                other = window.queue
                if other != queue and window.last >= clock.get(other, 0) + 1 << SHIFT:
                    return False
        return True

    def _follow_copies(self, timeline: BarrierEpochs) -> None:
        """Copies to the same bytes of one buffer are executed in order."""
        for pattern, kind, _ in timeline.command:
            window = pattern.place.own.get(timeline.queue << 2 | Kind.COPY_DEST)
            if kind != Kind.COPY_DEST or window is None:
                continue
            while window.last >= timeline.call + timeline.done[0]:
                at = window.newest(pattern, window.pending(timeline.call, timeline.done, only_changes=True))
                if at < 0:
                    break
                timeline.come_behind(window.phases[at] - timeline.call)

    def _compare(self, timeline: BarrierEpochs) -> None:
        """Reports unordered accesses that conflict with those of the command."""
        queue, lowest = timeline.queue, timeline.call + timeline.proven_done[0]
        found: list[tuple[Window, int, Access]] = []
        for pattern, kind, touch in timeline.command:
            for window in pattern.place.windows:
                newest = window.last if pattern.changes else window.last_change
                if window.queue != queue:
                    known = timeline.clock.get(window.queue, 0) + 1 << SHIFT
                    if newest < known:
                        continue
                    runs = [(window.from_phase(known), len(window.phases))]
                elif touch[2] in timeline.behind_all or (
                    kind == window.kind == _COPY_DEST and window.place is pattern.place
                ):
                    continue
                elif newest < lowest:
                    self._look_for_accident(timeline, window, Access(pattern, kind, touch))
                    continue
                else:
                    if timeline.proven is not timeline.order:
                        self._credit(timeline, window, pattern)
                    runs = window.pending(timeline.call, timeline.done, not pattern.changes)
                    self._look_for_accident(timeline, window, Access(pattern, kind, touch))
                if kind == window.kind == _TAIL:
                    continue  # padding on both sides: its contents are undefined anyway
                at = window.newest(pattern, runs)
                if at >= 0:
                    found.append((window, at, Access(pattern, kind, touch)))
        if found:
            self._report_lowest(found)

    def _look_for_accident(self, timeline: BarrierEpochs, window: Window, then: Access) -> None:
        """Reports the last conflicting access that only a barrier on another resource orders before."""
        if then.kind == window.kind == _TAIL or timeline.faulty & {window.place, then.pattern.place}:
            return
        pattern, here, place = then.pattern, then.pattern.place.address, window.place.address
        by_views = timeline.by_view and window.kind <= _TAIL
        named = timeline.named.awaited(place, here, by_views=by_views)
        if window.last < timeline.call + named:
            return
        start, end = window.from_phase(timeline.call + named), len(window.phases)
        while (at := window.newest(pattern, [(start, end)])) >= 0:
            end, number = at, window.phases[at] - timeline.call
            first = window.access(at)
            if not holds(timeline.done, number):
                continue  # which is a hazard
            if timeline.walked > _MOST_WALKED:
                if not timeline.has_given_up:
                    timeline.has_given_up = True
                    words = messages.no_more_accidents(timeline.work)
                    self.report(BARRIER_ELSEWHERE.id, cause="limit", **words)
                return
            changes = first.pattern.changes
            if not timeline.orders_by_name(number, (place, changes), (here, pattern.changes)):
                byte = pattern.first_byte(first.pattern)
                assert byte is not None
                self._report_conflict(window, first, then, byte, timeline.ways(number))
                return

    def _compare_sides(self, timeline: BarrierEpochs) -> None:
        """Reports a copy whose source and destination share memory."""
        sides = [Access(*each) for each in timeline.command]
        for source in (each for each in sides if each.kind == Kind.COPY_SOURCE):
            for target in (each for each in sides if each.kind == Kind.COPY_DEST):
                byte = target.pattern.first_byte(source.pattern)
                if byte is None:
                    continue
                shared = range(byte, target.pattern.last_byte(source.pattern, byte) + 1)
                is_whole = messages.shares_all(source.pattern, target.pattern, shared)
                both = self._side(source, shared), self._side(target, shared)
                cause = both[1].command.command.site, both[0].title, both[1].title
                self.report(COPY_SAME.id, cause=cause, **messages.same(*both, is_whole))
                return

    def _credit(self, timeline: BarrierEpochs, window: Window, pattern: Pattern) -> None:
        """Finds accesses that are ordered before this one only by barriers not yet found useful."""
        for start, end in window.pending(timeline.call, timeline.proven_done, not pattern.changes):
            while (at := window.find(pattern, start, end)) >= 0:
                number, start = window.phases[at] - timeline.call, at + 1
                if holds(timeline.done, number) and not holds(timeline.proven_done, number):
                    timeline.prove(number)

    def _credit_named(self, timeline: BarrierEpochs) -> None:
        """Barriers that name the resources of a conflict are useful, even if others order the two as well.

        The others name other resources, and the documentation promises nothing about this one for them.
        """
        call, queue = timeline.call, timeline.queue
        for pattern, kind, _ in timeline.command:
            then = pattern.place.address
            for window in pattern.place.windows:
                if window.queue != queue or window.kind > Kind.TAIL or kind == window.kind == Kind.TAIL:
                    continue
                start = window.from_phase(call)
                while timeline.unproven:
                    end = window.from_phase(call + timeline.unproven[-1].at)
                    at = window.find(pattern, start, end) if start < end else -1
                    if at < 0:
                        break
                    mark = timeline.first_between(window.phases[at] - call, window.place.address, then)
                    if mark is None:
                        break
                    if mark.advice is not None and not mark.advice.is_useful:
                        timeline.credit([mark])
                    start = window.from_phase(call + mark.at)

    def _enter_postponed(self, timeline: BarrierEpochs) -> None:
        """Enters the postponed commands into the windows."""
        for phase, call, work, parts in sorted(timeline.postponed.values(), key=_phase):
            self._enter(touched(work, parts), timeline.queue, phase, call, (phase - call, 0))
        timeline.postponed.clear()

    def _enter(self, command: list[Touched], queue: int, phase: int, call: int, done: Done) -> None:
        """Enters the command into the windows."""
        for pattern, kind, touch in command:
            window = pattern.place.own.get(queue << 2 | kind)
            if window is None:
                window = self._places.window(pattern.place, queue, kind)
            if not window.add(pattern, phase, call, touch, done):
                window.make_room(min(call, self._done(queue)), call)
                window.add(pattern, phase, call, touch, done)

    def _done(self, queue: int) -> int:
        """Accesses of the queue with a lower phase can no longer conflict with other queues."""
        return (self._clocks.done_for_all(queue) + 1) << SHIFT

    # --- reporting ---

    def _advise(self, work: Work, event: Barrier) -> Advice | None:
        """The advice for the barrier's line; None: not tracked."""
        site = work.commands[event.command].site if event.command < len(work.commands) else None
        key = site, event.address
        advice = self._advice.get(key)
        if advice is None and site is not None:
            barrier = messages.barrier(self.names.buffer(event.address) if event.address else None)
            advice = self._advice[key] = Advice(work.command(event.command), barrier)
        if advice is not None and not advice.is_useful and event.list_serial in self._initializers:
            advice.is_useful = self._is_behind_initializer(work, event)
        return advice

    def _is_behind_initializer(self, work: Work, event: Barrier) -> bool:
        """Whether it comes right behind an initializer; one on any resource may also be the next one."""
        before = [at for at in self._initializers[event.list_serial] if at <= event.command]
        if not before:
            return False
        between = [each.name for each in work.commands[before[-1] : event.command]]
        if event.address == 0 and "ResourceBarrier" not in between:
            return True
        return all(each == "ResourceBarrier" or each.startswith(_INITIALIZER) for each in between)

    def _report_lowest(self, found: list[tuple[Window, int, Access]]) -> None:
        """Reports, for each command and each buffer it used, the lowest conflicting byte."""
        lowest: dict[object, tuple[int, Window, Access, Access, int]] = {}
        for window, newest, then in found:
            for at in window.same_command(newest):
                first = window.access(at)
                if not (first.pattern.changes or then.pattern.changes):
                    continue  # a command that also writes reads some of the same bytes
                byte = then.pattern.first_byte(first.pattern)
                if byte is None or Kind.TAIL == first.kind == then.kind:
                    continue
                key = id(first.commands), first.number, window.place, window.queue
                place = byte - then.pattern.shift
                if key not in lowest or place < lowest[key][0]:
                    lowest[key] = place, window, first, then, byte
        for _, window, first, then, byte in lowest.values():
            self._running.faulty |= {first.pattern.place, then.pattern.place}
            self._report_conflict(window, first, then, byte)

    def _report_conflict(
        self, window: Window, first: Access, then: Access, byte: int, between: list[Mark] | None = None
    ) -> None:
        """Reports two accesses; that byte is the first that both access.

        ``between``: the barriers, on other resources, that happen to order the two.
        """
        shared = range(byte, then.pattern.last_byte(first.pattern, byte) + 1)
        is_one_queue = window.queue == self._running.queue
        is_one_list = is_one_queue and first.commands is then.commands
        context, hint = ((), "") if is_one_queue else self._fences(window.queue, first, then)
        if is_one_queue and first.order > then.order:  # chaos executes them in reverse order
            first, then = then, first
        if not is_one_list:
            first, then = messages.apart(first, then)
        finding = messages.Finding(
            self._name(window, first.pattern, then.pattern) if between is None else BARRIER_ELSEWHERE,
            self._side(first, shared),
            self._side(then, shared),
            messages.shares_all(first.pattern, then.pattern, shared),
            is_one_list,
        )
        if between:
            named = (self.names.buffer(each.before) if each.before else None for each in between)
            context = (messages.between(list(dict.fromkeys(named))),)
        fields = finding.fields(*context)
        self.report(
            finding.check, finding.message, cause=finding.cause, **{**fields, "hint": hint or fields["hint"]}
        )

    def _side(self, access: Access, shared: range) -> messages.Side:
        buffer = self.names.buffer(access.pattern.place.address)
        return messages.Side.of(access, buffer, shared)

    def _name(self, window: Window, first: Pattern, then: Pattern) -> Declaration:
        if window.queue != self._running.queue:
            return HAZARD_QUEUE
        if first.place is not then.place:
            return HAZARD_ALIAS
        if not first.changes:
            return HAZARD_WAR
        return HAZARD_RAW if then.access & READ else HAZARD_WAW

    def _fences(self, queue: int, first: Access, then: Access) -> tuple[tuple[str, ...], str]:
        """The queues' fence operations, and what is missing if it is certain."""
        running = self._running.queue
        signal, awaited = self._signal(queue, first), self._clocks.last_wait(running)
        context = messages.signals(self.names, queue, signal), messages.waits(self.names, running, awaited)
        if signal and awaited and signal.fence == awaited.fence and self._clocks.went_back(awaited):
            # The queue does wait, and the wait may have ended with a value before the fence went back.
            return context, messages.rise(self.names, awaited) if awaited == signal else ""
        if first.handed <= then.handed:
            earlier, later, other, behind = first, then, queue, signal
        else:  # the emulated GPU happened to run the queues in the other order
            earlier, later, other = then, first, running
            behind = self._signal(running, then)
        if behind is None or not self._proves(behind, other, earlier):
            return context, ""
        return context, messages.wait(self.names, behind, later)

    def _signal(self, serial: int, access: Access) -> FenceValue | None:
        """The first signal submitted to the queue behind a list."""
        ticket = access.touch[0].ticket
        signal = self._clocks.signal_after(serial, ticket)
        if signal is None:
            queue = next((each for each in self.device.context.gpu.queues if each.serial == serial), None)
            queued = None if queue is None else queue.signal_after(ticket)
            signal = None if queued is None else FenceValue(queued[0].address, queued[1])
        return signal

    def _proves(self, signal: FenceValue, serial: int, access: Access) -> bool:
        """Does waiting for the signal prove the access done, and will the queue execute the signal?"""
        ticket = access.touch[0].ticket
        if self._clocks.proves(signal, serial, ticket):
            return True
        queue = next((each for each in self.device.context.gpu.queues if each.serial == serial), None)
        fence = self.device.context.gpu.find_fence(signal.fence)
        if queue is None or fence is None or fence.value >= signal.value:
            return False
        behind = (HEADER.unpack_from(each)[0] for each in list(queue.pending) if each.ticket > ticket)
        return next((each for each in behind if each != Opcode.EXECUTE), None) == Opcode.SIGNAL


def _marked_out(packet: bytes) -> tuple[int, ...]:
    """Operands of an immediate write that are written after all earlier commands are done."""
    stores = decode_one(packet).stores()
    return tuple(i for i, (_, _, mode) in enumerate(stores) if mode == _MARKER_OUT)


CHECKS = (Hazards,)
