"""One temporary buffer for all operators, as large as the first one needs."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, half_product

CHECK = "BIND_TEMP_SMALL"


def run(stage: Stage, fixed: bool) -> None:
    layer = half_product(stage, "layer")
    needed = layer.get_binding_properties().temporary_resource_size
    temporary = stage.buffer("temporary", needed if fixed else 16)
    stage.table(layer).bind_temporary_resource(dml.BufferBinding(temporary))
