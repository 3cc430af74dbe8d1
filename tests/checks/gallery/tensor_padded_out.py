"""An output with padded rows, where nobody writes the padding."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "TENSOR_PADDED_OUT"


def run(stage: Stage, fixed: bool) -> None:
    packed = tensor([3, 5])
    rows = tensor([3, 5], [5 if fixed else 8, 1])
    stage.dml.create_operator(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=rows)
    )
