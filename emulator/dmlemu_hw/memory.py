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
import weakref
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import index
from random import Random
from typing import Any

import numpy as np

from . import chaos
from .addresses import Addresses
from .chaos import Mode
from .events import Allocated, EventStream, Freed, Mapped
from .faults import FaultKind, ForeignProcess, GpuFault, OutOfMemory
from .host import HostFile, HostRange, MappingPromise
from .kernels import lib
from .lock import Lock

TILE_SIZE = 65536
FIRST_ADDRESS = 0x1_0000_0000
END_ADDRESS = 1 << 47  # what the host can address too

POISON_BYTE: int = lib.DMLK_POISON_BYTE

_LARGEST_GAP = 64  # tiles between two allocations, under chaos
_FREED_KEPT = 4096  # freed allocations remembered for messages

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
    not ended, and :meth:`settle` puts everything that follows from the living objects right again.  It may
    raise in a finalizer, too: ``_gone`` has the entries of all objects that have ended, however they did.
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
        self._heaps: dict[int, _Entry] = {}  # by serial
        self._live: Addresses[_Entry] = Addresses()
        self._gone: deque[_Entry] = deque()
        self._freed: deque[tuple[int, int, str]] = deque(maxlen=_FREED_KEPT)
        self._with_null: dict[int, _Reservation] = {}  # by allocation serial: has NULL tiles

    @property
    def used(self) -> int:
        """Bytes of the budget that are in use."""
        self.settle()
        return self._used

    @property
    def is_own(self) -> bool:
        """Did this process make the memory?  Or was it forked from the one that did?"""
        return self._file.owner == _process

    def check_process(self) -> None:
        """ForeignProcess: this process was forked from the one that made the memory.

        It may share bytes with its parent, but not what says whose they are.
        """
        if not self.is_own:
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
            self._heaps[heap.serial] = heap._entry
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
        entry = self._heaps.get(serial)
        heap = None if entry is None else entry()
        return heap if isinstance(heap, Heap) and not heap.closed else None

    # --- allocations ---

    def place(self, heap: Heap, offset: int, size: int, label: str = "") -> Allocation:
        """New addresses for ``size`` bytes of ``heap`` from ``offset`` on.

        ValueError: the heap is closed or too small.  TypeError: no integers.  OutOfMemory: no addresses
        left.
        """
        storage, offset, size = heap._storage(), index(offset), index(size)
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
            storage = None if heap is None else heap._storage()
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
        if not heap._storage().mappable:
            raise ValueError(f"{heap.describe()} is not mappable: its tiles cannot be mapped.")
        if heap_tile < 0 or heap_tile + (1 if reuse else count) > heap.capacity // TILE_SIZE:
            raise ValueError(
                f"{count} tiles from {heap_tile} on do not lie in the {heap.capacity // TILE_SIZE} tiles of "
                f"{heap.describe()}."
            )

    def promise_mappings(self, regions: Sequence[tuple[int, int, Heap | None, int, bool]]) -> MappingPromise:
        """Keeps as many mappings free as :meth:`map_tiles` of these regions may need.  OutOfMemory."""
        needed = sum(2 + (count if reuse else 1) for _, count, _, _, reuse in regions)
        try:
            return MappingPromise(needed)
        except OSError as error:
            tiles = sum(count for _, count, _, _, _ in regions)
            raise self._out_of_memory(
                f"The host refuses to map {tiles} tiles ({error.strerror}).", tiles * TILE_SIZE
            ) from None

    # --- what the GPU sees ---

    def find(self, address: int) -> Allocation | None:
        """The live allocation that holds the address."""
        self.settle()
        with self._lock:
            entry = self._live.at(address)
            found = None if entry is None else entry()
            return found if isinstance(found, Allocation) else None

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
            assert allocation is not None
            mapped = allocation._entry.mapped  # a closed one stays until the step is over
            assert mapped is not None
            return mapped.export(allocation.offset + address - allocation.address, size)

    def segments(self) -> tuple[Any, int]:
        """``dmlk_segment *`` of the live allocations and their number, sorted by address.

        Those without bytes are of allocations that have been given up.
        """
        return self._live.segments()

    def drop_null_writes(self) -> None:
        """Makes all NULL tiles read 0 again; to be called after commands that may have written there."""
        for reservation in self._with_null.values():
            for start, size in reservation.null_ranges():
                reservation.range.clear(start, size)

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
        before = self._live.before(address)
        if before is not None:
            past = address - before.address - before.size
            if past < TILE_SIZE:
                return f"no allocation, {past} bytes past the end of {before.describe()}"
        return "no allocation"

    def close(self) -> None:
        """Gives everything up."""
        for entry in [*self._live, *self._heaps.values()]:
            owner = entry()
            if owner is not None:
                owner.close()
        self.settle()

    # --- inside ---

    def settle(self) -> None:
        """Before anything relies on what is known here: see :class:`Memory`."""
        self._lock.settle()
        if (self._torn or self._gone) and not self._lock.is_mine():
            with self._lock:
                if self._torn:
                    self._mend()
                while self._gone:
                    self._remove(self._gone[0])
                    self._gone.popleft()

    def _mend(self) -> None:
        """Everything that follows from heaps and allocations, anew."""
        live = [each for each in self._live.entries if each is not None and each.mapped is not None]
        heaps = [each for each in self._heaps.values() if each.mapped is not None]
        reservations = {each.serial: each.mapped for each in live if isinstance(each.mapped, _Reservation)}
        users = [each.mapped for each in [*heaps, *live] if isinstance(each.mapped, _Storage)]
        users += [run.storage for each in reservations.values() for run in each.runs if run.storage]
        counts = Counter(users)
        self._reckoning += 1
        for storage, count in counts.items():
            storage.users, storage.reckoning = count, self._reckoning
        self._used = sum(storage.charge for storage in counts)
        self._live = Addresses(live)
        self._heaps = {each.serial: each for each in heaps}
        self._with_null = {serial: each for serial, each in reservations.items() if each.count_null()}
        self._torn = False

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

    def _remove(self, entry: _Entry) -> None:
        """Gives up a heap or an allocation.  Doing it again does no harm, nor does one that is not known."""
        if self._torn:
            self._mend()
        if self._knows(entry):
            entry.untold = True
            self._torn = True
            mapped, entry.mapped = entry.mapped, None
            if entry.kind == "heap":
                del self._heaps[entry.serial]
            else:
                self._freed.append((entry.address, entry.size, entry.label))
                self._live.remove(entry)
                self._with_null.pop(entry.serial, None)
            if isinstance(mapped, _Reservation):
                for run in mapped.runs:
                    self._drop_user(run.storage)
            elif isinstance(mapped, _Storage):
                self._drop_user(mapped)
            self._torn = False
        if entry.untold:
            if self._events:
                self._events.emit(Freed(entry.kind, entry.serial, entry.address, entry.size, entry.label))
            entry.untold = False

    def _knows(self, entry: _Entry) -> bool:
        """Its making was completed, and it has not been given up."""
        if entry.kind == "heap":
            return self._heaps.get(entry.serial) is entry
        return self._live.at(entry.address) is entry

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


