"""Two reserved buffers: the tile that is copied and the one that it goes to are the same tile of a heap."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "COPY_SAME"


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * 65536))
    desc = d3d12.ResourceDesc.buffer(65536, UAV)
    cache, output = (
        stage.device.create_reserved_resource(desc, States.COMMON) for _ in range(2)
    )
    cache.set_name("cache")
    output.set_name("output")
    stage.queue.update_tile_mappings(cache, None, None, heap, None, [0])
    stage.queue.update_tile_mappings(
        output, None, None, heap, None, [1 if fixed else 0]
    )
    stage.list.copy_buffer_region(cache, 0, stage.filled("source"), 0, 64)
    stage.run()
    stage.list.copy_buffer_region(output, 0, cache, 0, 64)
    stage.run()
