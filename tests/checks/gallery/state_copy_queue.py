"""A split barrier is begun on the compute queue, and the buffer goes to the copy queue meanwhile."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States, other_queue

CHECK = "STATE_COPY_QUEUE"
FLAGS = d3d12.ResourceBarrierFlags


def run(stage: Stage, fixed: bool) -> None:
    act, target = stage.filled("act"), stage.buffer("target")
    turn = d3d12.ResourceBarrier.transition
    stage.list.resource_barrier(
        turn(act, States.COMMON, States.COPY_SOURCE, flags=FLAGS.BEGIN_ONLY)
    )
    if fixed:
        stage.list.resource_barrier(
            turn(act, States.COMMON, States.COPY_SOURCE, flags=FLAGS.END_ONLY)
        )
    stage.run()
    copies = other_queue(stage, "COPY")
    copies.list.copy_resource(target, act)
    copies.submit()
    copies.wait()
