"""The bytes of a root signature are cut before they are read."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "ROOT_SIGNATURE_BLOB"


def run(stage: Stage, fixed: bool) -> None:
    parameter = d3d12.RootParameter.constants(4, 0)
    data = d3d12.serialize_root_signature(d3d12.RootSignatureDesc((parameter,)))
    size = len(data) if fixed else 64
    d3d12.create_root_signature_deserializer(data[:size])
