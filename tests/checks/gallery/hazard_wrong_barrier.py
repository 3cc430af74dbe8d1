"""The barrier names the input of the first dispatch; its output is what the second one needs."""

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
    stage.barrier(act if fixed else image)
    stage.dispatch(activate, [act], [result])
    stage.run()
