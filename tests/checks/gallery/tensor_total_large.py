"""A size in bytes, multiplied by the element size once more."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_TOTAL_LARGE"


def run(stage: Stage, fixed: bool) -> None:
    size_in_bytes = 4 * 8 * 8
    total = size_in_bytes if fixed else 4 * size_in_bytes
    weights = tensor([8, 8], total_tensor_size_in_bytes=total)
    packed = tensor([8, 8])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=weights, output_tensor=packed)
    )
