"""The program waits for a fence that is signalled before the copy, and not after it."""

from dmlemu.testing.stage import Stage

CHECK = "READBACK_EARLY"


def run(stage: Stage, fixed: bool) -> None:
    readback = stage.host_buffer("readback", 256, "READBACK")
    stage.list.copy_resource(readback, stage.filled("result"))
    stage.list.close()
    fence = stage.device.create_fence()
    fence.set_name("frame")
    if not fixed:
        stage.queue.signal(fence, 1)
    stage.queue.execute_command_lists([stage.list])
    if fixed:
        stage.queue.signal(fence, 1)
    fence.wait(1)
    with readback.map() as memory:
        print(memory[0])
