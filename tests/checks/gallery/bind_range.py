"""A range that begins in the middle of a buffer and is as long as all of it."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "BIND_RANGE"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    pool = stage.filled("pool", 256)
    table = stage.table(copy)
    table.bind_inputs([dml.BufferBinding(pool, 64, 256 - 64 if fixed else 256)])
