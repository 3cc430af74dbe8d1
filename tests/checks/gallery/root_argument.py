"""A table of a dispatch begins in another descriptor heap than the one that is set on the list."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, descriptor_heap

CHECK = "ROOT_ARGUMENT"


def run(stage: Stage, fixed: bool) -> None:
    views = d3d12.DescriptorRange1(d3d12.DescriptorRangeType.SRV, 1, 0)
    desc = d3d12.RootSignatureDesc1([d3d12.RootParameter1.descriptor_table([views])])
    blob = d3d12.serialize_versioned_root_signature(
        d3d12.VersionedRootSignatureDesc(d3d12.RootSignatureVersion.VERSION_1_1, desc)
    )
    signature = stage.device.create_root_signature(0, blob)
    frame, other = (descriptor_heap(stage, 8, visible=True) for _ in range(2))
    frame.set_name("frame")
    other.set_name("other")
    heap = frame if fixed else other
    stage.list.set_descriptor_heaps([frame])
    stage.list.set_compute_root_signature(signature)
    stage.list.set_compute_root_descriptor_table(
        0, heap.get_gpu_descriptor_handle_for_heap_start()
    )
    stage.run()
