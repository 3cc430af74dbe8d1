"""A bias for each of three channels is broadcast along the width, which is five, in cleared memory."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "READ_MIXED"


def run(stage: Stage, fixed: bool) -> None:
    image = tensor([1, 3, 4, 5])
    bias = tensor([1, 3, 4, 5], [0, 1, 0, 0] if fixed else [0, 0, 0, 1])
    desc = dml.ElementWiseAddOperatorDesc(
        a_tensor=image, b_tensor=bias, output_tensor=image
    )
    add = stage.compile(desc, "add bias")
    stage.initialize(add)
    arena, picture = (
        stage.upload("arena", np.zeros(64, np.float32)),
        stage.filled("picture", 240),
    )
    stage.write(arena, np.float32([0.5, 1.5, 2.5]), offset=64)
    result = stage.buffer("result", 240)
    stage.dispatch(
        add, [picture, dml.BufferBinding(arena, 64, bias.size_in_bytes)], [result]
    )
    stage.run()
