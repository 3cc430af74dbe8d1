"""Shadow memory: one bit per byte of GPU memory, set if the byte was ever written.

The bits are in a separate memory file; a heap's bits are at an eighth of the offset of its bytes in the GPU's
memory file.  The host's MMU aliases the bits as it aliases the bytes: tiles of a reserved allocation share
the bits of the heap, and so do allocations placed on one heap.  Bits take no memory until they are set.
"""

from __future__ import annotations

import errno
import mmap
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from .allocation import Allocation
from .events import READ, WRITE, Accesses, Event, Freed, Mapped, Stretch
from .host import HostFile, HostRange
from .kernels import ffi, lib
from .memory import Memory
from .reservation import Reservation
from .storage import TILE_SIZE, Storage

_TILE_BITS = TILE_SIZE // 8  # bytes of shadow bits per tile
_NOWHERE = 2**64 - 1

_ROW = np.dtype(  # struct dmlk_shadow
    [(name, "<u8") for name in ("address", "size", "bits", "first", "null_tiles", "full")]
)
_CHUNK = 64 * lib.DMLK_SHADOW_CHUNK_WORDS  # bits
_KEPT = 2048  # cached commands
_NO_ROWS = np.zeros(0, _ROW)
_NO_BITS: Mapping[int, _Bits] = {}

assert ffi.sizeof("dmlk_shadow") == _ROW.itemsize


