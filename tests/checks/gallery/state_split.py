"""The halves of a split barrier name different states."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "STATE_SPLIT"
FLAGS = d3d12.ResourceBarrierFlags


def run(stage: Stage, fixed: bool) -> None:
    source, act, other = (
        stage.filled("source"),
        stage.buffer("act"),
        stage.buffer("other"),
    )
    turn = d3d12.ResourceBarrier.transition
    stage.list.copy_resource(act, source)
    stage.list.resource_barrier(
        turn(act, States.COPY_DEST, States.COPY_SOURCE, flags=FLAGS.BEGIN_ONLY)
    )
    stage.list.copy_resource(other, source)
    after = States.COPY_SOURCE if fixed else States.UNORDERED_ACCESS
    stage.list.resource_barrier(
        turn(act, States.COPY_DEST, after, flags=FLAGS.END_ONLY)
    )
    stage.list.copy_resource(stage.buffer("target"), act)
    stage.run()
