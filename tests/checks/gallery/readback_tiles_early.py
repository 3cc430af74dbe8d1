"""A dispatch writes tiles of a heap that the CPU sees, and the CPU reads them before the GPU is done."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "READBACK_EARLY"
TILE = 65536


def run(stage: Stage, fixed: bool) -> None:
    image, operator = stage.filled("image", 64), stage.copy_operator("copy")
    properties = d3d12.HeapProperties(
        d3d12.HeapType.CUSTOM, d3d12.CpuPageProperty.WRITE_BACK, d3d12.MemoryPool.L0
    )
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE, properties))
    host = stage.device.create_placed_resource(
        heap, TILE, d3d12.ResourceDesc.buffer(TILE), States.COMMON
    )
    host.set_name("host")
    tiles = stage.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(TILE, UAV), States.COMMON
    )
    tiles.set_name("tiles")
    stage.queue.update_tile_mappings(tiles, None, None, heap, None, [1])
    memory = host.map()
    stage.dispatch(operator, [image], [tiles])
    stage.submit()
    if fixed:
        stage.fence.wait(stage.fence_value)
    print(memory[0:4])
    stage.wait()
