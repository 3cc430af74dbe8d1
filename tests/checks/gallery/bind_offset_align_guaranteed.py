"""The desc promises offsets that are multiples of 64, and the binding does not keep that."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, identity

CHECK = "BIND_OFFSET_ALIGN"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.compile(identity(4, guaranteed_base_offset_alignment=64), "copy")
    pool = stage.filled("pool")
    table = stage.table(copy)
    table.bind_inputs([dml.BufferBinding(pool, 128 if fixed else 48, 16)])
