"""A transition starts from the state that the program remembers, and a copy has promoted the buffer since."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "STATE_BEFORE"


def run(stage: Stage, fixed: bool) -> None:
    source, act = stage.filled("source"), stage.buffer("act")
    stage.list.copy_resource(act, source)
    before = States.COPY_DEST if fixed else States.UNORDERED_ACCESS
    stage.list.resource_barrier(
        d3d12.ResourceBarrier.transition(act, before, States.COPY_SOURCE)
    )
    stage.list.copy_resource(stage.buffer("target"), act)
    stage.run()
