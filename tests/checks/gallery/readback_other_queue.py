"""Two queues work, and the program waits for the wrong one: here both happen to be done by then."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "READBACK_EARLY"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("result"), stage.buffer("copy")
    readback = stage.host_buffer("readback", 256, "READBACK")
    copies = other_queue(stage, "COPY")
    copies.list.copy_resource(readback, source)
    copies.submit()
    stage.list.copy_resource(target, source)
    stage.submit()
    stage.wait()
    if fixed:
        copies.wait()
    with readback.map() as memory:
        print(memory[0])
