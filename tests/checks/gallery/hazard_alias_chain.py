"""Three buffers take turns on the memory of one heap, with a barrier at each turn; one is missing."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "HAZARD_ALIAS"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.copy_operator("layer")
    image, result = stage.filled("image"), stage.buffer("result")
    heap = stage.device.create_heap(d3d12.HeapDesc(65536))
    desc = d3d12.ResourceDesc.buffer(256, UAV)
    turns = [
        stage.device.create_placed_resource(heap, 0, desc, States.COMMON)
        for _ in range(3)
    ]
    for i, act in enumerate(turns):
        act.set_name(f"act {i + 1}")
    first, second, third = turns
    aliasing = d3d12.ResourceBarrier.aliasing
    stage.dispatch(layer, [image], [first])
    stage.list.resource_barrier(aliasing(first, second))
    stage.dispatch(layer, [image], [second])
    if fixed:
        stage.list.resource_barrier(aliasing(second, third))
    stage.dispatch(layer, [third], [result])
    stage.run()
