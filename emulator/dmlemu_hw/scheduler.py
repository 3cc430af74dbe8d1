"""Scheduler: selects the queue that runs next.  The GPU has no threads: host calls run it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from random import Random

from . import packets
from .chaos import Mode
from .events import Decided, EventStream
from .fence import Fences
from .packets import SignalPacket, WaitPacket, decode_one
from .queue import Queue


class Policy(str, Enum):
    """When the GPU runs.

    ``lazy``: only while the host waits, as late as a busy GPU might.  ``eager``: immediately when something
    is submitted or a fence is signalled.
    """

    LAZY = "lazy"
    EAGER = "eager"


class Scheduler:
    """Round-robin over the queues in order of creation, one entry each; random order with ``random``.

    A list that was suspended goes on first: when that happened does not change the order.  ``draws_steps``:
    whether steps are run before the host continues.
    """

    def __init__(self, fences: Fences, events: EventStream, random: Random | None = None) -> None:
        self.queues: list[Queue] = []
        self._fences = fences
        self._events = events
        self._random = random
        self.draws_steps = random is not None
        self._last = 0  # serial of the queue that ran last

    def next_queue(self) -> Queue | None:
        """The queue to run next; None: all are empty or blocked."""
        ready = []
        for queue in self.queues:
            entries = queue.pending
            if entries and ((wait := entries[0].wait) is None or wait.over):
                ready.append(queue)
        if not ready:
            return None
        if self._random is not None:
            chosen = self._random.choice(ready)
            if len(ready) > 1 and self._events.wants(Decided):
                what = f"it runs next, of {len(ready)} queues that could"
                self._events.emit(Decided(Mode.ORDER.value, what, chosen.serial))
            return chosen
        if len(ready) == 1:
            self._last = ready[0].serial
            return ready[0]
        suspended = (queue for queue in ready if queue.serial == self._last and queue.position)
        others = (queue for queue in ready if queue.serial > self._last)
        queue = next(suspended, None) or next(others, ready[0])
        self._last = queue.serial
        return queue

    def refresh(self) -> None:
        """Drops closed empty queues, and rechecks the fences that queues wait for.

        Called when no queue can run: a fence ends waits itself, unless a signal handler raised first.
        """
        for queue in list(self.queues):
            entries = queue.pending
            if entries and queue.blocked:
                fence = entries[0].fence
                assert fence is not None
                fence.end_waits()
            elif queue.closed and not entries:
                self.queues = [each for each in self.queues if each is not queue]

    def steps_before_host(self) -> int:
        """The number of steps run before the host continues: 0, or a random number with ``random``."""
        return 0 if self._random is None else max(0, self._random.randint(-4, 4))

    def blocked(self) -> str:
        """For messages: one line per blocked queue and what could unblock it; a circular wait."""
        blocked = self._blocked_queues()
        lines = []
        for queue, packet in blocked.items():
            others = " and ".join(each.label for each in self.queues if _sets(each, packet))
            behind = len(queue.pending) - 1
            who = f"{others} would set it, but is blocked" if others else "no such signal is queued"
            lines.append(
                f"  - {queue.label} waits for {self._fence_name(packet.fence)} to reach "
                f"{packet.value}; it is {self._fences.read(packet.fence)}, and {who} "
                f"({behind} {'entry' if behind == 1 else 'entries'} behind)"
            )
        cycle = _circular_wait(blocked)
        if cycle:
            lines.append(f"  - Circular wait: {' -> '.join(each.label for each in cycle)}")
        return "\n".join(lines)

    def has_circular_wait(self) -> bool:
        """Whether queues wait for each other's signals, or one waits for its own."""
        return bool(_circular_wait(self._blocked_queues()))

    def _blocked_queues(self) -> dict[Queue, WaitPacket]:
        """The blocked queues, and the wait at the head of each."""
        found = {}
        for queue in self.queues:
            if queue.pending and queue.blocked:
                packet = decode_one(queue.pending[0])
                assert isinstance(packet, WaitPacket)
                found[queue] = packet
        return found

    def signals(self, fence: int) -> str:
        """For messages: the queues with a pending signal of the fence, one line each."""
        lines = [
            f"  - {queue.label} would set it to {packet.value}, but is blocked"
            for queue in self.queues
            for packet in _signals(queue)
            if packet.fence == fence
        ]
        return "\n".join(lines) or "  - No queue holds a signal of it"

    def _fence_name(self, address: int) -> str:
        fence = self._fences.find(address)
        return fence.describe() if fence is not None else f"the fence at {address:#x}"


def _signals(queue: Queue) -> Iterator[SignalPacket]:
    """The pending signals of the queue."""
    for entry in list(queue.pending):  # other threads may queue more meanwhile
        if packets.HEADER.unpack_from(entry)[0] == packets.Opcode.SIGNAL:
            packet = decode_one(entry)
            assert isinstance(packet, SignalPacket)
            yield packet


def _sets(queue: Queue, wait: WaitPacket) -> bool:
    """Whether the queue holds a signal that would end the wait."""
    return any(each.fence == wait.fence and each.value >= wait.value for each in _signals(queue))


def _circular_wait(blocked: dict[Queue, WaitPacket]) -> list[Queue]:
    """Queues that each wait for the next, and the last for the first; empty: no circular wait."""
    for start in blocked:
        row = [start]
        while True:
            following = next((each for each in blocked if _sets(each, blocked[row[-1]])), None)
            if following is None:
                break
            if following in row:
                return [*row[row.index(following) :], following]
            row.append(following)
    return []