class _Entry(weakref.ref[Any]):
    """What the memory knows of a heap or an allocation: a weak reference, which leaves itself at its end.

    ``mapped`` so lives until the memory has taken notice.  ``untold``: it has been given up, and nobody has
    been told.
    """

    # Until it is complete:
    address = 0
    kind = ""
    label = ""
    mapped: _Mapped | None = None
    offset = 0
    serial = 0
    size = 0
    untold = False

    @property
    def host(self) -> int:
        return 0 if self.mapped is None else self.mapped.host + self.offset

    def describe(self) -> str:
        """For messages: label and size, or the serial when it has no label."""
        return f"{self.label or f'allocation {self.serial}'} ({self.size} bytes)"


class _Owned:
    """Base of heaps and allocations: they are given up with the last reference."""

    _closing = True  # until it is complete
    _entry: _Entry

    def __init__(
        self,
        memory: Memory,
        kind: str,
        mapped: _Mapped,
        serial: int,
        address: int,
        offset: int,
        size: int,
        label: str,
    ) -> None:
        self.size = size
        self.serial = serial
        self._memory = memory
        self._entry = entry = _Entry(self, memory._gone.append)  # C code: nothing interrupts it
        entry.kind, entry.serial, entry.address, entry.size = kind, serial, address, size
        entry.label, entry.mapped, entry.offset, entry.untold = label, mapped, offset, False
        self._closing = False

    @property
    def label(self) -> str:
        """What it is called in messages and events."""
        return self._entry.label

    @label.setter
    def label(self, label: str) -> None:
        self._entry.label = label

    @property
    def closed(self) -> bool:
        """It has been given up."""
        return self._closing or self._entry.mapped is None

    def close(self) -> None:
        """Gives it up for good; calling it again does nothing."""
        if not self._closing:
            lock = self._memory._lock
            lock.put_off(partial(self._memory._remove, self._entry))
            self._closing = True
            lock.settle()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():  # the modules of those who listen may be gone
            self.close()

    def describe(self) -> str:
        """For messages."""
        raise NotImplementedError

    def _opened(self) -> _Mapped:
        mapped = self._entry.mapped
        if self._closing or mapped is None:
            raise ValueError(f"{self.describe()} is closed.")
        return mapped


