"""ID3D12GraphicsCommandList, up to ID3D12GraphicsCommandList10."""

from __future__ import annotations

from typing import Any

from ... import d3d12
from ...d3d12.core.c_memory import read_array
from ...d3d12.root_signatures.validation import MOST_DWORDS
from .d3d12_objects import D3D12Child
from .objects import thing

__all__ = ["ID3D12GraphicsCommandList"]


class ID3D12GraphicsCommandList(D3D12Child, of=d3d12.CommandList, name="ID3D12GraphicsCommandList10"):
    thing: d3d12.CommandList

    def ResourceBarrier(self, count: int, barriers: int) -> None:
        if count and not barriers:
            self.thing.resource_barrier(None)  # type: ignore[arg-type]  # refused
            return
        rows = read_array("IIQQQ", barriers, count, "pBarriers", "ResourceBarrier")
        self.thing.resource_barrier([_barrier(i, row) for i, row in enumerate(rows)])

    def SetPredication(self, buffer: int, offset: int, operation: int) -> None:
        self.thing.set_predication(buffer, offset, operation)

    def SetComputeRoot32BitConstants(self, index: int, count: int, data: int, offset: int) -> None:
        operation = "SetComputeRoot32BitConstants"
        values = read_array("I", data, count, "pSrcData", operation, most=MOST_DWORDS)
        self.thing.set_compute_root_32bit_constants(index, values, offset)


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
