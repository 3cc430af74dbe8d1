"""The second half of a buffer is copied, and offset and size are both given as its size."""

from dmlemu.testing.stage import Stage

CHECK = "COPY_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("source", 256), stage.buffer("target", 256)
    half = 128
    stage.list.copy_buffer_region(target, 0, source, half, half if fixed else 256)
    stage.run()
