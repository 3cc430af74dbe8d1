"""A tensor of nine dimensions."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_RANK"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([1] * (8 if fixed else 9))
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout)
    )
