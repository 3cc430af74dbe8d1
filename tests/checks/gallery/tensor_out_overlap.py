"""Rows of an output that run into each other."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_OUT_OVERLAP"


def run(stage: Stage, fixed: bool) -> None:
    packed = tensor([3, 4])
    rows = tensor([3, 4], [4 if fixed else 2, 1])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=rows)
    )
