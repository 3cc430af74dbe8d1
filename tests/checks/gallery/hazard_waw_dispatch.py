"""Two dispatches write the same buffer; which result stays is chance."""

from dmlemu.testing.stage import Stage

CHECK = "HAZARD_WAW"


def run(stage: Stage, fixed: bool) -> None:
    first, second = (
        stage.copy_operator("first guess"),
        stage.copy_operator("better guess"),
    )
    guess, better, result = (
        stage.filled("guess"),
        stage.filled("better"),
        stage.buffer("result"),
    )
    stage.dispatch(first, [guess], [result])
    if fixed:
        stage.barrier(result)
    stage.dispatch(second, [better], [result])
    stage.run()
