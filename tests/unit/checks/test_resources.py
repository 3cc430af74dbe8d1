"""Group d where the gallery stops: exact bytes, what must stay silent, and the events of mapped memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlemu import Error, d3d12
from dmlemu.checks import Check
from dmlemu.checks.analysis.mapped import add_span
from dmlemu.d3d12.core.events import ObjectReleased
from dmlemu.d3d12.memory.resource import HostAccessed, HostMapped, HostUnmapped
from dmlemu.testing.stage import UAV, Stage, States, other_queue

# Tests that must stay silent say so themselves.
pytestmark = pytest.mark.dmlemu(expect=["READBACK_*", "UNMAP_*", "HEAP_*", "RES_*", "HAZARD_*"])

TILE = 65536


@pytest.fixture
def stage() -> Stage:
    return Stage()


def said(stage: Stage) -> list[str]:
    """Ids of all that was reported."""
    return [each.report.id for each in stage.device.reports]


def caught(call: Callable[[], object]) -> Any:
    """The report that the call raises."""
    with pytest.raises(Error) as error:
        call()
    return error.value.report


def readback(stage: Stage, begin: int = 0, end: int = 256) -> Any:
    """A READBACK buffer of 256 bytes; the list that is submitted writes [begin, end) of it."""
    made = stage.host_buffer("readback", 256, "READBACK")
    stage.list.copy_buffer_region(made, begin, stage.filled("source"), 0, end - begin)
    stage.submit()
    return made


# --- READBACK_EARLY ---


@pytest.mark.parametrize(
    "read", [d3d12.Range(0, 0), d3d12.Range(9, 3), d3d12.Range(0, 64), d3d12.Range(128, 256)]
)
def test_what_is_not_written_may_be_read(stage: Stage, read: d3d12.Range) -> None:
    buffer = readback(stage, 64, 128)
    with buffer.map(0, read) as memory:
        assert len(memory) == 256 and memory[0:64] and memory[63] + memory[128] + memory[-1] == 0
        memory.view(np.uint8, 128)

    assert said(stage) == []


@pytest.mark.parametrize(
    "read, bytes",
    [
        (lambda buffer: buffer.map(), "bytes [64, 128)"),
        (lambda buffer: buffer.map(0, d3d12.Range(0, 65)), "byte 64"),
        (lambda buffer: buffer.map(0, d3d12.Range(127, 200)), "byte 127"),
        (lambda buffer: buffer.map(0, d3d12.Range(0, 0))[127], "byte 127"),
        (lambda buffer: buffer.map(0, d3d12.Range(0, 0))[-129], "byte 127"),
        (lambda buffer: buffer.map(0, d3d12.Range(0, 0))[200:90:-1], "bytes [91, 128)"),
        (lambda buffer: buffer.map(0, d3d12.Range(0, 0)).memory, "bytes [64, 128)"),
        (lambda buffer: buffer.map(0, d3d12.Range(0, 0)).view("f4", 100, 2), "bytes [100, 108)"),
        (lambda buffer: np.asarray(buffer.map(0, d3d12.Range(0, 0))), "bytes [64, 128)"),
    ],
)
def test_the_bytes_are_exact(stage: Stage, read: Callable[[Any], object], bytes: str) -> None:
    report = caught(lambda: read(readback(stage, 64, 128)))
    assert report.id == "READBACK_EARLY"
    where = "CopyBufferRegion (command 1) of command list 'frame', which writes them."
    what = f"The CPU reads {bytes} of buffer 'readback' before the GPU has finished"
    assert report.message == f"{what} {where}"
    assert report.properties["fence_value"] == "2" and report.properties["fence"] == "fence 'done'"


def test_the_buffer_stays_mapped_and_can_be_read_later(stage: Stage) -> None:
    buffer = readback(stage)
    assert caught(buffer.map).id == "READBACK_EARLY"
    stage.wait()
    memory = buffer.map()

    assert memory.view("f4")[1] == 2
    buffer.unmap()
    buffer.unmap()


def test_a_buffer_may_stay_mapped_while_it_is_written(stage: Stage) -> None:
    buffer = stage.host_buffer("readback", 256, "READBACK")
    memory = buffer.map()
    source = stage.filled("source")
    for _ in range(3):
        stage.list.copy_resource(buffer, source)
        stage.run()
        assert memory.view("f4")[1] == 2

    assert said(stage) == []


def test_a_wait_for_a_queue_that_waited_is_enough(stage: Stage) -> None:
    buffer, copies = readback(stage), other_queue(stage, "COPY")
    copies.queue.wait(stage.fence, stage.fence_value)
    copies.queue.signal(copies.fence, 1)
    copies.fence.wait(1)
    buffer.map()

    assert said(stage) == []


def test_the_same_bytes_through_another_buffer(stage: Stage) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE, d3d12.HeapProperties(d3d12.HeapType.READBACK)))
    first, second = (
        stage.device.create_placed_resource(heap, place, d3d12.ResourceDesc.buffer(size), States.COPY_DEST)
        for place, size in ((0, 2 * TILE), (TILE, TILE))
    )
    second.set_name("second")
    stage.list.copy_buffer_region(first, TILE + 16, stage.filled("source"), 0, 32)
    stage.submit()

    assert second.map(0, d3d12.Range(48, TILE))[48:] is not None
    assert "bytes [16, 48) of buffer 'second'" in caught(second.map).message


def test_other_commands_that_write(stage: Stage) -> None:
    kind = d3d12.QueryType.TIMESTAMP
    heap = stage.device.create_query_heap(d3d12.QueryHeapDesc(d3d12.QueryHeapType.TIMESTAMP, 2))
    times = stage.host_buffer("times", 64, "READBACK")
    stage.list.end_query(heap, kind, 0)
    stage.list.resolve_query_data(heap, kind, 0, 1, times, 8)
    write = d3d12.WriteBufferImmediateParameter(times.get_gpu_virtual_address() + 32, 7)
    stage.list.write_buffer_immediate([write])
    stage.submit()

    memory = times.map(0, d3d12.Range(16, 32))
    assert "ResolveQueryData (command 2)" in caught(lambda: memory[15]).message
    assert "WriteBufferImmediate (command 3)" in caught(lambda: memory[35]).message
    assert memory[36] == 0


def test_markers_are_made_for_being_looked_at(stage: Stage) -> None:
    progress = stage.host_buffer("progress", 64, "READBACK")
    modes = d3d12.WriteBufferImmediateMode
    write = d3d12.WriteBufferImmediateParameter(progress.get_gpu_virtual_address(), 7)
    stage.list.write_buffer_immediate([write, write], [modes.MARKER_IN, modes.MARKER_OUT])
    stage.submit()
    memory = progress.map()
    assert memory[0] == 0
    stage.wait()

    assert memory[0] == 7 and said(stage) == []


def test_a_custom_heap_that_shaders_write(stage: Stage) -> None:
    """A view of it may be for writing; an index that reads is certain."""
    properties = d3d12.HeapProperties(
        d3d12.HeapType.CUSTOM, d3d12.CpuPageProperty.WRITE_BACK, d3d12.MemoryPool.L0
    )
    desc, none = d3d12.ResourceDesc.buffer(256, UAV), d3d12.HeapFlags.NONE
    custom = stage.device.create_committed_resource(properties, none, desc, States.COMMON)
    custom.set_name("custom")
    view = d3d12.UnorderedAccessViewDesc(d3d12.Format.R32_UINT, buffer=d3d12.BufferUav(4, 2))
    hidden = stage.device.create_descriptor_heap(
        d3d12.DescriptorHeapDesc(d3d12.DescriptorHeapType.CBV_SRV_UAV, 1)
    )
    cpu = hidden.get_cpu_descriptor_handle_for_heap_start()
    gpu = stage.heap.get_gpu_descriptor_handle_for_heap_start() + 32 * 60
    target = stage.heap.get_cpu_descriptor_handle_for_heap_start() + 32 * 60
    for slot in (cpu, target):
        stage.device.create_unordered_access_view(custom, None, view, slot)
    stage.list.clear_unordered_access_view_uint(gpu, cpu, custom, [1, 1, 1, 1])
    stage.submit()

    memory = custom.map()
    memory.view()[100] = 1  # it may be written meanwhile
    assert memory[0:16] == bytes(16) and memory[24:32] == bytes(8)
    assert "bytes [16, 24) of buffer 'custom'" in caught(lambda: memory[0:64]).message


# --- UNMAP_RANGE ---


@pytest.mark.parametrize("told", [None, d3d12.Range(0, 256), d3d12.Range(16, 41)])
def test_what_was_written_is_told(stage: Stage, told: d3d12.Range | None) -> None:
    upload = stage.host_buffer("upload")
    memory = upload.map()
    memory[16:32] = bytes(16)
    memory[40] = 1
    memory[32:40] = bytes(8)
    upload.unmap(0, told)

    assert said(stage) == []


def test_several_unmaps_tell_together(stage: Stage) -> None:
    upload = stage.host_buffer("upload")
    memory = upload.map()
    upload.map()
    memory[0:32] = bytes(32)
    upload.unmap(0, d3d12.Range(16, 32))
    upload.unmap(0, d3d12.Range(0, 16))

    assert said(stage) == []


@pytest.mark.parametrize(
    "told, words", [((0, 0), "declares nothing as written"), ((1, 16), "declares only [1, 16) as written")]
)
def test_what_is_not_told(stage: Stage, told: tuple[int, int], words: str) -> None:
    upload = stage.host_buffer("upload")
    upload.map()[0:16] = bytes(16)
    upload.unmap(0, d3d12.Range(*told))

    reports = [each.report for each in stage.device.reports]
    assert [each.id for each in reports] == ["UNMAP_RANGE"]
    assert reports[0].message == f"Bytes [0, 16) of buffer 'upload' were written, and Unmap {words}."
    upload.map()
    upload.unmap(0, d3d12.Range(0, 0))  # told once
    assert said(stage) == ["UNMAP_RANGE"]


def test_many_small_writes_cost_little_each(stage: Stage) -> None:
    """A write costs about the same however many came before it."""
    buffer = stage.host_buffer("upload", 1 << 20)
    memory = buffer.map(0, d3d12.Range(0, 0))
    times = []
    for part in range(11):
        start = time.perf_counter()
        for i in range(1000 * part, 1000 * part + 1000):
            memory[32 * i : 32 * i + 4] = b"abcd"
        times.append(time.perf_counter() - start)
    buffer.unmap(0)
    assert min(times[8:]) < 2 * max(times[:3]) + 0.2


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=12))
def test_ranges_are_joined_as_sets_of_bytes(drawn: list[tuple[int, int]]) -> None:
    spans: list[tuple[int, int]] = []
    bytes_: set[int] = set()
    for begin, size in drawn:
        add_span(spans, begin, begin + size)
        bytes_ |= set(range(begin, begin + size))
        assert {byte for span in spans for byte in range(*span)} == bytes_
        assert all(one[1] < other[0] for one, other in pairwise(spans)), "sorted, and none touches another"


def test_a_view_may_have_been_for_reading(stage: Stage) -> None:
    upload = stage.host_buffer("upload")
    upload.map().view()[0] = 1
    upload.unmap(0, d3d12.Range(0, 0))

    assert said(stage) == []


# --- HEAP_OVERLAP ---


def placed(stage: Stage, *rows: tuple[int, int]) -> list[Any]:
    """Buffers of one heap: offset and size of each, in tiles."""
    heap = stage.device.create_heap(d3d12.HeapDesc(8 * TILE))
    buffers = []
    for i, (offset, size) in enumerate(rows):
        desc = d3d12.ResourceDesc.buffer(size * TILE, UAV)
        buffers.append(stage.device.create_placed_resource(heap, offset * TILE, desc, States.COMMON))
        buffers[i].set_name("abcd"[i])
    return buffers


def messages(stage: Stage) -> list[str]:
    return [each.report.message.split(" of heap")[0] for each in stage.device.reports]


def test_all_that_overlap_are_told_once(stage: Stage) -> None:
    source = stage.filled("source")
    buffers = placed(stage, (0, 6), (1, 1), (4, 3))
    for _ in range(2):
        for i, buffer in enumerate(buffers):
            stage.list.copy_buffer_region(buffer, 100 * i, source, 0, 64)
        stage.run()

    assert [each.count for each in stage.device.reports] == [1, 1]
    assert messages(stage) == [
        "Buffer 'a' and buffer 'b' share bytes [65536, 131072)",
        "Buffer 'a' and buffer 'c' share bytes [262144, 393216)",
    ]


def test_neighbours_share_nothing(stage: Stage) -> None:
    source = stage.filled("source")
    for buffer in placed(stage, (0, 2), (2, 1), (3, 4)):
        stage.list.copy_buffer_region(buffer, 0, source, 0, 64)
    stage.run()

    assert said(stage) == []


def test_separate_calls_and_aliasing_barriers_are_what_is_meant(stage: Stage) -> None:
    source = stage.filled("source")
    first, second = placed(stage, (0, 2), (1, 2))
    stage.list.copy_buffer_region(first, 0, source, 0, 64)
    stage.run()
    stage.list.copy_buffer_region(second, 0, source, 0, 64)
    stage.run()
    stage.list.copy_buffer_region(first, TILE, source, 0, 64)
    stage.list.resource_barrier(d3d12.ResourceBarrier.aliasing(first, second))
    stage.list.copy_buffer_region(second, 0, source, 0, 64)
    stage.run()

    assert said(stage) == []


def test_only_reading_harms_nothing(stage: Stage) -> None:
    source, target = stage.filled("source"), stage.buffer("target")
    first, second = placed(stage, (0, 2), (1, 2))
    stage.list.copy_buffer_region(first, TILE, source, 0, 64)
    stage.run()
    stage.list.copy_buffer_region(target, 0, first, TILE, 64)
    stage.list.copy_buffer_region(target, 64, second, 0, 64)
    stage.run()

    assert said(stage) == []


def test_a_conflict_is_told_as_such(stage: Stage) -> None:
    source = stage.filled("source")
    first, second = placed(stage, (0, 2), (1, 2))
    stage.list.copy_buffer_region(first, TILE, source, 0, 64)
    stage.list.copy_buffer_region(second, 0, source, 0, 64)
    assert caught(stage.run).id == "HAZARD_ALIAS"
    assert said(stage) == ["HAZARD_ALIAS"]


# --- RES_LEAK ---


def test_garbage_collected_programs_leak_nothing() -> None:
    device = d3d12.create_device(d3d12.Adapter())
    buffer = device.create_fence()
    device.release()
    assert list(device.reports) == [] and buffer is not None


def test_a_block_that_only_the_device_has_leaks_nothing() -> None:
    with d3d12.create_device(d3d12.Adapter()) as device:
        fence = device.create_fence()

    assert list(device.reports) == [] and fence.get_completed_value() == 0


def test_nothing_left_is_no_leak(stage: Stage) -> None:
    for thing in stage.device.report_live_device_objects():
        thing.release()
    stage.device.release()

    assert said(stage) == []


def test_live_objects_as_text(stage: Stage) -> None:
    source, target = stage.filled("source"), stage.host_buffer("target", 256, "READBACK")
    target.map()
    stage.list.copy_resource(target, source)
    stage.submit()
    for thing in (stage.queue, stage.fence, stage.heap):
        thing._release(emit=False)
    gc.collect()

    lines = str(stage.device.report_live_device_objects()).splitlines()
    assert lines[0] == "4 live objects of device 'gpu'"
    assert [line.split(" (created at ")[0] for line in lines[1:]] == [
        "  command allocator 'frames'",
        "  command list 'frame'",
        "  buffer 'source'",
        "  buffer 'target'",
    ]
    needed = "needed by command list 'frame', which the GPU has not finished"
    assert lines[3].endswith(f", {needed}") and lines[4].endswith(f", {needed}, mapped")


def test_a_heap_is_held_by_what_is_placed_in_it(stage: Stage) -> None:
    (buffer,) = placed(stage, (0, 1))
    text = str(stage.device.report_live_device_objects())

    assert any(line.startswith("  heap #1 (created at test_resources.py:") for line in text.splitlines())
    assert ", holds buffer 'a'" in text and buffer is not None


# --- events ---


def test_the_events_of_mapped_memory(stage: Stage) -> None:
    seen: list[Any] = []
    with stage.device.events.subscribe(seen.append, HostMapped, HostAccessed, HostUnmapped):
        buffer = stage.host_buffer("upload", 16)
        memory = buffer.map(0, d3d12.Range(4, 8))
        buffer.map(0, d3d12.Range(8, 4))
        memory[0] = 1
        memory[-1] = 1
        assert memory[4:8] == bytes(4) and memory[(4,)] == 0 and memory[5:5] == b""
        memory.view(np.uint16, 4, 3)
        memory.view(np.uint16, 16)
        buffer.unmap(0, d3d12.Range(0, 1))
        buffer.unmap()

    assert seen == [
        HostMapped(buffer, (4, 8), 1),
        HostMapped(buffer, (0, 0), 2),
        HostAccessed(buffer, 0, 1, reads=False, writes=True),
        HostAccessed(buffer, 15, 16, reads=False, writes=True),
        HostAccessed(buffer, 4, 8, reads=True, writes=False),
        HostAccessed(buffer, 4, 5, reads=True, writes=False),
        HostAccessed(buffer, 4, 10, reads=True, writes=True, element=2),
        HostUnmapped(buffer, (0, 1), 1),
        HostUnmapped(buffer, (0, 16), 0),
    ]


def test_the_events_of_release(stage: Stage) -> None:
    seen: list[Any] = []
    with stage.device.events.subscribe(seen.append, HostUnmapped, ObjectReleased):
        buffer, operator = stage.host_buffer("upload", 16), stage.copy_operator("copy")
        buffer.map()
        with buffer:
            pass
        buffer.release()
        operator.release()
        stage.host_buffer("dropped")
        gc.collect()

    assert seen == [HostUnmapped(buffer, (0, 16), 0), ObjectReleased(buffer), ObjectReleased(operator)]


def test_the_end_of_a_device_is_told_to_its_checks() -> None:
    class Last(Check):
        ends = 0

        def end(self) -> None:
            Last.ends += 1

    device = d3d12.create_device(d3d12.Adapter())
    device.checks.add(Last)
    fence = device.create_fence()
    device.release()
    assert Last.ends == 1  # the program ends: nobody may release the fence
    fence.release()
    fence.release()
    device.release()

    assert Last.ends == 1
