"""A value is counted down from the number of frames that are left, and below 0 in the end."""

from dmlemu.testing.stage import Stage

CHECK = "FENCE_VALUE"


def run(stage: Stage, fixed: bool) -> None:
    stage.queue.signal(stage.fence, 1 if fixed else -1)
