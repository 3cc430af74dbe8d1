"""Numbers in reports that are not the value of the field that they are about say what they count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dmlemu import Error, d3d12, dml

F32 = dml.TensorDataType.FLOAT32
DIRECT = d3d12.CommandListType.DIRECT
Wrong = Callable[[d3d12.Device], object]


def tensor(count: int, **more: Any) -> dml.BufferTensorDesc:
    return dml.BufferTensorDesc(F32, [count], **more)


def edge(device: d3d12.Device) -> None:
    """Of a tensor of 16 bytes with one of 20."""
    dml_device = dml.create_device(device)
    longer = tensor(4, total_tensor_size_in_bytes=20)
    descs = [
        dml.ElementWiseIdentityOperatorDesc(input_tensor=each, output_tensor=tensor(4))
        for each in (tensor(4), longer)
    ]
    nodes = [dml.OperatorGraphNodeDesc(dml_device.create_operator(each)) for each in descs]
    first, last = [dml.InputGraphEdgeDesc(0, 0, 0)], [dml.OutputGraphEdgeDesc(1, 0, 0)]
    between = [dml.IntermediateGraphEdgeDesc(0, 0, 1, 0)]
    dml_device.compile_graph(dml.GraphDesc(1, 1, nodes, first, last, between))


def huge(*sizes: int, strides: list[int] | None = None) -> Wrong:
    desc = dml.BufferTensorDesc(F32, list(sizes), strides, 16)
    given = dml.ElementWiseIdentityOperatorDesc(input_tensor=desc, output_tensor=desc)
    return lambda device: dml.create_device(device).create_operator(given)


def descriptors(sizes: list[int] | None, count: int = 1) -> Wrong:
    def wrong(device: d3d12.Device) -> None:
        heap = device.create_descriptor_heap(
            d3d12.DescriptorHeapDesc(d3d12.DescriptorHeapType.CBV_SRV_UAV, 8)
        )
        at = heap.get_cpu_descriptor_handle_for_heap_start()
        device.copy_descriptors([at], [count], [at], sizes, d3d12.DescriptorHeapType.CBV_SRV_UAV)

    return wrong


def fences(device: d3d12.Device) -> None:
    device.set_event_on_multiple_fence_completion([device.create_fence(0)], [1, 2])


def queries(device: d3d12.Device) -> None:
    heap = device.create_query_heap(d3d12.QueryHeapDesc(d3d12.QueryHeapType.TIMESTAMP, 2))
    readback = d3d12.HeapProperties(d3d12.HeapType.READBACK)
    state = d3d12.ResourceStates.COPY_DEST
    desc = d3d12.ResourceDesc.buffer(64)
    buffer = device.create_committed_resource(readback, d3d12.HeapFlags.NONE, desc, state)
    recording(device).resolve_query_data(heap, d3d12.QueryType.TIMESTAMP, 1, 2, buffer, 0)


def recording(device: d3d12.Device) -> d3d12.CommandList:
    return device.create_command_list(0, DIRECT, device.create_command_allocator(DIRECT))


def modes(device: d3d12.Device) -> None:
    recording(device).write_buffer_immediate([d3d12.WriteBufferImmediateParameter(0, 0)], [0, 0])


def tiles(ranges: list[int], sizes: list[d3d12.TileRegionSize]) -> Wrong:
    def wrong(device: d3d12.Device) -> None:
        desc = d3d12.ResourceDesc.buffer(131072)
        buffer = device.create_reserved_resource(desc, d3d12.ResourceStates.COMMON)
        heap, queue = (
            device.create_heap(d3d12.HeapDesc(131072)),
            device.create_command_queue(d3d12.CommandQueueDesc(DIRECT)),
        )
        start = [d3d12.TiledResourceCoordinate()]
        queue.update_tile_mappings(buffer, start, sizes, heap, [0] * len(ranges), [0] * len(ranges), ranges)

    return wrong


BOX = d3d12.TileRegionSize(2, True, 1, 1, 1)
ONE = d3d12.TileRegionSize(1)


@pytest.mark.parametrize(
    ("wrong", "given", "expected"),
    [
        (edge, "16 bytes", "20 bytes"),
        (huge(65536, 65537), "4295032832 elements", "<= 4294967295 elements"),
        (huge(2, 2, strides=[4294967295, 1]), "4294967297 elements", "<= 4294967295 elements"),
        (lambda _: tensor(4, strides=[4, 1]), "2 values", "1 value"),
        (descriptors([2]), "2 descriptors", "1 descriptor"),
        (descriptors([1, 1]), "2 sizes", "1 size"),
        (fences, "2 values", "1 value"),
        (queries, "[1, 3)", "within [0, 2)"),
        (modes, "2 modes", "1 mode"),
        (tiles([1], [d3d12.TileRegionSize(2)]), "1 tile", "2 tiles"),
        (tiles([1], [ONE, ONE]), "2 sizes", "1 size"),
        (tiles([2], [BOX]), "1 x 1 x 1", "2 tiles"),
    ],
)
def test_numbers_have_units(wrong: Wrong, given: str, expected: str) -> None:
    with pytest.raises(Error) as raised:
        wrong(d3d12.create_device(d3d12.Adapter(dedicated_memory=1 << 28)))
    assert (raised.value.report.given, raised.value.report.expected) == (given, expected)
