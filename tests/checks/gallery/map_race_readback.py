"""The program clears a mapped readback buffer for the next frame, after it has submitted the copy."""

import numpy as np

from dmlemu.testing.stage import Stage

CHECK = "MAP_RACE"


def run(stage: Stage, fixed: bool) -> None:
    image, result = (
        stage.filled("image", 64),
        stage.host_buffer("result", 64, "READBACK"),
    )
    memory = result.map()
    pixels = memory.view(np.float32)
    stage.list.copy_resource(result, image)
    if fixed:
        pixels[:] = -1.0
    stage.submit()
    if not fixed:
        pixels[:] = -1.0
    stage.wait()
