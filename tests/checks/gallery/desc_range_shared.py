"""Two dispatches of a list whose binding tables have the same descriptors."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "DESC_RANGE_SHARED"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.copy_operator("copy")
    images = [dml.BufferBinding(stage.filled(f"image {i}")) for i in range(2)]
    for i, image in enumerate(images):
        table = stage.table(copy, first=2 * i if fixed else 0)
        table.set_name(f"table {i}")
        table.bind_inputs([image])
        table.bind_outputs([dml.BufferBinding(stage.buffer(f"output {i}"))])
        stage.recorder.record_dispatch(stage.list, copy, table)
    stage.run()
