"""A list that does the same each frame is recorded once, and executed again before it is done."""

from dmlemu.testing.stage import Stage

CHECK = "LIST_EXECUTED_TWICE"


def run(stage: Stage, fixed: bool) -> None:
    stage.list.copy_resource(stage.buffer("target"), stage.filled("source"))
    stage.submit()
    if fixed:
        stage.fence.wait(stage.fence_value)
    stage.queue.execute_command_lists([stage.list])
