"""Who knows what is done: clocks of the queues and the host, and what the values of fences tell.

A clock says of each queue, by its serial, up to which ticket its work is done for whoever has the clock.
It follows from the program alone, and not from how far the emulated GPU happens to have come: whoever
awaits a value of a fence knows no more than whoever set it did, and of several that may have been the
one, only what all of them knew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from dmlemu_hw.events import EventStream, Queued, Signalled, Submitted, Waited
from dmlemu_hw.packets import Opcode

__all__ = ["Clock", "Clocks", "FenceValue"]

Clock = Mapping[int, int]
NOTHING: Clock = {}

_VALUES_KEPT = 1024  # of one fence; who awaits an older one is taken to know what the oldest kept tells
_SIGNALS_KEPT = 256  # of one queue, for messages


class FenceValue(NamedTuple):
    """A value of the fence at an address."""

    fence: int
    value: int


class Clocks:
    """The clocks of one GPU, which is told by events from its beginning on."""

    def __init__(self) -> None:
        self.host: Clock = NOTHING
        self._queues: dict[int, _Queue] = {}
        self._fences: dict[int, _Fence] = {}

    def of(self, queue: int) -> Clock:
        """What the work that the queue now executes may rely on; of the queue itself it says nothing."""
        return self._queue(queue).clock

    def follow(self, stream: EventStream) -> None:
        """Is told by the stream from now on."""
        stream.subscribe(self.handed, Submitted, Queued)
        stream.subscribe(self.signalled, Signalled)
        stream.subscribe(self.waited, Waited)

    def handed(self, event: Submitted | Queued) -> None:
        """The host handed something to a queue: it relies on what the host knows then."""
        opcode = event.opcode if isinstance(event, Queued) else Opcode.EXECUTE
        self._queue(event.queue).arrivals.append((event.ticket, opcode, self.host))

    def start(self, queue: int, ticket: int) -> int:
        """The queue executes the list of that ticket; returns the last ticket of the same call."""
        known = self._queue(queue)
        if ticket <= known.ticket:
            return known.ticket
        return known.advance(Opcode.EXECUTE, ticket) or ticket

    def signalled(self, event: Signalled) -> None:
        """A fence got a value, which tells what the one who set it knows."""
        clock = self.host
        if event.queue:
            queue = self._queue(event.queue)
            ticket = queue.advance(Opcode.SIGNAL) or queue.ticket
            queue.signals.append((ticket, FenceValue(event.fence, event.value)))
            clock = {**queue.clock, event.queue: ticket}
        self._fences.setdefault(event.fence, _Fence()).set(event.value, clock)

    def waited(self, event: Waited) -> None:
        """The host (queue 0) or a queue knows from now on what the value of the fence tells."""
        fence = self._fences.get(event.fence)
        told = NOTHING if fence is None else fence.tells(event.value)
        if event.queue:
            queue = self._queue(event.queue)
            queue.advance(Opcode.WAIT)
            queue.clock = _join(queue.clock, told)
            queue.awaited = FenceValue(event.fence, event.value)
        else:
            self.host = _join(self.host, told)

    def done_for_all(self, queue: int) -> int:
        """Up to this ticket the work of the queue is done for the host and all that is still to execute."""
        host = self.host.get(queue, 0)
        others = (each.known(queue, host) for serial, each in self._queues.items() if serial != queue)
        return min(host, min(others, default=host))

    # --- for messages ---

    def signals_after(self, queue: int, ticket: int) -> list[FenceValue]:
        """The signals behind that ticket which the queue has executed, the first one first."""
        return [signal for each, signal in self._queue(queue).signals if each > ticket]

    def signal_after(self, queue: int, ticket: int) -> FenceValue | None:
        """The first one."""
        return next(iter(self.signals_after(queue, ticket)), None)

    def is_shared(self, signal: FenceValue, queue: int, ticket: int) -> bool:
        """The fence can have reached that value without the queue having done the ticket."""
        fence = self._fences.get(signal.fence)
        if fence is None or not fence.values or fence.values[-1] < signal.value:
            return False
        return fence.tells(signal.value).get(queue, 0) < ticket

    def last_wait(self, queue: int) -> FenceValue | None:
        """What the queue awaited last."""
        return self._queue(queue).awaited

    def _queue(self, serial: int) -> _Queue:
        queue = self._queues.get(serial)
        if queue is None:
            queue = self._queues[serial] = _Queue()
        return queue


class _Queue:
    """``arrivals``: what was handed over and has not begun, with what the host knew then."""

    def __init__(self) -> None:
        self.clock: Clock = NOTHING
        self.ticket = 0
        self.is_idle = True  # nothing of what has begun is still to go on
        self.arrivals: deque[tuple[int, int, Clock]] = deque()
        self.signals: deque[tuple[int, FenceValue]] = deque(maxlen=_SIGNALS_KEPT)
        self.awaited: FenceValue | None = None

    def advance(self, opcode: int, ticket: int = 0) -> int | None:
        """The next entry of that kind, not before the ticket, begins; returns its ticket, None: unknown."""
        arrivals = self.arrivals
        if not any(each[1] == opcode and each[0] >= ticket for each in arrivals):
            return None
        self.is_idle = opcode != Opcode.EXECUTE
        while True:
            self.ticket, kind, clock = arrivals.popleft()
            self.clock = _join(self.clock, clock)
            if kind == opcode and self.ticket >= ticket:
                return self.ticket

    def known(self, queue: int, host: int) -> int:
        """Up to which ticket of another queue all that this one is still to execute relies on it."""
        here = self.clock.get(queue, 0)
        if not self.is_idle:
            return here
        return max(here, self.arrivals[0][2].get(queue, 0) if self.arrivals else host)


class _Fence:
    """What is told by the fence having reached a value: ``clocks[i]`` by ``values[i]``, which rise."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self.clocks: list[Clock] = []
        self.gone: deque[tuple[int, Clock]] = deque(maxlen=16)

    def set(self, value: int, clock: Clock) -> None:
        values, clocks = self.values, self.clocks
        while values and values[-1] > value:  # the fence goes back: those are not seen any more
            self.gone.append((values.pop(), clocks.pop()))
        if not values or values[-1] != value:
            values.append(value)
            clocks.append(clock)
        # Who awaits one of these may have been released by this one as well.
        for i in reversed(range(len(clocks))):
            both = _meet(clocks[i], clock)
            if i + 1 < len(clocks) and both == clocks[i]:
                break
            clocks[i] = both
        if len(values) > _VALUES_KEPT:
            del values[: _VALUES_KEPT // 2], clocks[: _VALUES_KEPT // 2]

    def tells(self, value: int) -> Clock:
        at = bisect_left(self.values, value)
        if at < len(self.values):
            return self.clocks[at]
        # The wait was over before the fence went back.
        return next((clock for each, clock in reversed(self.gone) if each >= value), NOTHING)


def _join(a: Clock, b: Clock) -> Clock:
    """What both know together."""
    if a is b or not b:
        return a
    if not a:
        return b
    return {queue: max(a.get(queue, 0), b.get(queue, 0)) for queue in a.keys() | b.keys()}


def _meet(a: Clock, b: Clock) -> Clock:
    """What each of them knows."""
    if a is b:
        return a
    return {queue: min(ticket, b[queue]) for queue, ticket in a.items() if queue in b}
