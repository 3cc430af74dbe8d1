"""The tiles of a buffer are moved to other memory on one queue while a list on another still reads it."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States, other_queue

CHECK = "HAZARD_QUEUE"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    image, copy = stage.filled("image", 256), other_queue(stage, "COPY")
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    pool = stage.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(TILE), States.COMMON
    )
    pool.set_name("pool")
    stage.queue.update_tile_mappings(pool, heap=heap)
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    stage.run()
    stage.list.copy_buffer_region(stage.buffer("result"), 0, pool, 0, 256)
    stage.submit()
    if fixed:
        copy.queue.wait(stage.fence, stage.fence_value)
    copy.queue.update_tile_mappings(pool, heap=heap, heap_range_start_offsets=[1])
    copy.queue.signal(copy.fence, 1)
    stage.wait()
    copy.fence.wait(1)
    copy.list.close()
