"""Buffers are placed one right behind the other."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "HEAP_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(1 << 18))
    size = 1000
    desc = d3d12.ResourceDesc.buffer(size, UAV)
    offset = 0
    for _ in range(2):
        stage.device.create_placed_resource(heap, offset, desc, States.COMMON)
        info = stage.device.get_resource_allocation_info(0, [desc])
        offset += info.size_in_bytes if fixed else size
