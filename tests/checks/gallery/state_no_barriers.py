"""ResourceBarrier is called with an empty row."""

from dmlemu.testing.stage import Stage

CHECK = "BARRIER_DESC"


def run(stage: Stage, fixed: bool) -> None:
    stage.list.copy_resource(stage.buffer("target"), stage.filled("source"))
    if not fixed:
        stage.list.resource_barrier([])
    stage.run()
