"""Two parameters of a root signature have one register."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "ROOT_SIGNATURE"


def run(stage: Stage, fixed: bool) -> None:
    images = d3d12.RootParameter1.shader_resource_view(0)
    weights = d3d12.RootParameter1.shader_resource_view(1 if fixed else 0)
    desc = d3d12.VersionedRootSignatureDesc(
        d3d12.RootSignatureVersion.VERSION_1_1,
        d3d12.RootSignatureDesc1((images, weights)),
    )
    d3d12.serialize_versioned_root_signature(desc)
