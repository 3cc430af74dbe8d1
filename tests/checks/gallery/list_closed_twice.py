"""Each of two helpers closes the list."""

from dmlemu.testing.stage import Stage

CHECK = "LIST_CLOSED"


def run(stage: Stage, fixed: bool) -> None:
    stage.list.copy_resource(stage.buffer("target"), stage.filled("source"))
    stage.list.close()
    if not fixed:
        stage.list.close()
