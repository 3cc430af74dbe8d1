"""Two operators work in place on one buffer, one after the other."""

from dmlemu.testing.stage import Stage

CHECK = "HAZARD_RAW"


def run(stage: Stage, fixed: bool) -> None:
    scale, shift = stage.copy_operator("scale"), stage.copy_operator("shift")
    act = stage.filled("act")
    stage.dispatch(scale, [act], [act])
    if fixed:
        stage.barrier(act)
    stage.dispatch(shift, [act], [act])
    stage.run()
