"""An operator compiled with DESCRIPTORS_VOLATILE is executed before its output is bound."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, identity

CHECK = "DESC_UNINIT"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.compile(
        identity(), "copy", flags=dml.ExecutionFlags.DESCRIPTORS_VOLATILE
    )
    stage.initialize(copy)
    image, output = stage.filled("image"), stage.buffer("output")
    table = stage.table(copy)
    stage.recorder.record_dispatch(stage.list, copy, table)
    table.bind_inputs([dml.BufferBinding(image)])
    if fixed:
        table.bind_outputs([dml.BufferBinding(output)])
    stage.run()
