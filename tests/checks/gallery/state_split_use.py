"""A buffer is used between the halves of a split barrier."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "STATE_SPLIT"
FLAGS = d3d12.ResourceBarrierFlags


def run(stage: Stage, fixed: bool) -> None:
    source, act, target = (
        stage.filled("source"),
        stage.buffer("act"),
        stage.buffer("target"),
    )
    turn = d3d12.ResourceBarrier.transition
    stage.list.copy_resource(act, source)
    stage.list.resource_barrier(
        turn(act, States.COPY_DEST, States.COPY_SOURCE, flags=FLAGS.BEGIN_ONLY)
    )
    if not fixed:
        stage.list.copy_resource(target, act)
    stage.list.resource_barrier(
        turn(act, States.COPY_DEST, States.COPY_SOURCE, flags=FLAGS.END_ONLY)
    )
    if fixed:
        stage.list.copy_resource(target, act)
    stage.run()
