"""A compiled operator is evicted while the GPU still executes it."""

from dmlemu.testing.stage import Stage

CHECK = "OBJECT_EVICTED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    stage.fence.set_name("done")
    copy = stage.copy_operator("copy")
    stage.dispatch(copy, [stage.filled("input")], [stage.buffer("output")])
    stage.submit()
    if fixed:
        stage.wait()
    stage.dml.evict([copy])
