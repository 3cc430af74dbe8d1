"""Two buffers share the memory of one heap in turn, and no aliasing barrier tells when."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "HAZARD_ALIAS"


def run(stage: Stage, fixed: bool) -> None:
    early, late = stage.copy_operator("early layer"), stage.copy_operator("late layer")
    image, result = stage.filled("image"), stage.buffer("result")
    heap = stage.device.create_heap(d3d12.HeapDesc(65536))
    desc = d3d12.ResourceDesc.buffer(256, UAV)
    first, second = (
        stage.device.create_placed_resource(heap, 0, desc, States.COMMON)
        for _ in range(2)
    )
    first.set_name("act of layer 1")
    second.set_name("act of layer 9")
    stage.dispatch(early, [image], [first])
    stage.barrier(first)
    stage.dispatch(early, [first], [result])
    if fixed:
        stage.list.resource_barrier(d3d12.ResourceBarrier.aliasing(first, second))
    stage.dispatch(late, [image], [second])
    stage.run()
