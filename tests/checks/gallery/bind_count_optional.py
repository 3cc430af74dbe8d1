"""An optional tensor that is not used is left out of the bindings."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, product

CHECK = "BIND_COUNT"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(), "layer")  # CTensor is None
    a, b = (dml.BufferBinding(stage.filled(name)) for name in ("a", "b"))
    table = stage.table(layer)
    table.bind_inputs([a, b, None] if fixed else [a, b])
