"""A reserved buffer of two tiles gets memory for the first one; the dispatch writes across the border."""

from dmlemu import d3d12, dml
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "MEM_NULL_TILE"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    image, operator = stage.filled("image", 64), stage.copy_operator("copy")
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    pool = stage.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(2 * TILE, UAV), States.COMMON
    )
    pool.set_name("pool")
    size = d3d12.TileRegionSize(2 if fixed else 1)
    stage.queue.update_tile_mappings(pool, None, [size], heap)
    stage.dispatch(operator, [image], [dml.BufferBinding(pool, TILE - 32, 64)])
    stage.run()
