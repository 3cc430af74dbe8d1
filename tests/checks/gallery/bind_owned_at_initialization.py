"""Weights that DirectML is to own are not given to the initializer."""

from dmlemu import dml
from dmlemu.testing.stage import OWNED, Stage, product

CHECK = "BIND_OWNED_BY_DML"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(OWNED), "layer")
    weights = dml.BufferBinding(stage.filled("weights"))
    table = stage.table(stage.dml.create_operator_initializer([layer]))
    table.bind_inputs(
        [dml.BufferArrayBinding([None, weights if fixed else None, None])]
    )
