"""CopyResource copies whole buffers, and the upload buffer is larger than the tensor's."""

from dmlemu.testing.stage import Stage

CHECK = "COPY_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("staging", 1024), stage.buffer("weights", 256)
    if fixed:
        stage.list.copy_buffer_region(target, 0, source, 0, 256)
    else:
        stage.list.copy_resource(target, source)
    stage.run()
