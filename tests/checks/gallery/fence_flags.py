"""Two fences are awaited with one value."""

from dmlemu.testing.stage import Stage

CHECK = "FENCE_FLAGS"


def run(stage: Stage, fixed: bool) -> None:
    fences = [stage.device.create_fence(1) for _ in range(2)]
    stage.device.set_event_on_multiple_fence_completion(
        fences, [1, 1] if fixed else [1]
    )
