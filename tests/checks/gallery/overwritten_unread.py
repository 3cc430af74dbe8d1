"""An arena gives the memory of a tensor to the next one before the tensor has been read."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "OVERWRITTEN_UNREAD"


def run(stage: Stage, fixed: bool) -> None:
    row = tensor([16])
    first, second = (
        stage.compile(
            dml.ActivationReluOperatorDesc(input_tensor=row, output_tensor=row), name
        )
        for name in ("first", "second")
    )
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=row, b_tensor=row, output_tensor=row)
    add = stage.compile(desc, "add")
    stage.initialize(first, second, add)
    image, arena, result = (
        stage.filled("image", 64),
        stage.buffer("arena", 128),
        stage.buffer("result", 64),
    )
    left, right = (
        dml.BufferBinding(arena, offset, 64) for offset in (0, 64 if fixed else 0)
    )
    stage.dispatch(first, [image], [left])
    stage.barrier()
    stage.dispatch(second, [image], [right])
    stage.barrier()
    stage.dispatch(add, [left, right], [result])
    stage.read(result, np.float32)
