"""Map and Unmap: rules MP1 to MP8."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from dmlemu import Error
from dmlemu.d3d12 import (
    CpuPageProperty,
    HeapFlags,
    HeapProperties,
    HeapType,
    MappedMemory,
    MemoryPool,
    Range,
    Resource,
    ResourceDesc,
)

from .stage import INVALID, REMOVED, STATE, Stage, fails, remarks

HOST_HEAPS = [HeapType.UPLOAD, HeapType.READBACK, HeapType.GPU_UPLOAD]


def custom(stage: Stage, page: CpuPageProperty) -> Resource:
    properties = HeapProperties(HeapType.CUSTOM, page, MemoryPool.L0)
    return stage.device.create_committed_resource(
        properties, HeapFlags.NONE, ResourceDesc.buffer(256), STATE.COMMON
    )


def test_MP1_only_heaps_that_the_cpu_sees(stage: Stage) -> None:
    for buffer in (stage.buffer(), custom(stage, CpuPageProperty.NOT_AVAILABLE)):
        with fails("MP1", INVALID, 822):
            buffer.map()
        with fails("MP1", INVALID, 823):
            buffer.unmap()


@pytest.mark.parametrize("kind", HOST_HEAPS)
def test_MP1_host_heaps_map(stage: Stage, kind: HeapType) -> None:
    assert len(stage.buffer(100, kind).map()) == 100


@pytest.mark.parametrize("page", [CpuPageProperty.WRITE_COMBINE, CpuPageProperty.WRITE_BACK])
def test_MP1_custom_heaps_map(stage: Stage, page: CpuPageProperty) -> None:
    assert len(custom(stage, page).map()) == 256


def test_MP2_subresource(stage: Stage) -> None:
    buffer = stage.buffer(heap=HeapType.UPLOAD)

    with fails("MP2", INVALID, 826):
        buffer.map(1)
    buffer.map()
    with fails("MP2", INVALID, 827):
        buffer.unmap(1)
    buffer.unmap()


def test_MP4_the_memory_starts_at_byte_0_and_maps_are_counted(stage: Stage) -> None:
    buffer = stage.buffer(heap=HeapType.UPLOAD)
    first = buffer.map()
    first[0] = 7
    second = buffer.map(0, Range(16, 32))

    assert second[0] == 7 and len(second) == 256
    assert second.view().ctypes.data == first.view().ctypes.data
    buffer.unmap()
    assert first[0] == 7
    buffer.unmap()
    with pytest.raises(Error, match="after Unmap"):
        first[0]


def test_MP4_unbalanced_unmap(stage: Stage) -> None:
    buffer = stage.buffer(heap=HeapType.UPLOAD)

    with fails("MP4", INVALID, 310):
        buffer.unmap()
    buffer.map()
    buffer.unmap()
    with fails("MP4", INVALID, 310):
        buffer.unmap()
    buffer.map()


@pytest.mark.parametrize("bounds", [(0, 257), (255, 300), (-1, 4)])
def test_MP5_ranges(stage: Stage, bounds: tuple[int, int]) -> None:
    buffer = stage.buffer(heap=HeapType.UPLOAD)

    with fails("MP5", INVALID, 828):
        buffer.map(0, Range(*bounds))
    buffer.map()
    with fails("MP5", INVALID, 829):
        buffer.unmap(0, Range(*bounds))
    buffer.unmap()


@pytest.mark.parametrize("bounds", [(0, 0), (0, 256), (300, 300), (9, 3), (255, 256)])
def test_MP5_legal_ranges(stage: Stage, bounds: tuple[int, int]) -> None:
    buffer = stage.buffer(heap=HeapType.UPLOAD)
    buffer.map(0, Range(*bounds))
    buffer.unmap(0, Range(*bounds))

    assert remarks(stage) == []


@pytest.mark.dmlemu(expect=["UNMAP_RANGE"])
def test_MP5_written_readback_is_remarked(stage: Stage) -> None:
    buffer = stage.buffer(heap=HeapType.READBACK)
    buffer.map()
    buffer.map()
    buffer.unmap(0, Range(0, 0))
    assert remarks(stage) == []
    buffer.unmap(0, Range(0, 4))
    assert remarks(stage) == [929]


def test_MP6_persistent_map_while_the_gpu_reads(stage: Stage) -> None:
    upload = stage.buffer(heap=HeapType.UPLOAD)
    memory = upload.map()
    target = stage.buffer()
    commands, allocator = stage.record()
    commands.copy_resource(target, upload)
    commands.close()
    for value in (3, 5):
        memory.view()[:] = value
        stage.run(commands)
        np.testing.assert_array_equal(stage.read(target), value)
    allocator.reset()


def test_MP7_writes_are_seen_without_unmap(stage: Stage) -> None:
    upload = stage.buffer(heap=HeapType.UPLOAD)
    target = stage.buffer()
    commands, _ = stage.record()
    commands.copy_resource(target, upload)
    upload.map().memory[:4] = b"\1\2\3\4"
    stage.run(commands)

    assert stage.read(target)[:4].tolist() == [1, 2, 3, 4]


def test_MP8_map_after_removal(stage: Stage) -> None:
    buffer = stage.buffer(heap=HeapType.UPLOAD)
    buffer.map()
    stage.device.remove_device()

    with fails("RM2", REMOVED):
        buffer.map()
    buffer.unmap()


@pytest.mark.layer("MAP_HEAP", "MAP_RANGE", "UNMAP_NOT_MAPPED")
def test_MP_unmap_is_silent_at_runtime(runtime: Stage) -> None:
    stage = runtime
    stage.buffer(heap=HeapType.UPLOAD).unmap()
    stage.buffer().unmap()
    stage.buffer(heap=HeapType.UPLOAD).map(0, Range(0, 999))

    with fails("MP1", INVALID, 822):
        stage.buffer().map()


# --- the memory itself ---


def test_memory_is_the_buffers_without_a_copy(stage: Stage) -> None:
    buffer = stage.buffer(64, HeapType.UPLOAD)
    with buffer.map() as memory:
        array = np.asarray(memory)
        array[3] = 9
        assert array.dtype == np.uint8 and array.shape == (64,)
        assert memory.memory[3] == 9 and memory[3] == 9
        memory[4:6] = b"ab"
        assert bytes(memory[4:6]) == b"ab" and array[4] == ord("a")
        numbers = memory.view(np.float32, 16, 2)
        numbers[:] = 1.5
        assert array[16:24].view(np.float32).tolist() == [1.5, 1.5]
        assert memory.view(np.float64, 60).shape == (0,)
        assert np.array(memory, dtype=np.int32)[3] == 9
    assert isinstance(memory, MappedMemory)
    with pytest.raises(Error, match="after Unmap"):
        np.asarray(memory)


def test_an_array_that_needs_a_copy_is_refused_when_none_is_wanted(stage: Stage) -> None:
    with stage.buffer(64, HeapType.UPLOAD).map() as memory:
        with pytest.raises(ValueError, match="without a copy"):
            memory.__array__(np.float32, copy=False)  # what NumPy 2 calls for copy=False
        assert memory.__array__(np.uint8, copy=False).base is not None
        assert np.asarray(memory, np.float32).shape == (64,)


def test_arrays_survive_unmap_and_release(stage: Stage) -> None:
    buffer = stage.upload(np.arange(100_000, dtype=np.uint32))
    array = buffer.map().view(np.uint32)
    buffer.close()
    del buffer
    gc.collect()

    assert array[99_999] == 99_999
    array[:] = 1
    assert int(array.sum()) == 100_000


def test_a_released_buffer_cannot_be_mapped(stage: Stage) -> None:
    buffer = stage.buffer(heap=HeapType.UPLOAD)
    memory = buffer.map()
    buffer.close()

    with pytest.raises(Error, match="has been released"):
        buffer.map()
    with pytest.raises(Error, match="after Unmap"):
        memory.view()
