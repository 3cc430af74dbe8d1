"""In place, but 16 bytes further: the operator reads elements that it has overwritten before."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "BIND_ALIAS"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    pool = stage.filled("pool")
    source = dml.BufferBinding(pool, 0, 64)
    target = dml.BufferBinding(pool, 0 if fixed else 16, 64)
    stage.dispatch(copy, [source], [target])
    stage.run()
