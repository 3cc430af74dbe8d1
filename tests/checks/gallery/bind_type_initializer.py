"""An initializer gets the buffer itself, not the array of buffers that each operator has there."""

from dmlemu import dml
from dmlemu.testing.stage import OWNED, Stage, product

CHECK = "BIND_TYPE"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(OWNED), "layer")
    weights = dml.BufferBinding(stage.filled("weights"))
    table = stage.table(stage.dml.create_operator_initializer([layer]))
    table.bind_inputs(
        [dml.BufferArrayBinding([None, weights, None]) if fixed else weights]
    )
