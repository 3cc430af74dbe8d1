"""Two dispatches share one temporary buffer: it holds intermediate results of both at the same time."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, half_product

CHECK = "HAZARD_WAW"


def run(stage: Stage, fixed: bool) -> None:
    layers = half_product(stage, "layer1"), half_product(stage, "layer2")
    scratch = stage.buffer(
        "scratch", layers[0].get_binding_properties().temporary_resource_size
    )
    image, weights = stage.filled("image", 32), stage.filled("weights", 32)
    for i, layer in enumerate(layers):
        table = stage.table(layer)
        table.bind_inputs([dml.BufferBinding(image), dml.BufferBinding(weights), None])
        table.bind_outputs([dml.BufferBinding(stage.buffer(f"output {i}", 32))])
        table.bind_temporary_resource(dml.BufferBinding(scratch))
        if fixed and i > 0:
            stage.barrier(scratch)
        stage.recorder.record_dispatch(stage.list, layer, table)
    stage.run()
