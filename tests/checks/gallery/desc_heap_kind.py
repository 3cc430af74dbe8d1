"""Descriptors are copied out of a shader-visible heap, which the CPU can only write."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, descriptor_heap, raw_view, slot

CHECK = "DESC_HEAP_KIND"


def run(stage: Stage, fixed: bool) -> None:
    source = descriptor_heap(stage, 1, visible=not fixed)
    source.set_name("source")
    start = source.get_cpu_descriptor_handle_for_heap_start()
    stage.device.create_unordered_access_view(
        stage.buffer("image"), None, raw_view(16), start
    )
    kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
    stage.device.copy_descriptors_simple(1, slot(stage, 0), start, kind)
