"""A copy of descriptors runs past the end of a heap."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, descriptor_heap, slot

CHECK = "DESC_INDEX"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap of 64")
    staging = descriptor_heap(stage, 4, visible=False)
    source = staging.get_cpu_descriptor_handle_for_heap_start()
    kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
    stage.device.copy_descriptors_simple(
        4, slot(stage, 60 if fixed else 62), source, kind
    )
