"""The heap behind a reserved buffer is released, and the next list still copies from there."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "OBJECT_DELETED_IN_USE"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(TILE))
    heap.set_name("pool")
    weights = stage.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(TILE), States.COMMON
    )
    weights.set_name("weights")
    stage.queue.update_tile_mappings(weights, heap=heap)
    stage.list.copy_buffer_region(weights, 0, stage.filled("image"), 0, 256)
    stage.run()
    if not fixed:
        heap.release()
    stage.list.copy_buffer_region(stage.buffer("result"), 0, weights, 0, 256)
    stage.run()
