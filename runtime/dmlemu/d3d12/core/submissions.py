"""Pending submissions: which work needs an object, and when the object is free again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from dmlemu_hw.lock import Lock
from dmlemu_hw.queue import Queue as HardwareQueue

from .object import Object
from .recording import Command, Recording

__all__ = ["Submission", "Submissions", "advice", "when_done"]


@dataclass(eq=False)
class Submission:
    """The work that one call submitted to a queue; ``ticket`` is the last one it was assigned.

    ``recordings`` of the lists that it executes, or the ``needs`` of other work, described by ``command``.
    ``is_queued``: the queue got it, or refused it; until then its ticket says nothing.
    """

    queue: HardwareQueue
    ticket: int
    recordings: tuple[Recording, ...] = ()
    needs: tuple[Object, ...] = ()
    command: Command | None = None
    is_queued: bool = False


class Submissions:
    """The submissions of one device, ``count`` so far.  They keep the objects that the GPU needs alive."""

    def __init__(self) -> None:
        self._work: dict[HardwareQueue, deque[Submission]] = {}
        self._last: WeakKeyDictionary[HardwareQueue, tuple[str, list[Command]]] = WeakKeyDictionary()
        self._lock = Lock()  # not the GPU's, for which the program would wait while kernels run
        self.count = 0

    def add(self, submission: Submission) -> None:
        """Called before the queue gets the work; work that never reaches the queue counts as done."""
        with self._lock:
            self.count += 1
            self._work.setdefault(submission.queue, deque()).append(submission)

    def forget_done(self) -> None:
        """Drops completed submissions."""
        if not self._work:
            return
        done = []  # freed outside the lock: objects may be released with it
        with self._lock:
            for queue, work in list(self._work.items()):
                while work and _is_done(work[0]):
                    done.append(work.popleft())
                    for recording in done[-1].recordings[-1:]:
                        self._last[queue] = recording.owner, recording.commands
                if not work:
                    del self._work[queue]

    def find(self, queue: int, ticket: int) -> Submission | None:
        """The submission on a queue, given by its serial, that ends with that ticket."""
        with self._lock:
            for work in self._work.values():
                for each in reversed(work):
                    if each.queue.serial == queue and each.ticket == ticket:
                        return each
        return None

    def finished(self, queue: int, ticket: int, most: int) -> list[tuple[str, Command]]:
        """The last commands of a queue's lists up to that ticket, each with the name of its list."""
        with self._lock:
            lists = [last for each, last in self._last.items() if each.serial == queue]
            for work in self._work.values():
                for recording in (each for row in work for each in row.recordings):
                    place = recording.submitted
                    if place is not None and place[0].serial == queue and place[1] <= ticket:
                        lists.append((recording.owner, recording.commands))
        return [(owner, command) for owner, commands in lists for command in commands[-most:]]

    def recordings(self) -> Iterator[Recording]:
        """The submissions that the GPU has not finished, oldest first per queue."""
        with self._lock:
            found = [
                recording for work in self._work.values() for each in work for recording in each.recordings
            ]
        return (each for each in found if each.is_pending)

    def recorded_with(self, allocator: Object) -> Recording | None:
        """A pending submission whose commands are in the allocator."""
        return next((each for each in self.recordings() if each.allocator is allocator), None)


def _is_done(work: Submission) -> bool:
    return work.ticket <= work.queue.completed or (work.is_queued and work.queue.done(work.ticket))


def advice(queue: str, signal: tuple[str, int] | None) -> str:
    """The hint what to wait for; ``signal`` is the first fence and value signaled after the work."""
    if signal is None:
        return f"Signal a fence on {queue} after it and wait for that value; no Signal is queued there."
    fence, value = signal
    return f"Wait first until {fence} reaches {value}, which {queue} signals after it."


def when_done(queue: HardwareQueue, ticket: int) -> str:
    """:func:`advice` for work that is pending."""
    signal = queue.signal_after(ticket)
    return advice(queue.label, None if signal is None else (signal[0].describe(), signal[1]))
