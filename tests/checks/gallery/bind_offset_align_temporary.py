"""A temporary resource is placed as if it were a tensor: they begin at multiples of 256 bytes."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, half_product

CHECK = "BIND_OFFSET_ALIGN"


def run(stage: Stage, fixed: bool) -> None:
    layer = half_product(stage, "layer")
    pool = stage.buffer("pool", 4096)
    table = stage.table(layer)
    table.bind_temporary_resource(dml.BufferBinding(pool, 256 if fixed else 16, 1024))
