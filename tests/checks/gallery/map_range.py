"""The range that Map may read is told in bytes already, and multiplied by the element size once more."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MAP_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    size, element = 1024, 4
    readback = stage.host_buffer("readback", size, "READBACK")
    stage.list.copy_resource(readback, stage.filled("result", size))
    stage.run()
    end = size if fixed else size * element
    with readback.map(0, d3d12.Range(0, end)) as memory:
        print(memory[0])
