"""The structs of root signatures: plain data, with the fields of the C structs in their order.

Arrays are tuples, whose length is the C struct's count; any sequence can be given.  A union is one field,
and :class:`RootParameter` and :class:`RootParameter1` have a class method for each of its members, as
``CD3DX12_ROOT_PARAMETER`` and ``CD3DX12_ROOT_PARAMETER1`` have.
"""

from __future__ import annotations

from collections.abc import Sequence

from .arguments import Struct, instance, structs
from .c_types import FLOAT
from .enums import (
    ComparisonFunc,
    DescriptorRangeFlags,
    DescriptorRangeType,
    Filter,
    RootDescriptorFlags,
    RootParameterType,
    RootSignatureFlags,
    RootSignatureVersion,
    ShaderVisibility,
    StaticBorderColor,
    TextureAddressMode,
)

__all__ = [
    "DESCRIPTOR_RANGE_OFFSET_APPEND",
    "FLOAT32_MAX",
    "UNBOUNDED",
    "DescriptorRange",
    "DescriptorRange1",
    "RootConstants",
    "RootDescriptor",
    "RootDescriptor1",
    "RootDescriptorTable",
    "RootDescriptorTable1",
    "RootParameter",
    "RootParameter1",
    "RootSignatureDesc",
    "RootSignatureDesc1",
    "StaticSamplerDesc",
    "VersionedRootSignatureDesc",
]

DESCRIPTOR_RANGE_OFFSET_APPEND = 0xFFFF_FFFF
"""The range begins where the one before it in the table ends."""
UNBOUNDED = 0xFFFF_FFFF
"""``NumDescriptors`` of a range without an end (``UINT_MAX`` in C)."""
FLOAT32_MAX = (2 - 2**-23) * 2.0**127
"""``D3D12_FLOAT32_MAX``."""

_ALL = ShaderVisibility.ALL


class DescriptorRange(Struct):
    """``D3D12_DESCRIPTOR_RANGE``: registers, and the descriptors of the table that they stand for."""

    range_type: DescriptorRangeType
    num_descriptors: int
    base_shader_register: int
    register_space: int = 0
    offset_in_descriptors_from_table_start: int = DESCRIPTOR_RANGE_OFFSET_APPEND


class DescriptorRange1(Struct):
    """``D3D12_DESCRIPTOR_RANGE1``: as :class:`DescriptorRange`, with what does not change while it is set."""

    range_type: DescriptorRangeType
    num_descriptors: int
    base_shader_register: int
    register_space: int = 0
    flags: DescriptorRangeFlags = DescriptorRangeFlags.NONE
    offset_in_descriptors_from_table_start: int = DESCRIPTOR_RANGE_OFFSET_APPEND


class RootDescriptorTable(Struct):
    """``D3D12_ROOT_DESCRIPTOR_TABLE``: ranges of one part of a descriptor heap."""

    descriptor_ranges: tuple[DescriptorRange, ...] = ()

    def __post_init__(self) -> None:
        _set(self, "descriptor_ranges", DescriptorRange)


class RootDescriptorTable1(Struct):
    """``D3D12_ROOT_DESCRIPTOR_TABLE1``."""

    descriptor_ranges: tuple[DescriptorRange1, ...] = ()

    def __post_init__(self) -> None:
        _set(self, "descriptor_ranges", DescriptorRange1)


class RootConstants(Struct):
    """``D3D12_ROOT_CONSTANTS``: 32-bit values that the command list itself holds, as a constant buffer."""

    shader_register: int
    register_space: int
    num_32bit_values: int


class RootDescriptor(Struct):
    """``D3D12_ROOT_DESCRIPTOR``: a register whose argument is a GPU virtual address."""

    shader_register: int
    register_space: int = 0


class RootDescriptor1(Struct):
    """``D3D12_ROOT_DESCRIPTOR1``."""

    shader_register: int
    register_space: int = 0
    flags: RootDescriptorFlags = RootDescriptorFlags.NONE


