"""A heap is evicted while the GPU still reads a buffer that is placed in it."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage

CHECK = "OBJECT_EVICTED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    stage.fence.set_name("done")
    default = d3d12.HeapProperties(d3d12.HeapType.DEFAULT)
    heap = stage.device.create_heap(
        d3d12.HeapDesc(65536, default, flags=d3d12.HeapFlags.ALLOW_ONLY_BUFFERS)
    )
    heap.set_name("pool")
    placed = stage.device.create_placed_resource(
        heap, 0, d3d12.ResourceDesc.buffer(256, UAV), d3d12.ResourceStates.COMMON
    )
    placed.set_name("weights")
    stage.list.copy_resource(placed, stage.filled("source"))
    stage.submit()
    if fixed:
        stage.wait()
    stage.device.evict([heap])
