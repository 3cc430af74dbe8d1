"""A list is executed and was never closed."""

from dmlemu.testing.stage import Stage

CHECK = "LIST_OPEN"


def run(stage: Stage, fixed: bool) -> None:
    stage.list.copy_resource(stage.buffer("target"), stage.filled("source"))
    if fixed:
        stage.list.close()
    stage.queue.execute_command_lists([stage.list])
