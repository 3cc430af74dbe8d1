"""One allocation has a buffer for copies and one for dispatches: no state ever clashes, but accesses do."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "HAZARD_ALIAS"


def run(stage: Stage, fixed: bool) -> None:
    scale = stage.copy_operator("scale")
    source, result = stage.filled("source"), stage.buffer("result")
    heap = stage.device.create_heap(d3d12.HeapDesc(65536))
    desc = d3d12.ResourceDesc.buffer(256, UAV)
    for_copies, for_dispatches = (
        stage.device.create_placed_resource(heap, 0, desc, States.COMMON)
        for _ in range(2)
    )
    for_copies.set_name("tensor (copies)")
    for_dispatches.set_name("tensor (dispatches)")
    stage.list.copy_resource(for_copies, source)
    if fixed:
        stage.list.resource_barrier(
            d3d12.ResourceBarrier.aliasing(for_copies, for_dispatches)
        )
    stage.dispatch(scale, [for_dispatches], [result])
    stage.run()
