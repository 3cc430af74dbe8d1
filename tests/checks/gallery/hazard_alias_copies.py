"""A copy reads, through another buffer over the same memory, what the copy before it writes."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "HAZARD_ALIAS"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("source"), stage.buffer("target")
    heap = stage.device.create_heap(d3d12.HeapDesc(131072))
    whole = stage.device.create_placed_resource(
        heap, 0, d3d12.ResourceDesc.buffer(131072), States.COMMON
    )
    second = stage.device.create_placed_resource(
        heap, 65536, d3d12.ResourceDesc.buffer(256), States.COMMON
    )
    whole.set_name("whole heap")
    second.set_name("second tile")
    stage.list.copy_buffer_region(whole, 65536 - 128, source, 0, 256)
    if fixed:
        stage.list.resource_barrier(d3d12.ResourceBarrier.aliasing(whole, second))
    stage.list.copy_buffer_region(target, 0, second, 64, 64)
    stage.run()
