"""Half of the weights are uploaded, and copied on to where they are read."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MEM_UNINIT_READ"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("scale", count=16)
    pool, weights, result = (
        stage.buffer(name, 64) for name in ("pool", "weights", "result")
    )
    upload = stage.host_buffer("weights, upload", 64)
    count = 16 if fixed else 8
    with upload.map(0, d3d12.Range(0, 0)) as memory:
        memory.view(np.float32)[:count] = 1.0
    stage.list.copy_buffer_region(pool, 0, upload, 0, 64)
    stage.run()
    stage.list.copy_buffer_region(weights, 0, pool, 0, 64)
    stage.run()
    stage.dispatch(copy, [weights], [result])
    stage.run()
