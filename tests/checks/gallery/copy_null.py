"""A copy is recorded whose destination was never created."""

from dmlemu.testing.stage import Stage

CHECK = "COPY_NULL"


def run(stage: Stage, fixed: bool) -> None:
    source = stage.filled("source")
    target = stage.buffer("target") if fixed else None
    stage.list.copy_buffer_region(target, 0, source, 0, 256)
    stage.run()
