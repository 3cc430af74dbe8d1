"""Weights that DirectML owns are bound again when the operator is executed."""

from dmlemu import dml
from dmlemu.testing.stage import OWNED, Stage, give_weights, product

CHECK = "BIND_OWNED_BY_DML"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(OWNED), "layer")
    weights = stage.filled("weights")
    give_weights(stage, layer, weights, stage.buffer("persistent"))
    image = dml.BufferBinding(stage.filled("image"))
    table = stage.table(layer)
    table.bind_inputs([image, None if fixed else dml.BufferBinding(weights), None])
