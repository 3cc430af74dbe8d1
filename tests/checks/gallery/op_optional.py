"""A required tensor is left out."""

from stage import Stage, tensor

from dmlemu import dml

CHECK = "OP_OPTIONAL"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([2, 3])
    stage.dml.create_operator(
        dml.ElementWiseAddOperatorDesc(
            a_tensor=layout, b_tensor=layout if fixed else None, output_tensor=layout
        )
    )