class RootParameter(Struct):
    """``D3D12_ROOT_PARAMETER``; ``parameter`` is the member of the union that ``parameter_type`` names."""

    parameter_type: RootParameterType
    parameter: RootDescriptorTable | RootConstants | RootDescriptor
    shader_visibility: ShaderVisibility = _ALL

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_parameter(self, RootDescriptorTable, RootDescriptor)

    @classmethod
    def descriptor_table(
        cls, ranges: Sequence[DescriptorRange], visibility: ShaderVisibility = _ALL
    ) -> RootParameter:
        """Mirrors ``CD3DX12_ROOT_PARAMETER::InitAsDescriptorTable``; of :class:`DescriptorRange`."""
        return cls(RootParameterType.DESCRIPTOR_TABLE, RootDescriptorTable(tuple(ranges)), visibility)

    @classmethod
    def constants(
        cls, num_32bit_values: int, register: int, space: int = 0, visibility: ShaderVisibility = _ALL
    ) -> RootParameter:
        """Mirrors ``CD3DX12_ROOT_PARAMETER::InitAsConstants``."""
        values = RootConstants(register, space, num_32bit_values)
        return cls(RootParameterType.TYPE_32BIT_CONSTANTS, values, visibility)

    @classmethod
    def constant_buffer_view(
        cls, register: int, space: int = 0, visibility: ShaderVisibility = _ALL
    ) -> RootParameter:
        """Mirrors ``CD3DX12_ROOT_PARAMETER::InitAsConstantBufferView``."""
        return cls(RootParameterType.CBV, RootDescriptor(register, space), visibility)

    @classmethod
    def shader_resource_view(
        cls, register: int, space: int = 0, visibility: ShaderVisibility = _ALL
    ) -> RootParameter:
        """Mirrors ``CD3DX12_ROOT_PARAMETER::InitAsShaderResourceView``."""
        return cls(RootParameterType.SRV, RootDescriptor(register, space), visibility)

    @classmethod
    def unordered_access_view(
        cls, register: int, space: int = 0, visibility: ShaderVisibility = _ALL
    ) -> RootParameter:
        """Mirrors ``CD3DX12_ROOT_PARAMETER::InitAsUnorderedAccessView``."""
        return cls(RootParameterType.UAV, RootDescriptor(register, space), visibility)


class RootParameter1(Struct):
    """``D3D12_ROOT_PARAMETER1``; ``parameter`` is the member of the union that ``parameter_type`` names."""

    parameter_type: RootParameterType
    parameter: RootDescriptorTable1 | RootConstants | RootDescriptor1
    shader_visibility: ShaderVisibility = _ALL

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_parameter(self, RootDescriptorTable1, RootDescriptor1)

    @classmethod
    def descriptor_table(
        cls, ranges: Sequence[DescriptorRange1], visibility: ShaderVisibility = _ALL
    ) -> RootParameter1:
        """Mirrors ``CD3DX12_ROOT_PARAMETER1::InitAsDescriptorTable``; of :class:`DescriptorRange1`."""
        return cls(RootParameterType.DESCRIPTOR_TABLE, RootDescriptorTable1(tuple(ranges)), visibility)

    @classmethod
    def constants(
        cls, num_32bit_values: int, register: int, space: int = 0, visibility: ShaderVisibility = _ALL
    ) -> RootParameter1:
        """Mirrors ``CD3DX12_ROOT_PARAMETER1::InitAsConstants``."""
        values = RootConstants(register, space, num_32bit_values)
        return cls(RootParameterType.TYPE_32BIT_CONSTANTS, values, visibility)

    @classmethod
    def constant_buffer_view(
        cls,
        register: int,
        space: int = 0,
        flags: RootDescriptorFlags = RootDescriptorFlags.NONE,
        visibility: ShaderVisibility = _ALL,
    ) -> RootParameter1:
        """Mirrors ``CD3DX12_ROOT_PARAMETER1::InitAsConstantBufferView``."""
        return cls(RootParameterType.CBV, RootDescriptor1(register, space, flags), visibility)

    @classmethod
    def shader_resource_view(
        cls,
        register: int,
        space: int = 0,
        flags: RootDescriptorFlags = RootDescriptorFlags.NONE,
        visibility: ShaderVisibility = _ALL,
    ) -> RootParameter1:
        """Mirrors ``CD3DX12_ROOT_PARAMETER1::InitAsShaderResourceView``."""
        return cls(RootParameterType.SRV, RootDescriptor1(register, space, flags), visibility)

    @classmethod
    def unordered_access_view(
        cls,
        register: int,
        space: int = 0,
        flags: RootDescriptorFlags = RootDescriptorFlags.NONE,
        visibility: ShaderVisibility = _ALL,
    ) -> RootParameter1:
        """Mirrors ``CD3DX12_ROOT_PARAMETER1::InitAsUnorderedAccessView``."""
        return cls(RootParameterType.UAV, RootDescriptor1(register, space, flags), visibility)


