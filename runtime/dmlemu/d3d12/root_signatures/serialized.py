"""Root signatures as bytes: the part RTS0 of a container, as D3D12SerializeVersionedRootSignature writes it.

The layout is that of ``DxilContainerRootSignatureDesc`` and the structs beside it in DxilContainer.h of
microsoft/DirectXShaderCompiler: a header, the root parameters, what each of them points to, in their order,
and the static samplers.  All are DWORDs; offsets count bytes from the start of the part.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...diagnostics.unsupported import not_implemented
from ...errors import Error, number_of
from ...shaders.container import read_parts, write_container
from ...shaders.errors import ShaderError
from ..types.enums import RootParameterType, RootSignatureVersion
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
    StaticSamplerDesc,
)
from .rows import RG7, RG9

__all__ = ["read_bytes", "written_bytes"]

_PART = "RTS0"
_HEADER = struct.Struct("<6I")  # version, parameters and their offset, static samplers and theirs, flags
_PARAMETER = struct.Struct("<3I")  # type, visibility, offset
_TABLE = struct.Struct("<2I")  # ranges and their offset
_CONSTANTS = struct.Struct("<3I")
_SAMPLER = struct.Struct("<4IfIIIff3I")

_THE_HEADER = "those of the header"

_Member = RootDescriptorTable | RootDescriptorTable1 | RootConstants | RootDescriptor | RootDescriptor1


class _Kinds(NamedTuple):
    """The structs of a version, and how those lie in bytes that differ from version to version."""

    desc: Any
    parameter: Any
    table: Any
    range: Any
    range_layout: struct.Struct
    descriptor: Any
    descriptor_layout: struct.Struct


_KINDS = {
    RootSignatureVersion.VERSION_1_0: _Kinds(
        RootSignatureDesc,
        RootParameter,
        RootDescriptorTable,
        DescriptorRange,
        struct.Struct("<5I"),
        RootDescriptor,
        struct.Struct("<2I"),
    ),
    RootSignatureVersion.VERSION_1_1: _Kinds(
        RootSignatureDesc1,
        RootParameter1,
        RootDescriptorTable1,
        DescriptorRange1,
        struct.Struct("<6I"),
        RootDescriptor1,
        struct.Struct("<3I"),
    ),
}


# --- writing ---


def written_bytes(desc: RootSignatureDesc | RootSignatureDesc1) -> bytes:
    """The container of a root signature that :func:`.validation.validate` has accepted."""
    is_1_0 = isinstance(desc, RootSignatureDesc)
    version = RootSignatureVersion.VERSION_1_0 if is_1_0 else RootSignatureVersion.VERSION_1_1
    parameters, samplers = desc.parameters, desc.static_samplers
    at = _HEADER.size + _PARAMETER.size * len(parameters)
    rows, members = [], []
    for each in parameters:
        rows.append(_PARAMETER.pack(each.parameter_type, each.shader_visibility, at))
        members.append(_member_bytes(each.parameter, at))
        at += len(members[-1])
    header = _HEADER.pack(version, len(parameters), _HEADER.size, len(samplers), at, desc.flags)
    last = [_SAMPLER.pack(*_values(each)) for each in samplers]
    return write_container({_PART: b"".join([header, *rows, *members, *last])})


def _member_bytes(member: _Member, at: int) -> bytes:
    """What a parameter at byte ``at`` points to."""
    if isinstance(member, RootDescriptorTable | RootDescriptorTable1):
        ranges: tuple[Any, ...] = member.descriptor_ranges
        packed = [struct.pack(f"<{len(_values(each))}I", *_values(each)) for each in ranges]
        return b"".join([_TABLE.pack(len(ranges), at + _TABLE.size), *packed])
    values = _values(member)
    return struct.pack(f"<{len(values)}I", *values)


def _values(item: Any) -> tuple[Any, ...]:
    """The fields of a struct, which are in the order in which they are written."""
    return tuple(getattr(item, name) for name in item.__dataclass_fields__)


# --- reading ---


def read_bytes(data: bytes, field: str, operation: str) -> RootSignatureDesc | RootSignatureDesc1:
    """The root signature of a container, of a compiled shader or of its own.

    Nothing but the layout of the bytes is checked: see :func:`.validation.validate`.  ``field`` and
    ``operation``: the argument that the bytes are, and the call.
    """
    try:
        parts = read_parts(data)
    except ShaderError as error:
        raise _damaged(str(error), len(data), field, operation) from None
    if _PART not in parts:
        names = f"parts {', '.join(parts)}" if parts else "no part"
        raise RG9.not_found(field=field, given=names, operation=operation)
    part = _Part(parts[_PART], field, operation)
    version = part.unpack(_HEADER, 0, _THE_HEADER)[0]
    if version == RootSignatureVersion.VERSION_1_2:
        what = "Version 1.2 of root signatures"
        raise not_implemented(operation, what, "Compile with -force-rootsig-ver rootsig_1_1.")
    if version not in _KINDS:
        raise RG7.version(
            field=f"{field}.Version",
            given=version,
            expected="VERSION_1_0 or VERSION_1_1",
            operation=operation,
        )
    return part.root_signature(RootSignatureVersion(version))


def _damaged(what: str, size: int, field: str, operation: str) -> Error:
    return RG9.damaged(field=field, given=number_of(size, "byte"), operation=operation, what=what)


class _Part:
    """The bytes of a part RTS0.  Every offset and count is compared with what is there before it is used."""

    def __init__(self, data: bytes, field: str, operation: str) -> None:
        self._data, self._field, self._operation = data, field, operation
        self._left = len(data) + _HEADER.size  # the header is read twice
        """Bytes that arrays may still have: in bytes that were written, no two arrays share any."""

    def unpack(self, layout: struct.Struct, at: int, what: str) -> tuple[Any, ...]:
        return next(iter(self.array(layout, at, 1, what)))

    def array(self, layout: struct.Struct, at: int, count: int, what: str) -> Iterable[tuple[Any, ...]]:
        size = layout.size * count
        if at + size > len(self._data):
            raise self._wrong(f"{what} have {size} bytes at byte {at}, and the part has {len(self._data)}")
        self._left -= size
        if self._left < 0:
            raise self._wrong(f"{what} have bytes that are another's")
        return layout.iter_unpack(memoryview(self._data)[at : at + size])

    def _wrong(self, what: str) -> Error:
        return _damaged(what, len(self._data), self._field, self._operation)

    def root_signature(self, version: RootSignatureVersion) -> RootSignatureDesc | RootSignatureDesc1:
        """Everything, from the header on."""
        kinds = _KINDS[version]
        _, count, at, sampler_count, samplers_at, flags = self.unpack(_HEADER, 0, _THE_HEADER)
        parameters = [
            kinds.parameter(kind, self._member(kinds, kind, to), visibility)
            for kind, visibility, to in self.array(_PARAMETER, at, count, "parameters")
        ]
        samplers = self.array(_SAMPLER, samplers_at, sampler_count, "static samplers")
        made: RootSignatureDesc | RootSignatureDesc1 = kinds.desc(
            parameters, [StaticSamplerDesc(*each) for each in samplers], flags
        )
        return made

    def _member(self, kinds: _Kinds, kind: int, at: int) -> Any:
        """What a root parameter points to; that of an unknown type, which is no damage, is not read."""
        if kind == RootParameterType.DESCRIPTOR_TABLE:
            count, to = self.unpack(_TABLE, at, "those of a descriptor table")
            ranges = self.array(kinds.range_layout, to, count, "descriptor ranges")
            return kinds.table([kinds.range(*each) for each in ranges])
        if kind == RootParameterType.TYPE_32BIT_CONSTANTS:
            return RootConstants(*self.unpack(_CONSTANTS, at, "root constants"))
        if kind in list(RootParameterType):
            return kinds.descriptor(*self.unpack(kinds.descriptor_layout, at, "those of a root descriptor"))
        return kinds.table()
