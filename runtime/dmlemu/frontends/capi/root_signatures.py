"""Root signatures in the memory of C programs: descs, blobs and deserializers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from ... import d3d12
from ...d3d12 import (
    DescriptorRange,
    DescriptorRange1,
    RootConstants,
    RootDescriptor,
    RootDescriptor1,
    RootParameterType,
    RootSignatureDesc,
    RootSignatureDesc1,
    RootSignatureVersion,
    StaticSamplerDesc,
    VersionedRootSignatureDesc,
)
from ...d3d12.core.c_memory import c_size, pack, read_array, read_blob, read_bytes, unpack
from ...errors import Error, HResult
from ...frozen import Frozen
from ._capi import ffi
from .objects import Interface, hand_out, invalid, write_pointer

__all__ = [
    "ID3D10Blob",
    "ID3D12RootSignatureDeserializer",
    "ID3D12VersionedRootSignatureDeserializer",
    "create_deserializer",
    "create_versioned_deserializer",
    "hand_out_blob",
    "serialize",
    "serialize_versioned",
]

_IID_BLOB = ffi.new("char[16]", UUID("8ba5fb08-5195-40e2-ac58-0d989c3a0102").bytes_le)

# What differs between versions 1.0 and 1.1.
_Kinds = tuple[type[Frozen], type[Frozen], Any, Any, Any]
_KINDS: dict[int, _Kinds] = {
    RootSignatureVersion.VERSION_1_0: (
        DescriptorRange,
        RootDescriptor,
        d3d12.RootDescriptorTable,
        d3d12.RootParameter,
        RootSignatureDesc,
    ),
    RootSignatureVersion.VERSION_1_1: (
        DescriptorRange1,
        RootDescriptor1,
        d3d12.RootDescriptorTable1,
        d3d12.RootParameter1,
        RootSignatureDesc1,
    ),
}
# Structs with pointers and unions; both versions have the same.
_DESC = struct.Struct("@IQIQI0Q")  # parameters and their address, static samplers and theirs, flags
_PARAMETER = struct.Struct("@I4x16sI0Q")  # type, union, visibility
_TABLE = struct.Struct("@IQ")
_VERSIONED = struct.Struct(f"@I4x{_DESC.size}s")


# --- blobs ---


class Blob:
    """Bytes that a program may change, as it may those of Windows."""

    kind = "blob"

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self.memory = ffi.new("char[]", data)

    def __str__(self) -> str:
        return f"blob of {self.size} bytes"

    def release(self) -> None:
        """Nothing is left to do: its memory is that of this object."""


class ID3D10Blob(Interface, of=Blob):
    """ID3DBlob."""

    thing: Blob

    def GetBufferPointer(self) -> int:
        return int(ffi.cast("uintptr_t", self.thing.memory))

    def GetBufferSize(self) -> int:
        return self.thing.size


def hand_out_blob(data: bytes, out: int) -> None:
    """Writes an ID3DBlob with a copy of the bytes."""
    hand_out(Blob(data), int(ffi.cast("uintptr_t", _IID_BLOB)), out)


# --- writing root signatures ---


def serialize(desc: int, version: Any, blob: int, error: int) -> None:
    """D3D12SerializeRootSignature."""
    operation = "D3D12SerializeRootSignature"

    def make() -> bytes:
        _wanted(desc, "pRootSignature", "the address of a D3D12_ROOT_SIGNATURE_DESC", operation)
        found = _read_desc(desc, RootSignatureVersion.VERSION_1_0, "pRootSignature", operation)
        return d3d12.serialize_root_signature(found, version)

    _serialize(make, (blob, "ppBlob"), error, operation)


def serialize_versioned(
    desc: int,
    blob: int,
    error: int,
    operation: str = "D3D12SerializeVersionedRootSignature",
    field: str = "pRootSignature",
    out: str = "ppBlob",
) -> None:
    """D3D12SerializeVersionedRootSignature, and the method of ID3D12DeviceConfiguration with other names."""

    def make() -> bytes:
        _wanted(desc, field, "the address of a D3D12_VERSIONED_ROOT_SIGNATURE_DESC", operation)
        version = int.from_bytes(read_bytes(desc, 4), "little")
        found = RootSignatureDesc1()  # of an unknown version, which is refused
        if version in _KINDS:
            member = f"{field}.Desc_1_{version - 1}"
            found = _read_desc(desc + 8, version, member, operation)
        versioned = VersionedRootSignatureDesc(version, found)  # type: ignore[arg-type]
        return d3d12.serialize_versioned_root_signature(versioned)

    _serialize(make, (blob, out), error, operation)


def _serialize(make: Callable[[], bytes], blob: tuple[int, str], error: int, operation: str) -> None:
    """Hands out a blob with the bytes, or one with the text of the error, which is raised."""
    out, field = blob
    for each in filter(None, (out, error)):
        write_pointer(each, 0)
    try:
        _wanted(out, field, "the address of a pointer", operation)
        hand_out_blob(make(), out)
    except Error as refused:
        if error:
            hand_out_blob(_text(refused).encode() + b"\0", error)
        raise


def _wanted(pointer: int, field: str, what: str, operation: str) -> None:
    if not pointer:
        raise invalid(field, None, what, operation)


def _text(error: Error) -> str:
    """What programs print: the sentence, then the field."""
    report = error.report
    lines = [report.message]
    if report.field:
        expected = f", expected {report.expected}" if report.expected else ""
        lines.append(f"{report.field}: given {report.given}{expected}")
    return "".join(f"{line}\n" for line in [*lines, *filter(None, [report.hint])])


def _read_desc(address: int, version: int, field: str, operation: str) -> Any:
    """The D3D12_ROOT_SIGNATURE_DESC or D3D12_ROOT_SIGNATURE_DESC1 at an address."""
    count, parameters, sampler_count, samplers, flags = _DESC.unpack(read_bytes(address, _DESC.size))
    rows = read_array(_PARAMETER.format, parameters, count, f"{field}.pParameters", operation)
    made = [_parameter(row, version, f"{field}.pParameters[{i}]", operation) for i, row in enumerate(rows)]
    name = f"{field}.pStaticSamplers"
    found = read_array(StaticSamplerDesc, samplers, sampler_count, name, operation)
    return _KINDS[version][4](tuple(made), tuple(found), flags)


def _parameter(row: tuple[int, bytes, int], version: int, field: str, operation: str) -> Any:
    kind, union, visibility = row
    range_, descriptor, table, parameter, _ = _KINDS[version]
    member: Any
    if kind == RootParameterType.DESCRIPTOR_TABLE:
        count, ranges = _TABLE.unpack(union)
        name = f"{field}.DescriptorTable.pDescriptorRanges"
        member = table(tuple(read_array(range_, ranges, count, name, operation)))
    elif kind == RootParameterType.TYPE_32BIT_CONSTANTS:
        member = unpack(RootConstants, union[: c_size(RootConstants)])
    else:  # also of an unknown type, which is refused
        member = unpack(descriptor, union[: c_size(descriptor)])
    return parameter(kind, member, visibility)


# --- reading root signatures ---


class _Memory:
    """Structs of C, which live as long as this object."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def put(self, data: bytes) -> int:
        """The address of a copy of the bytes, aligned as any struct; 0 for none."""
        if not data:
            return 0
        block = ffi.new("uint64_t[]", -(-len(data) // 8))
        ffi.buffer(block)[: len(data)] = data
        self._kept.append(block)
        return int(ffi.cast("uintptr_t", block))

    def array(self, items: tuple[Frozen, ...]) -> int:
        return self.put(b"".join(map(pack, items)))

    def desc(self, desc: RootSignatureDesc | RootSignatureDesc1) -> bytes:
        """The bytes of the struct, what it points to being put here."""
        rows = []
        for each in desc.parameters:
            if isinstance(each.parameter, d3d12.RootDescriptorTable | d3d12.RootDescriptorTable1):
                ranges = each.parameter.descriptor_ranges
                union = _TABLE.pack(len(ranges), self.array(ranges))
            else:
                union = pack(each.parameter)
            rows.append(_PARAMETER.pack(each.parameter_type, union, each.shader_visibility))
        samplers = desc.static_samplers
        return _DESC.pack(
            len(rows), self.put(b"".join(rows)), len(samplers), self.array(samplers), desc.flags
        )

    def versioned(self, desc: VersionedRootSignatureDesc) -> int:
        return self.put(_VERSIONED.pack(desc.version, self.desc(desc.desc)))


class _Deserializer(Interface):
    """The descs that it has handed out are kept with it."""

    def __init__(self, thing: Any, owner: Interface | None = None) -> None:
        super().__init__(thing, owner)
        self._memory = _Memory()
        self._addresses: dict[int, int] = {}  # of what was asked for, by version

    def release(self) -> None:
        """Nothing is left to do."""

    def _kept(self, version: int, make: Callable[[], int]) -> int:
        if version not in self._addresses:
            self._addresses[version] = make()
        return self._addresses[version]


class ID3D12RootSignatureDeserializer(_Deserializer, of=d3d12.RootSignatureDeserializer):
    thing: d3d12.RootSignatureDeserializer

    def GetRootSignatureDesc(self) -> int:
        found, memory = self.thing.get_root_signature_desc(), self._memory
        return self._kept(1, lambda: memory.put(memory.desc(found)))


class ID3D12VersionedRootSignatureDeserializer(_Deserializer, of=d3d12.VersionedRootSignatureDeserializer):
    thing: d3d12.VersionedRootSignatureDeserializer

    def GetRootSignatureDescAtVersion(self, version: Any, out: int) -> None:
        operation = "GetRootSignatureDescAtVersion"
        _wanted(out, "ppDesc", "the address of a pointer", operation)
        write_pointer(out, 0)
        found = self.thing.get_root_signature_desc_at_version(version)
        write_pointer(out, self._kept(found.version, lambda: self._memory.versioned(found)))

    def GetUnconvertedRootSignatureDesc(self) -> int:
        found = self.thing.get_unconverted_root_signature_desc()
        return self._kept(found.version, lambda: self._memory.versioned(found))


def create_deserializer(data: int, size: int, riid: int, out: int) -> HResult:
    """D3D12CreateRootSignatureDeserializer."""
    blob = read_blob(data, size, "pSrcData", "D3D12CreateRootSignatureDeserializer")
    return _hand_out(d3d12.create_root_signature_deserializer(blob), riid, out)


def create_versioned_deserializer(data: int, size: int, riid: int, out: int) -> HResult:
    """D3D12CreateVersionedRootSignatureDeserializer."""
    blob = read_blob(data, size, "pSrcData", "D3D12CreateVersionedRootSignatureDeserializer")
    return _hand_out(d3d12.create_versioned_root_signature_deserializer(blob), riid, out)


def _hand_out(made: Any, riid: int, out: int) -> HResult:
    """Without ``out`` everything is checked and nothing kept."""
    return hand_out(made, riid, out) if out else HResult.S_FALSE
