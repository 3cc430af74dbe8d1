"""NHWC strides on NCHW sizes."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_LAYOUT_GUESS"


def run(stage: Stage, fixed: bool) -> None:
    n, c, h, w = 1, 3, 4, 5
    strides = [h * w * c, 1, w * c, c] if fixed else [h * w * c, w * c, c, 1]
    image = tensor([n, c, h, w], strides)
    packed = tensor([n, c, h, w])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=image, output_tensor=packed)
    )
