"""ID3D12GraphicsCommandList, up to ID3D12GraphicsCommandList10."""

from __future__ import annotations

from typing import Any

from ... import d3d12
from ...d3d12.core.c_memory import read_array, read_blob
from .d3d12_objects import D3D12Child
from .objects import thing, things

__all__ = ["ID3D12GraphicsCommandList"]


class ID3D12GraphicsCommandList(D3D12Child, of=d3d12.CommandList, name="ID3D12GraphicsCommandList10"):
    thing: d3d12.CommandList

    def GetType(self) -> int:
        return int(self.thing.get_type())

    def Close(self) -> None:
        self.thing.close()  # the recording ends; Release releases the object

    def Reset(self, allocator: int, state: Any) -> None:
        found: Any = thing(allocator, d3d12.CommandAllocator, "pAllocator", "Reset")
        self.thing.reset(found, state or None)

    def ClearState(self, state: Any) -> None:
        self.thing.clear_state(state or None)

    def CopyBufferRegion(self, to: int, to_offset: int, source: int, offset: int, size: int) -> None:
        operation = "CopyBufferRegion"
        destination: Any = thing(to, d3d12.Resource, "pDstBuffer", operation)
        origin: Any = thing(source, d3d12.Resource, "pSrcBuffer", operation)
        self.thing.copy_buffer_region(destination, to_offset, origin, offset, size)

    def CopyResource(self, to: int, source: int) -> None:
        destination: Any = thing(to, d3d12.Resource, "pDstResource", "CopyResource")
        origin: Any = thing(source, d3d12.Resource, "pSrcResource", "CopyResource")
        self.thing.copy_resource(destination, origin)

    def ResourceBarrier(self, count: int, barriers: int) -> None:
        if count and not barriers:
            self.thing.resource_barrier(None)  # type: ignore[arg-type]  # refused
            return
        rows = read_array("IIQQQ", barriers, count, "pBarriers", "ResourceBarrier")
        self.thing.resource_barrier([_barrier(i, row) for i, row in enumerate(rows)])

    def SetDescriptorHeaps(self, count: int, heaps: int) -> None:
        found: Any = things(heaps, count, d3d12.DescriptorHeap, "ppDescriptorHeaps", "SetDescriptorHeaps")
        self.thing.set_descriptor_heaps(found)

    def ClearUnorderedAccessViewUint(
        self, gpu: int, cpu: int, resource: int, values: int, count: int, rects: int
    ) -> None:
        found, numbers, areas = _clear("I", resource, values, count, rects, "ClearUnorderedAccessViewUint")
        self.thing.clear_unordered_access_view_uint(gpu, cpu, found, numbers, areas)

    def ClearUnorderedAccessViewFloat(
        self, gpu: int, cpu: int, resource: int, values: int, count: int, rects: int
    ) -> None:
        found, numbers, areas = _clear("f", resource, values, count, rects, "ClearUnorderedAccessViewFloat")
        self.thing.clear_unordered_access_view_float(gpu, cpu, found, numbers, areas)

    def BeginQuery(self, heap: int, type: Any, index: int) -> None:
        self.thing.begin_query(_queries(heap, "BeginQuery"), type, index)

    def EndQuery(self, heap: int, type: Any, index: int) -> None:
        self.thing.end_query(_queries(heap, "EndQuery"), type, index)

    def ResolveQueryData(self, heap: int, type: Any, start: int, count: int, to: int, offset: int) -> None:
        operation = "ResolveQueryData"
        destination: Any = thing(to, d3d12.Resource, "pDestinationBuffer", operation)
        self.thing.resolve_query_data(_queries(heap, operation), type, start, count, destination, offset)

    def SetMarker(self, metadata: int, data: int, size: int) -> None:
        text = read_blob(data, size, "pData", "SetMarker") if data else b""
        self.thing.set_marker(metadata, text)

    def BeginEvent(self, metadata: int, data: int, size: int) -> None:
        text = read_blob(data, size, "pData", "BeginEvent") if data else b""
        self.thing.begin_event(metadata, text)

    def EndEvent(self) -> None:
        self.thing.end_event()

    def WriteBufferImmediate(self, count: int, parameters: int, modes: int) -> None:
        operation = "WriteBufferImmediate"
        rows = read_array(d3d12.WriteBufferImmediateParameter, parameters, count, "pParams", operation)
        chosen = read_array("I", modes, count, "pModes", operation) if modes else None
        self.thing.write_buffer_immediate(rows, chosen)

    def SetPredication(self, buffer: int, offset: int, operation: int) -> None:
        self.thing.set_predication(buffer, offset, operation)


def _queries(heap: int, operation: str) -> Any:
    return thing(heap, d3d12.QueryHeap, "pQueryHeap", operation)


def _clear(
    code: str, resource: int, values: int, count: int, rects: int, operation: str
) -> tuple[Any, Any, Any]:
    """The resource, the four values and the rectangles of a clear."""
    return (
        thing(resource, d3d12.Resource, "pResource", operation),
        read_array(code, values, 4, "Values", operation),
        read_array(d3d12.Rect, rects, count, "pRects", operation),
    )


# Barriers that name no resource, as most of most programs, by their type.
_OF_NOTHING = {
    int(each.type): each
    for each in (d3d12.ResourceBarrier.uav(None), d3d12.ResourceBarrier.aliasing(None, None))
}


def _barrier(index: int, row: tuple[int, ...]) -> d3d12.ResourceBarrier:
    """A ``D3D12_RESOURCE_BARRIER``: type, flags, and 24 bytes of the member that the type selects."""
    kind, flags, first, second, third = row
    if not (flags or first or second) and kind in _OF_NOTHING:
        return _OF_NOTHING[kind]
    path = f"pBarriers[{index}]"

    def resource(pointer: int, field: str) -> d3d12.Resource | None:
        return thing(pointer, d3d12.Resource, f"{path}.{field}", "ResourceBarrier")

    barrier: Any
    if kind == d3d12.ResourceBarrierType.TRANSITION:
        barrier = d3d12.ResourceTransitionBarrier(
            resource(first, "Transition.pResource"),
            second & 0xFFFFFFFF,
            d3d12.ResourceStates(second >> 32),
            d3d12.ResourceStates(third & 0xFFFFFFFF),
        )
    elif kind == d3d12.ResourceBarrierType.ALIASING:
        before, after = (
            resource(first, "Aliasing.pResourceBefore"),
            resource(second, "Aliasing.pResourceAfter"),
        )
        barrier = d3d12.ResourceAliasingBarrier(before, after)
    elif kind == d3d12.ResourceBarrierType.UAV:
        barrier = d3d12.ResourceUavBarrier(resource(first, "UAV.pResource"))
    else:
        unknown: Any = kind, d3d12.ResourceBarrierFlags(flags), None
        return d3d12.ResourceBarrier(*unknown)  # refused by the call
    return d3d12.ResourceBarrier(d3d12.ResourceBarrierType(kind), d3d12.ResourceBarrierFlags(flags), barrier)
