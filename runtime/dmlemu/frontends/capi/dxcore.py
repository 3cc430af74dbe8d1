"""DXCore: the factory, lists and adapters."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container
from functools import partial
from uuid import UUID

from ... import d3d12
from ...d3d12.core.c_memory import pack, read_array, read_bytes, write
from ...d3d12.core.rows import API_SIZE
from ...diagnostics.unsupported import not_implemented
from ...dml.rows import OP_FIELD_RANGE
from ...errors import HResult
from .objects import Interface, guid, hand_out, invalid, refuses, write_pointer
from .values import write_numbers

__all__ = ["AdapterFactory", "AdapterList", "factory"]

D3D12_GRAPHICS = UUID("0c9ece4d-2f6e-4f01-8c96-e89e331b47b1")
D3D12_CORE_COMPUTE = UUID("248e2800-a793-4724-abaa-23a6de1be090")
D3D12_GENERIC_ML = UUID("b71b0d41-1088-422f-a27c-0250b7d3a988")
HARDWARE_TYPE_GPU = UUID("b69eb219-3ded-4464-979f-a00bd4687006")
ATTRIBUTES = {D3D12_GRAPHICS, D3D12_CORE_COMPUTE, D3D12_GENERIC_ML, HARDWARE_TYPE_GPU}

MEDIA, WORKLOADS = 2, 4  # DXCoreWorkload
D3D12, RUNTIMES = 2, 3  # DXCoreRuntimeFilterFlags
GPU, HARDWARE_TYPES = 1, 15  # DXCoreHardwareTypeFilterFlags
PREFERENCES = 3  # DXCoreAdapterPreference
PROPERTIES = 18  # DXCoreAdapterProperty
STATES = 11  # DXCoreAdapterState

_MOST_CLEARED = 4096  # bytes behind a value that are set to zero: a wrong size is not believed


_refused = partial(invalid, api="DXCore")


def _needs(address: int, field: str, operation: str) -> None:
    """E_POINTER for NULL."""
    if not address:
        raise _refused(field, None, "an address", operation, hresult=HResult.E_POINTER)


def _check_number(field: str, number: int, known: int, supported: Container[int], operation: str) -> None:
    """Of properties and states: DXGI_ERROR_INVALID_CALL if unknown, DXGI_ERROR_UNSUPPORTED if only known."""
    if number in supported:
        return
    unknown = HResult.DXGI_ERROR_INVALID_CALL
    code = HResult.DXGI_ERROR_UNSUPPORTED if number < known else unknown
    raise _refused(field, number, "one that the adapter supports", operation, hresult=code)


class AdapterFactory:
    """The one factory of the process."""

    def __str__(self) -> str:
        return "the adapter factory"

    def release(self) -> None:
        """Nothing: there is one for as long as the process lives."""


class AdapterList:
    """Adapters in the order of the last Sort."""

    def __init__(self, adapters: list[d3d12.Adapter]) -> None:
        self.adapters = adapters

    def __str__(self) -> str:
        return "an adapter list"

    def release(self) -> None:
        """Nothing: there is one for as long as the process lives."""


factory = AdapterFactory()
# With one adapter, two lists are all there are.
_all, _none = AdapterList(d3d12.create_adapter_list()), AdapterList([])


class IDXCoreAdapterFactory(Interface, of=AdapterFactory, name="IDXCoreAdapterFactory1"):
    def CreateAdapterList(self, count: int, attributes: int, riid: int, out: int) -> HResult:
        operation = "CreateAdapterList"
        _needs(out, "ppvAdapterList", operation)
        write_pointer(out, 0)
        if not count or not attributes:
            raise _refused("numAttributes", count, "1 or more, with their address", operation)
        rows = read_array(
            "QQ", attributes, count, "filterAttributes", operation, check=OP_FIELD_RANGE, api="DXCore"
        )
        wanted = [UUID(bytes_le=struct.pack("@QQ", *row)) for row in rows]
        return hand_out(_all if ATTRIBUTES.issuperset(wanted) else _none, riid, out)

    def CreateAdapterListByWorkload(
        self, workload: int, runtimes: int, types: int, riid: int, out: int
    ) -> HResult:
        operation = "CreateAdapterListByWorkload"
        _needs(out, "ppvAdapterList", operation)
        write_pointer(out, 0)
        if workload >= WORKLOADS:
            raise _refused("workload", workload, "a DXCoreWorkload", operation)
        for field, flags, known in (
            ("runtimeFilter", runtimes, RUNTIMES),
            ("hardwareTypeFilter", types, HARDWARE_TYPES),
        ):
            if flags & ~known:
                raise _refused(field, flags, "a combination of known flags", operation)
        fits = workload != MEDIA and (not runtimes or runtimes & D3D12) and (not types or types & GPU)
        return hand_out(_all if fits else _none, riid, out)

    def GetAdapterByLuid(self, luid: int, riid: int, out: int) -> HResult:
        operation = "GetAdapterByLuid"
        _needs(out, "ppvAdapter", operation)
        write_pointer(out, 0)
        _needs(luid, "adapterLUID", operation)
        for adapter in _all.adapters:
            if pack(adapter.instance_luid) == read_bytes(luid, 8):
                return hand_out(adapter, riid, out)
        number = int.from_bytes(read_bytes(luid, 8), "little")
        raise _refused("adapterLUID", f"0x{number:X}", "the LUID of an adapter", operation)

    def IsNotificationTypeSupported(self, type: int) -> bool:
        return False

    @refuses
    def RegisterEventNotification(
        self, thing: int, type: int, function: int, context: int, cookie: int
    ) -> HResult:
        write_numbers(cookie, "I", 0)
        raise not_implemented(
            "RegisterEventNotification", "IDXCoreAdapterFactory::RegisterEventNotification", api="DXCore"
        )


class IDXCoreAdapterList(Interface, of=AdapterList):
    thing: AdapterList

    def GetAdapter(self, index: int, riid: int, out: int) -> HResult:
        adapters = self.thing.adapters
        _needs(out, "ppvAdapter", "GetAdapter")
        write_pointer(out, 0)
        if index >= len(adapters):
            raise _refused("index", index, f"below {len(adapters)}", "GetAdapter")
        return hand_out(adapters[index], riid, out)

    def GetAdapterCount(self) -> int:
        return len(self.thing.adapters)

    def IsStale(self) -> bool:
        return False

    def GetFactory(self, riid: int, out: int) -> HResult:
        return _factory(riid, out)

    def Sort(self, count: int, preferences: int) -> None:
        """One adapter is sorted by whatever preferences; unknown ones are ignored."""
        if not count or not preferences:
            raise _refused("numPreferences", count, "1 or more, with their address", "Sort")
        read_array("I", preferences, count, "preferences", "Sort", check=OP_FIELD_RANGE, api="DXCore")

    def IsAdapterPreferenceSupported(self, preference: int) -> bool:
        return preference < PREFERENCES


# The bytes of each property that is supported.
_PROPERTIES: dict[int, Callable[[d3d12.Adapter], bytes]] = {
    0: lambda adapter: pack(adapter.instance_luid),
    1: lambda adapter: struct.pack("<Q", adapter.driver_version),
    2: lambda adapter: adapter.driver_description.encode() + b"\0",
    3: lambda adapter: pack(adapter.hardware_id),
    4: lambda adapter: struct.pack("<I", 3000),  # D3DKMT_DRIVERVERSION: WDDM 3.0
    5: lambda adapter: struct.pack("<H", 200),  # other queues get their turn between dispatches
    6: lambda adapter: struct.pack("<H", 0),  # no graphics
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


def _budget(adapter: d3d12.Adapter, details: bytes) -> bytes:
    """DXCoreAdapterMemoryBudget of a DXCoreAdapterMemoryBudgetNodeSegmentGroup."""
    node, group = struct.unpack("<II", details)
    if node != 0 or group > 1:
        raise _refused("inputStateDetails", f"{node}, {group}", "node 0, Local or NonLocal", "QueryState")
    return pack(adapter.query_memory_budget(d3d12.SegmentGroup(group)))


# The bytes that each state needs to be asked for, and the function that answers.
_STATES: dict[int, tuple[int, Callable[[d3d12.Adapter, bytes], bytes]]] = {
    0: (0, lambda adapter, details: b"\0"),  # no update of the driver is in progress
    1: (8, _budget),
}


def _write(value: bytes, out: int, size: int, field: str, operation: str) -> None:
    """Writes a value, and zeros behind it; E_INVALIDARG: there is less room."""
    if size < len(value):
        raise _refused(field, size, f"{len(value)} or more", operation, API_SIZE)
    write(out, value.ljust(min(size, _MOST_CLEARED), b"\0"))


class IDXCoreAdapter(Interface, of=d3d12.Adapter, name="IDXCoreAdapter1"):
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
        _check_number("property", number, PROPERTIES, _PROPERTIES, operation)
        return _PROPERTIES[number](self.thing)

    def GetProperty(self, number: int, size: int, data: int) -> None:
        operation = "GetProperty"
        _needs(data, "propertyData", operation)
        _write(self._property(number, operation), data, size, "bufferSize", operation)

    def GetPropertySize(self, number: int, size: int) -> None:
        _needs(size, "bufferSize", "GetPropertySize")
        write_numbers(size, "Q", len(self._property(number, "GetPropertySize")))

    def IsQueryStateSupported(self, state: int) -> bool:
        return state in _STATES

    def QueryState(self, state: int, size: int, details: int, out_size: int, out: int) -> None:
        operation = "QueryState"
        _needs(out, "outputBuffer", operation)
        _check_number("state", state, STATES, _STATES, operation)
        input_size, value = _STATES[state]
        if input_size:
            _needs(details, "inputStateDetails", operation)
        if size < input_size:
            raise _refused("inputStateDetailsSize", size, f"{input_size} or more", operation, API_SIZE)
        given = read_bytes(details, input_size) if input_size else b""
        _write(value(self.thing, given), out, out_size, "outputBufferSize", operation)

    def IsSetStateSupported(self, state: int) -> bool:
        return False

    def SetState(self, state: int, size: int, details: int, data_size: int, data: int) -> None:
        _needs(data, "inputData", "SetState")
        _check_number("state", state, STATES, (), "SetState")

    def GetFactory(self, riid: int, out: int) -> HResult:
        return _factory(riid, out)


def _factory(riid: int, out: int) -> HResult:
    _needs(out, "ppvFactory", "GetFactory")
    write_pointer(out, 0)
    return hand_out(factory, riid, out)
