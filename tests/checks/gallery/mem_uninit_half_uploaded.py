"""Half of the weights are uploaded."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MEM_UNINIT_READ"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("scale", count=16)
    weights, result = stage.buffer("weights", 64), stage.buffer("result", 64)
    upload = stage.host_buffer("weights, upload", 64)
    count = 16 if fixed else 8
    with upload.map(0, d3d12.Range(0, 0)) as memory:
        memory.view(np.float32)[:count] = 1.0
    stage.list.copy_buffer_region(weights, 0, upload, 0, 64)
    stage.run()
    stage.dispatch(copy, [weights], [result])
    stage.run()
