"""Two buffers are placed in a heap that was made as large as their bytes, without the rounding."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "HEAP_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    step = 65536  # a placed buffer takes its width rounded up to this
    size = 2 * step if fixed else step
    heap = stage.device.create_heap(d3d12.HeapDesc(size))
    heap.set_name("activations")
    desc = d3d12.ResourceDesc.buffer(1000, UAV)
    for i in range(2):
        stage.device.create_placed_resource(heap, i * step, desc, States.COMMON)
