"""CopyDescriptors into slots that a list on the GPU still needs."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, descriptor_heap, raw_view, slot

CHECK = "DESC_OVERWRITTEN"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    stage.fence.set_name("done")
    copy = stage.copy_operator("copy")
    image, other = stage.filled("image"), stage.filled("other")
    staging = descriptor_heap(stage, 1, visible=False)
    source = staging.get_cpu_descriptor_handle_for_heap_start()
    stage.device.create_unordered_access_view(other, None, raw_view(64), source)
    stage.dispatch(copy, [image], [stage.buffer("output")])  # descriptors 0 and 1
    stage.submit()
    if fixed:
        stage.wait()
    kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
    stage.device.copy_descriptors_simple(1, slot(stage, 0), source, kind)
