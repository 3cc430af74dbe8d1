"""A counter of frames begins at 0, and so does the first wait."""

from dmlemu.testing.stage import Stage, other_queue

CHECK = "FENCE_ZERO_WAIT"


def run(stage: Stage, fixed: bool) -> None:
    copies = other_queue(stage, "COPY")
    frame = 1 if fixed else 0
    copies.queue.signal(copies.fence, frame)
    stage.queue.wait(copies.fence, frame)
