"""Both tiles of the destination are one tile of the heap: which half of the copy remains is open."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "COPY_SAME"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    image = stage.filled("image", 2 * TILE)
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    output = stage.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(2 * TILE, UAV), States.COMMON
    )
    output.set_name("output")
    flag = (
        d3d12.TileRangeFlags.NONE if fixed else d3d12.TileRangeFlags.REUSE_SINGLE_TILE
    )
    stage.queue.update_tile_mappings(output, heap=heap, range_flags=[flag])
    stage.list.copy_buffer_region(output, 0, image, 0, 2 * TILE)
    stage.run()
    stage.list.copy_buffer_region(
        output, TILE, image, TILE, TILE
    )  # one of the two alone is right
    stage.run()
