"""A table binds into a heap of the CPU, and nobody copies the descriptors to where the GPU reads them."""

from dmlemu import d3d12, dml
from dmlemu.testing.stage import Stage, descriptor_heap, slot

CHECK = "DESC_NOT_COPIED"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.copy_operator("copy")
    staging = descriptor_heap(stage, 2, visible=False)
    staging.set_name("staging")
    cpu = staging.get_cpu_descriptor_handle_for_heap_start()
    gpu = stage.heap.get_gpu_descriptor_handle_for_heap_start()
    table = stage.dml.create_binding_table(dml.BindingTableDesc(copy, cpu, gpu, 2))
    table.bind_inputs([dml.BufferBinding(stage.filled("image"))])
    table.bind_outputs([dml.BufferBinding(stage.buffer("output"))])
    if fixed:
        kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
        stage.device.copy_descriptors_simple(2, slot(stage, 0), cpu, kind)
    stage.recorder.record_dispatch(stage.list, copy, table)
    stage.run()
