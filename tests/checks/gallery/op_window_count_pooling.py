"""A pooling whose windows were meant to move by 3; the output has the size for that, and Strides say 2."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_WINDOW_COUNT"


def run(stage: Stage, fixed: bool) -> None:
    stage.dml.create_operator(
        dml.MaxPoolingOperatorDesc(
            input_tensor=tensor([1, 1, 9, 9]),
            output_tensor=tensor([1, 1, 3, 3]),
            strides=[3, 3] if fixed else [2, 2],
            window_size=[3, 3],
            start_padding=[0, 0],
            end_padding=[0, 0],
        )
    )
