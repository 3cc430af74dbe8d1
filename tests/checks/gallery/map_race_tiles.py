"""Tiles of a heap that the CPU sees serve as a reserved buffer; the CPU fills the next frame too early."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "MAP_RACE"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    properties = d3d12.HeapProperties(
        d3d12.HeapType.CUSTOM, d3d12.CpuPageProperty.WRITE_BACK, d3d12.MemoryPool.L0
    )
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE, properties))
    desc = d3d12.ResourceDesc.buffer(TILE)
    staging = stage.device.create_placed_resource(heap, TILE, desc, States.COMMON)
    staging.set_name("staging")
    tiles = stage.device.create_reserved_resource(desc, States.COMMON)
    tiles.set_name("tiles")
    stage.queue.update_tile_mappings(tiles, None, None, heap, None, [1])
    values = staging.map(0, d3d12.Range(0, 0)).view(np.float32)
    values[:64] = 1.0
    stage.list.copy_buffer_region(stage.buffer("frame"), 0, tiles, 0, 256)
    stage.submit()
    if fixed:
        stage.fence.wait(stage.fence_value)
    values[:64] = 2.0
    stage.wait()
