"""One staging buffer serves for all uploads, and nobody waits before it is mapped again."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MAP_RACE"


def run(stage: Stage, fixed: bool) -> None:
    staging = stage.host_buffer("staging", 64)
    for i in range(2):
        with staging.map(0, d3d12.Range(0, 0)) as memory:
            memory.view(np.float32)[:] = i
        stage.list.copy_resource(stage.buffer(f"weights {i}", 64), staging)
        stage.submit()
        if fixed:
            stage.fence.wait(stage.fence_value)
        stage.list.reset(stage.allocator)
    stage.list.close()
    stage.fence.wait(stage.fence_value)
