"""A buffer is filled anew while the dispatch that reads it may still run."""

from dmlemu.testing.stage import Stage

CHECK = "HAZARD_WAR"


def run(stage: Stage, fixed: bool) -> None:
    use, refill = stage.copy_operator("use"), stage.copy_operator("refill")
    act, more, result = (
        stage.filled("act"),
        stage.filled("more"),
        stage.buffer("result"),
    )
    stage.dispatch(use, [act], [result])
    if fixed:
        stage.barrier(act)
    stage.dispatch(refill, [more], [act])
    stage.run()
