"""The persistent resource has the size of the weights, and not the one of GetBindingProperties."""

from dmlemu import dml
from dmlemu.testing.stage import OWNED, Stage, product

CHECK = "BIND_PERSISTENT_SMALL"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(OWNED), "layer")
    needed = layer.get_binding_properties().persistent_resource_size
    weights = layer.operator.desc.b_tensor.size_in_bytes
    persistent = dml.BufferBinding(
        stage.buffer("persistent"), 0, needed if fixed else weights
    )
    stage.table(layer).bind_persistent_resource(persistent)
