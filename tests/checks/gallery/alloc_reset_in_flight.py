"""The one allocator is reset for the next frame right after ExecuteCommandLists."""

from dmlemu.testing.stage import Stage

CHECK = "ALLOC_RESET_IN_FLIGHT"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("source"), stage.buffer("target")
    stage.allocator.set_name("frame allocator")
    stage.list.copy_resource(target, source)
    stage.submit()
    if fixed:
        stage.fence.wait(stage.fence_value)
    stage.allocator.reset()
