"""The range of Unmap is in elements, and bytes are meant: three quarters of what was written are not told."""

import numpy as np

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "UNMAP_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    upload = stage.host_buffer("upload", 256)
    values = np.ones(64, np.float32)
    memory = upload.map(0, d3d12.Range(0, 0))
    memory[: values.nbytes] = values.tobytes()
    upload.unmap(0, d3d12.Range(0, values.nbytes if fixed else values.size))
