"""A buffer of a DEFAULT heap is mapped to read a result."""

from dmlemu.testing.stage import Stage

CHECK = "MAP_HEAP"


def run(stage: Stage, fixed: bool) -> None:
    result = stage.filled("result")
    if fixed:
        readback = stage.host_buffer("readback", 256, "READBACK")
        stage.list.copy_resource(readback, result)
        stage.run()
        result = readback
    with result.map() as memory:
        print(memory.view("f4")[0])
