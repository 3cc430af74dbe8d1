"""Two buffers stand on one heap, and the last byte of what is copied is the first one of where it goes."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "COPY_SAME"


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(131072))
    wide, narrow = (
        d3d12.ResourceDesc.buffer(131072, UAV),
        d3d12.ResourceDesc.buffer(65536, UAV),
    )
    pool = stage.device.create_placed_resource(heap, 0, wide, States.COMMON)
    second = stage.device.create_placed_resource(heap, 65536, narrow, States.COMMON)
    pool.set_name("pool")
    second.set_name("second half")
    stage.list.copy_buffer_region(pool, 65536 - 64, stage.filled("source"), 0, 65)
    stage.run()
    stage.list.resource_barrier(d3d12.ResourceBarrier.aliasing(pool, second))
    stage.list.copy_buffer_region(second, 0, pool, 65536 - 64, 64 if fixed else 65)
    stage.run()
