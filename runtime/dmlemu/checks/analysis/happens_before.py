"""Happens-before: vector clocks of the queues and the host, and what fence values prove.

A clock maps the serial of each queue to the last ticket whose work is done for the clock's owner.
Clocks follow from the program alone, not from the progress of the emulated GPU: a wait for a fence value
gains the clock of the signal that set it; if several signals may have ended the wait, only what all of
their clocks have in common.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Container, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from dmlemu_hw.events import EventStream, Queued, Signalled, Submitted, Subscription, Waited
from dmlemu_hw.packets import Opcode

if TYPE_CHECKING:
    from dmlemu_hw.gpu import Gpu

__all__ = ["Clock", "FenceValue", "HappensBefore"]

Clock = Mapping[int, int]
NOTHING: Clock = {}

_FEW = 64  # values or signals kept before obsolete ones are looked for
_WORK = (Opcode.EXECUTE, Opcode.MAP_TILES)


class FenceValue(NamedTuple):
    """A value of the fence at an address."""

    fence: int
    value: int


class HappensBefore:
    """The clocks of one GPU, derived from its events; it must be subscribed from the GPU's creation on.

    Queues are removed when they rest, released or not, and everyone knows that their work is done: else each
    would keep what it knows of all others.  ``watchers`` get them.
    """

    def __init__(self, gpu: Gpu | None = None) -> None:
        self.host: Clock = NOTHING
        self.watchers: list[Callable[[Container[int]], None]] = []
        self._gpu = None if gpu is None else weakref.ref(gpu)
        self._queues: dict[int, _Queue] = {}
        self._fences: dict[int, _Fence] = {}
        self._rest: dict[int, int] = {}  # the last ticket of work of removed queues that are not released
        self._most_queues = self._most_fences = _FEW  # kept before those that can be removed are looked for

    def of(self, queue: int) -> Clock:
        """The clock of the work the queue now executes; it has no entry for the queue itself."""
        return self._queue(queue).clock

    def is_done(self, clock: Clock, queue: int, ticket: int) -> bool:
        """Whether the clock includes the work of that ticket."""
        return (
            ticket <= clock.get(queue, 0) or queue not in self._queues or ticket <= self._rest.get(queue, 0)
        )

    def follow(self, stream: EventStream, kept: list[Subscription]) -> None:
        """Subscribes to the stream; ``kept`` receives the subscriptions."""
        stream.subscribe(self.handed, Submitted, Queued, kept=kept)
        stream.subscribe(self.signalled, Signalled, kept=kept)
        stream.subscribe(self.waited, Waited, kept=kept)

    def handed(self, event: Submitted | Queued) -> None:
        """The host submitted something to a queue, which inherits the host's clock."""
        opcode = event.opcode if isinstance(event, Queued) else Opcode.EXECUTE
        queue = self._queue(event.queue)
        queue.arrivals.append((event.ticket, opcode, self.host))
        if opcode in _WORK:
            queue.work = event.ticket
        elif isinstance(event, Queued) and opcode == Opcode.WAIT:
            queue.waits[event.ticket] = self._fence(event.fence).await_value(event.value, self.host)
        elif isinstance(event, Queued) and opcode == Opcode.SIGNAL:
            queue.to_signal[event.ticket] = FenceValue(event.fence, event.value)

    def start(self, queue: int, ticket: int) -> int:
        """The queue executes the list of that ticket; returns the last ticket of the same call."""
        known = self._queue(queue)
        if ticket <= known.ticket:
            return known.ticket
        return known.advance(Opcode.EXECUTE, ticket) or ticket

    def signalled(self, event: Signalled) -> None:
        """A fence got a value; it carries the clock of whoever signalled it."""
        clock = self.host
        if event.queue:
            queue = self._queue(event.queue)
            ticket = queue.advance(Opcode.SIGNAL) or queue.ticket
            queue.to_signal.pop(ticket, None)
            queue.signals.append((ticket, FenceValue(event.fence, event.value)))
            if len(queue.signals) >= queue.most_signals:
                queue.forget_signals(self.done_for_all(event.queue))
            clock = {**queue.clock, event.queue: ticket}
        fence = self._fence(event.fence)
        fence.set(event.value, clock, self.host)
        if len(fence.values) + len(fence.former) >= fence.most:
            fence.forget({serial: self.done_for_all(serial) for serial in self._queues})

    def waited(self, event: Waited) -> None:
        """The host (queue 0) or a queue waited for the value and gains what it proves."""
        fence = self._fence(event.fence)
        if not event.queue:
            for serial, other in self._queues.items():
                queued = other.first_signal(event)
                if queued is not None:
                    value, clock, ticket = queued
                    fence.may_have(value, {**clock, serial: ticket})
            self.host = _join(self.host, fence.clock_of(event.value))
            return
        queue = self._queue(event.queue)
        wait = queue.waits.pop(queue.advance(Opcode.WAIT) or 0, None)
        if wait is not None:
            fence.waits.remove(wait)
        proven = fence.clock_of(event.value) if wait is None or wait.clock is None else wait.clock
        queue.clock = _join(queue.clock, proven)
        queue.awaited = FenceValue(event.fence, event.value)

    def done_for_all(self, queue: int) -> int:
        """The ticket up to which the queue's work is done for the host and all work still to execute."""
        host = self.host.get(queue, 0)
        others = (each.known(queue, host) for serial, each in self._queues.items() if serial != queue)
        return min(host, min(others, default=host))

    # --- for messages ---

    def signals_after(self, queue: int, ticket: int) -> list[FenceValue]:
        """The executed signals of the queue behind that ticket, oldest first."""
        return [signal for each, signal in self._queue(queue).signals if each > ticket]

    def signal_after(self, queue: int, ticket: int) -> FenceValue | None:
        """The first of these signals."""
        return next(iter(self.signals_after(queue, ticket)), None)

    def is_shared(self, signal: FenceValue, queue: int, ticket: int) -> bool:
        """Whether the fence can have reached that value without the queue having done the ticket."""
        fence = self._fences.get(signal.fence)
        if fence is None or not fence.values or fence.values[-1] < signal.value:
            return False
        return fence.clock_of(signal.value).get(queue, 0) < ticket

    def proves(self, signal: FenceValue, queue: int, ticket: int) -> bool:
        """Whether waiting for the value proves that the work of that ticket is done."""
        fence = self._fences.get(signal.fence)
        return fence is not None and fence.clock_of(signal.value).get(queue, 0) >= ticket

    def went_back(self, awaited: FenceValue) -> bool:
        """The fence had reached the value before it was set to a lower one."""
        fence = self._fences.get(awaited.fence)
        return fence is not None and any(each.value >= awaited.value for each in fence.former)

    def last_wait(self, queue: int) -> FenceValue | None:
        """The last wait of the queue."""
        return self._queue(queue).awaited

    def _queue(self, serial: int) -> _Queue:
        queue = self._queues.get(serial)
        if queue is None:
            self._tidy()
            queue = self._queues[serial] = _Queue()
        return queue

    def _fence(self, address: int) -> _Fence:
        fence = self._fences.get(address)
        if fence is None:
            self._tidy()
            fence = self._fences[address] = _Fence()
        return fence

    def _tidy(self) -> None:
        """Occasionally removes queues and released fences that nothing can depend on any more."""
        gpu = None if self._gpu is None else self._gpu()
        if gpu is None:
            return
        if len(self._queues) >= self._most_queues:
            self._tidy_queues({queue.serial for queue in gpu.queues})
            self._most_queues = max(_FEW, 2 * len(self._queues))
        if len(self._fences) >= self._most_fences:
            self._fences = {at: fence for at, fence in self._fences.items() if gpu.find_fence(at) is not None}
            self._most_fences = max(_FEW, 2 * len(self._fences))

    def _tidy_queues(self, alive: set[int]) -> None:
        for serial, queue in self._queues.items():
            queue.is_released = serial not in alive
        resting = {
            serial: queue.work
            for serial, queue in self._queues.items()
            if (queue.is_released or queue.rests) and queue.work <= self.done_for_all(serial)
        }
        self._rest = {serial: work for serial, work in {**self._rest, **resting}.items() if serial in alive}
        if resting:
            self._forget(resting)

    def _forget(self, released: Container[int]) -> None:
        self._queues = {serial: queue for serial, queue in self._queues.items() if serial not in released}
        self.host = _without(self.host, released)
        for queue in self._queues.values():
            queue.clock = _without(queue.clock, released)
            queue.arrivals = deque((*each[:2], _without(each[2], released)) for each in queue.arrivals)
        for fence in self._fences.values():
            fence.clocks = [_without(clock, released) for clock in fence.clocks]
            fence.former = deque(
                _FormerValue(each.value, _without(each.clock, released), _without(each.reset, released))
                for each in fence.former
            )
            for wait in fence.waits:
                wait.clock = None if wait.clock is None else _without(wait.clock, released)
        for watcher in self.watchers:
            watcher(released)


