"""Command queues: rows of packets that wait for the GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum

from . import packets
from .events import EventStream, Submitted
from .fence import Fence
from .lock import Lock
from .memory import Allocation, Heap, Memory


class QueueKind(IntEnum):
    """``D3D12_COMMAND_LIST_TYPE`` of the queues that compute programs use."""

    DIRECT = 0
    COMPUTE = 2
    COPY = 3


class Queue:
    """A row of entries, each a packet; mirrors ``ID3D12CommandQueue``.

    Every entry has a ticket, a number that counts up from 1; entries run in that order.
    """

    def __init__(
        self,
        kind: QueueKind,
        label: str,
        serial: int,
        memory: Memory,
        events: EventStream,
        lock: Lock,
        on_entry: Callable[[], None],
    ) -> None:
        self.kind = kind
        self.label = label
        self.serial = serial
        self.submitted = 0
        self.completed = 0
        self.removed = False
        self.closed = False
        # Of the entry at the head: a WAIT's value was reached once; how far an EXECUTE has come.
        self.released = False
        self.position = 0
        self.command = 0
        self._entries: deque[bytes] = deque()
        self._fences: deque[tuple[int, Fence]] = deque()  # by ticket; kept alive until it is done
        self._memory = memory
        self._events = events
        self._lock = lock
        self._on_entry = on_entry

    def submit(self, lists: Sequence[tuple[int, bytes]]) -> int:
        """Queues command lists, given as (serial, packets); mirrors ``ExecuteCommandLists``.

        Returns the ticket of the last one.
        """
        entries = [packets.execute(serial, data) for serial, data in lists]
        with self._lock:
            if self.removed:
                return self.completed
            ticket = self._append(*entries)
            if self._events:
                self._events.emit(Submitted(self.serial, ticket, tuple(serial for serial, _ in lists)))
        self._on_entry()
        return ticket

    def signal(self, fence: Fence, value: int) -> int:
        """Queues setting the fence once everything before is done.  ValueError: not a u64."""
        return self._fence_entry(packets.signal(fence.address, value), fence)

    def wait(self, fence: Fence, value: int) -> int:
        """Queues holding all that follows until the fence has reached the value.  ValueError: not a u64."""
        return self._fence_entry(packets.wait(fence.address, value), fence)

    def map_tiles(
        self, allocation: Allocation, regions: Sequence[tuple[int, int, Heap | None, int, bool]]
    ) -> int:
        """Queues mapping tiles: (tile, count, heap or None for NULL, heap tile, reuse) each, in order.

        ValueError: tiles outside of allocation or heap.
        """
        for tile, count, heap, heap_tile, reuse in regions:
            self._memory.check_tiles(allocation, tile, count, heap, heap_tile, reuse)
        rows = [
            (tile, count, 0 if heap is None else heap.serial, heap_tile, reuse)
            for tile, count, heap, heap_tile, reuse in regions
        ]
        return self._entry(packets.map_tiles(allocation.address, rows))

    def done(self, ticket: int) -> bool:
        """Whether the entry of that ticket, and so all before it, has been executed."""
        return ticket <= self.completed

    def close(self) -> None:
        """Gives the queue up; what it holds is still executed."""
        self.closed = True
        self._on_entry()

    @property
    def pending(self) -> Sequence[bytes]:
        """The entries not yet executed."""
        return self._entries

    def pop(self) -> None:
        """The entry at the head is done."""
        self._entries.popleft()
        self.completed += 1
        while self._fences and self._fences[0][0] <= self.completed:
            self._fences.popleft()
        self.released = False
        self.position = self.command = 0

    def remove(self) -> None:
        """The device is gone: nothing queued will run."""
        self.removed = True
        self._entries.clear()
        self._fences.clear()
        self.completed = self.submitted

    def _fence_entry(self, entry: bytes, fence: Fence) -> int:
        with self._lock:
            if not self.removed:
                self._fences.append((self.submitted + 1, fence))
            return self._entry(entry)

    def _entry(self, entry: bytes) -> int:
        with self._lock:
            if self.removed:
                return self.completed
            ticket = self._append(entry)
        self._on_entry()
        return ticket

    def _append(self, *entries: bytes) -> int:
        self._entries.extend(entries)
        self.submitted += len(entries)
        return self.submitted
