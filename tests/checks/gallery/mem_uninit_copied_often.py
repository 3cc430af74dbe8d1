"""Bytes that nobody has written are handed through a row of buffers before they are read."""

from itertools import pairwise

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MEM_UNINIT_READ"
BUFFERS = 12


def run(stage: Stage, fixed: bool) -> None:
    operator, upload = (
        stage.copy_operator("scale"),
        stage.host_buffer("weights, upload"),
    )
    with upload.map(0, d3d12.Range(0, 0)) as memory:
        values = memory.view(np.float32)
        values[: 64 if fixed else 8] = 2.0
    row = [upload, *(stage.buffer(f"stage {i}") for i in range(BUFFERS))]
    for source, target in pairwise(row):
        stage.list.copy_resource(target, source)
        stage.run()
    stage.dispatch(operator, [row[-1]], [stage.buffer("result")])
    stage.run()
