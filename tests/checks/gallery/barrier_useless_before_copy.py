"""A transition orders all that a UAV barrier before it would."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "BARRIER_USELESS"


def run(stage: Stage, fixed: bool) -> None:
    scale = stage.copy_operator("scale")
    image, result = stage.filled("image"), stage.filled("result")
    readback = stage.host_buffer("readback", 256, "READBACK")
    stage.dispatch(scale, [image], [result])
    barriers = [
        d3d12.ResourceBarrier.transition(
            result, States.UNORDERED_ACCESS, States.COPY_SOURCE
        )
    ]
    if not fixed:
        barriers.insert(0, d3d12.ResourceBarrier.uav(result))
    stage.list.resource_barrier(barriers)
    stage.list.copy_resource(readback, result)
    stage.run()
