"""Invalid arguments of any kind: calls raise dmlemu.Error or TypeError, and the device stays usable."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from dmlemu import Error, HResult
from dmlemu.d3d12 import (
    BufferSrv,
    BufferUav,
    CommandQueueDesc,
    ConstantBufferViewDesc,
    DescriptorHeapDesc,
    DescriptorHeapType,
    FeatureDataD3D12Options,
    Format,
    HeapDesc,
    HeapFlags,
    HeapProperties,
    HeapType,
    QueryHeapDesc,
    Range,
    ResourceBarrier,
    ResourceDesc,
    ShaderResourceViewDesc,
    TiledResourceCoordinate,
    TileRegionSize,
    UnorderedAccessViewDesc,
    WriteBufferImmediateParameter,
)
from list_commands import COMMANDS, Objects

from .stage import DIRECT, STATE, UAV, Stage

Call = tuple[Callable[..., Any], list[Any]]
VIEWS = DescriptorHeapType.CBV_SRV_UAV


class BadSequence:
    """A sequence and number whose conversions raise."""

    def __iter__(self) -> None:  # type: ignore[misc]
        raise ZeroDivisionError

    __index__ = __float__ = __len__ = __iter__


class World(Objects):
    """One object of each kind, and a succeeding call of every method."""

    def __init__(self) -> None:
        self.stage = stage = Stage()
        super().__init__(stage.device)
        device = stage.device
        self.upload = stage.buffer(heap=HeapType.UPLOAD)
        self.heap = device.create_heap(HeapDesc(1 << 18))
        self.reserved = device.create_reserved_resource(ResourceDesc.buffer(1 << 17), STATE.COMMON)
        self.list, self.allocator = stage.record()
        self.prepare(self.list)
        self.closed, self.free = stage.record()
        self.closed.close()
        self.foreign = Stage().buffer()
        self.released = stage.buffer()
        self.released.release()

    def calls(self) -> dict[str, Call]:
        w, d, c, q = self, self.device, self.list, self.stage.queue
        buffer = ResourceDesc.buffer(64)
        return {
            "create_heap": (d.create_heap, [HeapDesc(65536)]),
            "HeapDesc": (
                lambda *a: d.create_heap(HeapDesc(*a)),
                [65536, HeapProperties(), 0, HeapFlags.NONE],
            ),
            "HeapProperties": (
                lambda *a: d.create_heap(HeapDesc(65536, HeapProperties(*a))),
                [HeapType.DEFAULT, 0, 0, 0, 0],
            ),
            "create_committed_resource": (
                d.create_committed_resource,
                [HeapProperties(), HeapFlags.NONE, buffer, STATE.COMMON, None],
            ),
            "ResourceDesc": (
                lambda *a: d.create_reserved_resource(ResourceDesc(*a), STATE.COMMON),
                [1, 0, 64, 1, 1, 1, Format.UNKNOWN, buffer.sample_desc, 1, UAV],
            ),
            "create_placed_resource": (d.create_placed_resource, [w.heap, 65536, buffer, STATE.COMMON, None]),
            "create_reserved_resource": (d.create_reserved_resource, [buffer, STATE.COMMON, None]),
            "create_command_queue": (d.create_command_queue, [CommandQueueDesc()]),
            "create_command_queue1": (d.create_command_queue1, [CommandQueueDesc(), UUID(int=1)]),
            "create_heap1": (d.create_heap1, [HeapDesc(65536), None]),
            "create_committed_resource3": (
                d.create_committed_resource3,
                [HeapProperties(), HeapFlags.NONE, buffer, 0xFFFFFFFF, None, None, []],
            ),
            "create_placed_resource2": (
                d.create_placed_resource2,
                [w.heap, 65536, buffer, 0xFFFFFFFF, None, []],
            ),
            "create_reserved_resource2": (
                d.create_reserved_resource2,
                [buffer, 0xFFFFFFFF, None, None, []],
            ),
            "get_resource_allocation_info3": (d.get_resource_allocation_info3, [0, [buffer], []]),
            "get_copyable_footprints1": (d.get_copyable_footprints1, [buffer, 0, 1, 0]),
            "set_residency_priority": (d.set_residency_priority, [[w.buffer], [1]]),
            "enqueue_make_resident": (
                d.enqueue_make_resident,
                [0, [w.buffer], d.create_fence(), 1],
            ),
            "set_background_processing_mode": (d.set_background_processing_mode, [0, 0, None]),
            "set_stable_power_state": (d.set_stable_power_state, [True]),
            "shader_cache_control": (d.shader_cache_control, [1, 1]),
            "create_command_allocator": (d.create_command_allocator, [DIRECT]),
            "create_command_list": (d.create_command_list, [0, DIRECT, w.free, None]),
            "create_command_list1": (d.create_command_list1, [0, DIRECT, 0]),
            "create_fence": (d.create_fence, [0, 0]),
            "create_descriptor_heap": (d.create_descriptor_heap, [DescriptorHeapDesc()]),
            "DescriptorHeapDesc": (
                lambda *a: d.create_descriptor_heap(DescriptorHeapDesc(*a)),
                [VIEWS, 1, 0, 0],
            ),
            "create_query_heap": (d.create_query_heap, [QueryHeapDesc()]),
            "QueryHeapDesc": (lambda *a: d.create_query_heap(QueryHeapDesc(*a)), [1, 1, 0]),
            "create_unordered_access_view": (
                d.create_unordered_access_view,
                [w.buffer, None, w.view, w.cpu],
            ),
            "BufferUav": (
                lambda *a: d.create_unordered_access_view(
                    w.buffer, None, UnorderedAccessViewDesc(Format.R32_UINT, buffer=BufferUav(*a)), w.cpu
                ),
                [0, 4, 0, 0, 0],
            ),
            "create_shader_resource_view": (
                d.create_shader_resource_view,
                [w.buffer, ShaderResourceViewDesc(Format.R32_UINT, buffer=BufferSrv(0, 4)), w.cpu],
            ),
            "create_constant_buffer_view": (d.create_constant_buffer_view, [None, w.cpu]),
            "ConstantBufferViewDesc": (
                lambda *a: d.create_constant_buffer_view(ConstantBufferViewDesc(*a), w.cpu),
                [w.buffer.get_gpu_virtual_address(), 256],
            ),
            "copy_descriptors": (d.copy_descriptors, [[w.target], [1], [w.cpu], [1], VIEWS]),
            "copy_descriptors_simple": (d.copy_descriptors_simple, [1, w.target, w.cpu, VIEWS]),
            "check_feature_support": (d.check_feature_support, [0, FeatureDataD3D12Options()]),
            "get_resource_allocation_info": (d.get_resource_allocation_info, [0, [buffer]]),
            "get_copyable_footprints": (d.get_copyable_footprints, [buffer, 0, 1, 0]),
            "get_custom_heap_properties": (d.get_custom_heap_properties, [0, HeapType.UPLOAD]),
            "make_resident": (d.make_resident, [[w.buffer]]),
            "set_event_on_multiple": (
                d.set_event_on_multiple_fence_completion,
                [[w.stage.fence], [0], 0, None],
            ),
            "signal": (w.stage.fence.signal, [0]),
            "wait": (lambda value: w.stage.fence.wait(value, 0), [0]),
            "set_event_on_completion": (w.stage.fence.set_event_on_completion, [0, None]),
            "queue.signal": (q.signal, [d.create_fence(), 0]),
            "queue.wait": (q.wait, [w.stage.fence, 0]),
            "execute_command_lists": (q.execute_command_lists, [[w.closed]]),
            "update_tile_mappings": (
                q.update_tile_mappings,
                [w.reserved, [TiledResourceCoordinate()], [TileRegionSize(1)], w.heap, [0], [0], [1], 0],
            ),
            "TiledResourceCoordinate": (
                lambda *a: q.update_tile_mappings(
                    w.reserved, [TiledResourceCoordinate(*a)], None, w.heap, None, [0]
                ),
                [0, 0, 0, 0],
            ),
            "map": (w.upload.map, [0, None]),
            "Range": (lambda *a: w.upload.map(0, Range(*a)), [0, 1]),
            "reset": (w.closed.reset, [w.free, None]),
            **{name: (getattr(c, name), row.takes(w)) for name, row in COMMANDS.items()},
            "WriteBufferImmediateParameter": (
                lambda *a: c.write_buffer_immediate([WriteBufferImmediateParameter(*a)]),
                [w.other.get_gpu_virtual_address(), 1],
            ),
            "transition": (
                lambda *a: c.resource_barrier(ResourceBarrier.transition(*a)),
                [w.buffer, STATE.COMMON, STATE.COPY_DEST, 0, 0],
            ),
            "aliasing": (
                lambda *a: c.resource_barrier(ResourceBarrier.aliasing(*a)),
                [w.buffer, w.other],
            ),
        }

    def junk(self) -> list[Any]:
        return [
            None,
            -1,
            2**70,
            1.5,
            float("nan"),
            "text",
            b"",
            [],
            [None],
            [-1],
            ["text"],
            [2**70],
            object(),
            np.int64(0),
            np.zeros(3),
            memoryview(np.zeros((2, 2), np.uint8)),
            BadSequence(),
            self.foreign,
            self.released,
            self.queries,
            [self.foreign],
            [self.list],
            HeapDesc(1),
        ]


pytestmark = pytest.mark.dmlemu(expect=["*"])  # errors of every kind
NAMES = list(World().calls())


@pytest.mark.parametrize("name", NAMES)
def test_the_calls_themselves_succeed(name: str) -> None:
    world = World()
    call, arguments = world.calls()[name]
    call(*arguments)


@pytest.mark.parametrize("name", NAMES)
def test_junk_is_answered(name: str) -> None:
    world = World()
    for position in range(len(world.calls()[name][1])):
        for index in range(len(world.junk())):
            call, arguments = world.calls()[name]
            arguments[position] = world.junk()[index]
            with suppress(Error, TypeError):
                call(*arguments)
            assert world.device.get_device_removed_reason() is HResult.S_OK
            if world.list.recording is None or not world.list.is_open or world.closed.is_open:
                world = World()
    fresh, _ = world.stage.record()
    fresh.copy_resource(world.other, world.upload)
    world.stage.run(fresh)
