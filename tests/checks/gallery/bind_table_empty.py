"""A table is reset to nothing and used again."""

from stage import Stage

from dmlemu import dml

CHECK = "BIND_TABLE_EMPTY"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    table = stage.table(copy)
    if not fixed:
        table.reset()
    table.bind_inputs([dml.BufferBinding(stage.filled("image"))])
