"""Heaps, allocations over them, reserved ranges and their tiles."""

import gc
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlemu_hw.allocation import Allocation, Heap
from dmlemu_hw.faults import GpuFault, OutOfMemory
from dmlemu_hw.gpu import Gpu
from dmlemu_hw.kernels import ffi
from dmlemu_hw.memory import FIRST_ADDRESS, POISON_BYTE
from dmlemu_hw.storage import TILE_SIZE

MIB = 1 << 20

in_both_kinds = pytest.mark.parametrize("mappable", [True, False])


def buffer(gpu: Gpu, size: int, label: str = "", mappable: bool = True) -> Allocation:
    """A committed buffer: one allocation over all of a heap that nobody else holds."""
    heap = gpu.memory.create_heap(size, mappable=mappable, label=label)
    allocation = gpu.memory.place(heap, 0, size, label)
    heap.close()
    return allocation


def tiles_of(allocation: Allocation) -> np.ndarray:
    """The bytes as (tile, byte)."""
    return np.asarray(allocation.buffer()).reshape(-1, TILE_SIZE)


def heap_with_numbered_tiles(gpu: Gpu, count: int) -> Heap:
    heap = gpu.memory.create_heap(count * TILE_SIZE)
    whole = gpu.memory.place(heap, 0, count * TILE_SIZE)
    for i, tile in enumerate(tiles_of(whole)):
        tile[:] = i + 1
    whole.close()
    return heap


class TestHeaps:
    @pytest.mark.parametrize(
        ("size", "capacity"), [(1, 65536), (65536, 65536), (65537, 131072), (100000, 131072)]
    )
    def test_HP1_capacity_is_the_size_rounded_up_to_64_KiB(self, gpu, size, capacity):
        heap = gpu.memory.create_heap(size)
        assert (heap.size, heap.capacity, gpu.memory.used) == (size, capacity, capacity)

    @pytest.mark.parametrize("size", [0, -1])
    def test_HP1_a_heap_without_size_is_refused(self, gpu, size):
        with pytest.raises(ValueError, match="not positive"):
            gpu.memory.create_heap(size)

    def test_HP10_fresh_memory_is_zero(self, gpu):
        assert not np.asarray(buffer(gpu, 3 * TILE_SIZE).buffer()).any()

    def test_HP10_memory_that_is_not_zeroed_is_poisoned(self, gpu):
        heap = gpu.memory.create_heap(TILE_SIZE, poison=True)
        data = np.asarray(gpu.memory.place(heap, 0, TILE_SIZE).buffer())
        assert (data == POISON_BYTE).all()

    @in_both_kinds
    @pytest.mark.parametrize("size", [TILE_SIZE, 5 * MIB])
    def test_memory_that_was_freed_comes_back_as_zero(self, gpu, size, mappable):
        for _ in range(3):
            allocation = buffer(gpu, size, mappable=mappable)
            data = np.asarray(allocation.buffer())
            assert not data.any()
            data[:] = 1
            allocation.close()

    @in_both_kinds
    def test_memory_is_sparse_until_touched(self, mappable):
        gpu = Gpu(name="large", memory_bytes=1 << 40)
        before = resident_bytes()
        allocation = buffer(gpu, 1 << 39, mappable=mappable)
        allocation.buffer()[(1 << 39) - 1] = 1
        assert resident_bytes() - before < 16 * MIB

    def test_closing_twice_does_nothing(self, gpu):
        heap = gpu.memory.create_heap(10)
        heap.close()
        heap.close()
        assert gpu.memory.used == 0

    def test_a_closed_heap_cannot_be_used(self, gpu):
        heap = gpu.memory.create_heap(10, label="heap 'pool'")
        reserved = gpu.memory.reserve(TILE_SIZE)
        heap.close()
        with pytest.raises(ValueError, match="heap 'pool' is closed"):
            gpu.memory.place(heap, 0, 10)
        with pytest.raises(ValueError, match="heap 'pool' is closed"):
            gpu.memory.map_tiles(reserved, 0, 1, heap, 0)


