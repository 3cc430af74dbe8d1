"""Shadow memory: what was written, through every way that leads to the same bytes."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from byte_sets import Layout, layouts
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlemu_hw import shadow as shadow_module
from dmlemu_hw import storage
from dmlemu_hw.allocation import Allocation, Heap
from dmlemu_hw.events import READ, UNDEFINE, WRITE, Access, Accesses, Footprint
from dmlemu_hw.faults import ForeignProcess
from dmlemu_hw.gpu import Gpu
from dmlemu_hw.kernels import lib
from dmlemu_hw.shadow import Shadow
from dmlemu_hw.storage import TILE_SIZE
from thorough import part_of

MIB = 1 << 20


@pytest.fixture
def shadow(gpu: Gpu) -> Shadow:
    shadow = Shadow(gpu.memory)
    gpu.events.subscribe(shadow.on_event)
    return shadow


def buffer(gpu: Gpu, size: int) -> Allocation:
    return gpu.memory.place(gpu.memory.create_heap(size), 0, size)


def on_bytes(access: int, address: int, size: int) -> Access:
    return Access(0, access, Footprint(address, 8, (size,), (1,)))


def span(address: int, size: int):
    return Layout(address, 8, (size,), (1,)).struct()


def shadow_mappings() -> int:
    gc.collect()  # other tests may have left some
    return Path("/proc/self/maps").read_text().count("dmlemu shadow")


class TestFootprints:
    def test_fresh_memory_was_not_written(self, gpu, shadow):
        data = buffer(gpu, 1000)
        assert shadow.first_unwritten(span(data.address, 1000)) == data.address
        assert not shadow.is_written(data.address + 999, 1)

    def test_what_is_written_and_what_becomes_undefined(self, gpu, shadow):
        data = buffer(gpu, 1000)
        shadow.mark_written(span(data.address, 1000))
        assert shadow.first_unwritten(span(data.address, 1000)) is None
        assert shadow.is_written(data.address, 1000)
        shadow.mark_undefined(span(data.address + 500, 7))
        assert shadow.first_unwritten(span(data.address, 1000)) == data.address + 500
        assert list(shadow.written_runs(data.address, 1000)) == [
            (data.address, data.address + 500),
            (data.address + 507, data.address + 1000),
        ]

    def test_gaps_of_a_layout_are_left_alone(self, gpu, shadow):
        data = buffer(gpu, 4 * MIB)
        columns = [Layout(data.address + 4 * i, 32, (MIB // 2,), (2,)).struct() for i in range(2)]
        shadow.mark_written(columns[0])
        assert shadow.first_unwritten(columns[0]) is None
        assert shadow.first_unwritten(columns[1]) == data.address + 4
        assert list(shadow.written_runs(data.address, 16)) == [
            (data.address + at, data.address + at + 4) for at in (0, 8)
        ]

    def test_an_empty_range_is_written(self, gpu, shadow):
        data = buffer(gpu, 8)
        assert shadow.is_written(data.address, 0)
        assert list(shadow.written_runs(data.address, 0)) == []

    def test_memory_that_was_there_before_counts_as_written(self, gpu):
        old_heap = gpu.memory.create_heap(2 * TILE_SIZE)
        old = gpu.memory.place(old_heap, 0, TILE_SIZE)
        shadow = Shadow(gpu.memory)
        placed_later = gpu.memory.place(old_heap, TILE_SIZE, TILE_SIZE)
        assert shadow.is_written(old.address, TILE_SIZE)
        assert shadow.is_written(placed_later.address, TILE_SIZE)
        assert not shadow.is_written(buffer(gpu, 8).address, 8)
        shadow.mark_undefined(span(old.address + 5, 1))
        assert shadow.first_unwritten(span(old.address, 10)) == old.address + 5

    @pytest.mark.parametrize("size", [1001, TILE_SIZE, 2**60])
    def test_footprints_past_an_end_change_nothing(self, gpu, shadow, size):
        data = buffer(gpu, 1000)
        shadow.mark_written(span(data.address, size))
        assert not shadow.is_written(data.address, 1)
        assert shadow.first_unwritten(span(data.address, size)) is None

    @pytest.mark.parametrize("loss", ["undefined", "command", "copy", "tiles"])
    def test_a_command_that_found_all_written_looks_again_after_a_loss(self, gpu, shadow, loss):
        heap = gpu.memory.create_heap(3 * TILE_SIZE)
        data = gpu.memory.reserve(2 * TILE_SIZE)
        gpu.memory.map_tiles(data, 0, 2, heap, 0)
        read, write = data.address, data.address + TILE_SIZE
        command = Accesses.of([on_bytes(READ, read, 8), on_bytes(WRITE, write, 8)])
        assert not shadow.command(command, look=True)
        shadow.mark_written(span(read, 8))
        shadow.mark_written(span(write, 8))
        for _ in range(3):
            assert shadow.command(command, look=True)
        if loss == "undefined":
            shadow.mark_undefined(span(read + 5, 1))
        elif loss == "command":
            assert shadow.command(Accesses.of([on_bytes(UNDEFINE, read + 5, 1)]), look=True)
        elif loss == "copy":
            shadow.copy(read, write, 8)  # of written bytes: nothing is lost
            assert shadow.command(command, look=True)
            shadow.copy(read, write + 4, 8)
        else:
            gpu.memory.map_tiles(data, 0, 1, heap, 2)
        assert not shadow.command(command, look=True)
        assert shadow.first_unwritten(span(read, 8)) == read + {"copy": 4, "tiles": 0}.get(loss, 5)

    def test_released_memory_is_forgotten(self, gpu, shadow):
        data = buffer(gpu, 1000)
        address = data.address
        shadow.mark_written(span(address, 10))
        data.close()
        shadow.mark_undefined(span(address, 10))
        assert shadow.first_unwritten(span(address, 1000)) is None
        assert list(shadow.written_runs(address, 1000)) == [(address, address + 1000)]

    def test_footprints_without_meaning_change_nothing(self, gpu, shadow):
        data = buffer(gpu, 1000)
        endless = Layout(data.address, 8, (2, 2), (2**63, 1)).struct_to(2**64 - 1)
        shadow.mark_written(endless)
        assert shadow.first_unwritten(endless) is None
        assert not shadow.is_written(data.address, 1)


class TestAliases:
    def test_placed_over_placed(self, gpu, shadow):
        heap = gpu.memory.create_heap(2 * TILE_SIZE)
        whole = gpu.memory.place(heap, 0, 2 * TILE_SIZE)
        part = gpu.memory.place(heap, 1003, 500)
        shadow.mark_written(span(part.address + 7, 3))
        assert list(shadow.written_runs(whole.address, 2 * TILE_SIZE)) == [
            (whole.address + 1010, whole.address + 1013)
        ]
        part.close()
        assert shadow.is_written(gpu.memory.place(heap, 1010, 3).address, 3)

    def test_NULL_tiles_count_as_written(self, gpu, shadow):
        reserved = gpu.memory.reserve(4 * TILE_SIZE)
        assert shadow.is_written(reserved.address, 4 * TILE_SIZE)
        shadow.mark_undefined(span(reserved.address, 4 * TILE_SIZE))
        assert shadow.is_written(reserved.address, 4 * TILE_SIZE)

    def test_tiles_share_what_is_known(self, gpu, shadow):
        heap = gpu.memory.create_heap(2 * TILE_SIZE)
        placed = gpu.memory.place(heap, 0, 2 * TILE_SIZE)
        reserved = gpu.memory.reserve(4 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 1, 2, heap, 0)
        start = reserved.address + TILE_SIZE
        assert shadow.first_unwritten(span(reserved.address, 4 * TILE_SIZE)) == start
        shadow.mark_written(span(placed.address, TILE_SIZE + 5))
        assert shadow.first_unwritten(span(reserved.address, 4 * TILE_SIZE)) == start + TILE_SIZE + 5
        shadow.mark_undefined(span(start + 3, 1))
        assert shadow.first_unwritten(span(placed.address, 10)) == placed.address + 3
        assert list(shadow.written_runs(reserved.address, 4 * TILE_SIZE)) == [
            (reserved.address, start + 3),
            (start + 4, start + TILE_SIZE + 5),
            (start + 2 * TILE_SIZE, start + 3 * TILE_SIZE),
        ]

    def test_one_tile_for_many(self, gpu, shadow):
        heap = gpu.memory.create_heap(TILE_SIZE)
        reserved = gpu.memory.reserve(3 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 3, heap, 0, reuse=True)
        shadow.mark_written(span(reserved.address + TILE_SIZE + 9, 1))
        for tile in range(3):
            start = reserved.address + tile * TILE_SIZE
            assert list(shadow.written_runs(start, TILE_SIZE)) == [(start + 9, start + 10)]

    def test_what_is_undefined_through_tiles_is_so_for_the_placed(self, gpu, shadow):
        heap = gpu.memory.create_heap(TILE_SIZE)
        placed = gpu.memory.place(heap, 0, TILE_SIZE)
        shadow.mark_written(span(placed.address, TILE_SIZE))
        assert shadow.is_written(placed.address, TILE_SIZE)  # known at a glance from now on
        reserved = gpu.memory.reserve(TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 1, heap, 0)
        shadow.mark_undefined(span(reserved.address + 9000, 1))
        assert shadow.first_unwritten(span(placed.address, TILE_SIZE)) == placed.address + 9000

    def test_what_is_known_stays_with_the_heap_when_tiles_move(self, gpu, shadow):
        heap = gpu.memory.create_heap(2 * TILE_SIZE)
        reserved = gpu.memory.reserve(TILE_SIZE)
        address = reserved.address
        gpu.memory.map_tiles(reserved, 0, 1, heap, 0)
        shadow.mark_written(span(address, 10))
        gpu.memory.map_tiles(reserved, 0, 1, heap, 1)
        assert not shadow.is_written(address, 1)
        gpu.memory.map_tiles(reserved, 0, 1, None, 0)
        assert shadow.is_written(address, TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 1, heap, 0)
        assert list(shadow.written_runs(address, TILE_SIZE)) == [(address, address + 10)]

    def test_a_range_too_large_for_any_memory(self, gpu, shadow):
        reserved = gpu.memory.reserve(1 << 40)
        tile = (1 << 23) + 5
        gpu.memory.map_tiles(reserved, tile, 1, gpu.memory.create_heap(TILE_SIZE), 0)
        start = reserved.address + tile * TILE_SIZE
        assert shadow.first_unwritten(span(start - 10, 20)) == start
        shadow.mark_written(span(start, 5))
        assert shadow.first_unwritten(span(start - 10, 20)) == start + 5


class TestCopies:
    def test_unwritten_bytes_stay_so_where_they_are_copied_to(self, gpu, shadow):
        source, destination = buffer(gpu, 1000), buffer(gpu, 1000)
        shadow.mark_written(span(source.address, 1000))
        shadow.mark_undefined(span(source.address + 100, 1))
        shadow.copy(destination.address + 13, source.address, 900)
        at = destination.address + 13
        assert list(shadow.written_runs(destination.address, 1000)) == [(at, at + 100), (at + 101, at + 900)]
        shadow.mark_written(span(destination.address, 1000))
        shadow.copy(destination.address, source.address + 90, 20)
        assert shadow.first_unwritten(span(destination.address, 1000)) == destination.address + 10

    def test_from_NULL_tiles(self, gpu, shadow):
        destination, reserved = buffer(gpu, 1000), gpu.memory.reserve(TILE_SIZE)
        shadow.copy(destination.address, reserved.address, 1000)
        assert shadow.is_written(destination.address, 1000)

    def test_past_an_end_or_from_nowhere_changes_nothing(self, gpu, shadow):
        data, other = buffer(gpu, 1000), buffer(gpu, 1000)
        shadow.mark_written(span(data.address, 1000))
        shadow.copy(data.address, other.address, 1001)
        shadow.copy(data.address, 4096, 10)
        shadow.copy(4096, data.address, 10)
        assert shadow.is_written(data.address, 1000)


class World:
    """Two heaps, four allocations over them, and a set of the bytes that were written."""

    def __init__(self) -> None:
        self.gpu = Gpu(name="test", memory_bytes=64 << 20)
        self.shadow = Shadow(self.gpu.memory)
        self.gpu.events.subscribe(self.shadow.on_event)
        memory = self.gpu.memory
        self.heaps: list[Heap] = [memory.create_heap(3 * TILE_SIZE), memory.create_heap(2 * TILE_SIZE)]
        self.reserved = memory.reserve(3 * TILE_SIZE)
        self.tiles: list[tuple[int, int] | None] = [None] * 3  # heap and its tile
        self.allocations = [
            memory.place(self.heaps[0], 0, 2 * TILE_SIZE),
            memory.place(self.heaps[0], TILE_SIZE + 333, 2 * TILE_SIZE - 333),
            memory.place(self.heaps[1], 5, 2 * TILE_SIZE - 5),
            self.reserved,
        ]
        self.written: set[tuple[int, int]] = set()

    def byte_at(self, address: int) -> tuple[int, int] | None:
        """Heap and offset; None: no memory there."""
        for allocation in self.allocations:
            offset = address - allocation.address
            if 0 <= offset < allocation.size:
                if allocation is not self.reserved:
                    assert allocation.heap is not None
                    return self.heaps.index(allocation.heap), allocation.offset + offset
                tile = self.tiles[offset // TILE_SIZE]
                return None if tile is None else (tile[0], tile[1] * TILE_SIZE + offset % TILE_SIZE)
        raise AssertionError("outside")

    def is_written(self, address: int) -> bool:
        byte = self.byte_at(address)
        return byte is None or byte in self.written

    def mark(self, addresses: set[int], written: bool) -> None:
        bytes_there = {byte for address in addresses if (byte := self.byte_at(address))}
        self.written = self.written | bytes_there if written else self.written - bytes_there

    def map(self, tile: int, heap: int | None, heap_tile: int) -> None:
        memory = None if heap is None else self.heaps[heap]
        self.gpu.memory.map_tiles(self.reserved, tile, 1, memory, heap_tile)
        self.tiles[tile] = None if heap is None else (heap, heap_tile)

    def copy(self, destination: int, source: int, size: int) -> None:
        state = [self.is_written(source + i) for i in range(size)]
        for i, written in enumerate(state):
            self.mark({destination + i}, written)
        self.shadow.copy(destination, source, size)

    def check(self, layout: Layout) -> None:
        missing = [address for address in layout.bytes() if not self.is_written(address)]
        assert self.shadow.first_unwritten(layout.struct()) == min(missing, default=None)
        address, size = layout.address, layout.end - layout.address
        runs = {byte for start, end in self.shadow.written_runs(address, size) for byte in range(start, end)}
        assert runs == {byte for byte in range(address, layout.end) if self.is_written(byte)}
        assert self.shadow.is_written(address, size) == (len(runs) == size)


class TestAnySequence:
    """Random marks, copies and mappings around the borders of tiles."""

    @settings(max_examples=part_of(150), deadline=None)
    @given(st.data())
    def test_bits_follow_the_bytes(self, data):
        world = World()
        for _ in range(data.draw(st.integers(1, 12))):
            self.step(data, world)
        world.gpu.close()

    def step(self, data, world: World) -> None:
        action = data.draw(st.sampled_from(["write", "write", "write", "undefine", "copy", "map", "map"]))
        if action == "map":
            heap = data.draw(st.sampled_from([None, 0, 0, 1]))
            heap_tile = data.draw(st.integers(0, 1 if heap else 2))
            world.map(data.draw(st.integers(0, 2)), heap, heap_tile)
        elif action == "copy":
            size = data.draw(st.integers(1, 300))
            source = self.address(data, world, size)
            destination = self.address(data, world, size)
            if not self.same_bytes(world, destination, source, size):
                world.copy(destination, source, size)
        else:
            layout = self.layout(data, world)
            written = action == "write"
            mark = world.shadow.mark_written if written else world.shadow.mark_undefined
            mark(layout.struct())
            world.mark(layout.bytes(), written)
            world.check(layout)
        world.check(self.layout(data, world))

    def same_bytes(self, world: World, destination: int, source: int, size: int) -> bool:
        """Ranges that overlap through an alias: which byte is copied first is nobody's promise."""
        two = [{world.byte_at(start + i) for i in range(size)} for start in (destination, source)]
        return bool((two[0] & two[1]) - {None}) and abs(destination - source) > size

    def address(self, data, world: World, size: int) -> int:
        allocation = data.draw(st.sampled_from(world.allocations))
        border = data.draw(st.sampled_from([0, TILE_SIZE, allocation.size]))
        offset = border + data.draw(st.integers(-size - 40, 40))
        return allocation.address + min(max(offset, 0), allocation.size - size)

    def layout(self, data, world: World) -> Layout:
        layout = data.draw(layouts(most=20))
        return layout.at(self.address(data, world, layout.end - layout.address))


