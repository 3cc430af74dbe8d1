"""An optional tensor that is not used is left out of the bindings."""

from stage import Stage, product

from dmlemu import dml

CHECK = "BIND_COUNT"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(), "layer")  # CTensor is None
    a, b = (dml.BufferBinding(stage.filled(name)) for name in ("a", "b"))
    table = stage.table(layer)
    table.bind_inputs([a, b, None] if fixed else [a, b])
