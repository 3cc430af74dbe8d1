"""The persistent resource is bound to the initializer and then forgotten."""

from dmlemu import dml
from dmlemu.testing.stage import OWNED, Stage, give_weights, product

CHECK = "BIND_PERSISTENT_MISSING"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(OWNED), "layer")
    persistent = stage.buffer("persistent")
    give_weights(stage, layer, stage.filled("weights"), persistent)
    image, output = stage.filled("image"), stage.buffer("output")
    table = stage.table(layer)
    table.bind_inputs([dml.BufferBinding(image), None, None])
    table.bind_outputs([dml.BufferBinding(output)])
    if fixed:
        table.bind_persistent_resource(dml.BufferBinding(persistent))
    stage.recorder.record_dispatch(stage.list, layer, table)
    stage.run()
