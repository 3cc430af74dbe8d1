"""After reading, Unmap is told that the whole READBACK buffer was written."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "UNMAP_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    readback = stage.host_buffer("readback", 256, "READBACK")
    stage.list.copy_resource(readback, stage.filled("result"))
    stage.run()
    print(readback.map()[0])
    readback.unmap(0, d3d12.Range(0, 0 if fixed else 256))
