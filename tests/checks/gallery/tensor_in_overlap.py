"""A row stride that is shorter than the row."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_IN_OVERLAP"


def run(stage: Stage, fixed: bool) -> None:
    rows = tensor([3, 4], [4 if fixed else 3, 1])
    packed = tensor([3, 4])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=rows, output_tensor=packed)
    )