class TestBudget:
    def test_RB10_creation_fails_above_the_budget_and_leaves_all_usable(self):
        gpu = Gpu(name="small", memory_bytes=2 * TILE_SIZE)
        first = gpu.memory.create_heap(TILE_SIZE + 1)
        with pytest.raises(OutOfMemory) as error:
            gpu.memory.create_heap(1)
        assert (error.value.needed, error.value.used, error.value.budget) == (65536, 131072, 131072)
        assert "65536 bytes does not fit" in str(error.value)
        first.close()
        assert gpu.memory.create_heap(2 * TILE_SIZE).capacity == 2 * TILE_SIZE

    def test_fences_and_address_ranges_take_nothing_from_the_budget(self):
        gpu = Gpu(name="small", memory_bytes=TILE_SIZE)
        gpu.create_fence()
        gpu.memory.reserve(1 << 30)
        assert gpu.memory.used == 0
        gpu.memory.create_heap(TILE_SIZE)

    def test_bytes_count_while_an_allocation_or_a_tile_uses_them(self, gpu):
        heap = gpu.memory.create_heap(2 * TILE_SIZE)
        placed = gpu.memory.place(heap, 0, 10)
        reserved = gpu.memory.reserve(4 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 1, heap, 0)
        gpu.memory.map_tiles(reserved, 1, 3, heap, 1, reuse=True)
        heap.close()
        placed.close()
        gpu.memory.map_tiles(reserved, 0, 2, None, 0)
        gpu.memory.map_tiles(reserved, 3, 1, None, 0)
        assert gpu.memory.used == 2 * TILE_SIZE
        gpu.memory.map_tiles(reserved, 2, 1, None, 0)
        assert gpu.memory.used == 0

    def test_closing_a_reserved_allocation_frees_what_its_tiles_stood_on(self, gpu):
        heap = gpu.memory.create_heap(2 * TILE_SIZE)
        reserved = gpu.memory.reserve(4 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 1, 2, heap, 0)
        heap.close()
        reserved.close()
        assert gpu.memory.used == 0

    def test_a_view_that_lives_on_does_not_hold_the_budget(self, gpu):
        allocation = buffer(gpu, TILE_SIZE)
        data = allocation.buffer()
        allocation.close()
        assert gpu.memory.used == 0
        assert len(data) == TILE_SIZE

    @pytest.mark.parametrize("size", [1 << 46, 1 << 47, 1 << 62, 1 << 63, (1 << 64) - 1, 1 << 64])
    def test_absurd_sizes_are_out_of_memory(self, size):
        gpu = Gpu(name="huge", memory_bytes=1 << 70)
        for _ in range(3):
            with pytest.raises(OutOfMemory):
                if size < 1 << 47:  # the address space has room, the host's memory file or map has not
                    kept = [gpu.memory.create_heap(size) for _ in range(3)]
                else:
                    gpu.memory.create_heap(size)
            with pytest.raises(OutOfMemory):
                kept = [gpu.memory.reserve(size) for _ in range(3)]
                del kept
        assert gpu.memory.create_heap(5).size == 5


class TestPlaced:
    def test_PL4_two_allocations_over_the_same_bytes_are_one(self, gpu):
        heap = gpu.memory.create_heap(4 * TILE_SIZE)
        first = gpu.memory.place(heap, 0, 3 * TILE_SIZE)
        second = gpu.memory.place(heap, TILE_SIZE, 3 * TILE_SIZE)
        np.asarray(first.buffer())[:] = np.arange(3 * TILE_SIZE) % 251
        assert bytes(first.buffer()[TILE_SIZE:]) == bytes(second.buffer()[: 2 * TILE_SIZE])
        assert first.address != second.address

    def test_PL5_bytes_outlive_their_heap(self, gpu):
        heap = gpu.memory.create_heap(TILE_SIZE)
        allocation = gpu.memory.place(heap, 0, 4)
        allocation.buffer()[:] = b"live"
        heap.close()
        assert bytes(allocation.buffer()) == b"live"

    @pytest.mark.parametrize(("offset", "size"), [(0, 131073), (65536, 65537), (-1, 5), (0, 0), (1 << 64, 1)])
    def test_PL2_a_range_outside_the_heap_is_refused(self, gpu, offset, size):
        heap = gpu.memory.create_heap(TILE_SIZE + 1, label="heap 'pool'")
        with pytest.raises(ValueError, match="does not lie in heap 'pool' of 131072 bytes"):
            gpu.memory.place(heap, offset, size)

    def test_a_closed_allocation_gives_no_bytes(self, gpu):
        allocation = buffer(gpu, 10, "weights")
        allocation.close()
        allocation.close()
        with pytest.raises(ValueError, match=r"weights \(10 bytes\) is closed"):
            allocation.buffer()


