"""An allocator is reset while a list is being recorded with it."""

from dmlemu.testing.stage import Stage

CHECK = "LIST_OPEN"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("source"), stage.buffer("target")
    if not fixed:
        stage.allocator.reset()
    stage.list.copy_resource(target, source)
    stage.run()
