"""The second tensor lies at an offset in elements: a mixture is read, and what was meant is not."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "WRITTEN_NEVER_READ"


def run(stage: Stage, fixed: bool) -> None:
    row = tensor([16])
    relu = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=row, output_tensor=row), "relu"
    )
    stage.initialize(relu)
    arena = stage.upload("arena", np.zeros(256, np.uint8))
    result, other = stage.buffer("result", 64), stage.buffer("other", 64)
    stage.dispatch(relu, [stage.filled("first", 64)], [dml.BufferBinding(arena, 0, 64)])
    stage.dispatch(
        relu, [stage.filled("second", 64)], [dml.BufferBinding(arena, 128, 64)]
    )
    stage.barrier()
    stage.dispatch(relu, [dml.BufferBinding(arena, 128 if fixed else 32, 64)], [result])
    stage.dispatch(relu, [dml.BufferBinding(arena, 0, 64)], [other])
    for each in (result, other):
        stage.read(each, np.float32)
