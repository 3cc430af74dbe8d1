"""The result is mapped right after ExecuteCommandLists."""

from dmlemu.testing.stage import Stage

CHECK = "READBACK_EARLY"


def run(stage: Stage, fixed: bool) -> None:
    readback = stage.host_buffer("readback", 256, "READBACK")
    stage.list.copy_buffer_region(readback, 0, stage.filled("result"), 0, 64)
    stage.submit()
    if fixed:
        stage.wait()
    with readback.map() as memory:
        print(memory.view("f4", 0, 16).sum())
