"""DXCore: the factory, lists and adapters."""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

from ... import d3d12
from ...d3d12.c_memory import pack, read_array, read_bytes, write
from ...errors import HResult
from .objects import Interface, guid, hand_out, invalid, write_pointer
from .values import write_numbers

__all__ = ["AdapterFactory", "AdapterList"]

D3D11_GRAPHICS = UUID("8c47866b-7583-450d-f0f0-6bada895af4b")
D3D12_GRAPHICS = UUID("0c9ece4d-2f6e-4f01-8c96-e89e331b47b1")
D3D12_CORE_COMPUTE = UUID("248e2800-a793-4724-abaa-23a6de1be090")
D3D12_GENERIC_ML = UUID("b71b0d41-1088-422f-a27c-0250b7d3a988")
ATTRIBUTES = {D3D12_GRAPHICS, D3D12_CORE_COMPUTE, D3D12_GENERIC_ML}

MEMORY_BUDGET = 1  # DXCoreAdapterState::AdapterMemoryBudget
PREFERENCES = 3


class AdapterFactory:
    """The one factory of the process."""

    def __str__(self) -> str:
        return "the adapter factory"

    def release(self) -> None:
        """Nothing: there is one for as long as the process lives."""


class AdapterList:
    """The adapters that have all of some attributes."""

    def __init__(self, attributes: list[UUID]) -> None:
        self.adapters = d3d12.create_adapter_list() if ATTRIBUTES.issuperset(attributes) else []

    def __str__(self) -> str:
        return "an adapter list"

    def release(self) -> None:
        self.adapters = []

    discard = release


factory = AdapterFactory()


class IDXCoreAdapterFactory(Interface, of=AdapterFactory):
    def CreateAdapterList(self, count: int, attributes: int, riid: int, out: int) -> HResult:
        operation = "CreateAdapterList"
        if not out or not count:
            raise invalid("numAttributes", count, "1 or more, with an address for the list", operation)
        write_pointer(out, 0)
        rows = read_array("QQ", attributes, count, "filterAttributes", operation)
        return hand_out(AdapterList([UUID(bytes_le=struct.pack("@QQ", *row)) for row in rows]), riid, out)

    def GetAdapterByLuid(self, luid: int, riid: int, out: int) -> HResult:
        if not out or not luid:
            raise invalid("adapterLUID", None, "the address of a LUID", "GetAdapterByLuid")
        write_pointer(out, 0)
        for adapter in d3d12.create_adapter_list():
            if pack(adapter.instance_luid) == read_bytes(luid, 8):
                return hand_out(adapter, riid, out)
        return HResult.E_INVALIDARG

    def IsNotificationTypeSupported(self, type: int) -> bool:
        return False


class IDXCoreAdapterList(Interface, of=AdapterList):
    def GetAdapter(self, index: int, riid: int, out: int) -> HResult:
        adapters = self.thing.adapters
        if not out or index >= len(adapters):
            raise invalid("index", index, f"below {len(adapters)}", "GetAdapter")
        write_pointer(out, 0)
        return hand_out(adapters[index], riid, out)

    def GetAdapterCount(self) -> int:
        return len(self.thing.adapters)

    def IsStale(self) -> bool:
        return False

    def GetFactory(self, riid: int, out: int) -> HResult:
        return _factory(riid, out)

    def Sort(self, count: int, preferences: int) -> None:
        rows = read_array("I", preferences, count, "preferences", "Sort")
        for i, preference in enumerate(rows):
            if preference >= PREFERENCES:
                raise invalid(f"preferences[{i}]", preference, "a DXCoreAdapterPreference", "Sort")

    def IsAdapterPreferenceSupported(self, preference: int) -> bool:
        return preference < PREFERENCES


# The bytes of each property that is supported.
_PROPERTIES: dict[int, Callable[[d3d12.Adapter], bytes]] = {
    0: lambda adapter: pack(adapter.instance_luid),
    1: lambda adapter: struct.pack("<Q", adapter.driver_version),
    2: lambda adapter: adapter.driver_description.encode() + b"\0",
    3: lambda adapter: pack(adapter.hardware_id),
    7: lambda adapter: struct.pack("<Q", adapter.dedicated_adapter_memory),
    8: lambda adapter: struct.pack("<Q", adapter.dedicated_system_memory),
    9: lambda adapter: struct.pack("<Q", adapter.shared_system_memory),
    10: lambda adapter: b"\0",
    11: lambda adapter: bytes([adapter.is_hardware]),
    12: lambda adapter: bytes([adapter.is_integrated]),
    13: lambda adapter: bytes([adapter.is_detachable]),
    14: lambda adapter: struct.pack(
        "<5I", adapter.hardware_id.vendor_id, adapter.hardware_id.device_id, 0, 0, 0
    ),
    15: lambda adapter: struct.pack("<I", 1),
}


class IDXCoreAdapter(Interface, of=d3d12.Adapter):
    thing: d3d12.Adapter

    def release(self) -> None:
        """Nothing: adapters are there for as long as the process lives."""

    def IsValid(self) -> bool:
        return self.thing.is_valid()

    def IsAttributeSupported(self, attribute: int) -> bool:
        return guid(attribute, "IsAttributeSupported") in ATTRIBUTES

    def IsPropertySupported(self, number: int) -> bool:
        return number in _PROPERTIES

    def _property(self, number: int, operation: str) -> bytes:
        if number not in _PROPERTIES:
            raise invalid("property", number, "a DXCoreAdapterProperty that is supported", operation)
        return _PROPERTIES[number](self.thing)

    def GetProperty(self, number: int, size: int, data: int) -> None:
        value = self._property(number, "GetProperty")
        if size < len(value) or not data:
            raise invalid("bufferSize", size, f"{len(value)} or more", "GetProperty")
        write(data, value)

    def GetPropertySize(self, number: int, size: int) -> None:
        value = self._property(number, "GetPropertySize")
        if not size:
            raise invalid("bufferSize", None, "the address of a size", "GetPropertySize")
        write_numbers(size, "Q", len(value))

    def IsQueryStateSupported(self, state: int) -> bool:
        return state == MEMORY_BUDGET

    def QueryState(self, state: int, size: int, details: int, out_size: int, out: int) -> None:
        operation = "QueryState"
        if state != MEMORY_BUDGET:
            raise invalid("state", state, "AdapterMemoryBudget", operation)
        if size != 8 or out_size != 32 or not details or not out:
            raise invalid("inputStateDetailsSize", size, "8, with 32 of output", operation)
        node, group = struct.unpack("<II", read_bytes(details, 8))
        if node != 0 or group > 1:
            raise invalid("inputStateDetails", f"{node}, {group}", "node 0, Local or NonLocal", operation)
        write(out, pack(self.thing.query_memory_budget(d3d12.SegmentGroup(group))))

    def IsSetStateSupported(self, state: int) -> bool:
        return False

    def GetFactory(self, riid: int, out: int) -> HResult:
        return _factory(riid, out)


def _factory(riid: int, out: int) -> HResult:
    if not out:
        return HResult.E_POINTER
    write_pointer(out, 0)
    return hand_out(factory, riid, out)
