"""Two queues signal one value, and here the one that matters is first: the other may be on another GPU."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "READBACK_EARLY"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("result"), stage.buffer("copy")
    readback = stage.host_buffer("readback", 256, "READBACK")
    copies, fence = other_queue(stage, "COPY"), stage.device.create_fence()
    fence.set_name("both")
    copies.list.copy_resource(readback, source)
    copies.list.close()
    copies.queue.execute_command_lists([copies.list])
    stage.list.copy_resource(target, source)
    copies.queue.signal(fence, 1)
    stage.submit()
    if fixed:
        stage.queue.wait(fence, 1)
    stage.queue.signal(fence, 2 if fixed else 1)
    fence.wait(1)
    with readback.map() as memory:
        print(memory[0])
    stage.wait()