class Shadow:
    """The shadow of ``memory``; it must receive all events from its creation on (:meth:`on_event`).

    Memory allocated after that is unwritten; memory allocated before counts as written, as do NULL tiles.
    Footprints are ``dmlk_footprint *``; one that is outside live allocations, or malformed, changes nothing
    and has no unwritten bytes.  An allocation takes no memory until it is queried.  ``settled``: contents of
    accesses with which :meth:`command` would find all written and change nothing.  ``failure`` says why
    everything counts as written from some moment on: the host refused memory.
    """

    def __init__(self, memory: Memory) -> None:
        memory.check_process()
        self.failure: str | None = None
        self._memory = memory
        self._lock = memory.lock
        self._file = _File(memory._file.size)
        self._heaps: weakref.WeakKeyDictionary[Storage, _HeapBits] = weakref.WeakKeyDictionary()
        self._table = _Table()
        self._outdated: deque[int] = deque()  # serials to be removed from the table
        self._address = ffi.new("uint64_t *")
        self._written = ffi.new("int *")
        self._cleared = ffi.new("int *")
        # Replaced by a new set when anything becomes unwritten, so that a concurrent addition to the old set
        # has no effect.
        self.settled: set[bytes] = set()
        self._range = ffi.new("dmlk_footprint *", {"bits": 8, "rank": 1, "strides": [1]})
        self._plans: weakref.WeakKeyDictionary[Stretch, _Plan] = weakref.WeakKeyDictionary()

    def on_event(self, event: Event) -> None:
        """Processes an event: memory was freed, or tiles were remapped."""
        if isinstance(event, Freed):
            serial = event.serial
        elif isinstance(event, Mapped):
            serial = event.allocation  # its bits stay in the file; the next query maps them again
        else:
            return
        if serial in self._table.bits:
            self._outdated.append(serial)
            self.settled = set()

    # --- footprints ---

    def first_unwritten(self, footprint: Any) -> int | None:
        """Address of the lowest unwritten byte of the footprint."""
        with self._lock:
            if not self._run(lib.dmlk_shadow_first_unwritten, footprint, self._address):
                return None
            address: int = self._address[0]
            return None if address == _NOWHERE else address

    def mark_written(self, footprint: Any) -> None:
        """Marks all bytes of the footprint as written."""
        with self._lock:
            self._run(lib.dmlk_shadow_mark_written, footprint)

    def mark_undefined(self, footprint: Any) -> None:
        """Marks the bytes of the footprint as undefined, which equals unwritten."""
        with self._lock:
            self._run(lib.dmlk_shadow_mark_undefined, footprint)
            self.settled = set()

    def command(self, accesses: Accesses, *, look: bool) -> bool:
        """Marks what a command writes and undefines; with ``look``, only if all that it reads was written.

        False: nothing was done; process the accesses one by one.
        """
        content, settled = accesses.content, self.settled
        if content in settled:
            return True
        with self._lock:
            done = lib.dmlk_shadow_command(*self._rows(), accesses.pointer, len(accesses), look)
            if done == 2 or len(settled) >= _KEPT:
                self.settled = set()
            elif done and look:
                settled.add(content)
        return bool(done)

    # --- stretches ---

    def foresees(self, stretch: Stretch) -> int:
        """How many of its packets read only what is written now, or is by those before them: all, or none."""
        settled = self.settled
        plan = self._plans.get(stretch)
        if plan is None:
            plan = self._plans[stretch] = _Plan(stretch)
        if plan.settled is settled:
            return stretch.count
        with self._lock:
            if not lib.dmlk_shadow_command(*self._rows(), plan.needed, plan.count, True):
                return 0
        if settled.issuperset(stretch.contents):
            plan.settled = settled
        return stretch.count

    def passed(self, stretch: Stretch, first: int, end: int) -> None:
        """Marks what packets [first, end) write."""
        if self._plans[stretch].settled is self.settled:
            return
        begin, stop, settled = stretch.firsts[first], stretch.firsts[end], self.settled
        with self._lock:
            lib.dmlk_shadow_command(*self._rows(), stretch.footprints + begin, stop - begin, False)
        if end == stretch.count and len(settled) + len(stretch.contents) <= _KEPT:
            settled.update(stretch.contents)

    # --- ranges ---

    def copy(self, destination: int, source: int, size: int) -> None:
        """Copies the bits of ``size`` copied bytes; the ranges may overlap."""
        with self._lock:
            for _ in range(3):  # source and destination may both need covering first
                status = lib.dmlk_shadow_copy(*self._rows(), destination, source, size, self._cleared)
                if status != lib.DMLK_BAD_ADDRESS:
                    if self._cleared[0]:
                        self.settled = set()
                    return
                if not (self._cover(destination) or self._cover(source)):
                    return

    def is_written(self, address: int, size: int) -> bool:
        """Whether all bytes of the range were written."""
        with self._lock:
            span = self._range
            span.address, span.end, span.sizes[0] = address, address + size, size
            return size == 0 or self.first_unwritten(span) is None

    def written_runs(self, address: int, size: int) -> Iterator[tuple[int, int]]:
        """Start and end addresses of the maximal runs of written bytes in the range, in order."""
        end = address + size
        while address < end:
            written, stop = self._run_at(address, end)
            if written:
                yield address, stop
            address = stop

    # --- inside ---

    def _run(self, operation: Callable[..., int], footprint: Any, *rest: Any) -> bool:
        """Runs the operation; returns whether it was done."""
        status = operation(*self._rows(), footprint, *rest)
        if status == lib.DMLK_BAD_ADDRESS and self._cover(footprint.address):
            status = operation(*self._rows(), footprint, *rest)
        if status == lib.DMLK_OUT_OF_MEMORY:
            self._fail("no memory to look at a footprint that overlaps itself")
        return bool(status == lib.DMLK_OK)

    def _run_at(self, address: int, end: int) -> tuple[bool, int]:
        """Whether the byte is written, and the end of the run of bytes in the same state."""
        with self._lock:
            for _ in range(2):
                status = lib.dmlk_shadow_run(*self._rows(), address, end, self._written, self._address)
                if status == lib.DMLK_OK:
                    return bool(self._written[0]), self._address[0]
                if not self._cover(address):
                    break
            return True, end

    def _cover(self, address: int) -> bool:
        """Adds the live allocation at the address to the table; false: it was there, or there is none."""
        allocation = self._memory.find(address)
        if self.failure is not None or allocation is None or allocation.serial in self._table.bits:
            return False
        try:
            bits = self._bits(allocation)
        except OSError as error:
            self._fail(f"the host refuses its memory ({error.strerror})")
            return False
        self._table = self._table.with_bits(allocation.serial, bits)
        return True

    def _rows(self) -> tuple[Any, int]:
        """The table as passed to C."""
        if self._outdated:
            outdated = set(self._outdated)  # those that garbage collection adds meanwhile are removed later
            self._table = self._table.without(outdated)
            while self._outdated and self._outdated[0] in outdated:
                self._outdated.popleft()
        return self._table.rows

    def _fail(self, why: str) -> None:
        # Continuing with missing bits would report written bytes as unwritten.
        self.failure = why
        self._table = _Table()
        self._heaps.clear()

    def _bits(self, allocation: Allocation) -> _Bits:
        """OSError: the host refuses."""
        mapped = allocation.opened()
        if isinstance(mapped, Reservation):
            return _TileBits(allocation, mapped, self._file, self._heap_bits)
        assert isinstance(mapped, Storage)
        return _PlacedBits(allocation, self._heap_bits(mapped))

    def _heap_bits(self, storage: Storage) -> _HeapBits:
        bits = self._heaps.get(storage)
        if bits is None:
            bits = self._heaps[storage] = _HeapBits(storage, self._file)
        return bits