class _Queue:
    """``arrivals``: submissions that have not begun, with the host's clock at their submission.

    ``work``: the last ticket that accesses memory.  ``is_released``: released, with everything executed.
    """

    def __init__(self) -> None:
        self.work = 0
        self.is_released = False
        self.clock: Clock = NOTHING
        self.ticket = 0
        self.is_idle = True  # nothing begun is still unfinished
        self.arrivals: deque[tuple[int, int, Clock]] = deque()
        self.signals: deque[tuple[int, FenceValue]] = deque()
        self.waits: dict[int, _Wait] = {}  # by their tickets; those that have not been executed
        self.to_signal: dict[int, FenceValue] = {}  # by their tickets; those that have not been executed
        self.most_signals = _FEW
        self.awaited: FenceValue | None = None

    def advance(self, opcode: int, ticket: int = 0) -> int | None:
        """The next entry of that kind, not before the ticket, begins; returns its ticket, None if unknown."""
        arrivals = self.arrivals
        if not any(each[1] == opcode and each[0] >= ticket for each in arrivals):
            return None
        self.is_idle = opcode != Opcode.EXECUTE
        while True:
            self.ticket, kind, clock = arrivals.popleft()
            self.clock = _join(self.clock, clock)
            if kind == opcode and self.ticket >= ticket:
                return self.ticket

    @property
    def rests(self) -> bool:
        """Whether everything that was submitted has ended."""
        return self.is_idle and not self.arrivals

    def known(self, queue: int, host: int) -> int:
        """The ticket of another queue up to which all pending work of this queue is ordered behind it."""
        if self.is_released:
            return host
        here = self.clock.get(queue, 0)
        if not self.is_idle:
            return here
        return max(here, self.arrivals[0][2].get(queue, 0) if self.arrivals else host)

    def first_signal(self, awaited: Waited) -> tuple[int, Clock, int] | None:
        """The first queued signal that reaches the value and waits for nobody: value, what it knows, ticket.

        On another GPU it may have been executed already.  Later ones know no less.
        """
        reach = ((at, each.value) for at, each in self.to_signal.items() if each.fence == awaited.fence)
        ticket, value = next(((at, value) for at, value in reach if value >= awaited.value), (0, 0))
        if not ticket:
            return None
        clock = self.clock
        for each, opcode, known in self.arrivals:
            if opcode == Opcode.WAIT:
                return None
            clock = _join(clock, known)
            if each == ticket:
                break
        return value, clock, ticket

    def forget_signals(self, done: int) -> None:
        """Removes signals behind work that is done for everyone: nobody asks for them."""
        while self.signals and self.signals[0][0] <= done:
            self.signals.popleft()
        self.most_signals = max(_FEW, 2 * len(self.signals))


