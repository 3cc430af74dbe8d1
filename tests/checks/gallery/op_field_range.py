"""An axis that the tensor does not have."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_FIELD_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    desc = dml.ReduceOperatorDesc(
        function=dml.ReduceFunction.SUM,
        input_tensor=tensor([2, 3]),
        output_tensor=tensor([2, 1]),
        axes=[1 if fixed else 2],
    )
    stage.dml.create_operator(desc)
