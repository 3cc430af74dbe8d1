"""A buffer is cleared for sums, and the dispatch that writes to it may begin before."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, descriptor_heap, raw_view

CHECK = "HAZARD_WAW"


def run(stage: Stage, fixed: bool) -> None:
    add = stage.copy_operator("add")
    source, sums = stage.filled("source"), stage.buffer("sums")
    views = descriptor_heap(stage, 1, visible=False)
    cpu = views.get_cpu_descriptor_handle_for_heap_start()
    stage.device.create_unordered_access_view(sums, None, raw_view(64), cpu)
    step = stage.device.get_descriptor_handle_increment_size(
        d3d12.DescriptorHeapType.CBV_SRV_UAV
    )
    visible = stage.heap.get_cpu_descriptor_handle_for_heap_start() + 63 * step
    stage.device.copy_descriptors_simple(
        1, visible, cpu, d3d12.DescriptorHeapType.CBV_SRV_UAV
    )
    gpu = stage.heap.get_gpu_descriptor_handle_for_heap_start() + 63 * step
    stage.list.clear_unordered_access_view_uint(gpu, cpu, sums, [0, 0, 0, 0])
    if fixed:
        stage.barrier(sums)
    stage.dispatch(add, [source], [sums])
    stage.run()
