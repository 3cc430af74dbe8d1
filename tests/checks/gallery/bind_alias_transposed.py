"""A matrix is transposed in place: the first element stays where it is, the second does not."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "BIND_ALIAS"


def run(stage: Stage, fixed: bool) -> None:
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor([4, 4], [1, 4]), output_tensor=tensor([4, 4])
    )
    transpose = stage.compile(desc, "transpose")
    stage.initialize(transpose)
    matrix = stage.filled("matrix", 64)
    target = stage.buffer("target", 64) if fixed else matrix
    stage.dispatch(transpose, [matrix], [target])
    stage.run()
