"""Root signatures of C++ programs: the bytes of the Python API, texts of errors, and both versions read."""

from __future__ import annotations

import pytest
from toolchain import DMLEMU, Built, needs_compiler, run

from dmlemu import d3d12
from dmlemu.d3d12 import (
    DescriptorRange,
    DescriptorRange1,
    DescriptorRangeFlags,
    DescriptorRangeType,
    Filter,
    RootDescriptorFlags,
    RootParameter,
    RootParameter1,
    RootSignatureDesc,
    RootSignatureDesc1,
    RootSignatureFlags,
    RootSignatureVersion,
    ShaderVisibility,
    StaticBorderColor,
    StaticSamplerDesc,
    TextureAddressMode,
    VersionedRootSignatureDesc,
)

pytestmark = needs_compiler

SRV, UAV = DescriptorRangeType.SRV, DescriptorRangeType.UAV


def version_1_0() -> bytes:
    """That of root_signatures.cpp."""
    border, mesh = TextureAddressMode.BORDER, ShaderVisibility.MESH
    sampler = StaticSamplerDesc(
        Filter.MIN_MAG_MIP_LINEAR,
        border,
        border,
        border,
        -1.5,
        0,
        d3d12.ComparisonFunc.NONE,
        StaticBorderColor.TRANSPARENT_BLACK,
        shader_register=7,
        shader_visibility=ShaderVisibility.PIXEL,
    )
    ranges = (DescriptorRange(SRV, 4, 3), DescriptorRange(UAV, d3d12.UNBOUNDED, 1, 2, 9))
    parameters = (
        RootParameter.descriptor_table(ranges),
        RootParameter.constants(3, 1, 2),
        RootParameter.constant_buffer_view(0, visibility=mesh),
        RootParameter.unordered_access_view(5, 6),
    )
    flags = RootSignatureFlags.DENY_PIXEL_SHADER_ROOT_ACCESS
    return d3d12.serialize_root_signature(RootSignatureDesc(parameters, (sampler,), flags))


def version_1_1() -> bytes:
    flags = DescriptorRangeFlags
    ranges = (
        DescriptorRange1(SRV, 4, 3, 0, flags.DATA_STATIC),
        DescriptorRange1(UAV, d3d12.UNBOUNDED, 1, 2, flags.DESCRIPTORS_VOLATILE, 9),
    )
    parameters = (
        RootParameter1.descriptor_table(ranges),
        RootParameter1.constants(3, 1, 2),
        RootParameter1.constant_buffer_view(0, visibility=ShaderVisibility.MESH),
        RootParameter1.unordered_access_view(5, 6, RootDescriptorFlags.DATA_STATIC),
    )
    desc = VersionedRootSignatureDesc(RootSignatureVersion.VERSION_1_1, RootSignatureDesc1(parameters))
    return d3d12.serialize_versioned_root_signature(desc)


PLAIN = """\
  type 0, visibility 0: [0 4 3 0 4294967295] [1 4294967295 1 2 9]
  type 1, visibility 0: 1 2 3
  type 2, visibility 7: 0 0
  type 4, visibility 0: 5 6
"""
READ = f"""\
at version 1.0: flags 0x20, 1 samplers
{PLAIN}  sampler s7 is whole
at version 1.1: flags 0x20, 1 samplers
  type 0, visibility 0: [0 4 3 0 4294967295 flags 0x3] [1 4294967295 1 2 9 flags 0x3]
  type 1, visibility 0: 1 2 3
  type 2, visibility 7: 0 0 flags 0x2
  type 4, visibility 0: 5 6 flags 0x2
  sampler s7 is whole
its own is not converted
version 0: 0x80070057 NULL
of the other deserializer: flags 0x20, 1 samplers
{PLAIN}  sampler s7 is whole
at version 1.0: flags 0x0, 0 samplers
{PLAIN}at version 1.1: flags 0x0, 0 samplers
  type 0, visibility 0: [0 4 3 0 4294967295 flags 0x8] [1 4294967295 1 2 9 flags 0x1]
  type 1, visibility 0: 1 2 3
  type 2, visibility 7: 0 0 flags 0x0
  type 4, visibility 0: 5 6 flags 0x8
its own is not converted
version 0: 0x80070057 NULL
of the other deserializer: flags 0x0, 0 samplers
{PLAIN}"""

REFUSED = """\
a register of two: 0x80070057 NULL
Root parameter 3 has b1 of space 2, and root parameter 1, which the same shaders see, has b1 of space 2.
pRootSignature.pParameters[3].Constants.ShaderRegister: given b1 of space 2, expected registers of one \
parameter only
(whole)
another version: 0x80070057 NULL
Version VERSION_1_1 of root signatures is not one that D3D12SerializeRootSignature takes.
Version: given VERSION_1_1, expected VERSION_1_0
Version 1.1 is serialized by D3D12SerializeVersionedRootSignature.
(whole)
no desc: 0x80070057 NULL
pRootSignature is NULL.
pRootSignature: given NULL, expected the address of a D3D12_ROOT_SIGNATURE_DESC
(whole)
no array: 0x80070057 NULL
pRootSignature.pParameters is NULL, and its count is 4.
pRootSignature.pParameters: given NULL, expected the address of 4 elements
(whole)
no place: 0x80070057
version 0: 0x80070057 Version 0 of root signatures is not one that D3D12SerializeVersionedRootSignature takes.
Version: given 0, expected VERSION_1_0 or VERSION_1_1
damaged: 0x80070057 NULL
another interface: 0x80004002 NULL
only checked: 0x00000001
"""


@pytest.mark.parametrize("strictness", ["runtime", "strict"])
def test_root_signatures_are_serialized_refused_and_read(built: Built, strictness: str) -> None:
    done = run(*DMLEMU, "exec", "--strictness", strictness, built("root_signatures"))
    bytes_of_both = f"1.0 {version_1_0().hex()}\n1.1 {version_1_1().hex()}\n"
    assert done.stdout == f"{bytes_of_both}{READ}{REFUSED}1 reference left\n", done.stderr
    assert "a bug of dmlemu" not in done.stderr
    assert ("ROOT_SIGNATURE [D3D12SerializeRootSignature]" in done.stderr) == (strictness == "strict")
