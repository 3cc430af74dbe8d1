"""A program goes on after its device has been removed."""

from dmlemu.testing.stage import Stage

CHECK = "DEVICE_REMOVED"


def run(stage: Stage, fixed: bool) -> None:
    device = stage.device
    if not fixed:
        device.remove_device()
    device.create_fence()
