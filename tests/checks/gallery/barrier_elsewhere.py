"""Two buffers by turns, and the barrier names the one that is read before, not the one that was written."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "BARRIER_ELSEWHERE"


def run(stage: Stage, fixed: bool) -> None:
    there, back = stage.copy_operator("there"), stage.copy_operator("back")
    ping, pong = stage.filled("ping"), stage.buffer("pong")
    stage.dispatch(there, [ping], [pong])
    stage.list.resource_barrier(d3d12.ResourceBarrier.uav(pong if fixed else ping))
    stage.dispatch(back, [pong], [ping])
    stage.run()
