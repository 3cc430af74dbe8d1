"""A convolution whose output was computed without the padding of its rows: two columns are missing."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_WINDOW_COUNT"


def run(stage: Stage, fixed: bool) -> None:
    stage.dml.create_operator(
        dml.ConvolutionIntegerOperatorDesc(
            input_tensor=tensor([1, 1, 8, 8], data_type=dml.TensorDataType.UINT8),
            filter_tensor=tensor([4, 1, 3, 3], data_type=dml.TensorDataType.INT8),
            output_tensor=tensor(
                [1, 4, 8, 8] if fixed else [1, 4, 8, 6],
                data_type=dml.TensorDataType.INT32,
            ),
            strides=[1, 1],
            dilations=[1, 1],
            start_padding=[1, 1],
            end_padding=[1, 1],
            group_count=1,
        )
    )