class _FormerValue(NamedTuple):
    """A former value of a fence, what it proved, and the clock of whoever lowered the fence."""

    value: int
    clock: Clock
    reset: Clock


class _Wait:
    """A wait of a queue: the common clock of the signals that may have ended it; None: none so far."""

    def __init__(self, value: int, clock: Clock | None) -> None:
        self.value = value
        self.clock = clock

    def may_end(self, clock: Clock) -> None:
        """Whoever has the clock has set the fence to the value."""
        self.clock = clock if self.clock is None else _meet(self.clock, clock)


class _Fence:
    """What a fence value proves: reaching ``values[i]`` (ascending) gives ``clocks[i]``.

    ``former``: values the fence had before it went back, oldest first.
    ``waits``: waits of queues that have not been executed.
    """

    def __init__(self) -> None:
        self.values: list[int] = []
        self.clocks: list[Clock] = []
        self.former: deque[_FormerValue] = deque()
        self.waits: list[_Wait] = []
        self.most = _FEW

    def set(self, value: int, clock: Clock, host: Clock) -> None:
        values, clocks = self.values, self.clocks
        while values and values[-1] > value:  # the fence goes back: higher values cannot be observed any more
            self._lower(_FormerValue(values.pop(), clocks.pop(), clock), host)
        if not values or values[-1] != value:
            values.append(value)
            clocks.append(clock)
        self._release(value, clock)
        for wait in self.waits:
            if wait.value <= value:
                wait.may_end(clock)

    def may_have(self, value: int, clock: Clock) -> None:
        """The fence may have been set to the value before those that it has, which it reaches."""
        at = bisect_left(self.values, value)
        if at < len(self.values) and self.values[at] != value:
            self.values.insert(at, value)
            self.clocks.insert(at, self.clocks[at])
        self._release(value, clock)

    def _release(self, value: int, clock: Clock) -> None:
        """Who awaits the value or a lower one may have been released by whoever has the clock."""
        clocks = self.clocks
        for i in reversed(range(bisect_right(self.values, value))):
            both = _meet(clocks[i], clock)
            if i + 1 < len(clocks) and both == clocks[i]:
                break
            clocks[i] = both

    def await_value(self, value: int, host: Clock) -> _Wait:
        """A queue will wait for the value; ``clock`` is that of the host, which queues the wait."""
        wait = _Wait(value, self._reached(value))
        # Until the host knows that the fence went back, the wait may have been queued before that.
        for former in takewhile(lambda each: not _is_within(each.reset, host), reversed(self.former)):
            if former.value >= value:
                wait.may_end(former.clock)
        self.waits.append(wait)
        return wait

    def forget(self, floor: Clock) -> None:
        """Removes values that prove nothing beyond ``floor``, which everyone knows."""
        known = 0
        while known < len(self.values) and _is_within(self.clocks[known], floor):
            known += 1
        if known > 1:  # the last of them stands for the others
            del self.values[: known - 1], self.clocks[: known - 1]
        while (
            self.former
            and _is_within(self.former[0].clock, floor)
            and _is_within(self.former[0].reset, floor)
        ):
            self.former.popleft()
        self.most = max(_FEW, 2 * (len(self.values) + len(self.former)))

    def _lower(self, former: _FormerValue, host: Clock) -> None:
        """Where the host knows that it went back: of values not above this, the later signal counts."""
        while self.former and self.former[-1].value <= former.value and _is_within(former.reset, host):
            self.former.pop()
        self.former.append(former)

    def clock_of(self, value: int) -> Clock:
        reached = self._reached(value)
        if reached is not None:
            return reached
        # The wait ended before the fence went back.
        return next((each.clock for each in reversed(self.former) if each.value >= value), NOTHING)

    def _reached(self, value: int) -> Clock | None:
        """The clock that the value proves, if the fence has it now."""
        at = bisect_left(self.values, value)
        return self.clocks[at] if at < len(self.values) else None


def _join(a: Clock, b: Clock) -> Clock:
    """Entry-wise maximum of two clocks."""
    if a is b or not b:
        return a
    if not a:
        return b
    newer = {queue: ticket for queue, ticket in b.items() if ticket > a.get(queue, 0)}
    return {**a, **newer} if newer else a


def _meet(a: Clock, b: Clock) -> Clock:
    """Entry-wise minimum of two clocks."""
    if a is b:
        return a
    return {queue: min(ticket, b[queue]) for queue, ticket in a.items() if queue in b}


def _is_within(clock: Clock, floor: Clock) -> bool:
    """Whether the clock proves nothing beyond ``floor``."""
    return all(ticket <= floor.get(queue, 0) for queue, ticket in clock.items())


def _without(clock: Clock, released: Container[int]) -> Clock:
    if not any(queue in released for queue in clock):
        return clock
    return {queue: ticket for queue, ticket in clock.items() if queue not in released}
