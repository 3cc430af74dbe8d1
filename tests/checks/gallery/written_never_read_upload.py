"""A bias is uploaded at an offset in elements instead of bytes; the layer reads zeros of the clear."""

import numpy as np

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "WRITTEN_NEVER_READ"


def run(stage: Stage, fixed: bool) -> None:
    row = tensor([16])
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=row, b_tensor=row, output_tensor=row)
    add = stage.compile(desc, "add bias")
    stage.initialize(add)
    weights, image = (
        stage.upload("weights", np.zeros(512, np.float32)),
        stage.filled("image", 64),
    )
    first = 256  # element at which the bias begins
    offset = 4 * first if fixed else first
    stage.write(weights, np.arange(16, dtype=np.float32), offset)
    weights.expect(offset, row, "bias")
    result = stage.buffer("result", 64)
    stage.dispatch(add, [image, dml.BufferBinding(weights, 4 * first, 64)], [result])
    stage.read(result, np.float32)
