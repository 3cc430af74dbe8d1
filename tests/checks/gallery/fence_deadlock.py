"""Each of two queues waits for the other before it signals."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "FENCE_NEVER"


def run(stage: Stage, fixed: bool) -> None:
    copies = other_queue(stage, "COPY")
    computed, copied = stage.device.create_fence(), stage.device.create_fence()
    computed.set_name("computed")
    copied.set_name("copied")
    if fixed:
        copies.queue.signal(copied, 1)
    stage.queue.wait(copied, 1)
    stage.queue.signal(computed, 1)
    copies.queue.wait(computed, 1)
    if not fixed:
        copies.queue.signal(copied, 1)
    computed.wait(1)
