"""A ring of two slots in a mapped upload buffer is written round before the GPU has read the first slot."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MAP_RACE"
SLOT = 64


def run(stage: Stage, fixed: bool) -> None:
    ring, inputs = stage.host_buffer("ring", 2 * SLOT), stage.buffer("inputs", 4 * SLOT)
    memory = ring.map(0, d3d12.Range(0, 0)).view(np.float32)
    for frame in range(4):
        slot = frame % 2 * SLOT
        if fixed and frame >= 2:
            stage.fence.wait(frame - 1)
        memory[slot // 4 : (slot + SLOT) // 4] = frame
        stage.list.copy_buffer_region(inputs, frame * SLOT, ring, slot, SLOT)
        stage.submit()
        stage.list.reset(stage.allocator)
    stage.list.close()
    stage.fence.wait(4)
