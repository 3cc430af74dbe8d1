"""Both tiles of an output are mapped to one tile of the heap, so that its halves are the same memory."""

from dmlemu import d3d12, dml
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "TENSOR_OUT_OVERLAP"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    count = 2 * TILE // 4
    image, operator = (
        stage.filled("image", 4 * count),
        stage.copy_operator("copy", count),
    )
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    output = stage.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(2 * TILE, UAV), States.COMMON
    )
    output.set_name("output")
    flag = (
        d3d12.TileRangeFlags.NONE if fixed else d3d12.TileRangeFlags.REUSE_SINGLE_TILE
    )
    stage.queue.update_tile_mappings(output, heap=heap, range_flags=[flag])
    stage.dispatch(operator, [dml.BufferBinding(image)], [output])
    stage.run()
