"""The transpose of a convolution with stride 2, whose output has an element that no window covers."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_WINDOW_COUNT"


def run(stage: Stage, fixed: bool) -> None:
    stage.dml.create_operator(
        dml.ConvolutionOperatorDesc(
            input_tensor=tensor([1, 1, 4]),
            filter_tensor=tensor([1, 1, 2]),
            output_tensor=tensor([1, 1, 8 if fixed else 11]),
            mode=dml.ConvolutionMode.CROSS_CORRELATION,
            direction=dml.ConvolutionDirection.BACKWARD,
            strides=[2],
            dilations=[1],
            start_padding=[0],
            end_padding=[0],
            output_padding=[0],
            group_count=1,
        )
    )
