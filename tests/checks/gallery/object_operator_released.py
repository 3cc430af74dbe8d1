"""A compiled operator is released with its operator, as soon as the dispatch is recorded and submitted."""

from dmlemu.testing.stage import Stage

CHECK = "OBJECT_DELETED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    operator = stage.copy_operator("copy")
    table = stage.dispatch(operator, [stage.filled("source")], [stage.buffer("target")])
    stage.submit()
    table.release()  # this one may go
    if fixed:
        stage.wait()
    operator.release()
