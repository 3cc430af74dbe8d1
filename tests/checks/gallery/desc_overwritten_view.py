"""A view is written into a slot that a list on the GPU still needs."""

from dmlemu.testing.stage import Stage, raw_view, slot

CHECK = "DESC_OVERWRITTEN"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    stage.fence.set_name("done")
    copy = stage.copy_operator("copy")
    image, other = stage.filled("image"), stage.filled("other")
    stage.dispatch(copy, [image], [stage.buffer("output")])  # descriptors 0 and 1
    stage.submit()
    if fixed:
        stage.wait()
    stage.device.create_unordered_access_view(other, None, raw_view(64), slot(stage, 0))
    if not fixed:
        stage.wait()
