"""A transition from UNORDERED_ACCESS to itself stands where a UAV barrier is meant."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "STATE_SAME"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    source, act, target = (
        stage.filled("source"),
        stage.buffer("act"),
        stage.buffer("target"),
    )
    stage.dispatch(copy, [source], [act])
    if fixed:
        stage.barrier(act)
    else:
        state = States.UNORDERED_ACCESS
        stage.list.resource_barrier(d3d12.ResourceBarrier.transition(act, state, state))
    stage.dispatch(copy, [act], [target])
    stage.run()
