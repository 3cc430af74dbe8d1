"""Tensors stand one after the other in a pool, without regard to 16 bytes."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, identity

CHECK = "BIND_OFFSET_ALIGN"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.compile(identity(5), "copy")  # 20 bytes
    pool = stage.filled("pool")
    table = stage.table(copy)
    table.bind_inputs([dml.BufferBinding(pool, 0, 20)])
    table.bind_outputs([dml.BufferBinding(pool, 32 if fixed else 20, 20)])
