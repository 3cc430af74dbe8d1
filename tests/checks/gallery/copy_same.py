"""Rows are moved within one buffer."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "COPY_SAME"


def run(stage: Stage, fixed: bool) -> None:
    rows = stage.filled("rows", 512)
    if fixed:
        between = stage.buffer("between", 256)
        stage.list.copy_buffer_region(between, 0, rows, 256, 256)
        stage.list.resource_barrier(
            [
                d3d12.ResourceBarrier.transition(
                    between, States.COPY_DEST, States.COPY_SOURCE
                ),
                d3d12.ResourceBarrier.transition(
                    rows, States.COPY_SOURCE, States.COPY_DEST
                ),
            ]
        )
        stage.list.copy_buffer_region(rows, 0, between, 0, 256)
    else:
        stage.list.copy_buffer_region(rows, 0, rows, 256, 256)
    stage.run()
