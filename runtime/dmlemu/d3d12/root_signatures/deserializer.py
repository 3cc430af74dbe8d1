"""The functions of d3d12.h that write root signatures as bytes and read them."""

from __future__ import annotations

from typing import Any

from ...diagnostics.unsupported import not_implemented
from ..types.arguments import buffer, instance, integer
from ..types.enums import RootSignatureFlags, RootSignatureVersion
from ..types.root_signature import RootSignatureDesc, RootSignatureDesc1, VersionedRootSignatureDesc
from .conversion import as_version_1_0, as_version_1_1
from .rows import RG7
from .serialized import read_bytes, written_bytes
from .validation import validate

__all__ = [
    "RootSignatureDeserializer",
    "VersionedRootSignatureDeserializer",
    "create_root_signature_deserializer",
    "create_versioned_root_signature_deserializer",
    "read_root_signature",
    "serialize_root_signature",
    "serialize_versioned_root_signature",
]

_1_0, _1_1 = RootSignatureVersion.VERSION_1_0, RootSignatureVersion.VERSION_1_1


def serialize_root_signature(desc: RootSignatureDesc, version: RootSignatureVersion = _1_0) -> bytes:
    """The bytes of a root signature of version 1.0, for ``create_root_signature``.

    Mirrors ``D3D12SerializeRootSignature`` (nf-d3d12-d3d12serializerootsignature); what is its error blob is
    the message of the :class:`dmlemu.Error` (E_INVALIDARG).
    """
    operation = "D3D12SerializeRootSignature"
    instance(desc, RootSignatureDesc, "desc")
    number = integer(version, "version")
    if number != _1_0:
        hint = "Version 1.1 is serialized by D3D12SerializeVersionedRootSignature." if number == _1_1 else ""
        raise RG7.version(
            field="Version", given=_spelled(number), expected="VERSION_1_0", hint=hint, operation=operation
        )
    validate(as_version_1_1(desc), "pRootSignature", operation)
    return written_bytes(desc)


def serialize_versioned_root_signature(desc: VersionedRootSignatureDesc) -> bytes:
    """The bytes of a root signature of version 1.0 or 1.1, for ``create_root_signature``.

    Mirrors ``D3D12SerializeVersionedRootSignature`` (nf-d3d12-d3d12serializeversionedrootsignature), as
    :func:`serialize_root_signature` does.
    """
    operation = "D3D12SerializeVersionedRootSignature"
    instance(desc, VersionedRootSignatureDesc, "desc")
    member = {_1_0: "Desc_1_0", _1_1: "Desc_1_1"}.get(_known_version(desc.version, operation, "Version"))
    validate(as_version_1_1(desc.desc), f"pRootSignature.{member}", operation)
    return written_bytes(desc.desc)


def _known_version(version: Any, operation: str, field: str) -> RootSignatureVersion:
    number = integer(version, field)
    if number == RootSignatureVersion.VERSION_1_2:
        raise not_implemented(operation, "Version 1.2 of root signatures", "Use version 1.1.")
    if number not in (_1_0, _1_1):
        raise RG7.version(
            field=field, given=number, expected="VERSION_1_0 or VERSION_1_1", operation=operation
        )
    return RootSignatureVersion(number)


def _spelled(version: int) -> object:
    """A version for a message: C programs give numbers."""
    return RootSignatureVersion(version) if version in list(RootSignatureVersion) else version


class RootSignatureDeserializer:
    """Mirrors ``ID3D12RootSignatureDeserializer``; made by :func:`create_root_signature_deserializer`."""

    def __init__(self, desc: RootSignatureDesc) -> None:
        self._desc = desc

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._desc.parameters)} parameters>"

    def get_root_signature_desc(self) -> RootSignatureDesc:
        """The root signature as version 1.0, without the flags that one of 1.1 has.

        Mirrors ``ID3D12RootSignatureDeserializer::GetRootSignatureDesc``.
        """
        return self._desc


class VersionedRootSignatureDeserializer:
    """Mirrors ``ID3D12VersionedRootSignatureDeserializer``; made by
    :func:`create_versioned_root_signature_deserializer`."""

    def __init__(self, desc: RootSignatureDesc | RootSignatureDesc1) -> None:
        version = _1_0 if isinstance(desc, RootSignatureDesc) else _1_1
        self._unconverted = VersionedRootSignatureDesc(version, desc)
        self._count = len(desc.parameters)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._count} parameters>"

    def get_root_signature_desc_at_version(
        self, convert_to_version: RootSignatureVersion
    ) -> VersionedRootSignatureDesc:
        """The root signature as one of the version.

        To 1.1: what 1.0 leaves open is volatile, descriptors and data.  To 1.0: the flags are dropped.
        Mirrors ``ID3D12VersionedRootSignatureDeserializer::GetRootSignatureDescAtVersion``.
        """
        operation = "GetRootSignatureDescAtVersion"
        version = _known_version(convert_to_version, operation, "convertToVersion")
        if version == self._unconverted.version:
            return self._unconverted
        convert: Any = as_version_1_0 if version == _1_0 else as_version_1_1
        return VersionedRootSignatureDesc(version, convert(self._unconverted.desc))

    def get_unconverted_root_signature_desc(self) -> VersionedRootSignatureDesc:
        """The root signature as it was serialized.

        Mirrors ``ID3D12VersionedRootSignatureDeserializer::GetUnconvertedRootSignatureDesc``.
        """
        return self._unconverted


def create_root_signature_deserializer(src_data: Any) -> RootSignatureDeserializer:
    """Reads a root signature, of whose version 1.0 is shown.

    ``src_data``: the bytes of a serialized root signature, or of a compiled shader that has one.
    Mirrors ``D3D12CreateRootSignatureDeserializer`` (nf-d3d12-d3d12createrootsignaturedeserializer).
    """
    operation = "D3D12CreateRootSignatureDeserializer"
    found = _read(buffer(src_data, "src_data"), operation, "pSrcData")
    return RootSignatureDeserializer(as_version_1_0(found))


def create_versioned_root_signature_deserializer(src_data: Any) -> VersionedRootSignatureDeserializer:
    """Reads a root signature, of whose version any is shown.

    ``src_data``: the bytes of a serialized root signature, or of a compiled shader that has one.
    Mirrors ``D3D12CreateVersionedRootSignatureDeserializer``
    (nf-d3d12-d3d12createversionedrootsignaturedeserializer).
    """
    operation = "D3D12CreateVersionedRootSignatureDeserializer"
    return VersionedRootSignatureDeserializer(_read(buffer(src_data, "src_data"), operation, "pSrcData"))


def read_root_signature(data: bytes, operation: str = "CreateRootSignature") -> RootSignatureDesc1:
    """The root signature that CreateRootSignature makes of the bytes: valid, as version 1.1, and one that is
    emulated."""
    desc = as_version_1_1(_read(data, operation, "pBlobWithRootSignature"))
    if desc.static_samplers:
        hint = "There are no textures: leave the sampler out, and load elements of buffers."
        raise not_implemented(operation, "A root signature with a static sampler", hint)
    if desc.flags & RootSignatureFlags.LOCAL_ROOT_SIGNATURE:
        hint = "It is for shaders of raytracing: leave the flag out."
        raise not_implemented(operation, "A root signature with LOCAL_ROOT_SIGNATURE", hint)
    return desc


def _read(data: bytes, operation: str, field: str) -> RootSignatureDesc | RootSignatureDesc1:
    found = read_bytes(data, field, operation)
    validate(as_version_1_1(found), field, operation)
    return found
