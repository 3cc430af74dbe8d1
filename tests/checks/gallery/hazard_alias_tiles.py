"""Two reserved buffers have a tile in common; a UAV barrier names the one and not the other."""

from dmlemu import d3d12, dml
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "HAZARD_ALIAS"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    produce, consume = stage.copy_operator("produce"), stage.copy_operator("consume")
    image, result = stage.filled("image"), stage.buffer("result")
    heap = stage.device.create_heap(d3d12.HeapDesc(3 * TILE))
    buffers = []
    for name, tiles in (
        ("pool", [0, 1]),
        ("view", [2, 1]),
    ):  # tile 1 of the heap is in both
        desc = d3d12.ResourceDesc.buffer(2 * TILE, UAV)
        made = stage.device.create_reserved_resource(desc, States.COMMON)
        made.set_name(name)
        starts = [d3d12.TiledResourceCoordinate(i) for i in range(2)]
        stage.queue.update_tile_mappings(made, starts, None, heap, None, tiles)
        buffers.append(made)
    pool, view = buffers
    stage.dispatch(produce, [image], [dml.BufferBinding(pool, TILE, 64)])
    if fixed:
        stage.list.resource_barrier(d3d12.ResourceBarrier.aliasing(pool, view))
    else:
        stage.barrier(pool)
    stage.dispatch(consume, [dml.BufferBinding(view, TILE, 64)], [result])
    stage.run()
