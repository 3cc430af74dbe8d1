"""A state joins a write with a read."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "STATE_COMBO"


def run(stage: Stage, fixed: bool) -> None:
    source, act = stage.filled("source"), stage.buffer("act")
    stage.list.copy_resource(act, source)
    after = (
        States.COPY_SOURCE if fixed else States.COPY_SOURCE | States.UNORDERED_ACCESS
    )
    stage.list.resource_barrier(
        d3d12.ResourceBarrier.transition(act, States.COPY_DEST, after)
    )
    stage.list.copy_resource(stage.buffer("target"), act)
    stage.run()
