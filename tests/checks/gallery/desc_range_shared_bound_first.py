"""All tables are bound, over the same descriptors, before the first dispatch is recorded."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "DESC_RANGE_SHARED"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.copy_operator("copy")
    tables = []
    for i in range(2):
        table = stage.table(copy, first=2 * i if fixed else 0)
        table.set_name(f"table {i}")
        table.bind_inputs([dml.BufferBinding(stage.filled(f"image {i}"))])
        table.bind_outputs([dml.BufferBinding(stage.buffer(f"output {i}"))])
        tables.append(table)
    for table in tables:
        stage.recorder.record_dispatch(stage.list, copy, table)
    stage.run()
