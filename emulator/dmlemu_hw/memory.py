"""The GPU's memory: heaps, allocations over them, tiles, and the address space that the GPU sees.

A heap whose tiles can be mapped is a range of one sparse memory file per GPU (``memfd``), mapped once;
any other has memory of its own, in large pages.  An allocation is a range of GPU virtual addresses.  A
placed one stands on its heap's mapping, so two that overlap are the same bytes; a reserved one has host
addresses of its own, into which 64 KiB tiles of heaps are mapped: the host's MMU does the aliasing.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import weakref
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from operator import index
from random import Random
from typing import Any

import numpy as np

from . import chaos
from .chaos import Mode
from .events import Allocated, EventStream, Freed, Mapped
from .faults import FaultKind, ForeignProcess, GpuFault, OutOfMemory
from .kernels import ffi, lib
from .lock import Lock

TILE_SIZE = 65536
FIRST_ADDRESS = 0x1_0000_0000
END_ADDRESS = 1 << 47  # what the host can address too

POISON_BYTE: int = lib.DMLK_POISON_BYTE

_LARGE_PAGE = 1 << 21
_LARGEST_GAP = 64  # tiles between two allocations, under chaos
_FREED_KEPT = 4096  # freed allocations remembered for messages

_SEGMENT = np.dtype([("address", "<u8"), ("size", "<u8"), ("host", "<u8")])  # struct dmlk_segment

_process = os.getpid()  # kept, as asking the system takes longer than all else that a call does


def _note_fork() -> None:
    global _process
    _process = os.getpid()


os.register_at_fork(after_in_child=_note_fork)


def round_to_tile(size: int) -> int:
    """``size`` rounded up to whole 64 KiB tiles."""
    return -(-size // TILE_SIZE) * TILE_SIZE


class Memory:
    """The memory of one GPU: ``budget`` bytes, of which live heaps use ``used``.

    Heaps and allocations belong to whoever asked for them and are given up with the last reference.
    The handler of a signal may raise in the middle of any change: ``_torn`` says that one was begun and
    not ended, and :meth:`settle` puts everything that follows from the living objects right again.
    ``draw`` gives the random numbers of a mode of chaos, None for one that is off.
    """

    def __init__(
        self,
        budget: int,
        events: EventStream,
        lock: Lock,
        draw: Callable[[Mode], Random | None] = lambda mode: None,
    ) -> None:
        self.budget = budget
        self._gaps, self._poison = draw(Mode.PLACEMENT), draw(Mode.POISON)
        self._used = 0
        self._torn = False
        self._reckoning = 0  # how often _used was reckoned anew
        self._events = events
        self._lock = lock
        self._file = _File()
        self._next_address = FIRST_ADDRESS
        self._next_serial = 1
        self._heaps: weakref.WeakValueDictionary[int, Heap] = weakref.WeakValueDictionary()
        self._starts: list[int] = []  # addresses of the live allocations, sorted
        self._live: list[weakref.ref[Allocation]] = []  # in the same order
        self._segments = _Segments()
        self._freed: deque[tuple[int, int, str]] = deque(maxlen=_FREED_KEPT)
        self._with_null: dict[int, _Reservation] = {}  # by allocation serial: has NULL tiles

    @property
    def used(self) -> int:
        """Bytes of the budget that are in use."""
        self.settle()
        return self._used

    def check_process(self) -> None:
        """ForeignProcess: this process was forked from the one that made the memory.

        It may share bytes with its parent, but not what says whose they are.
        """
        if self._file.owner != _process:
            raise ForeignProcess(
                f"The GPU belongs to process {self._file.owner}, from which this one ({_process}) was forked."
            )

    # --- heaps ---

    def create_heap(self, size: int, *, poison: bool = False, mappable: bool = True, label: str = "") -> Heap:
        """``size`` bytes of memory; the capacity is rounded up to 64 KiB.

        The bytes are 0, or the poison byte when their contents are to count as undefined.
        A heap that is not ``mappable`` serves placed allocations only, and kernels are faster on it.
        ValueError: no size.  TypeError: no integer.  OutOfMemory: above the budget, or the host refuses.
        ForeignProcess, as by all that takes memory.
        """
        size = index(size)
        if size <= 0:
            raise ValueError(f"Heap size ({size}) is not positive.")
        self.check_process()
        self.settle()
        with self._lock:
            capacity = round_to_tile(size)
            if self._used + capacity > self.budget and not self._torn:
                self._mend()  # an exception may have kept something from being given up
            if self._used + capacity > self.budget:
                raise self._out_of_memory(
                    f"A heap of {capacity} bytes does not fit: {self._used} of {self.budget} are in use.",
                    capacity,
                )
            storage = self._create_storage(capacity, charge=capacity, mappable=mappable)
            if poison:
                self._fill_poison(storage.export(0, capacity))
            torn, self._torn = self._torn, True
            heap = Heap(self, storage, size, self._serial(), label)
            self._heaps[heap.serial] = heap
            self._used += capacity
            storage.reckoning = self._reckoning
            self._torn = torn
            if self._events:
                self._events.emit(Allocated("heap", heap.serial, 0, size, label))
            return heap

    def create_internal(self, size: int, label: str) -> Allocation:
        """Memory that the device itself needs; it does not count against the budget."""
        with self._lock:
            storage = self._create_storage(round_to_tile(size), charge=0, mappable=False)
            return self.place(Heap(self, storage, size, self._serial(), label), 0, size, label)

    def find_heap(self, serial: int) -> Heap | None:
        """The open heap of that serial."""
        heap = self._heaps.get(serial)
        return None if heap is None or heap.closed else heap

    # --- allocations ---

    def place(self, heap: Heap, offset: int, size: int, label: str = "") -> Allocation:
        """New addresses for ``size`` bytes of ``heap`` from ``offset`` on.

        ValueError: the heap is closed or too small.  TypeError: no integers.  OutOfMemory: no addresses
        left.
        """
        storage, offset, size = heap._opened(), index(offset), index(size)
        if size <= 0 or offset < 0 or offset + size > heap.capacity:
            raise ValueError(
                f"The range of {size} bytes at offset {offset} does not lie in {heap.describe()} "
                f"of {heap.capacity} bytes."
            )
        self.check_process()
        self.settle()
        with self._lock:
            address = self._find_addresses(size)
            torn, self._torn = self._torn, True
            allocation = Allocation(self, storage, address, size, heap, offset, label, self._serial())
            _add_user(storage)
            self._insert(allocation)
            self._torn = torn
            self._tell(allocation)
            return allocation

    def reserve(self, size: int, label: str = "") -> Allocation:
        """New addresses without memory: all their 64 KiB tiles are NULL (read 0, drop writes).

        ValueError: no size.  TypeError: no integer.  OutOfMemory: no addresses left here or in the host.
        """
        size = index(size)
        if size <= 0:
            raise ValueError(f"Size ({size}) of the reserved range is not positive.")
        self.check_process()
        self.settle()
        with self._lock:
            address = self._find_addresses(size)
            try:
                reservation = _Reservation(round_to_tile(size) // TILE_SIZE)
            except OSError as error:
                raise self._out_of_memory(
                    f"The host refuses {size} bytes of address space ({error.strerror}).", size
                ) from None
            torn, self._torn = self._torn, True
            allocation = Allocation(self, reservation, address, size, None, 0, label, self._serial())
            self._with_null[allocation.serial] = reservation
            self._insert(allocation)
            self._torn = torn
            self._tell(allocation)
            return allocation

    def map_tiles(
        self,
        allocation: Allocation,
        tile: int,
        count: int,
        heap: Heap | None,
        heap_tile: int,
        *,
        reuse: bool = False,
    ) -> None:
        """Lets ``count`` tiles of a reserved allocation stand on tiles of ``heap`` (None: NULL).

        The heap's tiles follow one another from ``heap_tile`` on; with ``reuse`` they are all that
        one.  ValueError: tiles outside.  OutOfMemory: the host has no more mappings; what was done
        so far stays.
        """
        with self._lock:
            self.check_tiles(allocation, tile, count, heap, heap_tile, reuse)
            reservation = allocation._reservation()
            storage = None if heap is None else heap._opened()
            number = 0 if heap is None else heap.serial
            torn, self._torn = self._torn, True
            try:
                for run in _runs(tile, count, storage, heap_tile, reuse):
                    self._map_run(reservation, run)
            except OSError as error:
                if self._events:  # some of them may be mapped
                    self._events.emit(Mapped(allocation.serial, tile, count, number, heap_tile, reuse))
                raise self._out_of_memory(
                    f"The host refuses to map {count} tiles ({error.strerror}).", count * TILE_SIZE
                ) from None
            finally:
                if reservation.null_runs:
                    self._with_null[allocation.serial] = reservation
                else:
                    self._with_null.pop(allocation.serial, None)
            self._torn = torn
            if self._events:
                self._events.emit(Mapped(allocation.serial, tile, count, number, heap_tile, reuse))

    def check_tiles(
        self, allocation: Allocation, tile: int, count: int, heap: Heap | None, heap_tile: int, reuse: bool
    ) -> None:
        """ValueError when :meth:`map_tiles` cannot take these arguments."""
        tiles = allocation._reservation().tiles
        if tile < 0 or count <= 0 or tile + count > tiles:
            raise ValueError(
                f"{count} tiles from {tile} on do not lie in the {tiles} tiles of {allocation.describe()}."
            )
        if heap is None:
            return
        if not heap._opened().mappable:
            raise ValueError(f"{heap.describe()} is not mappable: its tiles cannot be mapped.")
        if heap_tile < 0 or heap_tile + (1 if reuse else count) > heap.capacity // TILE_SIZE:
            raise ValueError(
                f"{count} tiles from {heap_tile} on do not lie in the {heap.capacity // TILE_SIZE} tiles of "
                f"{heap.describe()}."
            )

    # --- what the GPU sees ---

    def find(self, address: int) -> Allocation | None:
        """The live allocation that holds the address."""
        self.settle()
        with self._lock:
            allocation = self._at_or_before(address)
            return allocation if allocation and address < allocation.address + allocation.size else None

    def find_freed(self, address: int) -> str | None:
        """Label of the freed allocation that once held the address (addresses are never used again)."""
        with self._lock:
            for start, size, label in self._freed:
                if start <= address < start + size:
                    return label
            return None

    def translate(self, address: int, size: int) -> int:
        """Host address of ``size`` bytes; GpuFault when they do not lie in one live allocation."""
        allocation = self.find(address)
        if allocation is None:
            message = f"Address {address:#x} lies in {self.whereabouts(address)}."
            raise GpuFault(FaultKind.BAD_ADDRESS, message, address=address)
        left = allocation.address + allocation.size - address
        if size > left:
            raise GpuFault(
                FaultKind.BAD_ADDRESS,
                f"The {size} bytes at address {address:#x} run {size - left} bytes past the end of "
                f"{allocation.describe()}.",
                address=address,
            )
        return allocation.host + (address - allocation.address)

    def view(self, address: int, size: int) -> memoryview:
        """The bytes themselves, writable; GpuFault when they do not lie in one live allocation."""
        with self._lock:
            self.translate(address, size)
            allocation = self.find(address)
            assert allocation is not None and allocation._mapped is not None
            return allocation._mapped.export(allocation.offset + address - allocation.address, size)

    def segments(self) -> tuple[Any, int]:
        """The live allocations as ``dmlk_segment *`` and their number, sorted by address."""
        return self._segments.pointer, self._segments.count

    def drop_null_writes(self) -> None:
        """Makes all NULL tiles read 0 again; to be called after commands that may have written there."""
        for reservation in self._with_null.values():
            for start, size in reservation.null_ranges():
                lib.madvise(ffi.cast("void *", reservation.host + start), size, lib.MADV_DONTNEED)

    @property
    def has_null_tiles(self) -> bool:
        return bool(self._with_null)

    def whereabouts(self, address: int) -> str:
        """For messages: where the address lies, or once lay."""
        allocation = self.find(address)
        if allocation is not None:
            return f"{allocation.describe()} at byte {address - allocation.address}"
        freed = self.find_freed(address)
        if freed is not None:
            return f"{freed}, which has been released" if freed else "an allocation that has been released"
        before = self._at_or_before(address)
        if before is not None:
            past = address - before.address - before.size
            if past < TILE_SIZE:
                return f"no allocation, {past} bytes past the end of {before.describe()}"
        return "no allocation"

    def close(self) -> None:
        """Gives everything up."""
        for each in list(self._live):
            allocation = each()
            if allocation is not None:
                allocation.close()
        for heap in list(self._heaps.values()):
            heap.close()

    # --- inside ---

    def settle(self) -> None:
        """Before anything relies on what is known here: see :class:`Memory`."""
        self._lock.settle()
        if self._torn and not self._lock.is_mine():
            with self._lock:
                self._mend()

    def _mend(self) -> None:
        """Everything that follows from heaps and allocations, anew."""
        live = [(each, allocation) for each in self._live if (allocation := each()) and allocation._mapped]
        heaps = [heap for heap in self._heaps.values() if heap._storage is not None]
        reservations = {a.serial: a._mapped for _, a in live if isinstance(a._mapped, _Reservation)}
        users = [heap._storage for heap in heaps]
        users += [a._mapped for _, a in live if isinstance(a._mapped, _Storage)]
        users += [run.storage for reservation in reservations.values() for run in reservation.runs]
        counts = Counter(storage for storage in users if storage is not None)
        self._reckoning += 1
        for storage, count in counts.items():
            storage.users, storage.reckoning = count, self._reckoning
        self._used = sum(storage.charge for storage in counts)
        self._starts = []  # never longer than _live
        self._live = [each for each, _ in live]
        self._starts = [allocation.address for _, allocation in live]
        self._segments.set([(a.address, a.size, a.host) for _, a in live])
        self._with_null = {serial: each for serial, each in reservations.items() if each.count_null()}
        self._torn = False

    def _at_or_before(self, address: int) -> Allocation | None:
        """The live allocation that begins there, or nearest before."""
        at = bisect_right(self._starts, address) - 1
        return self._live[at]() if at >= 0 else None

    def _serial(self) -> int:
        serial = self._next_serial
        self._next_serial += 1
        return serial

    def _out_of_memory(self, message: str, needed: int) -> OutOfMemory:
        return OutOfMemory(message, needed=needed, used=self._used, budget=self.budget)

    def _create_storage(self, capacity: int, charge: int, mappable: bool) -> _Storage:
        try:
            return _Storage(self._file, capacity, charge, mappable)
        except OSError as error:
            raise self._out_of_memory(
                f"The host refuses {capacity} bytes of memory ({error.strerror}).", capacity
            ) from None

    def _find_addresses(self, size: int) -> int:
        """Where ``size`` bytes of addresses are free; :meth:`_insert` takes them."""
        address = self._next_address
        if self._gaps is not None:
            address += self._gaps.randrange(_LARGEST_GAP) * TILE_SIZE
            address |= TILE_SIZE  # aligned to that, and to no more
        if size > END_ADDRESS - address:
            raise self._out_of_memory(
                f"The GPU has no {size} virtual addresses left ({address:#x} of {END_ADDRESS:#x} are used).",
                size,
            )
        return address

    def _fill_poison(self, memory: memoryview) -> None:
        if self._poison is None:
            np.frombuffer(memory, np.uint8).fill(POISON_BYTE)
        else:
            chaos.fill(memory, self._poison)

    def _insert(self, allocation: Allocation) -> None:
        # One tile stays free behind each range, so that running past an end never hits the neighbour.
        self._next_address = allocation.address + round_to_tile(allocation.size) + TILE_SIZE
        self._live.append(allocation._entry)  # addresses only grow: the order is kept
        self._starts.append(allocation.address)
        self._segments.append(allocation.address, allocation.size, allocation.host)

    def _tell(self, allocation: Allocation) -> None:
        if self._events:
            heap = allocation.heap.serial if allocation.heap else 0
            self._events.emit(
                Allocated(
                    allocation.kind,
                    allocation.serial,
                    allocation.address,
                    allocation.size,
                    allocation.label,
                    heap,
                    allocation.offset,
                )
            )

    def _remove(self, allocation: Allocation) -> None:
        if self._torn:
            self._mend()
        mapped = allocation._mapped
        at = bisect_right(self._starts, allocation.address) - 1
        if mapped is None or at < 0 or self._live[at] is not allocation._entry:
            return  # done before, or never completed
        self._freed.append((allocation.address, allocation.size, allocation.label))
        self._torn = True
        allocation._mapped = None
        del self._starts[at]
        del self._live[at]
        self._segments.remove(at)
        self._with_null.pop(allocation.serial, None)
        if isinstance(mapped, _Reservation):
            for run in mapped.runs:
                self._drop_user(run.storage)
        elif isinstance(mapped, _Storage):
            self._drop_user(mapped)
        self._torn = False
        if self._events:
            self._events.emit(
                Freed(
                    allocation.kind, allocation.serial, allocation.address, allocation.size, allocation.label
                )
            )

    def _remove_heap(self, heap: Heap) -> None:
        if self._torn:
            self._mend()
        storage = heap._storage
        if storage is None:
            return
        self._torn = True
        self._heaps.pop(heap.serial, None)
        heap._storage = None
        self._drop_user(storage)
        self._torn = False
        if self._events:
            self._events.emit(Freed("heap", heap.serial, 0, heap.size, heap.label))

    def _map_run(self, reservation: _Reservation, run: _Run) -> None:
        added, removed = reservation.map(run)
        for each in added:
            _add_user(each.storage)
        for each in removed:
            self._drop_user(each.storage)

    def _drop_user(self, storage: _Storage | None) -> None:
        if storage is not None:
            storage.users -= 1
            if storage.users == 0 and storage.reckoning == self._reckoning:
                self._used -= storage.charge


class Heap:
    """``size`` bytes of memory, ``capacity`` with the rounding; mirrors ``ID3D12Heap``.

    The bytes live on while an allocation or a tile uses them.
    """

    closed = True  # until it is complete

    def __init__(self, memory: Memory, storage: _Storage, size: int, serial: int, label: str) -> None:
        self.size = size
        self.capacity = storage.capacity
        self.serial = serial
        self.label = label
        self._memory = memory
        self._storage: _Storage | None = storage
        self.closed = False

    def close(self) -> None:
        """Gives the heap up; calling it again does nothing."""
        if not self.closed:
            self.closed = True
            self._memory._lock.run_last(partial(self._memory._remove_heap, self))

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():  # the modules of those who listen may be gone
            self.close()

    def describe(self) -> str:
        """For messages: the label, or the serial when it has none."""
        return self.label or f"heap {self.serial}"

    def _opened(self) -> _Storage:
        if self.closed or self._storage is None:
            raise ValueError(f"{self.describe()} is closed.")
        return self._storage


class Allocation:
    """GPU virtual addresses [address, address + size); their bytes stand at ``host`` in this process.

    ``heap`` and ``offset`` tell where a placed allocation lies; ``heap`` is None for a reserved one.
    """

    closed = True  # until it is complete

    def __init__(
        self,
        memory: Memory,
        mapped: _Mapped,
        address: int,
        size: int,
        heap: Heap | None,
        offset: int,
        label: str,
        serial: int,
    ) -> None:
        self.address = address
        self.size = size
        self.host = mapped.host + offset
        self.heap = heap
        self.offset = offset
        self.label = label
        self.serial = serial
        self._memory = memory
        self._mapped: _Mapped | None = mapped
        self._entry = weakref.ref(self)  # in the memory's list
        self.closed = False

    @property
    def kind(self) -> str:
        return "placed" if self.heap is not None else "reserved"

    def buffer(self) -> memoryview:
        """The bytes themselves, writable, no copy; they stay mapped while the view lives.

        ValueError: the allocation is closed.
        """
        return self._opened().export(self.offset, self.size)

    def heap_buffer(self) -> memoryview:
        """All bytes of the heap that a placed allocation lies in, as by :meth:`buffer`."""
        assert self.heap is not None
        return self._opened().export(0, self.heap.capacity)

    def close(self) -> None:
        """Gives the addresses up for good; calling it again does nothing."""
        if not self.closed:
            self.closed = True
            self._memory._lock.run_last(partial(self._memory._remove, self))

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():  # the modules of those who listen may be gone
            self.close()

    def describe(self) -> str:
        """For messages: label and size, or the serial when it has no label."""
        return f"{self.label or f'allocation {self.serial}'} ({self.size} bytes)"

    def _opened(self) -> _Mapped:
        if self.closed or self._mapped is None:
            raise ValueError(f"{self.describe()} is closed.")
        return self._mapped

    def _reservation(self) -> _Reservation:
        mapped = self._opened()
        if not isinstance(mapped, _Reservation):
            raise ValueError(f"{self.describe()} is not a reserved allocation: it has no tiles.")
        return mapped


class _Segments:
    """The segment table that the C side reads, kept sorted by address."""

    def __init__(self) -> None:
        self.count = 0
        self._table = np.zeros(64, _SEGMENT)
        self._point()

    def append(self, address: int, size: int, host: int) -> None:
        if self.count == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
            self._point()
        self._table[self.count] = (address, size, host)
        self.count += 1

    def set(self, rows: list[tuple[int, int, int]]) -> None:
        self._table = np.zeros(max(64, len(rows)), _SEGMENT)
        self._table[: len(rows)] = rows
        self._point()
        self.count = len(rows)

    def remove(self, index: int) -> None:
        self._table[index : self.count - 1] = self._table[index + 1 : self.count]
        self.count -= 1

    def _point(self) -> None:
        self.pointer = ffi.cast("dmlk_segment *", self._table.ctypes.data)


class _File:
    """The sparse memory file of a GPU; ranges are never used again.

    A heap that is not mappable has a range too, which stays empty: what else is known of bytes (shadow
    memory) is kept by their place in the file.
    """

    def __init__(self) -> None:
        self.owner = _process
        self.fd = os.memfd_create("dmlemu")
        self.size = 0
        _at_end(self, partial(os.close, self.fd))

    def map_new(self, size: int, mappable: bool) -> tuple[int, int]:
        """Offset and host address of ``size`` new bytes; they take no memory until they are touched.

        OSError: the host refuses.
        """
        offset = self.size
        if offset + size >= 2**63:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        if mappable:
            os.ftruncate(self.fd, offset + size)
        _mappings.take(1)
        try:
            host = _map(0, size, self.fd, offset) if mappable else _map_large(size)
        except OSError:
            _mappings.give(1)
            raise
        self.size = offset + size
        return offset, host


class _Mapped:
    """Host addresses that stay mapped while this object lives; every exported buffer holds it."""

    def __init__(self, host: int) -> None:
        self.host = host

    def export(self, offset: int, size: int) -> memoryview:
        # cffi's destructor does nothing here but hold a reference to the mapping's owner.
        pointer = ffi.gc(ffi.cast("uint8_t *", self.host + offset), self._hold)
        return memoryview(ffi.buffer(pointer, size))

    def _hold(self, _pointer: object) -> None:
        pass


class _Storage(_Mapped):
    """The bytes of a heap: in the memory file, or (not ``mappable``) in memory of their own.

    ``users`` counts what keeps them alive: the heap, allocations, runs of tiles.  ``charge`` is what
    they take from the budget, if ``reckoning`` is that of the memory.
    """

    def __init__(self, file: _File, capacity: int, charge: int, mappable: bool) -> None:
        self.file = file
        self.capacity = capacity
        self.charge = charge
        self.users = 1
        self.reckoning = -1
        self.mappable = mappable
        self.file_offset, host = file.map_new(capacity, mappable)
        super().__init__(host)
        _at_end(self, partial(_release, host, capacity, file.owner if mappable else 0))


def _add_user(storage: _Storage | None) -> None:
    if storage is not None:
        storage.users += 1


class _Run:
    """Consecutive tiles of a reserved range that stand on consecutive tiles of one heap (or NULL)."""

    def __init__(self, first: int, count: int, storage: _Storage | None, heap_tile: int) -> None:
        self.first = first
        self.count = count
        self.storage = storage
        self.heap_tile = heap_tile

    @property
    def end(self) -> int:
        return self.first + self.count

    def part(self, first: int, end: int) -> _Run:
        """The tiles of the run that lie in [first, end)."""
        first, end = max(first, self.first), min(end, self.end)
        return _Run(first, end - first, self.storage, self.heap_tile + (first - self.first))


def _runs(tile: int, count: int, storage: _Storage | None, heap_tile: int, reuse: bool) -> Iterator[_Run]:
    if reuse and storage is not None:
        for i in range(count):
            yield _Run(tile + i, 1, storage, heap_tile)
    else:
        yield _Run(tile, count, storage, heap_tile)


class _Reservation(_Mapped):
    """The host addresses of a reserved allocation and what stands on them, as runs without gaps."""

    def __init__(self, tiles: int) -> None:
        self.tiles = tiles
        self.runs = [_Run(0, tiles, None, 0)]
        _mappings.take(1)
        try:
            super().__init__(_map(0, tiles * TILE_SIZE, -1, 0))
        except OSError:
            _mappings.give(1)
            raise
        _at_end(self, partial(_release_runs, self.host, tiles * TILE_SIZE, self.runs))
        self.null_runs = 1
        self._null_ranges: list[tuple[int, int]] | None = None

    def map(self, run: _Run) -> tuple[list[_Run], list[_Run]]:
        """Puts the run in place of what stood there; returns the runs added and removed.

        OSError: the host refuses; nothing changed.
        """
        start = bisect_right(self.runs, run.first, key=_first) - 1
        end = bisect_left(self.runs, run.end, key=_first)
        removed = self.runs[start:end]
        added = [run]
        if removed[0].first < run.first:
            added.insert(0, removed[0].part(0, run.first))
        if removed[-1].end > run.end:
            added.append(removed[-1].part(run.end, self.tiles))
        _mappings.take(len(added) - len(removed))
        try:
            self._map(run)
        except OSError:
            _mappings.give(len(added) - len(removed))
            raise
        self.runs[start:end] = added
        self.null_runs += _count_null(added) - _count_null(removed)
        self._null_ranges = None
        return added, removed

    def _map(self, run: _Run) -> None:
        host, size = self.host + run.first * TILE_SIZE, run.count * TILE_SIZE
        if run.storage is None:
            _map(host, size, -1, 0)
        else:
            offset = run.storage.file_offset + run.heap_tile * TILE_SIZE
            _map(host, size, run.storage.file.fd, offset)

    def count_null(self) -> int:
        """Counts the runs of NULL tiles anew."""
        self.null_runs = _count_null(self.runs)
        self._null_ranges = None
        return self.null_runs

    def null_ranges(self) -> list[tuple[int, int]]:
        """Start and size in bytes of what reads 0."""
        if self._null_ranges is None:
            self._null_ranges = [
                (run.first * TILE_SIZE, run.count * TILE_SIZE) for run in self.runs if run.storage is None
            ]
        return self._null_ranges


def _first(run: _Run) -> int:
    return run.first


def _count_null(runs: list[_Run]) -> int:
    return sum(run.storage is None for run in runs)


def _map(host: int, size: int, fd: int, offset: int) -> int:
    """Maps a range of the memory file, or private zeros when fd is -1.  OSError: the host refuses."""
    flags = lib.MAP_NORESERVE | (lib.MAP_FIXED if host else 0)
    flags |= lib.MAP_SHARED if fd >= 0 else lib.MAP_PRIVATE | lib.MAP_ANONYMOUS
    result = lib.mmap(ffi.cast("void *", host), size, lib.PROT_READ | lib.PROT_WRITE, flags, fd, offset)
    address = int(ffi.cast("uintptr_t", result))
    if address == 2**64 - 1:
        raise OSError(ffi.errno, os.strerror(ffi.errno))
    return address


def _map_large(size: int) -> int:
    """Maps new zeros, in large pages as far as the host has them.  OSError: the host refuses."""
    if size < _LARGE_PAGE:
        return _map(0, size, -1, 0)
    start = _map(0, size + _LARGE_PAGE, -1, 0)
    host = -(-start // _LARGE_PAGE) * _LARGE_PAGE  # large pages lie at multiples of their size
    if host > start:
        _unmap(start, host - start)
    _unmap(host + size, start + _LARGE_PAGE - host)
    lib.madvise(ffi.cast("void *", host), size, lib.MADV_HUGEPAGE)  # a host that has none refuses
    return host


class _Mappings:
    """Keeps this process away from the host's limit of mappings: at the limit even malloc fails."""

    def __init__(self) -> None:
        with open("/proc/sys/vm/max_map_count") as file:
            limit = int(file.read())
        self._limit = limit - limit // 8
        self._count = 0
        self._given: deque[int] = deque()
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        """OSError: too many."""
        with self._lock:
            while self._given:
                self._count -= self._given.popleft()
            if count > 0 and self._count + count > self._limit:
                raise OSError(errno.ENOMEM, f"{self._count} mappings are in use")
            self._count += count

    def give(self, count: int) -> None:
        """Takes no lock: garbage collection may call it at any moment."""
        self._given.append(count)


_mappings = _Mappings()


def _unmap(host: int, size: int) -> None:
    lib.munmap(ffi.cast("void *", host), size)


def _release(host: int, size: int, file_owner: int = 0) -> None:
    """``file_owner``: the process whose memory file holds the bytes, 0 if none does."""
    if _process == file_owner:  # a forked process shares the file: its parent still needs the bytes
        lib.madvise(ffi.cast("void *", host), size, lib.MADV_REMOVE)
    _unmap(host, size)
    _mappings.give(1)


def _release_runs(host: int, size: int, runs: list[_Run]) -> None:
    _unmap(host, size)
    _mappings.give(len(runs))


def _at_end(owner: object, work: Any) -> None:
    """Runs ``work`` when ``owner`` is gone, but not at exit, where arrays may still be in use."""
    weakref.finalize(owner, work).atexit = False
