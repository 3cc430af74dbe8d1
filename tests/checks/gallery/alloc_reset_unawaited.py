"""The program waits for another queue's fence and resets this one's allocator: it works, by chance."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "ALLOC_RESET_IN_FLIGHT"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("source"), stage.buffer("target")
    copies = other_queue(stage, "COPY")
    copies.list.copy_resource(target, source)
    copies.submit()
    stage.list.copy_resource(stage.buffer("other"), source)
    stage.submit()
    stage.wait()
    if fixed:
        copies.fence.wait(copies.fence_value)
    copies.allocator.reset()
