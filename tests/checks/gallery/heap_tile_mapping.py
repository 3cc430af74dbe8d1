"""A region of a reserved buffer is given in bytes, and tiles are meant."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "TILE_MAPPING"


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(1 << 18))
    desc = d3d12.ResourceDesc.buffer(1 << 18, UAV)
    buffer = stage.device.create_reserved_resource(desc, States.COMMON)
    buffer.set_name("sparse")
    start = 1 if fixed else 65536
    stage.queue.update_tile_mappings(
        buffer, [d3d12.TiledResourceCoordinate(start)], [d3d12.TileRegionSize(2)], heap
    )
    stage.run()
