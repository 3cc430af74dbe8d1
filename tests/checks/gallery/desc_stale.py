"""A view outlives its buffer: the program wrote it itself, so that nothing else knows of the buffer."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, identity, raw_view, slot

CHECK = "DESC_STALE"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.compile(
        identity(), "copy", flags=dml.ExecutionFlags.DESCRIPTORS_VOLATILE
    )
    stage.initialize(copy)
    image, output = stage.filled("image"), stage.buffer("output")
    stage.recorder.record_dispatch(
        stage.list, copy, stage.table(copy)
    )  # descriptors 0 and 1
    for index, buffer in enumerate((image, output)):
        stage.device.create_unordered_access_view(
            buffer, None, raw_view(64), slot(stage, index)
        )
    if not fixed:
        image.release()
    stage.run()
