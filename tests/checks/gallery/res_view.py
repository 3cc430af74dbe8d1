"""A view that counts bytes where it has to count elements, and runs past its buffer."""

from dmlemu.testing.stage import Stage, raw_view, slot

CHECK = "RES_VIEW"


def run(stage: Stage, fixed: bool) -> None:
    image = stage.buffer("image", 256)
    elements = 256 // 4 if fixed else 256
    stage.device.create_unordered_access_view(
        image, None, raw_view(elements), slot(stage, 0)
    )