class TestAddresses:
    def test_same_program_same_addresses(self):
        def program() -> list[int]:
            gpu = Gpu(name="test", memory_bytes=64 << 20)
            first = buffer(gpu, 100000)
            addresses = [first.address, gpu.memory.reserve(70000).address]
            first.close()
            gpu.create_fence()
            return [*addresses, gpu.descriptors.create_heap(8, True).gpu_start, buffer(gpu, 1).address]

        first, second = program(), program()
        assert first == second
        assert first[0] == FIRST_ADDRESS

    def test_addresses_are_64_KiB_aligned_and_never_used_again(self, gpu):
        seen = set()
        for size in [1, 65536, 65537, 3] * 5:
            allocation = buffer(gpu, size)
            assert allocation.address % TILE_SIZE == 0
            assert allocation.address not in seen
            seen.add(allocation.address)
            allocation.close()

    def test_find(self, gpu):
        first, second = buffer(gpu, 100, "first"), buffer(gpu, 100, "second")
        assert gpu.memory.find(first.address) is first
        assert gpu.memory.find(second.address + 99) is second
        for address in [0, first.address - 1, first.address + 100, second.address + 100, 1 << 64]:
            assert gpu.memory.find(address) is None

    def test_running_past_an_end_never_hits_the_neighbour(self, gpu):
        first, _second = buffer(gpu, TILE_SIZE), buffer(gpu, TILE_SIZE)
        assert gpu.memory.find(first.address + TILE_SIZE) is None

    def test_find_freed_names_the_allocation_that_was_there(self, gpu):
        allocation = buffer(gpu, 100, "weights")
        address = allocation.address
        assert gpu.memory.find_freed(address) is None
        allocation.close()
        assert gpu.memory.find(address) is None
        assert gpu.memory.find_freed(address + 99) == "weights"
        assert gpu.memory.find_freed(address + 100) is None

    def test_view(self, gpu):
        allocation = buffer(gpu, 100)
        gpu.memory.view(allocation.address + 10, 3)[:] = b"abc"
        assert bytes(allocation.buffer()[9:14]) == b"\0abc\0"

    def test_view_past_the_end_says_by_how_much(self, gpu):
        allocation = buffer(gpu, 100, "weights")
        with pytest.raises(GpuFault, match=r"run 2 bytes past the end of weights \(100 bytes\)"):
            gpu.memory.view(allocation.address + 98, 4)

    def test_view_of_no_allocation_says_what_is_near(self, gpu):
        allocation = buffer(gpu, 100, "weights")
        with pytest.raises(GpuFault, match=r"no allocation, 4 bytes past the end of weights \(100 bytes\)"):
            gpu.memory.view(allocation.address + 104, 4)
        allocation.close()
        with pytest.raises(GpuFault, match="lies in weights, which has been released") as error:
            gpu.memory.view(allocation.address, 4)
        assert error.value.address == allocation.address

    @given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(1, 200000)), max_size=40))
    @settings(max_examples=30, deadline=None)
    def test_the_segment_table_lists_what_is_live(self, actions):
        gpu = Gpu(name="test", memory_bytes=64 << 20)
        live: list[Allocation] = []
        for create, which, size in actions:
            if create or not live:
                live.append(gpu.memory.reserve(size) if which % 2 else buffer(gpu, size))
            else:
                live.pop(which % len(live)).close()
        segments, count = gpu.memory.segments()
        rows = [segments[i] for i in range(count)]
        table = [(row.address, row.size, int(ffi.cast("uintptr_t", row.host))) for row in rows]
        addresses = [address for address, _, _ in table]
        assert addresses == sorted(set(addresses))
        assert [row for row in table if row[1]] == [(each.address, each.size, each.host) for each in live]

    @pytest.mark.parametrize("oldest_first", [True, False])
    def test_the_segment_table_shrinks(self, gpu, oldest_first):
        allocations = [gpu.memory.reserve(1) for _ in range(1000)]
        while allocations:
            allocations.pop(0 if oldest_first else -1).close()
            for each in allocations[:1]:
                assert gpu.memory.find(each.address) is each
            assert gpu.memory.segments()[1] <= max(130, 2 * len(allocations) + 1)

    def test_the_segment_table_grows(self, gpu):
        heap = gpu.memory.create_heap(TILE_SIZE)
        live = [gpu.memory.place(heap, 0, i + 1) for i in range(300)]
        segments, count = gpu.memory.segments()
        assert [segments[i].size for i in range(count)] == [each.size for each in live]


