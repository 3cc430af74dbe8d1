"""A required tensor is left out."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_OPTIONAL"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([2, 3])
    stage.dml.create_operator(
        dml.ElementWiseAddOperatorDesc(
            a_tensor=layout, b_tensor=layout if fixed else None, output_tensor=layout
        )
    )
