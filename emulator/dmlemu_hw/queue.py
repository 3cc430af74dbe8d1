"""Command queues: packets that wait for execution."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from . import packets
from .allocation import Allocation, Heap
from .events import EventStream, Queued, Submitted
from .fence import Fence, QueuedWait
from .host import MappingPromise
from .lock import Lock
from .memory import Memory


class QueueKind(IntEnum):
    """``D3D12_COMMAND_LIST_TYPE`` values of the supported queues."""

    DIRECT = 0
    COMPUTE = 2
    COPY = 3


class Entry(bytes):
    """A packet, its ticket, and the fence that it refers to, kept alive until the packet is executed.

    ``group`` is the ticket of the last entry queued by the same call, ``wait`` the state of a WAIT.
    ``promise`` reserves the host mappings that a tile mapping update will need.
    """

    promise: MappingPromise | None = None
    fence: Fence | None = None
    wait: QueuedWait | None = None
    ticket: int
    group: int


class Queue:
    """A FIFO of entries, each a packet; mirrors ``ID3D12CommandQueue``.

    Every entry has a ticket, a number that counts up from 1; entries run in that order.  ``owner`` refers to
    the object that submits through the queue: when it is collected, the queue is closed.  ``pending``: the
    entries that are not complete.  ``has_timeout``: a shader that runs for too long removes the GPU.
    ``start``: lets the GPU run as its policy says after an entry was queued.
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
        owner: weakref.ref[Any] | None = None,
    ) -> None:
        self.kind = kind
        self.label = label
        self.serial = serial
        self.has_timeout = True  # of shaders that run for too long
        self.removed = False
        self._owner = owner
        self._closed = False
        # A signal handler may raise anywhere: every change is one step, and the progress of
        # the head entry names that entry.
        self._done = 0  # ticket of the last executed entry
        self._progress: tuple[object, int, int] = (None, 0, 0)
        self.pending: deque[Entry] = deque()
        self._memory = memory
        self._events = events
        self._lock = lock
        self._adding = Lock()  # taken after the GPU's
        self.start = on_entry

    def submit(self, lists: Sequence[tuple[int, bytes]], *, start: bool = True) -> int:
        """Queues command lists, given as (serial, packets); mirrors ``ExecuteCommandLists``.

        Returns the ticket of the last one.  ``start``, here and below: if False, call ``start`` later.
        """
        self._memory.check_process()
        entries = [Entry(packets.execute(serial, data)) for serial, data in lists]

        def event(ticket: int) -> object:
            return Submitted(self.serial, ticket, tuple(serial for serial, _ in lists))

        return self._queue(entries, event, start=start)

    def signal(self, fence: Fence, value: int, *, start: bool = True) -> int:
        """Queues setting the fence once everything before is done.  ValueError: not a u64."""
        entry = Entry(packets.signal(fence.address, value))
        entry.fence = fence
        return self._entry(entry, fence.address, value, start=start)

    def wait(self, fence: Fence, value: int, *, start: bool = True) -> int:
        """Queues a wait: later entries run once the fence has reached the value.  ValueError: not a u64."""
        entry = Entry(packets.wait(fence.address, value))
        entry.fence = fence
        entry.wait = fence.queue_wait(value)
        return self._entry(entry, fence.address, value, start=start)

    def map_tiles(
        self,
        allocation: Allocation,
        regions: Sequence[tuple[int, int, Heap | None, int, bool]],
        *,
        start: bool = True,
    ) -> int:
        """Queues tile mapping updates: (tile, count, heap or None for NULL, heap tile, reuse) each, in order.

        ValueError: tiles outside the allocation or heap.  OutOfMemory: the host has too few mappings left.
        """
        for tile, count, heap, heap_tile, reuse in regions:
            self._memory.check_tiles(allocation, tile, count, heap, heap_tile, reuse)
        rows = [
            (tile, count, 0 if heap is None else heap.serial, heap_tile, reuse)
            for tile, count, heap, heap_tile, reuse in regions
        ]
        entry = Entry(packets.map_tiles(allocation.address, rows))
        entry.promise = self._memory.promise_mappings(allocation, regions)
        return self._entry(entry, start=start)

    def done(self, ticket: int) -> bool:
        """Whether no entry up to that ticket is pending; tickets not yet issued are ignored."""
        return ticket <= self.completed or ticket > self.submitted

    def signal_after(self, ticket: int) -> tuple[Fence, int] | None:
        """Fence and value of the first signal queued after the entry with that ticket."""
        with self._lock:
            entries = list(self.pending)
        for entry in entries:
            if entry.ticket > ticket and packets.HEADER.unpack_from(entry)[0] == packets.Opcode.SIGNAL:
                packet = packets.decode_one(entry)
                assert isinstance(packet, packets.SignalPacket) and entry.fence is not None
                return entry.fence, packet.value
        return None

    def close(self) -> None:
        """Closes the queue; pending entries are still executed, then the scheduler drops it."""
        self._closed = True

    @property
    def closed(self) -> bool:
        """Whether nothing more will be queued.

        A property, because a finalizer of the owner is not reliable: a signal handler may interrupt it.
        """
        return self._closed or (self._owner is not None and self._owner() is None)

    @property
    def completed(self) -> int:
        """Entries up to this ticket are complete."""
        try:
            return self.pending[0].ticket - 1 if self.pending else self._done
        except IndexError:  # another thread was faster
            return self._done

    @property
    def submitted(self) -> int:
        """The last issued ticket."""
        try:
            return self.pending[-1].ticket if self.pending else self._done
        except IndexError:
            return self._done

    @property
    def blocked(self) -> bool:
        """Whether the head is a WAIT whose value has not been reached since it was queued."""
        wait = self.pending[0].wait
        return wait is not None and not wait.over

    @property
    def position(self) -> int:
        """Byte offset in the entry at the head where execution continues; 0: not begun."""
        entry, position, _ = self._progress
        return position if entry is self.pending[0] else 0

    @property
    def progress(self) -> tuple[int, int]:
        """:attr:`position`, and the number of commands of the list at the head that have been executed."""
        entry, position, command = self._progress
        return (position, command) if entry is self.pending[0] else (0, 0)

    def is_head(self, entry: Entry) -> bool:
        """Whether the entry is at the head; it no longer is when the device was removed meanwhile."""
        return bool(self.pending) and self.pending[0] is entry

    def reach(self, entry: Entry, position: int, command: int) -> None:
        """Records the progress of a list, which is at the head."""
        self._progress = (entry, position, command)

    def pop(self) -> None:
        """Completes the entry at the head."""
        self._done = self.pending[0].ticket
        self.pending.popleft()
        self._progress = (None, 0, 0)

    def remove(self) -> None:
        """The device was removed: drops all entries."""
        with self._adding:
            self.removed = True
            self._done = self.submitted
            self.pending.clear()

    def _entry(self, entry: Entry, fence: int = 0, value: int = 0, *, start: bool) -> int:
        self._memory.check_process()

        def event(ticket: int) -> object:
            return Queued(self.serial, ticket, packets.HEADER.unpack_from(entry)[0], fence, value)

        return self._queue([entry], event, start=start)

    def _queue(self, entries: list[Entry], event: Callable[[int], object], *, start: bool) -> int:
        """Appends the entries; the GPU's lock is needed only for the event, as the GPU may be running."""
        if self._events.subscriptions:
            with self._lock:
                ticket = self._append(entries)
                if ticket is not None:
                    self._events.emit(event(ticket))
        else:
            ticket = self._append(entries)
        if ticket is None:
            return self.completed
        if start:
            self.start()
        return ticket

    def _append(self, entries: list[Entry]) -> int | None:
        """The ticket of the last entry; None: the device was removed."""
        with self._adding:
            if self.removed:
                return None
            ticket = self.submitted
            last = ticket + len(entries)
            for entry in entries:
                ticket += 1
                entry.ticket, entry.group = ticket, last
            self.pending.extend(entries)
            return last
