"""A view is written into a slot of a binding table after RecordDispatch, before ExecuteCommandLists."""

from dmlemu.testing.stage import Stage, raw_view, slot

CHECK = "DESC_OVERWRITTEN"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.copy_operator("copy")
    image, other = stage.filled("image"), stage.filled("other")
    stage.dispatch(copy, [image], [stage.buffer("output")])  # descriptors 0 and 1
    stage.device.create_unordered_access_view(
        other, None, raw_view(64), slot(stage, 2 if fixed else 1)
    )
    stage.run()
