"""Two buffers are written from each other in turn, with a barrier on the one just written; one is missing."""

from dmlemu.testing.stage import Stage

CHECK = "HAZARD_RAW"


def run(stage: Stage, fixed: bool) -> None:
    step = stage.copy_operator("step")
    now, then = stage.filled("a"), stage.filled("b")
    for i in range(4):
        stage.dispatch(step, [now], [then])
        if i < 3 and (fixed or i != 1):
            stage.barrier(then)
        now, then = then, now
    stage.run()
