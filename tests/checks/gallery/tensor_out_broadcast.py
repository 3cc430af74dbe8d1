"""A sum written by broadcasting: the output has stride 0."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_OUT_BROADCAST"


def run(stage: Stage, fixed: bool) -> None:
    packed = tensor([2, 3])
    total = packed if fixed else tensor([2, 3], [0, 1])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=total)
    )
