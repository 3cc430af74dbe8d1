"""Which queue runs next.  There are no threads: the GPU makes progress when the host lets it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from random import Random

from . import packets
from .fence import Fences
from .packets import SignalPacket, WaitPacket, decode_one
from .queue import Queue


class Policy(str, Enum):
    """When the GPU runs.

    ``lazy``: only while the host waits, as late as a busy GPU would.  ``eager``: at once, when
    something is submitted or a fence is signalled.
    """

    LAZY = "lazy"
    EAGER = "eager"


class Scheduler:
    """Takes the queues in turns, one entry each, in the order of their creation; with ``random`` by lot."""

    def __init__(self, fences: Fences, random: Random | None = None) -> None:
        self.queues: list[Queue] = []
        self._fences = fences
        self._random = random
        self._last = 0  # serial of the queue that had its turn

    def next_queue(self) -> Queue | None:
        """The queue whose head is to run now; None: all are empty or wait."""
        ready = [queue for queue in self.queues if queue.pending and not queue.blocked]
        if not ready:
            return None
        if self._random is not None:
            return self._random.choice(ready)
        queue = next((queue for queue in ready if queue.serial > self._last), ready[0])
        self._last = queue.serial
        return queue

    def refresh(self) -> None:
        """Forgets closed queues when they are empty, and looks again at the fences that queues wait for.

        The fence ends waits by itself, unless the handler of a signal raised before it could.
        """
        for queue in list(self.queues):
            entries = queue.pending
            if entries and queue.blocked:
                fence = entries[0].fence
                assert fence is not None
                fence.end_waits()
            elif queue.closed and not entries:
                self.queues = [each for each in self.queues if each is not queue]

    def turns_now(self) -> int:
        """How many turns the GPU takes while the host goes on: none, or with ``random`` perhaps some."""
        return 0 if self._random is None else max(0, self._random.randint(-4, 4))

    def blocked(self) -> str:
        """For messages: one line per queue that cannot go on, and who could release it; and any circle."""
        stuck = self._stuck()
        lines = []
        for queue, packet in stuck.items():
            others = " and ".join(each.label for each in self.queues if _sets(each, packet))
            behind = len(queue.pending) - 1
            who = f"{others} would set it, but is blocked" if others else "no such signal is queued"
            lines.append(
                f"  - {queue.label} waits for {self._fence_name(packet.fence)} to reach "
                f"{packet.value}; it is {self._fences.read(packet.fence)}, and {who} "
                f"({behind} {'entry' if behind == 1 else 'entries'} behind)"
            )
        circle = _circle(stuck)
        if circle:
            lines.append(f"  - They wait in a circle: {' -> '.join(each.label for each in circle)}")
        return "\n".join(lines)

    def _stuck(self) -> dict[Queue, WaitPacket]:
        """The queues that cannot go on, and the wait at the head of each."""
        found = {}
        for queue in self.queues:
            if queue.pending and queue.blocked:
                packet = decode_one(queue.pending[0])
                assert isinstance(packet, WaitPacket)
                found[queue] = packet
        return found

    def signals(self, fence: int) -> str:
        """For messages: the queues that hold a signal of the fence, one line each."""
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
    """The signals that the queue holds."""
    for entry in queue.pending:
        if packets.HEADER.unpack_from(entry)[0] == packets.Opcode.SIGNAL:
            packet = decode_one(entry)
            assert isinstance(packet, SignalPacket)
            yield packet


def _sets(queue: Queue, wait: WaitPacket) -> bool:
    """Does the queue hold a signal that would end the wait?"""
    return any(each.fence == wait.fence and each.value >= wait.value for each in _signals(queue))


def _circle(stuck: dict[Queue, WaitPacket]) -> list[Queue]:
    """Queues each of which waits for the next one, the last of them for the first; empty: there are none."""
    for start in stuck:
        row = [start]
        while True:
            following = next((each for each in stuck if _sets(each, stuck[row[-1]])), None)
            if following is None:
                break
            if following in row:
                return [*row[row.index(following) :], following]
            row.append(following)
    return []
