"""The program waits for the next value, and only the last one was signalled."""

from dmlemu.testing.stage import Stage

CHECK = "FENCE_NEVER"


def run(stage: Stage, fixed: bool) -> None:
    stage.fence.set_name("frame done")
    stage.list.copy_resource(stage.buffer("target"), stage.filled("source"))
    stage.submit()
    stage.fence.wait(stage.fence_value + (0 if fixed else 1))
