"""Two layers write to one arena; the sum takes one of them twice, and nobody reads the other."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "WRITTEN_NEVER_READ"


def run(stage: Stage, fixed: bool) -> None:
    row = tensor([16])
    relu = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=row, output_tensor=row), "relu"
    )
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=row, b_tensor=row, output_tensor=row)
    add = stage.compile(desc, "add")
    stage.initialize(relu, add)
    arena, result = stage.buffer("arena", 128), stage.buffer("result", 64)
    left, right = (dml.BufferBinding(arena, offset, 64) for offset in (0, 64))
    stage.dispatch(relu, [stage.filled("first", 64)], [left])
    stage.dispatch(relu, [stage.filled("second", 64)], [right])
    stage.barrier()
    stage.dispatch(add, [left, right if fixed else left], [result])
    stage.read(result, np.float32)
