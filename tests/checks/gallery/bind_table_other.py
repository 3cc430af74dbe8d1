"""A table made for one operator is recorded with another."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "BIND_TABLE_OTHER"


def run(stage: Stage, fixed: bool) -> None:
    first, second = stage.copy_operator("first"), stage.copy_operator("second")
    table = stage.table(second if fixed else first)
    table.bind_inputs([dml.BufferBinding(stage.filled("image"))])
    table.bind_outputs([dml.BufferBinding(stage.buffer("output"))])
    stage.recorder.record_dispatch(stage.list, second, table)
    stage.run()
