"""A heap is released while a list that writes tiles of it is on its way."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "OBJECT_DELETED_IN_USE"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    image, operator = stage.filled("image", 64), stage.copy_operator("copy")
    heap = stage.device.create_heap(d3d12.HeapDesc(TILE))
    heap.set_name("pool")
    output = stage.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(TILE, UAV), States.COMMON
    )
    output.set_name("output")
    stage.queue.update_tile_mappings(output, heap=heap)
    stage.queue.signal(stage.fence, 100)
    stage.fence.wait(100)  # the tiles are mapped
    stage.dispatch(operator, [image], [output])
    stage.fence_value = 100
    stage.submit()
    if fixed:
        stage.fence.wait(stage.fence_value)
    heap.release()
    stage.wait()
