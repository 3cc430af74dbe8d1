"""A tensor with an empty dimension."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_SIZE_ZERO"


def run(stage: Stage, fixed: bool) -> None:
    rows = 2 if fixed else 0
    layout = tensor([rows, 4])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout)
    )
