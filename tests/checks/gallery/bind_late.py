"""One table for two dispatches of a list: binding again changes the first one."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "BIND_LATE"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    first, second = stage.filled("first"), stage.filled("second")
    table = stage.dispatch(copy, [first], [stage.buffer("output 1")])
    if fixed:
        table = stage.table(copy)
    table.bind_inputs([dml.BufferBinding(second)])
    table.bind_outputs([dml.BufferBinding(stage.buffer("output 2"))])
    stage.recorder.record_dispatch(stage.list, copy, table)
    stage.run()
