"""Byte strides where DirectML counts elements."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_STRIDE_BYTES"


def run(stage: Stage, fixed: bool) -> None:
    strides = [6, 3, 1] if fixed else [24, 12, 4]
    image = tensor([4, 2, 3], strides)
    packed = tensor([4, 2, 3])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=image, output_tensor=packed)
    )
