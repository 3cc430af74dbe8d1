"""Weights that DirectML is to own are not given to the initializer."""

from stage import OWNED, Stage, product

from dmlemu import dml

CHECK = "BIND_OWNED_BY_DML"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(OWNED), "layer")
    weights = dml.BufferBinding(stage.filled("weights"))
    table = stage.table(stage.dml.create_operator_initializer([layer]))
    table.bind_inputs([dml.BufferArrayBinding([None, weights if fixed else None, None])])
