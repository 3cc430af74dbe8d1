"""A compiled operator is evicted, and dispatched all the same."""

from dmlemu.testing.stage import Stage

CHECK = "RES_NOT_RESIDENT"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    stage.dml.evict([copy])
    if fixed:
        stage.dml.make_resident([copy])
    stage.dispatch(copy, [stage.filled("input")], [stage.buffer("output")])
    stage.run()
