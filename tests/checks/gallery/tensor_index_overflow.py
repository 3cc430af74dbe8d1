"""Rows so far apart that the last one lies beyond 32 bits."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_INDEX_OVERFLOW"


def run(stage: Stage, fixed: bool) -> None:
    row = 1 << 20 if fixed else 1 << 31
    table = tensor([3, 4], [row, 1])
    packed = tensor([3, 4])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=table, output_tensor=packed)
    )
