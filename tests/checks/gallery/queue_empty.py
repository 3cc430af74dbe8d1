"""ExecuteCommandLists is called with an empty row of lists."""

from dmlemu.testing.stage import Stage

CHECK = "QUEUE_EMPTY_SUBMIT"


def run(stage: Stage, fixed: bool) -> None:
    stage.list.copy_resource(stage.buffer("target"), stage.filled("source"))
    stage.list.close()
    stage.queue.execute_command_lists([stage.list] if fixed else [])
