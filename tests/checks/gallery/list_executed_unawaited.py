"""A list is executed again after a wait for another queue's fence: here it happens to be done by then."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "LIST_EXECUTED_TWICE"


def run(stage: Stage, fixed: bool) -> None:
    source, copies = stage.filled("source"), other_queue(stage, "COPY")
    stage.list.copy_resource(stage.buffer("target"), source)
    stage.submit()
    copies.list.copy_resource(stage.buffer("other"), source)
    copies.submit()
    copies.wait()
    if fixed:
        stage.fence.wait(stage.fence_value)
    stage.queue.execute_command_lists([stage.list])
