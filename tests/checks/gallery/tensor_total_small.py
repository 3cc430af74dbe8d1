"""Strides given in bytes: they reach four times as far as the tensor."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_TOTAL_SMALL"


def run(stage: Stage, fixed: bool) -> None:
    strides = [3, 1] if fixed else [12, 4]
    image = tensor([2, 3], strides, total_tensor_size_in_bytes=24)
    packed = tensor([2, 3])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=image, output_tensor=packed)
    )
