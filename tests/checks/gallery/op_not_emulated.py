"""A command that is not emulated."""

from dmlemu.testing.stage import Stage

CHECK = "OP_NOT_EMULATED"


def run(stage: Stage, fixed: bool) -> None:
    if fixed:
        stage.barrier()
    else:
        stage.list.barrier([])