class TestHost:
    def test_what_it_costs(self, gpu, shadow):
        data = buffer(gpu, 16 * MIB)
        assert os.fstat(shadow._file.fd).st_blocks == 0
        assert not shadow.is_written(data.address, 16 * MIB)
        shadow.mark_written(span(data.address, 8 * MIB))
        assert os.fstat(shadow._file.fd).st_blocks * 512 == 1 * MIB

    def test_everything_is_given_back_with_the_memory(self, gpu, shadow):
        mappings = shadow_mappings()
        heap = gpu.memory.create_heap(4 * TILE_SIZE)
        placed, reserved = gpu.memory.place(heap, 0, TILE_SIZE), gpu.memory.reserve(8 * TILE_SIZE)
        for tile in (0, 2, 4):
            gpu.memory.map_tiles(reserved, tile, 1, heap, tile // 2)
        for allocation in (placed, reserved):
            shadow.mark_written(span(allocation.address, allocation.size))
        assert shadow_mappings() == mappings + 4
        for each in (heap, placed, reserved):
            each.close()
        shadow.is_written(0, 1)  # whatever it is asked next
        assert shadow_mappings() == mappings
        assert os.fstat(shadow._file.fd).st_blocks == 0

    def test_everything_is_given_back_with_the_shadow(self, gpu):
        mappings, files = shadow_mappings(), len(os.listdir("/proc/self/fd"))
        shadow = Shadow(gpu.memory)
        data = buffer(gpu, 1000)
        shadow.mark_written(span(data.address, 1000))
        assert shadow_mappings() == mappings + 1
        del shadow
        assert (shadow_mappings(), len(os.listdir("/proc/self/fd"))) == (mappings, files)

    def test_large_pages_end_the_claims_about_tiles(self, gpu, shadow, monkeypatch):
        """As on ARM, where pages have 4, 16 or 64 KiB."""
        monkeypatch.setattr(shadow_module.mmap, "PAGESIZE", TILE_SIZE)
        reserved, heap = gpu.memory.reserve(2 * TILE_SIZE), gpu.memory.create_heap(TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 1, heap, 0)
        assert shadow.is_written(reserved.address, TILE_SIZE)
        assert "tiles need pages of at most 8192 bytes, and the host's have 65536" in shadow.failure

    def test_heaps_have_pages_of_bits_of_their_own(self, gpu, monkeypatch):
        monkeypatch.setattr(storage, "_APART", 8 * TILE_SIZE)
        file = storage.MemoryFile()
        offsets = [file.map_new(size, mappable=True)[0] for size in (TILE_SIZE, 9 * TILE_SIZE, TILE_SIZE)]
        assert offsets == [0, 8 * TILE_SIZE, 24 * TILE_SIZE]

    def test_a_host_that_refuses_ends_all_claims(self, gpu, shadow, monkeypatch):
        before, heap = buffer(gpu, 1000), gpu.memory.create_heap(TILE_SIZE)
        assert not shadow.is_written(before.address, 1000)
        reserved = gpu.memory.reserve(2 * TILE_SIZE)
        gpu.memory.map_tiles(reserved, 0, 1, heap, 0)

        def refuse(*_: int, **__: int) -> int:
            raise OSError(12, "Cannot allocate memory")

        monkeypatch.setattr(shadow_module, "HostRange", refuse)
        count = self.mappings_taken()
        assert shadow.is_written(reserved.address, TILE_SIZE)
        assert "Cannot allocate memory" in shadow.failure
        assert self.mappings_taken() == count - 1  # that of `before` is given back
        monkeypatch.undo()
        for allocation in (before, reserved, buffer(gpu, 10)):
            assert shadow.is_written(allocation.address, allocation.size)
            shadow.mark_undefined(span(allocation.address, 1))
            assert shadow.is_written(allocation.address, 1)
        shadow.copy(before.address, reserved.address, 10)

    def mappings_taken(self) -> int:
        gc.collect()  # other tests may have left something
        count: int = lib.dmlk_count_mappings()
        return count

    def test_a_process_ends_in_silence(self):
        """Memory is given up while the interpreter is taken apart."""
        code = """if True:
            from dmlemu_hw.gpu import Gpu
            from dmlemu_hw.shadow import Shadow
            gpu = Gpu(name="test", memory_bytes=1 << 20)
            shadow = Shadow(gpu.memory)
            gpu.events.subscribe(shadow.on_event)
            heap = gpu.memory.create_heap(1 << 16)
            allocations = [gpu.memory.place(heap, i, 1) for i in range(3)]
            assert not any(shadow.is_written(each.address, 1) for each in allocations)
        """
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that is what is tested
    def test_a_forked_process_leaves_the_bits_alone(self, gpu, shadow):
        data = buffer(gpu, 1000)
        shadow.mark_written(span(data.address, 1000))
        child = os.fork()
        if child == 0:
            try:
                with pytest.raises(ForeignProcess):
                    Shadow(gpu.memory)
                gpu.close()
                del shadow
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert shadow.is_written(data.address, 1000)
