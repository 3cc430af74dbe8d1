"""The program writes the descriptors of a dispatch itself; the view of the output begins too late."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, identity, raw_view, slot

CHECK = "MEM_OOB_WRITE"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.compile(
        identity(), "copy", flags=dml.ExecutionFlags.DESCRIPTORS_VOLATILE
    )
    stage.initialize(copy)
    image, output = stage.filled("image"), stage.buffer("output", 64)
    stage.recorder.record_dispatch(
        stage.list, copy, stage.table(copy)
    )  # descriptors 0 and 1
    first = 0 if fixed else 4
    stage.device.create_unordered_access_view(image, None, raw_view(16), slot(stage, 0))
    stage.device.create_unordered_access_view(
        output, None, raw_view(16 - first, first), slot(stage, 1)
    )
    stage.run()
