"""Unmap tells of fewer bytes than were written."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MEM_UNINIT_READ"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("use", count=16)
    upload, data, result = (
        stage.host_buffer("upload", 64),
        stage.buffer("data", 64),
        stage.buffer("result", 64),
    )
    memory = upload.map()
    memory.view(np.float32)[:] = range(16)
    upload.unmap(0, None if fixed else d3d12.Range(0, 16))  # elements for bytes
    stage.list.copy_buffer_region(data, 0, upload, 0, 64)
    stage.run()
    stage.dispatch(copy, [data], [result])
    stage.run()
