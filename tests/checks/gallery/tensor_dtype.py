"""Two operands of different data types."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_DTYPE"


def run(stage: Stage, fixed: bool) -> None:
    a = tensor([2, 3])
    b = tensor(
        [2, 3],
        data_type=dml.TensorDataType.FLOAT32 if fixed else dml.TensorDataType.FLOAT16,
    )
    stage.dml.create_operator(
        dml.ElementWiseAddOperatorDesc(a_tensor=a, b_tensor=b, output_tensor=a)
    )
