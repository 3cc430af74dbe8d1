"""The program mends one number of an upload after it has executed the list that copies it."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MAP_RACE"


def run(stage: Stage, fixed: bool) -> None:
    upload, weights = stage.host_buffer("upload", 64), stage.buffer("weights", 64)
    memory = upload.map(0, d3d12.Range(0, 0)).view(np.float32)
    memory[:] = 1.0
    if fixed:
        memory[5] = 7.0
    stage.list.copy_resource(weights, upload)
    stage.submit()
    if not fixed:
        memory[5] = 7.0
    stage.wait()
