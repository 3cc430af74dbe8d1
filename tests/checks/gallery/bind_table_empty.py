"""A table is reset to nothing and used again."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "BIND_TABLE_EMPTY"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    table = stage.table(copy)
    if not fixed:
        table.reset()
    table.bind_inputs([dml.BufferBinding(stage.filled("image"))])
