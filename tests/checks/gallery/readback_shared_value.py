"""Two queues signal the same value: that it is reached does not tell which of them is done."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "READBACK_EARLY"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("result"), stage.buffer("copy")
    readback = stage.host_buffer("readback", 256, "READBACK")
    copies, fence = other_queue(stage, "COPY"), stage.device.create_fence()
    fence.set_name("both")
    stage.list.copy_resource(target, source)
    stage.submit()
    stage.queue.signal(fence, 1)
    stage.wait()
    copies.list.copy_resource(readback, target)
    copies.list.close()
    copies.queue.execute_command_lists([copies.list])
    value = 2 if fixed else 1
    copies.queue.signal(fence, value)
    fence.wait(value)
    with readback.map() as memory:
        print(memory[0])
