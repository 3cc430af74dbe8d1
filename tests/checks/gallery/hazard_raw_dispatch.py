"""A dispatch reads what the one before writes, and no barrier stands between them."""

from dmlemu.testing.stage import Stage

CHECK = "HAZARD_RAW"


def run(stage: Stage, fixed: bool) -> None:
    convolve, activate = stage.copy_operator("conv1"), stage.copy_operator("relu1")
    image, act, result = (
        stage.filled("image"),
        stage.buffer("act"),
        stage.buffer("result"),
    )
    stage.dispatch(convolve, [image], [act])
    if fixed:
        stage.barrier(act)
    stage.dispatch(activate, [act], [result])
    stage.run()
