"""Fences: 64-bit values in shared memory that host and GPU signal and wait for."""

from __future__ import annotations

import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from .allocation import Allocation
from .events import EventStream, Signalled, Waited
from .faults import ForeignProcess
from .lock import Lock
from .memory import Memory
from .storage import TILE_SIZE

U64_MAX = 2**64 - 1
_SLOT_SIZE = 8
_SLOTS = TILE_SIZE // _SLOT_SIZE
_VALUE = struct.Struct("<Q")


class QueuedWait:
    """A wait of a queue or the host.

    ``over`` once the fence has reached the value, even if it is later set lower.
    """

    over = False


class Fence:
    """A counter; mirrors ``ID3D12Fence``.  ``address`` is the address of its value."""

    def __init__(self, fences: Fences, address: int, slot: memoryview, serial: int) -> None:
        self.address = address
        self.serial = serial
        self.label = ""
        self.closed = False
        self._fences = fences
        self._slot = slot
        self._callbacks: list[tuple[int, Callable[[], None]]] = []
        # A heap of (value, tie-breaking number, wait).
        self._queued_waits: list[tuple[int, int, QueuedWait]] = []

    @property
    def value(self) -> int:
        """The value now; 2**64 - 1 once the GPU has been removed."""
        if self._fences.removed:
            return U64_MAX
        value: int = self._slot[0]
        return value

    def observe(self, awaited: int | None = None) -> int:
        """The value as read by the host, which from now on is ordered after the signal of that value.

        ``awaited``: the host only checked that the fence has reached this value, which it has.
        """
        return self._fences.observe(self, awaited)

    def signal(self, value: int) -> None:
        """Sets the value from the host; it may be lower than before.

        ValueError: not a u64.  ForeignProcess: this process was forked.
        """
        self._fences.signal(self, value)

    def on_value(self, value: int, callback: Callable[[], None]) -> None:
        """Calls ``callback`` once, when the value is reached; immediately if it already has been."""
        self._fences.register(self, value, callback)

    def queue_wait(self, value: int) -> QueuedWait:
        """Registers a wait: any value that the fence takes from now on can end it (FN3)."""
        return self._fences.queue_wait(self, value)

    def give_up(self, wait: QueuedWait) -> None:
        """Forgets a wait of the host."""
        self._fences.give_up(self, wait)

    def end_waits(self) -> None:
        """Ends the queued waits for values that the fence has reached.  Call with the lock held.

        A wait is removed after it is marked over: a signal handler that raises in between loses none.
        """
        value, waits = self.value, self._queued_waits
        while waits and waits[0][0] <= value:
            waits[0][2].over = True
            heappop(waits)

    def close(self) -> None:
        """Destroys the fence and ends all waits for it.

        An exception of a callback is raised after all callbacks have run, as in :meth:`signal`.
        """
        if not self.closed:
            try:
                self.signal(U64_MAX)
            except ForeignProcess:  # the value in shared memory belongs to the parent process
                pass
            finally:
                self.closed = True

    def describe(self) -> str:
        """For messages: the label, or the serial when it has none."""
        return self.label or f"fence {self.serial}"


class _Slot(weakref.ref[Fence]):
    """The memory of a fence's value; free when the fence is destroyed.

    The callback of the weak reference is C code: a signal handler could interrupt Python code.
    """

    address = 0  # until construction is complete
    memory = memoryview(b"")


class _Firing(threading.local):
    """Held by a thread that runs callbacks; a lock, since a raising signal handler could leave a flag set."""

    def __init__(self) -> None:
        self.lock: Any = threading.RLock()


