"""The queue waits until an upload is filled; the program says so too early, when it has half of it."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MAP_RACE"


def run(stage: Stage, fixed: bool) -> None:
    upload, weights = stage.host_buffer("upload", 64), stage.buffer("weights", 64)
    filled = stage.device.create_fence()
    filled.set_name("filled")
    memory = upload.map(0, d3d12.Range(0, 0)).view(np.float32)
    stage.list.copy_resource(weights, upload)
    stage.queue.wait(filled, 1)
    stage.submit()
    memory[:8] = 1.5
    if not fixed:
        filled.signal(1)
    memory[8:] = 2.5
    if fixed:
        filled.signal(1)
    stage.wait()
