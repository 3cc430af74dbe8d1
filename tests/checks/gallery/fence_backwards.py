"""Two queues share a fence and count by themselves: the slower one sets it back."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "FENCE_BACKWARDS"


def run(stage: Stage, fixed: bool) -> None:
    copies = other_queue(stage, "COPY")
    shared = stage.device.create_fence()
    shared.set_name("progress")
    stage.queue.signal(shared, 2)
    if fixed:
        copies.queue.wait(shared, 2)
    copies.queue.signal(shared, 3 if fixed else 1)
    shared.wait(1)
    copies.queue.signal(copies.fence, 1)
    copies.fence.wait(1)
