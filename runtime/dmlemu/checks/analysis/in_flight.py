"""In flight: submitted work that the program cannot know to be done; base class of the lifetime checks.

What counts is the fences that the host has waited for or queried, not the progress of the
emulated GPU.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from dmlemu_hw.events import EventStream, Queued, Submitted, Subscription
from dmlemu_hw.queue import Queue

from ...d3d12.core.object import Object
from ...d3d12.core.recording import Command, Recording
from ...d3d12.core.submissions import Submission, Submissions, advice
from ...errors import CallSite, Strictness
from ..framework.check import Check
from .happens_before import FenceValue, HappensBefore

if TYPE_CHECKING:
    from ...d3d12.device.device import Device

__all__ = ["Flight", "FlightCheck", "InFlight"]

_FEW = 1024  # flights kept before completed ones are looked for


@dataclass(eq=False)
class Flight:
    """A list or other submission that the host does not know to be done; it keeps no object alive.

    ``owner`` is the name of the list; it is empty for other work.
    """

    queue: int
    ticket: int
    label: str  # of the queue
    owner: str
    serial: int
    commands: list[Command]
    needs: dict[ReferenceType[Object], int]
    handed_at: CallSite | None  # the program's line

    def __str__(self) -> str:
        """``command list 'frame'``, or the name of the queue operation."""
        return self.owner or self.commands[0].name

    @staticmethod
    def of_list(submission: Submission, recording: Recording, ticket: int) -> Flight:
        """One list of an ExecuteCommandLists call."""
        queue, serial, needs = submission.queue, recording.serial, recording.needed
        at, commands = recording.executed_at, recording.commands
        return Flight(queue.serial, ticket, queue.label, recording.owner, serial, commands, needs, at)

    @staticmethod
    def of_other(submission: Submission, command: Command) -> Flight:
        """Work submitted by a call of its own, such as UpdateTileMappings."""
        needs = {ref(thing): 0 for thing in submission.needs}
        queue = submission.queue
        at = command.site
        return Flight(queue.serial, submission.ticket, queue.label, "", 0, [command], needs, at)

    def needs_it(self, thing: Object) -> bool:
        """Whether the work needs the object."""
        return ref(thing) in self.needs

    def command_of(self, thing: Object) -> Command | None:
        """The last command that names the object; None: the whole list needs it, as with its allocator."""
        at = self.needs.get(ref(thing), -1)
        return self.commands[at] if 0 <= at < len(self.commands) else None


class InFlight:
    """Tracks the submissions to one device's queues, shared by all checks that use it."""

    def __init__(self, pending: Submissions, clocks: HappensBefore) -> None:
        self.flights: deque[Flight] = deque()
        self.watchers: list[Callable[[Flight, Recording | None], None]] = []
        self._pending = pending
        self._clocks = clocks
        self._most = _FEW

    def is_known(self, flight: Flight) -> bool:
        """Whether the host knows that it is done."""
        return self._clocks.is_done(self._clocks.host, flight.queue, flight.ticket)

    def follow(self, stream: EventStream, kept: list[Subscription]) -> None:
        """Subscribes to the stream; ``kept`` receives the subscription."""
        stream.subscribe(self.handed, Submitted, Queued, kept=kept)

    def handed(self, event: Submitted | Queued) -> None:
        """Something was submitted to a queue."""
        submission = self._pending.find(event.queue, event.ticket)
        if submission is None:
            return
        first = submission.ticket - len(submission.recordings) + 1
        for ticket, recording in enumerate(submission.recordings, first):
            self._take(Flight.of_list(submission, recording, ticket), recording)
        if submission.command is not None:
            self._take(Flight.of_other(submission, submission.command), None)

    def _take(self, flight: Flight, recording: Recording | None) -> None:
        try:
            for watcher in self.watchers:
                watcher(flight, recording)
        finally:
            self.flights.append(flight)
            if len(self.flights) > self._most:
                self.flights = deque(each for each in self.flights if not self.is_known(each))
                self._most = max(_FEW, 2 * len(self.flights))


class FlightCheck(Check):
    """Base class of checks on submissions in flight."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._clocks: HappensBefore = device.checks.clocks
        self._flights: InFlight = device.checks.flights

    def start(self) -> None:
        """Subscribes."""
        super().start()
        self._flights.watchers.append(self.took_off)

    def stop(self) -> None:
        """Ends the subscriptions."""
        if self.took_off in self._flights.watchers:  # missing if the start was interrupted
            self._flights.watchers.remove(self.took_off)
        super().stop()

    def took_off(self, flight: Flight, recording: Recording | None) -> None:
        """Called when something was submitted to a queue; to be overridden."""

    def in_flight(self) -> Iterator[Flight]:
        """Submissions that the host does not know to be done, oldest first.

        At strictness debug, only submissions the GPU has not executed, as the debug layer sees them.
        """
        device, is_known, flights = self.device, self._flights.is_known, self._flights.flights
        while flights and is_known(flights[0]):
            flights.popleft()
        if device.context.removed is not None:
            return
        is_strict = device.context.strictness is Strictness.STRICT
        for flight in list(flights):
            if not is_known(flight) and (is_strict or not self.is_done(flight)):
                yield flight

    def is_done(self, flight: Flight) -> bool:
        """Whether the GPU has executed it."""
        queue = self._queue(flight)
        return queue is None or queue.done(flight.ticket)

    def _queue(self, flight: Flight) -> Queue | None:
        return next((each for each in self.device.context.gpu.queues if each.serial == flight.queue), None)

    def advice(self, flight: Flight) -> str:
        """Names the fence value to wait for."""
        signal = self._awaitable(flight)
        if signal is None or not self._clocks.is_shared(signal, flight.queue, flight.ticket):
            return advice(flight.label, self.awaitable(flight))
        return (
            f"Signal a fence or a value on {flight.label} that nothing else signals, and wait for it: "
            f"{self.names.fence(signal.fence)} also reaches {signal.value} without {flight.label}."
        )

    def awaitable(self, flight: Flight) -> tuple[str, int] | None:
        """A signal behind it: the name of the fence, and the value."""
        signal = self._awaitable(flight)
        return None if signal is None else (self.names.fence(signal.fence), signal.value)

    def _awaitable(self, flight: Flight) -> FenceValue | None:
        """The first signal behind it whose value proves it done; otherwise the first signal."""
        signals = self._clocks.signals_after(flight.queue, flight.ticket)
        queue = self._queue(flight)
        queued = None if queue is None else queue.signal_after(flight.ticket)
        if queued is not None:
            signals.append(FenceValue(queued[0].address, queued[1]))
        telling = (each for each in signals if not self._clocks.is_shared(each, flight.queue, flight.ticket))
        return next(telling, signals[0] if signals else None)

    def properties(self, flight: Flight) -> dict[str, str]:
        """Queue, list and fence value, for report filters."""
        fence = self.awaitable(flight)
        known = {"queue": flight.label, "list": flight.owner}
        return known if fence is None else {**known, "fence": fence[0], "fence_value": str(fence[1])}