class TestTiles:
    def test_RS2_a_reserved_range_starts_as_zeros(self, gpu):
        reserved = gpu.memory.reserve(2 * TILE_SIZE + 5)
        assert reserved.address
        assert reserved.heap is None
        assert reserved.size == 2 * TILE_SIZE + 5
        assert not np.asarray(reserved.buffer()).any()

    def test_RS5_consecutive_tiles(self, gpu):
        heap = heap_with_numbered_tiles(gpu, 4)
        reserved = gpu.memory.reserve(4 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 1, 3, heap, 0)
        assert tiles_of(reserved)[:, 0].tolist() == [0, 1, 2, 3]

    def test_RS5_reuse_maps_one_tile_everywhere(self, gpu):
        heap = heap_with_numbered_tiles(gpu, 4)
        reserved = gpu.memory.reserve(4 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 3, heap, 2, reuse=True)
        tiles = tiles_of(reserved)
        assert tiles[:, 0].tolist() == [3, 3, 3, 0]
        tiles[0, 7] = 99
        assert tiles[:3, 7].tolist() == [99, 99, 99]

    def test_RS5_null_unmaps(self, gpu):
        heap = heap_with_numbered_tiles(gpu, 4)
        reserved = gpu.memory.reserve(4 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 4, heap, 0)
        gpu.memory.map_tiles(reserved, 1, 2, None, 0)
        assert tiles_of(reserved)[:, 0].tolist() == [1, 0, 0, 4]

    def test_RS7_two_resources_over_one_heap_alias_exactly(self, gpu):
        heap = gpu.memory.create_heap(3 * TILE_SIZE)
        first, second = gpu.memory.reserve(2 * TILE_SIZE), gpu.memory.reserve(3 * TILE_SIZE)
        placed = gpu.memory.place(heap, 0, 3 * TILE_SIZE)
        gpu.memory.map_tiles(first, 0, 2, heap, 0)
        gpu.memory.map_tiles(second, 0, 1, heap, 1)
        gpu.memory.map_tiles(second, 2, 1, heap, 0)
        tiles_of(first)[0, 5] = 11
        tiles_of(second)[0, 6] = 22
        assert tiles_of(second)[2, 5] == 11
        assert tiles_of(first)[1, 6] == 22
        assert tiles_of(placed)[[0, 1], [5, 6]].tolist() == [11, 22]

    def test_RS8_tiles_outlive_their_heap(self, gpu):
        heap = heap_with_numbered_tiles(gpu, 2)
        reserved = gpu.memory.reserve(2 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 2, heap, 0)
        heap.close()
        del heap
        gc.collect()
        assert tiles_of(reserved)[:, 0].tolist() == [1, 2]

    def test_RS8_writes_to_null_tiles_are_dropped(self, gpu):
        heap = heap_with_numbered_tiles(gpu, 1)
        reserved = gpu.memory.reserve(3 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 1, 1, heap, 0)
        tiles_of(reserved)[:] = 7
        gpu.memory.drop_null_writes()
        assert tiles_of(reserved)[:, 9].tolist() == [0, 7, 0]

    def test_RS8_has_null_tiles(self, gpu):
        assert not gpu.memory.has_null_tiles
        heap = gpu.memory.create_heap(2 * TILE_SIZE)
        reserved = gpu.memory.reserve(2 * TILE_SIZE)
        assert gpu.memory.has_null_tiles
        gpu.memory.map_tiles(reserved, 0, 1, heap, 0)
        assert gpu.memory.has_null_tiles
        gpu.memory.map_tiles(reserved, 1, 1, heap, 1)
        assert not gpu.memory.has_null_tiles
        gpu.memory.map_tiles(reserved, 0, 1, None, 0)
        assert gpu.memory.has_null_tiles
        reserved.close()
        assert not gpu.memory.has_null_tiles

    @pytest.mark.parametrize(
        ("tile", "count", "heap_tile", "reuse", "message"),
        [
            (0, 5, 0, False, "5 tiles from 0 on do not lie in the 4 tiles of big"),
            (4, 1, 0, False, "do not lie in the 4 tiles of big"),
            (-1, 1, 0, False, "do not lie in the 4 tiles of big"),
            (0, 0, 0, False, "do not lie in the 4 tiles of big"),
            (1 << 64, 1, 0, False, "do not lie in the 4 tiles of big"),
            (0, 2, 1, False, "2 tiles from 1 on do not lie in the 2 tiles of heap 'pool'"),
            (0, 1, -1, False, "do not lie in the 2 tiles of heap 'pool'"),
            (0, 2, 2, True, "do not lie in the 2 tiles of heap 'pool'"),
        ],
    )
    def test_RS4_tiles_outside_are_refused(self, gpu, tile, count, heap_tile, reuse, message):
        reserved = gpu.memory.reserve(3 * TILE_SIZE + 1, "big")
        heap = gpu.memory.create_heap(2 * TILE_SIZE, label="heap 'pool'")
        with pytest.raises(ValueError, match=message):
            gpu.memory.map_tiles(reserved, tile, count, heap, heap_tile, reuse=reuse)

    def test_a_heap_that_is_not_mappable_gives_no_tiles(self, gpu):
        reserved = gpu.memory.reserve(TILE_SIZE)
        heap = gpu.memory.create_heap(TILE_SIZE, mappable=False, label="heap 'own'")
        with pytest.raises(ValueError, match="heap 'own' is not mappable"):
            gpu.memory.map_tiles(reserved, 0, 1, heap, 0)
        assert not np.asarray(reserved.buffer()).any()

    def test_a_placed_allocation_has_no_tiles(self, gpu):
        with pytest.raises(ValueError, match="is not a reserved allocation"):
            gpu.memory.map_tiles(buffer(gpu, 10), 0, 1, None, 0)

    @given(
        st.lists(
            st.tuples(
                st.integers(0, 1),  # reserved range
                st.integers(0, 7),  # tile
                st.integers(1, 8),  # count
                st.integers(-1, 1),  # heap, -1: NULL
                st.integers(0, 3),  # heap tile
                st.booleans(),  # reuse
            ),
            max_size=25,
        )
    )
    @settings(max_examples=60, deadline=None)
    def test_RS5_any_row_of_mappings_shows_the_tiles_of_a_plain_table(self, mappings):
        gpu = Gpu(name="test", memory_bytes=64 << 20)
        heaps = [heap_with_numbered_tiles(gpu, 4) for _ in range(2)]
        ranges = [gpu.memory.reserve(8 * TILE_SIZE) for _ in range(2)]
        expected = np.zeros((2, 8), np.int64)
        for which, tile, count, heap, heap_tile, reuse in mappings:
            count = min(count, 8 - tile, 8 if reuse or heap < 0 else 4 - heap_tile)
            gpu.memory.map_tiles(
                ranges[which], tile, count, heaps[heap] if heap >= 0 else None, heap_tile, reuse=reuse
            )
            for i in range(count):
                expected[which, tile + i] = 0 if heap < 0 else heap_tile + 1 + (0 if reuse else i)
        assert [tiles_of(each)[:, 0].tolist() for each in ranges] == expected.tolist()
        for heap in heaps:
            heap.close()
        for each in ranges:
            each.close()
        assert gpu.memory.used == 0


