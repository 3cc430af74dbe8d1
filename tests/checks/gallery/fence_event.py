"""The number of an ordinary file is given as the event."""

import os

from dmlemu.testing.stage import Stage

CHECK = "FENCE_EVENT"


def run(stage: Stage, fixed: bool) -> None:
    event = os.eventfd(0) if fixed else 0
    stage.queue.signal(stage.fence, 1)
    stage.fence.set_event_on_completion(1, event)
    os.read(event, 8)
    os.close(event)