class Fences:
    """All fences of one GPU, and the callbacks that their signals trigger."""

    def __init__(self, memory: Memory, events: EventStream, lock: Lock) -> None:
        self.removed = False
        self.after_host_signal: Callable[[], None] = lambda: None
        self._memory = memory
        self._events = events
        self._lock = lock
        self._pages: list[Allocation] = []
        self._page_used = _SLOTS
        self._free: deque[_Slot] = deque()  # slots of fences that no queue entry refers to
        self._by_address: dict[int, _Slot] = {}
        self.due: deque[Callable[[], None]] = deque()
        self._firing = _Firing()
        self._serial = 0
        self._wait_numbers = count()

    def create(self, initial_value: int) -> Fence:
        _check(initial_value)
        self._memory.check_process()
        with self._lock:
            address, memory = self._new_slot()
            memory[0] = initial_value
            self._serial += 1
            fence = Fence(self, address, memory, self._serial)
            slot = _Slot(fence, self._free.append)
            slot.address, slot.memory = address, memory
            self._by_address[address] = slot
            self.emit_signalled(address, initial_value, 0)
            return fence

    def find(self, address: int) -> Fence | None:
        """The fence whose value is at the address."""
        slot = self._by_address.get(address)
        return None if slot is None else slot()

    def read(self, address: int) -> int:
        """The value at an address, as the GPU reads it.  GpuFault: the address is not in live memory."""
        value: int = _VALUE.unpack(self._memory.view(address, _SLOT_SIZE))[0]
        return value

    def write(self, address: int, value: int) -> None:
        """Sets the value at an address; idempotent."""
        fence = self.find(address)
        if fence is None:
            _VALUE.pack_into(self._memory.view(address, _SLOT_SIZE), 0, value)
        elif not fence.closed:
            fence._slot[0] = value
            fence.end_waits()
            if fence._callbacks:
                self._collect_due(fence, value)

    def emit_signalled(self, address: int, value: int, queue: int) -> None:
        """Emits the event for a signal by a queue, or by the host (0)."""
        if self._events.subscriptions:
            self._events.emit(Signalled(queue, address, value))

    def observe(self, fence: Fence, awaited: int | None) -> int:
        """:meth:`Fence.observe`."""
        value = fence.value
        if self._events.subscriptions:
            with self._lock:
                self._events.emit(Waited(0, fence.address, value if awaited is None else awaited))
        return value

    def signal(self, fence: Fence, value: int) -> None:
        """:meth:`Fence.signal`."""
        _check(value)
        self._memory.check_process()
        with self._lock:
            if self.removed or fence.closed:
                return
            self.write(fence.address, value)
            self.emit_signalled(fence.address, value, 0)
        self.after_host_signal()

    def register(self, fence: Fence, value: int, callback: Callable[[], None]) -> None:
        """:meth:`Fence.on_value`."""
        _check(value)
        self._memory.check_process()
        with self._lock:
            if fence.value < value:
                fence._callbacks.append((value, callback))
                return
        lock = self._firing.lock
        if lock._is_owned():
            self.due.append(callback)
            return
        try:
            with lock:  # not left to another thread that fires: it has been called when this call returns
                callback()
        finally:
            self.fire()

    def queue_wait(self, fence: Fence, value: int) -> QueuedWait:
        """:meth:`Fence.queue_wait`."""
        wait = QueuedWait()
        with self._lock:
            heappush(fence._queued_waits, (value, next(self._wait_numbers), wait))
            if fence.value >= value:
                fence.end_waits()
        return wait

    def give_up(self, fence: Fence, wait: QueuedWait) -> None:
        """:meth:`Fence.give_up`."""
        with self._lock:
            left = [each for each in fence._queued_waits if each[2] is not wait]
            heapify(left)
            fence._queued_waits = left

    def remove_all(self) -> None:
        """The device was removed: every fence reads 2**64 - 1, and all waits end."""
        self.removed = True
        for slot in list(self._by_address.values()):
            fence = slot()
            if fence is not None:
                self._collect_due(fence, U64_MAX)

    def fire(self) -> None:
        """Runs the callbacks that are due.  Call without the lock.

        Callbacks that these trigger run after them, not nested.  The first exception is raised after all have
        run.
        """
        lock = self._firing.lock
        if not self.due or lock._is_owned():
            return
        raised: Exception | None = None
        with lock:
            while self.due:
                try:
                    callback = self.due.popleft()
                except IndexError:  # another thread was faster
                    break
                try:
                    callback()
                except Exception as error:
                    raised = raised or error
        if raised is not None:
            raise raised

    def _collect_due(self, fence: Fence, value: int) -> None:
        self.due.extend(callback for awaited, callback in fence._callbacks if awaited <= value)
        fence._callbacks = [each for each in fence._callbacks if each[0] > value]

    def _new_slot(self) -> tuple[int, memoryview]:
        while self._free:
            slot = self._free.popleft()
            if slot.address:
                return slot.address, slot.memory
        if self._page_used == _SLOTS:
            self._pages.append(self._memory.create_internal(TILE_SIZE, "fence values"))
            self._page_used = 0
        page, start = self._pages[-1], self._page_used * _SLOT_SIZE
        self._page_used += 1
        return page.address + start, page.buffer()[start : start + _SLOT_SIZE].cast("Q")


def _check(value: int) -> None:
    if not 0 <= value <= U64_MAX:
        raise ValueError(f"Fence value ({value}) is not an unsigned 64-bit number.")
