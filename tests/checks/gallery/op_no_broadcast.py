"""A bias of size 1 where the operator wants the full size."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_NO_BROADCAST"


def run(stage: Stage, fixed: bool) -> None:
    image = tensor([1, 3, 4, 4])
    bias = tensor([1, 3, 4, 4], [0, 1, 0, 0]) if fixed else tensor([1, 3, 1, 1])
    stage.dml.create_operator(
        dml.ElementWiseAddOperatorDesc(
            a_tensor=image, b_tensor=bias, output_tensor=image
        )
    )