class TestLifetimes:
    def test_arrays_stay_readable_after_everything_is_closed(self):
        gpu = Gpu(name="test", memory_bytes=64 << 20)
        heap = gpu.memory.create_heap(TILE_SIZE)
        placed = gpu.memory.place(heap, 0, TILE_SIZE)
        reserved = gpu.memory.reserve(TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 1, heap, 0)
        arrays = [np.asarray(each.buffer()) for each in (placed, reserved)]
        arrays[0][:] = 5
        gpu.close()
        del gpu, heap, placed, reserved
        gc.collect()
        assert all((array == 5).all() for array in arrays)

    def test_a_dead_array_never_shows_later_memory(self, gpu):
        allocation = buffer(gpu, TILE_SIZE)
        array = np.asarray(allocation.buffer())
        array[:] = 5
        allocation.close()
        np.asarray(buffer(gpu, TILE_SIZE).buffer())[:] = 6
        assert (array == 5).all()

    def test_nothing_leaks(self):
        def program() -> None:
            gpu = Gpu(name="test", memory_bytes=64 << 20)
            for _ in range(20):
                heap = gpu.memory.create_heap(4 * TILE_SIZE)
                placed = gpu.memory.place(heap, 0, 100)
                reserved = gpu.memory.reserve(8 * TILE_SIZE)
                gpu.memory.map_tiles(reserved, 0, 5, heap, 1, reuse=True)
                np.asarray(placed.buffer())[:] = np.asarray(reserved.buffer())[:100] + 1
                for each in (heap, placed, reserved):
                    each.close()
            assert gpu.memory.used == 0
            gpu.create_fence()
            buffer(gpu, 100)  # not closed: goes with the GPU

        program()
        gc.collect()
        before = open_files(), mappings()
        for _ in range(5):
            program()
        gc.collect()
        assert (open_files(), mappings()) == before

    def test_closed_memory_goes_back_to_the_host_at_once(self, gpu):
        def taken() -> int:
            return os.fstat(gpu.memory._file.fd).st_blocks * 512

        allocation = buffer(gpu, 32 * MIB)
        np.asarray(allocation.buffer())[:] = 1
        assert taken() == 32 * MIB
        allocation.close()
        assert taken() == 0

    def test_closed_memory_of_its_own_goes_back_to_the_host_at_once(self, gpu):
        allocation = buffer(gpu, 32 * MIB, mappable=False)
        np.asarray(allocation.buffer())[:] = 1
        before = resident_bytes()
        allocation.close()
        assert before - resident_bytes() > 30 * MIB

    def test_large_memory_of_its_own_may_have_large_pages(self, gpu):
        allocation = buffer(gpu, 3 * MIB, mappable=False)
        flags = next(line for line in mapped_at(allocation.host) if line.startswith("VmFlags"))
        if not Path("/sys/kernel/mm/transparent_hugepage").exists():
            pytest.skip("the host has no large pages")
        assert " hg" in flags
        assert allocation.host % (2 * MIB) == 0

    def test_many_heaps_need_one_file(self, gpu):
        gc.collect()
        before = open_files()
        heaps = [gpu.memory.create_heap(1) for _ in range(500)]
        assert open_files() == before
        assert len({heap.serial for heap in heaps}) == 500

    def test_one_tile_for_more_tiles_than_the_host_can_map_is_out_of_memory(self, gpu):
        heap = heap_with_numbered_tiles(gpu, 1)
        reserved = gpu.memory.reserve(1 << 45)
        with pytest.raises(OutOfMemory):
            gpu.memory.map_tiles(reserved, 0, (1 << 45) // TILE_SIZE, heap, 0, reuse=True)

    def test_too_many_mappings_are_out_of_memory(self, gpu):
        limit = int(Path("/proc/sys/vm/max_map_count").read_text())
        if limit > 100_000:
            pytest.skip("the host allows too many mappings to try them all")
        heap = heap_with_numbered_tiles(gpu, 1)
        reserved = gpu.memory.reserve((limit + 100) * TILE_SIZE)
        with pytest.raises(OutOfMemory, match="The host refuses to map"):
            gpu.memory.map_tiles(reserved, 0, limit + 100, heap, 0, reuse=True)
        data = reserved.buffer()
        assert data[0] == 1
        assert data[(limit + 99) * TILE_SIZE] == 0
        with pytest.raises(OutOfMemory):
            for _ in range(200):
                gpu.memory.create_heap(TILE_SIZE)
        reserved.close()
        del data
        assert bytes(buffer(gpu, 3).buffer()) == b"\0\0\0"


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def mappings() -> int:
    """How many mappings of GPU memory there are."""
    return Path("/proc/self/maps").read_text().count("memfd:dmlemu")


def mapped_at(host: int) -> list[str]:
    """What the system tells of the mapping that holds the address; nothing if there is none."""
    lines: list[str] = []
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if not line.split()[0].endswith(":"):
            if lines:
                break
            start, end = (int(each, 16) for each in line.split()[0].split("-"))
            inside = start <= host < end
        elif inside:
            lines.append(line)
    return lines


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that is what is tested
@in_both_kinds
def test_memory_given_up_in_a_forked_process_stays_with_the_parent(gpu: Gpu, mappable: bool) -> None:
    allocation = buffer(gpu, TILE_SIZE, mappable=mappable)
    np.asarray(allocation.buffer())[:] = 7
    child = os.fork()
    if child == 0:
        allocation.close()
        gc.collect()
        os._exit(0 if allocation.entry.mapped is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (np.asarray(allocation.buffer()) == 7).all()
