"""Methods of the C ABI about root signatures that Debian's headers lack; programs call the others."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from uuid import UUID

import pytest

from dmlemu import Error, HResult, d3d12
from dmlemu.d3d12.core.c_memory import pack, read_bytes
from dmlemu.frontends.capi import objects
from dmlemu.frontends.capi._capi import ffi, lib
from dmlemu.frontends.capi.root_signatures import Blob

from .com import Client, Com, attach

IID_CONFIGURATION = "78dbf87b-f766-422b-a61c-c8c446bdb9ad"
CONSTANTS = d3d12.RootParameter1.constants(4, 2)


@pytest.fixture
def client() -> Iterator[Client]:
    attach()
    client = Client()
    yield client
    client.end()


def configuration(client: Client) -> Com:
    device = d3d12.create_device(d3d12.Adapter())
    iid, out = ffi.new("char[16]", UUID(IID_CONFIGURATION).bytes_le), ffi.new("uintptr_t *")
    whole = objects.interface_of(device)
    lib.capi_hold(whole.address, lib.CAPI_OF_CLIENT)
    client.pointers.append(whole.address)
    assert objects.hand_out(device, int(ffi.cast("uintptr_t", iid)), int(ffi.cast("uintptr_t", out))) == 0
    return client.found(out[0])


def versioned(address: int, register: int = 2) -> bytes:
    """A D3D12_VERSIONED_ROOT_SIGNATURE_DESC of :data:`CONSTANTS`, whose parameter lies at the address."""
    constants = pack(d3d12.RootConstants(register, 0, 4))
    ffi.buffer(ffi.cast("char *", address), 32)[:] = struct.pack("@I4x16sI4x", 1, constants, 0)
    return struct.pack("@I4xIQIQI4x", 2, 1, address, 0, 0, 0)


def address_of(memory: object) -> int:
    return int(ffi.cast("uintptr_t", memory))


def test_a_device_configuration_serializes_and_reads(client: Client) -> None:
    configured = configuration(client)
    parameter, out, error = ffi.new("uint64_t[4]"), ffi.new("uintptr_t *"), ffi.new("uintptr_t *", 0x1234)
    desc = ffi.new("char[]", versioned(address_of(parameter)))
    places = address_of(out), address_of(error)
    configured.serialize_versioned_root_signature(address_of(desc), *places)
    expected = d3d12.VersionedRootSignatureDesc(
        d3d12.RootSignatureVersion.VERSION_1_1, d3d12.RootSignatureDesc1((CONSTANTS,))
    )
    blob = client.found(out[0])
    data = d3d12.serialize_versioned_root_signature(expected)
    found, size = blob.get_buffer_pointer(), blob.get_buffer_size()
    assert read_bytes(found, size) == data and error[0] == 0

    read = configured.create_versioned_root_signature_deserializer(found, size)
    at = read.get_unconverted_root_signature_desc()
    version, count, parameters = struct.unpack("@I4xIQ", read_bytes(at, 24))
    assert (version, count, read_bytes(parameters, 32)) == (2, 1, bytes(ffi.buffer(parameter)))


def test_a_device_configuration_refuses_with_a_text(client: Client) -> None:
    configured = configuration(client)
    out, error = ffi.new("uintptr_t *", 0x1234), ffi.new("uintptr_t *")
    function = objects.find(configured.address)
    with pytest.raises(Error) as refused:
        function.SerializeVersionedRootSignature(0, address_of(out), address_of(error))  # type: ignore[attr-defined]
    assert refused.value.hresult is HResult.E_INVALIDARG and refused.value.report.field == "pDesc"
    text = client.found(error[0])
    data = read_bytes(text.get_buffer_pointer(), text.get_buffer_size())
    assert data.startswith(b"pDesc is NULL.\n") and data.endswith(b"\0") and out[0] == 0


def test_the_bytes_of_a_blob_are_the_programs() -> None:
    blob = Blob(b"abc")
    ffi.buffer(blob.memory)[1:2] = b"X"
    assert read_bytes(address_of(blob.memory), 3) == b"aXc" and str(blob) == "blob of 3 bytes"
