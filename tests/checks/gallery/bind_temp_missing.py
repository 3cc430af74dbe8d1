"""Nobody asked how much temporary memory the operator needs."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, half_product

CHECK = "BIND_TEMP_MISSING"


def run(stage: Stage, fixed: bool) -> None:
    layer = half_product(stage, "layer")
    a, b, output = (stage.filled(name) for name in ("a", "b", "output"))
    table = stage.table(layer)
    table.bind_inputs([dml.BufferBinding(a), dml.BufferBinding(b), None])
    table.bind_outputs([dml.BufferBinding(output)])
    if fixed:
        size = layer.get_binding_properties().temporary_resource_size
        table.bind_temporary_resource(
            dml.BufferBinding(stage.buffer("temporary", size))
        )
    stage.recorder.record_dispatch(stage.list, layer, table)
    stage.run()