class StaticSamplerDesc(Struct):
    """``D3D12_STATIC_SAMPLER_DESC``, with the defaults of ``CD3DX12_STATIC_SAMPLER_DESC``.

    Serialized and read; a root signature that has one cannot be created, as there are no textures.
    """

    filter: Filter = Filter.ANISOTROPIC
    address_u: TextureAddressMode = TextureAddressMode.WRAP
    address_v: TextureAddressMode = TextureAddressMode.WRAP
    address_w: TextureAddressMode = TextureAddressMode.WRAP
    mip_lod_bias: FLOAT = 0.0
    max_anisotropy: int = 16
    comparison_func: ComparisonFunc = ComparisonFunc.LESS_EQUAL
    border_color: StaticBorderColor = StaticBorderColor.OPAQUE_WHITE
    min_lod: FLOAT = 0.0
    max_lod: FLOAT = FLOAT32_MAX
    shader_register: int = 0
    register_space: int = 0
    shader_visibility: ShaderVisibility = _ALL


class RootSignatureDesc(Struct):
    """``D3D12_ROOT_SIGNATURE_DESC``: version 1.0, in which all descriptors and all data may change."""

    parameters: tuple[RootParameter, ...] = ()
    static_samplers: tuple[StaticSamplerDesc, ...] = ()
    flags: RootSignatureFlags = RootSignatureFlags.NONE

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "parameters", RootParameter)
        _set(self, "static_samplers", StaticSamplerDesc)


class RootSignatureDesc1(Struct):
    """``D3D12_ROOT_SIGNATURE_DESC1``: version 1.1."""

    parameters: tuple[RootParameter1, ...] = ()
    static_samplers: tuple[StaticSamplerDesc, ...] = ()
    flags: RootSignatureFlags = RootSignatureFlags.NONE

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "parameters", RootParameter1)
        _set(self, "static_samplers", StaticSamplerDesc)


class VersionedRootSignatureDesc(Struct):
    """``D3D12_VERSIONED_ROOT_SIGNATURE_DESC``; ``desc`` is the member of the union that ``version`` names."""

    version: RootSignatureVersion
    desc: RootSignatureDesc | RootSignatureDesc1

    def __post_init__(self) -> None:
        super().__post_init__()
        field = f"{type(self).__name__}.desc"
        if self.version == RootSignatureVersion.VERSION_1_0:
            instance(self.desc, RootSignatureDesc, field)
        elif self.version == RootSignatureVersion.VERSION_1_1:
            instance(self.desc, RootSignatureDesc1, field)


def _set(struct: Struct, name: str, kind: type[Struct]) -> None:
    """Makes the field a tuple; TypeError unless all its items are of the class."""
    items = structs(getattr(struct, name), kind, f"{type(struct).__name__}.{name}")
    object.__setattr__(struct, name, items)


def _check_parameter(
    struct: RootParameter | RootParameter1, table: type[Struct], descriptor: type[Struct]
) -> None:
    """TypeError unless ``parameter`` is the struct of its type; of an unknown type it may be any of them."""
    kinds = {RootParameterType.DESCRIPTOR_TABLE: table, RootParameterType.TYPE_32BIT_CONSTANTS: RootConstants}
    if struct.parameter_type in list(RootParameterType):
        kind = kinds.get(RootParameterType(struct.parameter_type), descriptor)
        instance(struct.parameter, kind, f"{type(struct).__name__}.parameter")
    elif not isinstance(struct.parameter, table | RootConstants | descriptor):
        instance(struct.parameter, table, f"{type(struct).__name__}.parameter")
