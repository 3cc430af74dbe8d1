"""An allocator is released while the GPU executes what stands in it; the list itself may go."""

from dmlemu.testing.stage import Stage

CHECK = "OBJECT_DELETED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    stage.allocator.set_name("frame allocator")
    stage.list.copy_resource(stage.buffer("target"), stage.filled("source"))
    stage.submit()
    stage.list.release()
    if fixed:
        stage.fence.wait(stage.fence_value)
    stage.allocator.release()
