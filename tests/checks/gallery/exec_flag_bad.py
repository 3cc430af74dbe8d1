"""Execution flags that DirectML does not know."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "EXEC_FLAG_BAD"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([4])
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=layout, output_tensor=layout
    )
    flags = dml.ExecutionFlags.DESCRIPTORS_VOLATILE if fixed else 64
    stage.compile(desc, "copy", flags=flags)
