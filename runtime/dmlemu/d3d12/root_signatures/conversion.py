"""Root signatures of one version as those of the other.

Version 1.0 promises nothing of descriptors and data, which 1.1 says with the flags VOLATILE; 1.0 has no
flags, so that the way back drops them.
"""

from __future__ import annotations

from ..types.enums import DescriptorRangeFlags, DescriptorRangeType, RootDescriptorFlags
from ..types.root_signature import (
    DescriptorRange,
    DescriptorRange1,
    RootConstants,
    RootDescriptor,
    RootDescriptor1,
    RootDescriptorTable,
    RootDescriptorTable1,
    RootParameter,
    RootParameter1,
    RootSignatureDesc,
    RootSignatureDesc1,
)

__all__ = ["as_version_1_0", "as_version_1_1"]

_VOLATILE = DescriptorRangeFlags.DESCRIPTORS_VOLATILE


def as_version_1_1(desc: RootSignatureDesc | RootSignatureDesc1) -> RootSignatureDesc1:
    """The root signature with the flags that its version stands for."""
    if isinstance(desc, RootSignatureDesc1):
        return desc
    return RootSignatureDesc1(tuple(map(_parameter_1_1, desc.parameters)), desc.static_samplers, desc.flags)


def as_version_1_0(desc: RootSignatureDesc | RootSignatureDesc1) -> RootSignatureDesc:
    """The root signature without its promises."""
    if isinstance(desc, RootSignatureDesc):
        return desc
    return RootSignatureDesc(tuple(map(_parameter_1_0, desc.parameters)), desc.static_samplers, desc.flags)


def _parameter_1_1(given: RootParameter) -> RootParameter1:
    member: RootDescriptorTable1 | RootConstants | RootDescriptor1
    if isinstance(given.parameter, RootDescriptorTable):
        member = RootDescriptorTable1(tuple(map(_range_1_1, given.parameter.descriptor_ranges)))
    elif isinstance(given.parameter, RootDescriptor):
        old = given.parameter
        member = RootDescriptor1(old.shader_register, old.register_space, RootDescriptorFlags.DATA_VOLATILE)
    else:
        member = given.parameter
    return RootParameter1(given.parameter_type, member, given.shader_visibility)


def _range_1_1(given: DescriptorRange) -> DescriptorRange1:
    is_sampler = given.range_type == DescriptorRangeType.SAMPLER  # which has no data
    return DescriptorRange1(
        given.range_type,
        given.num_descriptors,
        given.base_shader_register,
        given.register_space,
        _VOLATILE if is_sampler else _VOLATILE | DescriptorRangeFlags.DATA_VOLATILE,
        given.offset_in_descriptors_from_table_start,
    )


def _parameter_1_0(given: RootParameter1) -> RootParameter:
    member: RootDescriptorTable | RootConstants | RootDescriptor
    if isinstance(given.parameter, RootDescriptorTable1):
        member = RootDescriptorTable(tuple(map(_range_1_0, given.parameter.descriptor_ranges)))
    elif isinstance(given.parameter, RootDescriptor1):
        member = RootDescriptor(given.parameter.shader_register, given.parameter.register_space)
    else:
        member = given.parameter
    return RootParameter(given.parameter_type, member, given.shader_visibility)


def _range_1_0(given: DescriptorRange1) -> DescriptorRange:
    return DescriptorRange(
        given.range_type,
        given.num_descriptors,
        given.base_shader_register,
        given.register_space,
        given.offset_in_descriptors_from_table_start,
    )
