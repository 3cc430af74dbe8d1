"""NCHW strides on NHWC sizes."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_LAYOUT_GUESS"


def run(stage: Stage, fixed: bool) -> None:
    n, c, h, w = 2, 3, 4, 5
    strides = [h * w * c, w, 1, h * w] if fixed else [h * w * c, h * w, w, 1]
    image = tensor([n, h, w, c], strides)
    packed = tensor([n, h, w, c])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=image, output_tensor=packed)
    )
