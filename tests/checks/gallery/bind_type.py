"""A tensor that the operator has is bound as NONE."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, product

CHECK = "BIND_TYPE"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(), "layer")
    a, b = (dml.BufferBinding(stage.filled(name)) for name in ("a", "b"))
    table = stage.table(layer)
    table.bind_inputs([a, b if fixed else dml.BindingDesc.none(), None])