class _Plan:
    """What must be written before a stretch begins: what it reads, unless packets before write that.

    ``needed``, ``count``: these footprints, and without an access what the stretch writes.  ``settled``: that
    of the shadow when all contents of the stretch were in it.
    """

    def __init__(self, stretch: Stretch) -> None:
        self.settled: set[bytes] | None = None
        entries = [stretch.footprints + i for i in range(stretch.firsts[-1])]
        spans = _union([(each.address, each.end) for each in entries if each.access & WRITE])
        bits = [np.zeros(-(-(end - begin) // 64) + 1, np.uint64) for begin, end in spans]
        rows = [
            (begin, end - begin, row.ctypes.data, 0, 0, 0)
            for (begin, end), row in zip(spans, bits, strict=True)
        ]
        written = _Table(np.array(rows, _ROW)).rows
        needed: dict[bytes, None] = {}
        address = ffi.new("uint64_t *")
        for first, end in pairwise(stretch.firsts):
            for each in entries[first:end]:
                if each.access & READ:
                    status = lib.dmlk_shadow_first_unwritten(*written, each, address)
                    if status != lib.DMLK_OK or address[0] != _NOWHERE:
                        needed[_with_access(each, READ)] = None
            for each in entries[first:end]:
                if each.access & WRITE:
                    lib.dmlk_shadow_mark_written(*written, each)
                    needed[_with_access(each, 0)] = None
        self.count = len(needed)
        self.needed = ffi.new("dmlk_footprint[]", max(1, self.count))
        ffi.memmove(self.needed, b"".join(needed), self.count * ffi.sizeof("dmlk_footprint"))


def _with_access(footprint: Any, access: int) -> bytes:
    changed = ffi.new("dmlk_footprint *", footprint[0])
    changed.access, changed.operand = access, 0
    return bytes(ffi.buffer(changed))


def _union(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of address ranges, sorted and disjoint."""
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((begin, end))
    return joined


class _Table:
    """The rows that C reads, sorted by address, and the owners of their bits by allocation serial.

    Immutable: it is replaced as a whole, so that readers never see a partial update.
    """

    def __init__(self, table: np.ndarray[Any, Any] = _NO_ROWS, bits: Mapping[int, _Bits] = _NO_BITS) -> None:
        self.bits = bits
        self.rows = (ffi.cast("dmlk_shadow *", table.ctypes.data), len(table))
        self._table = table

    def with_bits(self, serial: int, bits: _Bits) -> _Table:
        at = int(np.searchsorted(self._table["address"], bits.row[0]))
        parts = self._table[:at], np.array([bits.row], _ROW), self._table[at:]
        return _Table(np.concatenate(parts), {**self.bits, serial: bits})

    def without(self, serials: set[int]) -> _Table:
        outdated = [bits.row[0] for serial, bits in self.bits.items() if serial in serials]
        kept = {serial: bits for serial, bits in self.bits.items() if serial not in serials}
        return _Table(self._table[~np.isin(self._table["address"], outdated)], kept)


class _File:
    """The sparse file of bits.  Bytes of the memory file before ``old_end`` count as written."""

    def __init__(self, old_end: int) -> None:
        self.old_end = old_end
        self._file = HostFile.create("dmlemu shadow")
        self.fd = self._file.fd
        self._size = 0

    def reach(self, end: int) -> None:
        """OSError: the host refuses."""
        if end > self._size:
            os.ftruncate(self.fd, end)
            self._size = end


class _HeapBits:
    """The mapped bits of a heap; ``full`` marks the chunks that are all ones."""

    def __init__(self, storage: Storage, file: _File) -> None:
        self.offset, size = storage.file_offset // 8, storage.capacity // 8
        file.reach(self.offset + size)
        self._range = HostRange(size, file.fd, self.offset)
        self._range.free_bytes_of(storage.file.owner)
        self.host = self._range.host
        self.full = np.zeros(1 + -(-8 * size // _CHUNK), np.uint8)
        if storage.file_offset < file.old_end:
            np.frombuffer(ffi.buffer(ffi.cast("uint8_t *", self.host), size), np.uint8).fill(0xFF)


class _Bits:
    """Bits of one allocation, and their owner; ``row`` is its struct dmlk_shadow."""

    row: tuple[int, int, int, int, int, int]


class _PlacedBits(_Bits):
    def __init__(self, allocation: Allocation, heap: _HeapBits) -> None:
        self._heap = heap
        full = heap.full.ctypes.data
        self.row = (allocation.address, allocation.size, heap.host, allocation.offset, 0, full)


class _TileBits(_Bits):
    """Maps to the bits of heaps as the reservation maps to their bytes."""

    def __init__(
        self,
        allocation: Allocation,
        reservation: Reservation,
        file: _File,
        heap_bits: Callable[[Storage], _HeapBits],
    ) -> None:
        if mmap.PAGESIZE > _TILE_BITS:
            why = f"tiles need pages of at most {_TILE_BITS} bytes, and the host's have {mmap.PAGESIZE}"
            raise OSError(errno.ENOTSUP, why)
        runs = list(reservation.runs)
        self._heaps = [None if run.storage is None else heap_bits(run.storage) for run in runs]
        size = reservation.tiles * _TILE_BITS
        self._range = HostRange(size, mappings=len(runs))
        for run, heap in zip(runs, self._heaps, strict=True):
            if heap is not None:
                heap.full[0] = 1  # its bits may change through this mapping from now on
                offset = heap.offset + run.heap_tile * _TILE_BITS
                first, length = run.first * _TILE_BITS, run.count * _TILE_BITS
                self._range.put(first, length, file.fd, offset, len(runs))
        null = np.zeros(-(-reservation.tiles // 64) * 64, bool)
        for start, length in reservation.null_ranges():
            null[start // TILE_SIZE : (start + length) // TILE_SIZE] = True
        self._null_tiles = np.packbits(null, bitorder="little")
        null_tiles = self._null_tiles.ctypes.data if null.any() else 0
        self.row = (allocation.address, allocation.size, self._range.host, 0, null_tiles, 0)
