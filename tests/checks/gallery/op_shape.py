"""The reduced dimension of the output is not 1."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OP_SHAPE"


def run(stage: Stage, fixed: bool) -> None:
    output = tensor([1, 1, 3, 1] if fixed else [1, 1, 1, 1])
    desc = dml.ReduceOperatorDesc(
        function=dml.ReduceFunction.SUM,
        input_tensor=tensor([1, 1, 3, 4]),
        output_tensor=output,
        axes=[3],
    )
    stage.dml.create_operator(desc)
