"""An input is uploaded and dispatched in one list, without the transition between."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "STATE_FOR_DISPATCH"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    source, act = stage.filled("source"), stage.buffer("act")
    stage.list.copy_resource(act, source)
    if fixed:
        to_read = d3d12.ResourceBarrier.transition(
            act, States.COPY_DEST, States.UNORDERED_ACCESS
        )
        stage.list.resource_barrier(to_read)
    stage.dispatch(copy, [act], [stage.buffer("target")])
    stage.run()
