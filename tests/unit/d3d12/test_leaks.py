"""Leaks: released or garbage-collected objects free all memory and files of the host."""

from __future__ import annotations

import gc
import os
import resource
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu import Strictness
from dmlemu.checks.analysis import unread
from dmlemu.d3d12 import (
    BufferUav,
    DescriptorHeapDesc,
    Device,
    Format,
    HeapDesc,
    HeapType,
    QueryHeapDesc,
    ResourceDesc,
    UnorderedAccessViewDesc,
)
from dmlemu.d3d12.core import descriptor_uses

from .stage import STATE, Stage, fails


def use_everything(close: bool) -> None:
    stage = Stage()
    device = stage.device
    heap = device.create_heap(HeapDesc(1 << 20))
    placed = device.create_placed_resource(heap, 65536, ResourceDesc.buffer(256), STATE.COMMON)
    reserved = device.create_reserved_resource(ResourceDesc.buffer(1 << 17), STATE.COMMON)
    stage.queue.update_tile_mappings(reserved, None, None, heap)
    views = device.create_descriptor_heap(DescriptorHeapDesc(num_descriptors=100))
    queries = device.create_query_heap(QueryHeapDesc(count=10))
    upload = stage.upload(np.arange(64))
    array = upload.map().view()
    commands, allocator = stage.record()
    commands.copy_buffer_region(placed, 0, upload, 0, 256)
    stage.run(commands)
    stage.read(placed)
    if close:
        for thing in (commands, allocator, upload, queries, views, reserved, placed, heap, stage.queue):
            thing.release()
        stage.fence.close()
        device.close()
    assert array[0] == 0


def leave_work(strictness: Strictness, close: bool) -> weakref.ref[Device]:
    """The state after a failure between ExecuteCommandLists and the wait."""
    stage = Stage(strictness)
    source, target = stage.buffer(), stage.buffer()
    heap = stage.device.create_heap(HeapDesc(65536))
    reserved = stage.device.create_reserved_resource(ResourceDesc.buffer(65536), STATE.COMMON)
    stage.queue.update_tile_mappings(reserved, None, None, heap)
    commands, allocator = stage.record()
    commands.copy_resource(target, source)
    stage.submit(commands)
    stage.queue.signal(stage.fence, 1)
    if close:
        stage.device.reports.deny("OBJECT_DELETED_IN_USE")
        for thing in (source, target, heap, reserved, commands, allocator, stage.fence, stage.queue):
            thing.release()
        stage.device.release()
    return weakref.ref(stage.device)


def collect() -> None:
    for _ in range(3):  # objects freed in one round may have held others
        gc.collect()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:dmlemu")


@pytest.mark.parametrize("close", [True, False], ids=["closed", "dropped"])
def test_nothing_leaks(close: bool) -> None:
    use_everything(close)
    collect()
    files, maps = open_files(), mappings()
    for _ in range(5):
        use_everything(close)
    collect()

    assert open_files() == files
    assert mappings() == maps


@pytest.mark.parametrize("strictness", Strictness)
@pytest.mark.parametrize("close", [True, False], ids=["closed", "dropped"])
def test_work_that_nobody_awaits_keeps_no_device(strictness: Strictness, close: bool) -> None:
    collect()
    files, maps = open_files(), mappings()
    devices = [leave_work(strictness, close) for _ in range(20)]
    collect()

    assert [device for device in devices if device() is not None] == []
    assert open_files() == files
    assert mappings() == maps


def test_devices_that_are_garbage_do_not_use_up_the_open_files() -> None:
    collect()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 20, before[1]))
    gc.disable()
    try:
        for _ in range(40):
            leave_work(Strictness.STRICT, close=False)
    finally:
        gc.enable()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def make_each(stage: Stage) -> list[Any]:
    """One object of each kind, and calls that checks record, but no work for the GPU."""
    device, visible = stage.device, stage.heap(visible=True)
    committed, upload, heap = stage.buffer(), stage.upload(np.arange(64)), device.create_heap(HeapDesc(65536))
    placed = device.create_placed_resource(heap, 0, ResourceDesc.buffer(256), STATE.COMMON)
    reserved = device.create_reserved_resource(ResourceDesc.buffer(1 << 17), STATE.COMMON)
    device.create_unordered_access_view(
        committed,
        None,
        UnorderedAccessViewDesc(Format.R32_UINT, buffer=BufferUav(0, 64)),
        visible.get_cpu_descriptor_handle_for_heap_start(),
    )
    queue, fence = device.create_command_queue(), device.create_fence()
    fence.signal(1)
    assert fence.get_completed_value() == 1
    commands, allocator = stage.record()
    commands.copy_buffer_region(placed, 0, upload, 0, 256)
    commands.close()
    queries = device.create_query_heap(QueryHeapDesc(count=10))
    return [commands, allocator, upload, queries, visible, committed, placed, reserved, heap, queue, fence]


@pytest.mark.parametrize("strictness", Strictness)
@pytest.mark.parametrize("close", [True, False], ids=["closed", "dropped"])
def test_what_the_gpu_never_sees_leaves_nothing(
    strictness: Strictness, close: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptor_uses, "_FEW", 8)  # so many of released heaps are kept
    monkeypatch.setattr(unread, "_KEPT", 4)  # so many unread writes are remembered until the end
    stage, rounds = Stage(strictness), 100

    def objects() -> Counter[str]:
        collect()
        return Counter(type(each).__name__ for each in gc.get_objects())

    def cycle() -> None:
        for each in make_each(stage):
            if close:
                each.release()

    for _ in range(5):
        cycle()
    before = objects()
    for _ in range(rounds):
        cycle()
    more = objects() - before
    more.pop("Write", None)  # writers of bytes: a fixed number is kept
    assert [name for name, count in more.items() if count > rounds / 2] == []


def test_dropped_buffers_give_their_memory_back(stage: Stage) -> None:
    before = stage.adapter.query_memory_budget().current_usage
    for _ in range(1000):
        stage.buffer(1 << 20)  # a thousand times what the adapter has in total / 64

    assert stage.adapter.query_memory_budget().current_usage == before


def test_finished_work_gives_its_resources_back(stage: Stage) -> None:
    for _ in range(3):
        data = np.full(20 << 20, 1, np.uint8)
        stage.read(stage.filled(data))  # needs 60 of 64 MiB, and keeps none


def test_close_is_idempotent(stage: Stage) -> None:
    for thing in (
        stage.buffer(),
        stage.heap(),
        stage.queue,
        stage.device.create_heap(HeapDesc(65536)),
        stage.device.create_query_heap(QueryHeapDesc()),
        stage.device.create_fence(),
        stage.record()[1],
    ):
        with thing:
            thing.close()
        thing.close()
    commands, _ = stage.record()
    with commands:
        pass
    commands.release()
    with fails("CL9"):
        commands.reset(stage.record()[1])


def test_arrays_outlive_the_device() -> None:
    stage = Stage()
    buffer = stage.buffer(1 << 20, HeapType.UPLOAD)
    array = buffer.map().view(np.uint32)
    array[:] = 3
    device = stage.device
    del buffer, stage
    device.close()
    del device
    gc.collect()

    assert int(array.sum()) == 3 << 18
