"""Descriptors are copied to the slots of a recorded dispatch before its list is executed."""

from dmlemu import d3d12, dml
from dmlemu.testing.stage import Stage, descriptor_heap, raw_view, slot

CHECK = "DESC_OVERWRITTEN"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.copy_operator("copy")
    image, other, output = (
        stage.filled("image"),
        stage.filled("other"),
        stage.buffer("output"),
    )
    staging = descriptor_heap(stage, 3, visible=False)
    cpu = staging.get_cpu_descriptor_handle_for_heap_start()
    kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
    step = stage.device.get_descriptor_handle_increment_size(kind)
    gpu = stage.heap.get_gpu_descriptor_handle_for_heap_start()
    table = stage.dml.create_binding_table(dml.BindingTableDesc(copy, cpu, gpu, 2))
    table.bind_inputs([dml.BufferBinding(image)])
    table.bind_outputs([dml.BufferBinding(output)])
    stage.device.copy_descriptors_simple(2, slot(stage, 0), cpu, kind)
    stage.recorder.record_dispatch(stage.list, copy, table)
    stage.device.create_unordered_access_view(other, None, raw_view(64), cpu + 2 * step)
    stage.device.copy_descriptors_simple(
        1, slot(stage, 2 if fixed else 0), cpu + 2 * step, kind
    )
    stage.run()
