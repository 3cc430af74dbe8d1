"""Every dispatch is followed by a barrier, and two of them only read the same buffer."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "BARRIER_USELESS"


def run(stage: Stage, fixed: bool) -> None:
    query, key = stage.copy_operator("query"), stage.copy_operator("key")
    act, queries, keys = (
        stage.filled("act"),
        stage.buffer("queries"),
        stage.buffer("keys"),
    )
    stage.dispatch(query, [act], [queries])
    if not fixed:
        stage.list.resource_barrier(d3d12.ResourceBarrier.uav(act))
    stage.dispatch(key, [act], [keys])
    stage.run()
