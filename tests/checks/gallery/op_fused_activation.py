"""An operator that cannot be fused, given as the fused activation."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_FUSED_ACTIVATION"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([4])
    relu = dml.ActivationReluOperatorDesc()
    clip = dml.ElementWiseClipOperatorDesc(min=0.0, max=6.0)
    desc = dml.ElementWiseAdd1OperatorDesc(
        a_tensor=layout,
        b_tensor=layout,
        output_tensor=layout,
        fused_activation=relu if fixed else clip,
    )
    stage.dml.create_operator(desc)
