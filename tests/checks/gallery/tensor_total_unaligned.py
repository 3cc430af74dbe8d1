"""A total of ten bytes, which is not a multiple of four."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_TOTAL_UNALIGNED"


def run(stage: Stage, fixed: bool) -> None:
    total = 8 if fixed else 10
    row = tensor(
        [3], data_type=dml.TensorDataType.FLOAT16, total_tensor_size_in_bytes=total
    )
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=row, output_tensor=row)
    )
