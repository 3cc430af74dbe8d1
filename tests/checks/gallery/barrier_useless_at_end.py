"""A barrier ends the list; the end of the ExecuteCommandLists call does as much."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "BARRIER_USELESS"


def run(stage: Stage, fixed: bool) -> None:
    first, second = stage.copy_operator("first"), stage.copy_operator("second")
    image, act, result = (
        stage.filled("image"),
        stage.buffer("act"),
        stage.buffer("result"),
    )
    stage.dispatch(first, [image], [act])
    if not fixed:
        stage.list.resource_barrier(d3d12.ResourceBarrier.uav(None))
    stage.run()
    stage.dispatch(second, [act], [result])
    stage.run()
