"""A command is recorded after Close."""

from dmlemu.testing.stage import Stage

CHECK = "LIST_CLOSED"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("source"), stage.buffer("target")
    if not fixed:
        stage.list.close()
    stage.list.copy_resource(target, source)
    stage.run()
