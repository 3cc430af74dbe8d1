"""The copy queue maps the tiles of a buffer that the compute queue writes, and nobody waits for it."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States, other_queue

CHECK = "HAZARD_QUEUE"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    image, operator, copy = (
        stage.filled("image", 64),
        stage.copy_operator("copy"),
        other_queue(stage, "COPY"),
    )
    heap = stage.device.create_heap(d3d12.HeapDesc(TILE))
    output = stage.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(TILE, UAV), States.COMMON
    )
    output.set_name("output")
    copy.queue.update_tile_mappings(output, heap=heap)
    copy.queue.signal(copy.fence, 1)
    if fixed:
        stage.queue.wait(copy.fence, 1)
    stage.dispatch(operator, [image], [output])
    stage.run()
    copy.list.close()
