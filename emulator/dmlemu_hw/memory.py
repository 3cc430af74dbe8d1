"""The GPU's memory: heaps, allocations over them, tiles, and the address space that the GPU sees.

A heap whose tiles can be mapped is a range of one sparse memory file per GPU (``memfd``), mapped once;
any other has its own memory, in large pages.  An allocation is a range of GPU virtual addresses.  A placed
one uses its heap's mapping, so overlapping placed allocations share bytes; a reserved one has its own host
addresses, into which 64 KiB tiles of heaps are mapped: the host's MMU does the aliasing.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Sequence
from operator import index
from random import Random
from typing import Any

import numpy as np

from . import chaos
from . import storage as host_storage
from .addresses import Addresses
from .allocation import Allocation, Entry, Heap
from .chaos import Mode
from .events import Allocated, Decided, EventStream, Freed, Mapped
from .faults import FaultKind, ForeignProcess, GpuFault, OutOfMemory
from .host import MOST_MAPPINGS, Budget, MappingPromise
from .kernels import lib
from .lock import Lock
from .program_table import Programs
from .reservation import Reservation, split_runs
from .storage import TILE_SIZE, MemoryFile, Storage, round_to_tile

FIRST_ADDRESS = 0x1_0000_0000
END_ADDRESS = 1 << 47  # the host's limit as well

POISON_BYTE: int = lib.DMLK_POISON_BYTE

_LARGEST_GAP = 64  # tiles between two allocations, under chaos
_FREED_KEPT = 4096  # freed allocations remembered for messages


class Memory:
    """The memory of one GPU: ``budget`` bytes, of which live heaps use ``used``.

    Heaps and allocations belong to their creator and are freed with the last reference.  A signal handler may
    raise between any two steps, even in a finalizer (``docs/decisions/0014``):

    - ``to_free`` receives every closed or destroyed object, from C code.  An entry leaves it only after it
      has been freed completely; freeing may be repeated from any step on.
    - An entry is ``registered`` before it is in the first table, and until it is in none.
    - Bytes are in use while their :class:`Storage` lives: reference counting decides, and C code counts.
    - ``_with_null`` contains every reserved allocation with NULL tiles, and perhaps some without.

    ``draw`` returns the random generator of a chaos mode, None for one that is off.
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
        self._in_use = Budget()
        self._events = events
        self.lock = lock
        self._file = MemoryFile()
        self._next_address = FIRST_ADDRESS
        self._next_serial = 1
        self._heaps: dict[int, Entry] = {}  # by serial
        self._live: Addresses[Entry] = Addresses()
        self.to_free: deque[Entry] = deque()
        self._freed: deque[tuple[int, int, str]] = deque(maxlen=_FREED_KEPT)
        self._with_null: dict[int, Reservation] = {}  # by allocation serial
        self.programs = Programs()

    @property
    def used(self) -> int:
        """Bytes of the budget in use."""
        self.free_closed()
        return self._in_use.used

    @property
    def is_own(self) -> bool:
        """Whether this process created the memory, rather than being forked from the one that did."""
        return bool(self._file.owner == host_storage.process[0])

    def check_process(self) -> None:
        """ForeignProcess: this process was forked from the one that created the memory.

        It may share bytes with its parent, but not the bookkeeping of allocations.
        """
        if self._file.owner != host_storage.process[0]:
            raise ForeignProcess(
                f"The GPU belongs to process {self._file.owner}, from which this one "
                f"({host_storage.process[0]}) was forked."
            )

    # --- heaps ---

    def create_heap(self, size: int, *, poison: bool = False, mappable: bool = True, label: str = "") -> Heap:
        """``size`` bytes of memory; the capacity is rounded up to 64 KiB.

        The bytes are 0, or the poison byte with ``poison``.  A heap that is not ``mappable`` supports placed
        allocations only, and kernels are faster on it.  ValueError: the size is not positive.  TypeError: not
        an integer.  OutOfMemory: above the budget, or the host refuses.  ForeignProcess, as for every
        allocation.
        """
        size = index(size)
        if size <= 0:
            raise ValueError(f"Heap size ({size}) is not positive.")
        self.check_process()
        self.free_closed()
        with self.lock:
            capacity, used = round_to_tile(size), self._in_use.used
            if used + capacity > self.budget:
                raise self._out_of_memory(
                    f"A heap of {capacity} bytes does not fit: {used} of {self.budget} are in use.",
                    capacity,
                )
            storage = self._create_storage(capacity, self._in_use, mappable)
            if poison:
                self._fill_poison(storage.export(0, capacity))
            heap = Heap(self, storage, size, self._serial(), label)
            heap.entry.registered = True
            self._heaps[heap.serial] = heap.entry
            if self._events:
                self._events.emit(Allocated("heap", heap.serial, 0, size, label))
            return heap

    def create_internal(self, size: int, label: str) -> Allocation:
        """Memory for the device itself; it does not count against the budget."""
        with self.lock:
            storage = self._create_storage(round_to_tile(size), None, mappable=False)
            allocation = self.place(Heap(self, storage, size, self._serial(), label), 0, size, label)
            allocation.is_buffer = False
            return allocation

    def find_heap(self, serial: int) -> Heap | None:
        """The open heap with that serial."""
        entry = self._heaps.get(serial)
        heap = None if entry is None else entry()
        return heap if isinstance(heap, Heap) and not heap.closed else None

    # --- allocations ---

    def place(self, heap: Heap, offset: int, size: int, label: str = "") -> Allocation:
        """New addresses for ``size`` bytes of ``heap`` from ``offset`` on.

        ValueError: the heap is closed or too small.  TypeError: not integers.  OutOfMemory: no addresses
        left.
        """
        heap.opened()  # not kept: the traceback of an exception would keep the memory in use
        offset, size = index(offset), index(size)
        if size <= 0 or offset < 0 or offset + size > heap.capacity:
            raise ValueError(
                f"The range of {size} bytes at offset {offset} does not lie in {heap.describe()} "
                f"of {heap.capacity} bytes."
            )
        self.check_process()
        self.free_closed()
        with self.lock:
            address = self._find_addresses(size)
            allocation = Allocation(self, heap.storage(), address, size, heap, offset, label, self._serial())
            self._register(allocation)
            return allocation

    def reserve(self, size: int, label: str = "") -> Allocation:
        """New addresses without memory: all their 64 KiB tiles are NULL (read 0, drop writes).

        ValueError: the size is not positive.  TypeError: not an integer.  OutOfMemory: no GPU or host
        addresses left.
        """
        size = index(size)
        if size <= 0:
            raise ValueError(f"Size ({size}) of the reserved range is not positive.")
        self.check_process()
        self.free_closed()
        with self.lock:
            address = self._find_addresses(size)
            try:
                reservation = Reservation(round_to_tile(size) // TILE_SIZE)
            except OSError as error:
                raise self._out_of_memory(
                    f"The host refuses {size} bytes of address space ({error.strerror}).", size
                ) from None
            allocation = Allocation(self, reservation, address, size, None, 0, label, self._serial())
            self._register(allocation)
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
        """Maps ``count`` tiles of a reserved allocation to tiles of ``heap`` (None: NULL).

        The heap's tiles are consecutive from ``heap_tile`` on; with ``reuse`` all map to that one.
        ValueError: tiles out of range.  OutOfMemory: the host has no more mappings; tiles mapped so far stay
        mapped.  A call that a signal handler interrupted must be repeated: the host may have mapped tiles
        that the reservation does not know of.
        """
        with self.lock:
            self.check_tiles(allocation, tile, count, heap, heap_tile, reuse)
            reservation = allocation.reservation()
            storage = None if heap is None else heap.storage()
            number = 0 if heap is None else heap.serial
            self._with_null[allocation.serial] = reservation
            try:
                reservation.map(split_runs(tile, count, storage, heap_tile, reuse))
            except OSError as error:
                if self._events:  # some of them may be mapped
                    self._events.emit(Mapped(allocation.serial, tile, count, number, heap_tile, reuse))
                raise self._out_of_memory(
                    f"The host refuses to map {count} tiles ({error.strerror}).", count * TILE_SIZE
                ) from None
            if self._events:
                self._events.emit(Mapped(allocation.serial, tile, count, number, heap_tile, reuse))

    def check_tiles(
        self, allocation: Allocation, tile: int, count: int, heap: Heap | None, heap_tile: int, reuse: bool
    ) -> None:
        """ValueError when the arguments are invalid for :meth:`map_tiles`."""
        tiles = allocation.reservation().tiles
        if tile < 0 or count <= 0 or tile + count > tiles:
            raise ValueError(
                f"{count} tiles from {tile} on do not lie in the {tiles} tiles of {allocation.describe()}."
            )
        if heap is None:
            return
        if not heap.storage().mappable:
            raise ValueError(f"{heap.describe()} is not mappable: its tiles cannot be mapped.")
        if heap_tile < 0 or heap_tile + (1 if reuse else count) > heap.capacity // TILE_SIZE:
            raise ValueError(
                f"{count} tiles from {heap_tile} on do not lie in the {heap.capacity // TILE_SIZE} tiles of "
                f"{heap.describe()}."
            )

    def promise_mappings(
        self, allocation: Allocation, regions: Sequence[tuple[int, int, Heap | None, int, bool]]
    ) -> MappingPromise:
        """Keeps as many mappings free as :meth:`map_tiles` of these regions may need.  OutOfMemory."""
        reservation = allocation.reservation()
        with self.lock:
            try:
                return reservation.promise(_edges(regions))
            except OSError as error:
                tiles = sum(count for _, count, _, _, _ in regions)
                raise self._out_of_memory(
                    f"The host refuses to map {tiles} tiles ({error.strerror}).", tiles * TILE_SIZE
                ) from None

    # --- what the GPU sees ---

    def find(self, address: int) -> Allocation | None:
        """The live allocation that contains the address."""
        self.free_closed()
        with self.lock:
            entry = self._live.at(address)
            found = None if entry is None else entry()
            return found if isinstance(found, Allocation) else None

    def find_freed(self, address: int) -> str | None:
        """Label of the freed allocation that contained the address (addresses are never reused)."""
        with self.lock:
            for start, size, label in self._freed:
                if start <= address < start + size:
                    return label
            return None

    def translate(self, address: int, size: int) -> int:
        """Host address of ``size`` bytes; GpuFault when they are not inside one live allocation."""
        allocation = self.find(address)
        if allocation is None:
            message = f"Address {address:#x} lies in {self.describe_address(address)}."
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
        """The bytes themselves, writable; GpuFault when they are not inside one live allocation."""
        with self.lock:
            self.translate(address, size)
            allocation = self.find(address)
            assert allocation is not None
            mapped = allocation.entry.mapped  # a closed one stays until the step ends
            assert mapped is not None
            return mapped.export(allocation.offset + address - allocation.address, size)

    def segments(self) -> tuple[Any, int]:
        """``dmlk_segment *`` of the live allocations and their number, sorted by address.

        Segments of size 0 belong to freed allocations.
        """
        return self._live.segments()

    def drop_null_writes(self) -> None:
        """Resets all NULL tiles to 0; call it after commands that may have written to them."""
        if self._with_null:
            for serial, reservation in list(self._with_null.items()):
                for start, size in reservation.null_ranges():
                    reservation.range.clear(start, size)
                if not reservation.null_ranges():
                    del self._with_null[serial]

    @property
    def has_null_tiles(self) -> bool:
        return bool(self._with_null) and any(each.null_ranges() for each in self._with_null.values())

    def describe_address(self, address: int) -> str:
        """For messages: the allocation that contains, or contained, the address."""
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
        """Frees everything."""
        for entry in [*self._live, *self._heaps.values()]:
            owner = entry()
            if owner is not None:
                owner.close()
        self.free_closed()

    def free_closed(self) -> None:
        """Frees the closed and destroyed objects, unless this thread is inside another call."""
        if self.to_free and not self.lock.is_mine():
            with self.lock:
                self._free_all()

    def free_collected(self) -> None:
        """:meth:`free_closed` for finalizers: what cannot be freed at once is left to the next call."""
        if self.to_free:
            self.lock.call_if_free(self._free_all)

    # --- inside ---

    def _serial(self) -> int:
        serial = self._next_serial
        self._next_serial += 1
        return serial

    def _out_of_memory(self, message: str, needed: int) -> OutOfMemory:
        return OutOfMemory(message, needed=needed, used=self._in_use.used, budget=self.budget)

    def _create_storage(self, capacity: int, budget: Budget | None, mappable: bool) -> Storage:
        try:
            return Storage(self._file, capacity, budget, mappable)
        except OSError as error:
            raise self._out_of_memory(
                f"The host refuses {capacity} bytes of memory ({error.strerror}).", capacity
            ) from None

    def _find_addresses(self, size: int) -> int:
        """The start of ``size`` free bytes of addresses; :meth:`_register` takes them."""
        address = self._next_address
        if self._gaps is not None:
            address += self._gaps.randrange(_LARGEST_GAP) * TILE_SIZE
            address |= TILE_SIZE  # aligned to that, but no more
            self._decided(Mode.PLACEMENT, f"the next {size} bytes lie at {address:#x}")
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
            self._decided(Mode.POISON, f"{len(memory)} bytes of a new heap are random")

    def _decided(self, mode: Mode, what: str) -> None:
        if self._events.wants(Decided):
            self._events.emit(Decided(mode.value, what))

    def _register(self, allocation: Allocation) -> None:
        # One tile stays free after each range, so that an overrun never reaches the next allocation.
        self._next_address = allocation.address + round_to_tile(allocation.size) + TILE_SIZE
        entry = allocation.entry
        entry.registered = True
        if isinstance(entry.mapped, Reservation):
            self._with_null[entry.serial] = entry.mapped
        self._live.append(entry)  # addresses only increase: the list stays sorted
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

    def _free_all(self) -> None:
        while self.to_free:
            self._free(self.to_free[0])
            self.to_free.popleft()

    def _free(self, entry: Entry) -> None:
        """Frees a heap or an allocation; does nothing for one that is not registered.

        May be repeated after an interruption at any step.  The event may then be emitted twice.
        """
        if not entry.registered:
            return
        if entry.kind == "heap":
            self._heaps.pop(entry.serial, None)
        else:
            self._live.remove(entry)
            self._with_null.pop(entry.serial, None)
            if entry.mapped is not None:
                self._freed.append((entry.address, entry.size, entry.label))
        entry.mapped = None  # after the table that C reads has lost it
        if self._events:
            self._events.emit(Freed(entry.kind, entry.serial, entry.address, entry.size, entry.label))
        entry.registered = False


def _edges(regions: Sequence[tuple[int, int, Heap | None, int, bool]]) -> set[int]:
    """The tiles at which a mapping of the host may begin or end when these regions are mapped.

    OSError: so many that the host can never have them, and that nobody should count them one by one.
    """
    edges: set[int] = set()
    for tile, count, heap, _, reuse in regions:
        end, each = tile + count, reuse and heap is not None
        if len(edges) + (count if each else 0) > 2 * MOST_MAPPINGS:
            raise OSError(errno.ENOMEM, f"it allows {MOST_MAPPINGS} mappings")
        edges.update(range(tile, end + 1) if each else (tile, end))
    return edges
