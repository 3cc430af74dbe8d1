"""The program forgets to map the tiles of a reserved buffer, and copies zeros from there."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "MEM_NULL_TILE"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(TILE))
    pool = stage.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(TILE), States.COMMON
    )
    pool.set_name("pool")
    if fixed:
        stage.queue.update_tile_mappings(pool, heap=heap)
    stage.list.copy_buffer_region(stage.buffer("result"), 0, pool, 128, 64)
    stage.run()
