"""A transition names no buffer."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "BARRIER_DESC"


def run(stage: Stage, fixed: bool) -> None:
    act = stage.filled("act")
    named = act if fixed else None
    stage.list.resource_barrier(
        d3d12.ResourceBarrier.transition(named, States.COMMON, States.COPY_SOURCE)
    )
    stage.list.copy_resource(stage.buffer("target"), act)
    stage.run()
