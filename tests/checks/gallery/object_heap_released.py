"""A heap is released before the queue has mapped its tiles into a reserved buffer."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "OBJECT_DELETED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(65536))
    heap.set_name("tiles")
    desc = d3d12.ResourceDesc.buffer(65536, UAV)
    buffer = stage.device.create_reserved_resource(desc, States.COMMON)
    buffer.set_name("sparse")
    stage.queue.update_tile_mappings(buffer, None, None, heap)
    stage.queue.signal(stage.fence, 1)
    if fixed:
        stage.fence.wait(1)
    heap.release()
