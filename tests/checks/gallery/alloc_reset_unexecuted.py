"""An allocator is reset between Close and ExecuteCommandLists: the commands are gone."""

from dmlemu.testing.stage import Stage

CHECK = "ALLOC_RESET_IN_FLIGHT"


def run(stage: Stage, fixed: bool) -> None:
    stage.list.copy_resource(stage.buffer("target"), stage.filled("source"))
    stage.list.close()
    if not fixed:
        stage.allocator.reset()
    stage.queue.execute_command_lists([stage.list])
