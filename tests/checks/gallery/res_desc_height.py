"""A matrix is asked for as a buffer with two dimensions; a buffer is one row of bytes."""

from dataclasses import replace

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "RES_DESC"


def run(stage: Stage, fixed: bool) -> None:
    rows, bytes_per_row = 16, 256
    desc = d3d12.ResourceDesc.buffer(rows * bytes_per_row, UAV)
    if not fixed:
        desc = replace(desc, width=bytes_per_row, height=rows)
    stage.device.create_committed_resource(
        d3d12.HeapProperties(), d3d12.HeapFlags.NONE, desc, States.COMMON
    )
