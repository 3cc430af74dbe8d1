"""OutputPadding of a convolution that is not BACKWARD."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_FIELD_IGNORED"


def run(stage: Stage, fixed: bool) -> None:
    stage.dml.create_operator(
        dml.ConvolutionOperatorDesc(
            input_tensor=tensor([1, 1, 8]),
            filter_tensor=tensor([1, 1, 3]),
            output_tensor=tensor([1, 1, 6]),
            mode=dml.ConvolutionMode.CROSS_CORRELATION,
            direction=dml.ConvolutionDirection.FORWARD,
            strides=[1],
            dilations=[1],
            start_padding=[0],
            end_padding=[0],
            output_padding=[0 if fixed else 1],
            group_count=1,
        )
    )
