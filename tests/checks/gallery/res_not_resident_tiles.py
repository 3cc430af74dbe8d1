"""A list reads tiles of a heap that was evicted before."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "RES_NOT_RESIDENT"
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
    stage.device.evict([heap])
    if fixed:
        stage.device.make_resident([heap])
    stage.list.copy_buffer_region(stage.buffer("result"), 0, weights, 0, 256)
    stage.run()
