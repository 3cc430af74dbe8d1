"""A table has one descriptor per buffer that is bound; the operator needs more."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, product

CHECK = "DESC_COUNT"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(), "layer")  # CTensor is None, and has a descriptor
    count = layer.get_binding_properties().required_descriptor_count if fixed else 3
    cpu = stage.heap.get_cpu_descriptor_handle_for_heap_start()
    gpu = stage.heap.get_gpu_descriptor_handle_for_heap_start()
    stage.dml.create_binding_table(dml.BindingTableDesc(layer, cpu, gpu, count))