class Heap(_Owned):
    """``size`` bytes of memory, ``capacity`` with the rounding; mirrors ``ID3D12Heap``.

    The bytes live on while an allocation or a tile uses them.
    """

    def __init__(self, memory: Memory, storage: _Storage, size: int, serial: int, label: str) -> None:
        super().__init__(memory, "heap", storage, serial, 0, 0, size, label)
        self.capacity = storage.capacity

    def describe(self) -> str:
        """For messages: the label, or the serial when it has none."""
        return self.label or f"heap {self.serial}"

    def _storage(self) -> _Storage:
        storage = self._opened()
        assert isinstance(storage, _Storage)
        return storage


class Allocation(_Owned):
    """GPU virtual addresses [address, address + size); their bytes stand at ``host`` in this process.

    ``heap`` and ``offset`` tell where a placed allocation lies; ``heap`` is None for a reserved one.
    """

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
        self.host = mapped.host + offset
        self.heap = heap
        self.offset = offset
        super().__init__(
            memory, "reserved" if heap is None else "placed", mapped, serial, address, offset, size, label
        )

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
        mapped = self._opened()
        assert isinstance(mapped, _Storage)
        return mapped.export(0, mapped.capacity)

    def describe(self) -> str:
        """For messages: label and size, or the serial when it has no label."""
        return self._entry.describe()

    def _reservation(self) -> _Reservation:
        mapped = self._opened()
        if not isinstance(mapped, _Reservation):
            raise ValueError(f"{self.describe()} is not a reserved allocation: it has no tiles.")
        return mapped


class _File:
    """The sparse memory file of a GPU; ranges are never used again.

    A heap that is not mappable has a range too, which stays empty: what else is known of bytes (shadow
    memory) is kept by their place in the file.
    """

    def __init__(self) -> None:
        self.owner = _process
        self._file = HostFile.create("dmlemu")
        self.fd = self._file.fd
        self.size = 0

    def map_new(self, size: int, mappable: bool) -> tuple[int, HostRange]:
        """Offset and host addresses of ``size`` new bytes; they take no memory until they are touched.

        OSError: the host refuses.
        """
        offset = self.size
        if offset + size >= 2**63:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        if mappable:
            os.ftruncate(self.fd, offset + size)
            range = HostRange(size, self.fd, offset)
            range.free_bytes_of(self.owner)
        else:
            range = HostRange(size, large=True)
        self.size = offset + size
        return offset, range


class _Mapped:
    """Host addresses that stay mapped while this object lives; every exported buffer holds them."""

    def __init__(self, range: HostRange) -> None:
        self.range = range
        self.host = range.host

    def export(self, offset: int, size: int) -> memoryview:
        return self.range.export(offset, size)


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
        self.file_offset, range = file.map_new(capacity, mappable)
        super().__init__(range)


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
        super().__init__(HostRange(tiles * TILE_SIZE))
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
        self._map(run, len(self.runs) + len(added) - len(removed))
        self.runs[start:end] = added
        self.null_runs += _count_null(added) - _count_null(removed)
        self._null_ranges = None
        return added, removed

    def _map(self, run: _Run, runs: int) -> None:
        first, size = run.first * TILE_SIZE, run.count * TILE_SIZE
        if run.storage is None:
            self.range.put(first, size, -1, 0, runs)
        else:
            offset = run.storage.file_offset + run.heap_tile * TILE_SIZE
            self.range.put(first, size, run.storage.file.fd, offset, runs)

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
