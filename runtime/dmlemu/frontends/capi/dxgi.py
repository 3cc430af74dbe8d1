"""DXGI: factories and adapters.  There are no screens: what needs one is refused by name."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NoReturn
from uuid import UUID

from ... import d3d12
from ...d3d12.core.c_memory import pack, write
from ...diagnostics.unsupported import not_implemented
from ...errors import HResult
from ._capi import ffi
from .objects import Interface, guid, hand_out, invalid, refuses, write_pointer
from .values import give, luid_number, write_numbers

__all__ = ["Adapter", "Factory", "create_factory"]

IDXGI_DEVICE = UUID("54ec77fa-1377-44e6-8c32-88fd5f44c84c")
DEBUG = 1  # DXGI_CREATE_FACTORY_DEBUG, the only flag
PREFERENCES = 3
PRESENT_ALLOW_TEARING = 0  # DXGI_FEATURE
DISPATCH_BOUNDARY = 1  # DXGI_COMPUTE_PREEMPTION_GRANULARITY

_unknown = ffi.new("uint8_t[16]", UUID("00000000-0000-0000-c000-000000000046").bytes_le)
_IUNKNOWN = int(ffi.cast("uintptr_t", _unknown))


class Factory:
    """A DXGI factory, with adapters of its own."""

    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.adapters = [Adapter(each, self) for each in d3d12.create_adapter_list()]

    def release(self) -> None:
        """Nothing: its adapters may be in use."""


class Adapter:
    """An adapter as DXGI shows it: another object than DXCore's."""

    def __init__(self, adapter: d3d12.Adapter, factory: Factory) -> None:
        self.adapter = adapter
        self.factory = factory

    def release(self) -> None:
        """Nothing: adapters are there for as long as the process lives."""


def create_factory(flags: int, riid: int, out: int) -> HResult:
    """Makes a factory."""
    if not out:
        return HResult.E_POINTER
    write_pointer(out, 0)
    if flags & ~DEBUG:
        raise invalid("Flags", flags, "0 or DXGI_CREATE_FACTORY_DEBUG", "CreateDXGIFactory2")
    return hand_out(Factory(flags), riid, out)


class _DxgiObject(Interface):
    """IDXGIObject."""

    def _refuse(self, operation: str) -> NoReturn:
        raise not_implemented(operation, "Private data of a DXGI object")

    @refuses
    def GetPrivateData(self, name: int, size: int, data: int) -> None:
        self._refuse("GetPrivateData")

    @refuses
    def SetPrivateData(self, name: int, size: int, data: int) -> None:
        self._refuse("SetPrivateData")

    @refuses
    def SetPrivateDataInterface(self, name: int, data: int) -> None:
        self._refuse("SetPrivateDataInterface")


class IDXGIFactory(_DxgiObject, of=Factory, name="IDXGIFactory7"):
    thing: Factory

    def _give(self, found: Sequence[Adapter], index: int, riid: int, out: int) -> HResult:
        if not out:
            return HResult.DXGI_ERROR_INVALID_CALL
        write_pointer(out, 0)
        return hand_out(found[index], riid, out) if index < len(found) else HResult.DXGI_ERROR_NOT_FOUND

    def GetParent(self, riid: int, out: int) -> HResult:
        if out:
            write_pointer(out, 0)
        return HResult.E_NOINTERFACE

    def EnumAdapters(self, index: int, out: int) -> HResult:
        return self._give(self.thing.adapters, index, _IUNKNOWN, out)

    EnumAdapters1 = EnumAdapters

    def EnumAdapterByLuid(self, luid: int, riid: int, out: int) -> HResult:
        found = [each for each in self.thing.adapters if luid_number(each.adapter.instance_luid) == luid]
        return self._give(found, 0, riid, out)

    def EnumWarpAdapter(self, riid: int, out: int) -> HResult:
        """The emulated GPU: every adapter is software here."""
        return self._give(self.thing.adapters, 0, riid, out)

    def EnumAdapterByGpuPreference(self, index: int, preference: int, riid: int, out: int) -> HResult:
        if preference >= PREFERENCES:
            raise invalid("GpuPreference", preference, "a DXGI_GPU_PREFERENCE", "EnumAdapterByGpuPreference")
        return self._give(self.thing.adapters, index, riid, out)

    def MakeWindowAssociation(self, window: int, flags: int) -> None:
        """Nothing: windows are never full screen here."""

    def IsCurrent(self) -> bool:
        return True

    def IsWindowedStereoEnabled(self) -> bool:
        return False

    def GetCreationFlags(self) -> int:
        return self.thing.flags

    def CheckFeatureSupport(self, feature: int, data: int, size: int) -> None:
        if feature != PRESENT_ALLOW_TEARING or size != 4 or not data:
            raise invalid(
                "Feature", feature, "DXGI_FEATURE_PRESENT_ALLOW_TEARING, with a BOOL", "CheckFeatureSupport"
            )
        write_numbers(data, "I", 0)


class IDXGIAdapter(_DxgiObject, of=Adapter, name="IDXGIAdapter4"):
    thing: Adapter

    def GetParent(self, riid: int, out: int) -> HResult:
        return give(self.thing.factory, riid, out)

    def EnumOutputs(self, index: int, out: int) -> HResult:
        """An adapter without outputs, as those of servers are."""
        if not out:
            return HResult.DXGI_ERROR_INVALID_CALL
        write_pointer(out, 0)
        return HResult.DXGI_ERROR_NOT_FOUND

    def CheckInterfaceSupport(self, interface: int, version: int) -> HResult:
        if guid(interface, "CheckInterfaceSupport") != IDXGI_DEVICE:
            return HResult.DXGI_ERROR_UNSUPPORTED
        write_numbers(version, "Q", self.thing.adapter.driver_version)
        return HResult.S_OK

    def _describe(self, out: int, operation: str, *more: int) -> None:
        """Writes DXGI_ADAPTER_DESC, followed by the fields of a later version."""
        if not out:
            raise invalid("pDesc", None, "the address of a desc", operation)
        adapter = self.thing.adapter
        identity = adapter.hardware_id
        data = struct.pack(
            "@512s4I3Q8s",
            adapter.driver_description[:127].encode("utf-32-le"),
            identity.vendor_id,
            identity.device_id,
            identity.sub_sys_id,
            identity.revision,
            adapter.dedicated_adapter_memory,
            adapter.dedicated_system_memory,
            adapter.shared_system_memory,
            pack(adapter.instance_luid),
        )
        write(out, data + struct.pack(f"@{len(more)}I", *more))

    def GetDesc(self, out: int) -> None:
        self._describe(out, "GetDesc")

    def GetDesc1(self, out: int) -> None:
        self._describe(out, "GetDesc1", 0)

    def GetDesc2(self, out: int) -> None:
        self._describe(out, "GetDesc2", 0, 0, DISPATCH_BOUNDARY)

    def GetDesc3(self, out: int) -> None:
        self._describe(out, "GetDesc3", 0, 0, DISPATCH_BOUNDARY)

    def QueryVideoMemoryInfo(self, node: int, group: int, out: int) -> None:
        operation = "QueryVideoMemoryInfo"
        if node or group > 1 or not out:
            raise invalid("MemorySegmentGroup", f"{node}, {group}", "node 0, LOCAL or NON_LOCAL", operation)
        adapter = self.thing.adapter
        if group:
            write_numbers(out, "4Q", adapter.shared_system_memory, 0, 0, 0)
        else:
            write(out, pack(adapter.query_memory_budget()))

    def RegisterVideoMemoryBudgetChangeNotificationEvent(self, event: int, cookie: int) -> None:
        operation = "RegisterVideoMemoryBudgetChangeNotificationEvent"
        if not cookie:
            raise invalid("pdwCookie", None, "the address of a number", operation)
        number = self.thing.adapter.register_video_memory_budget_change_notification_event(event)
        write_numbers(cookie, "I", number)

    def UnregisterVideoMemoryBudgetChangeNotification(self, cookie: int) -> None:
        self.thing.adapter.unregister_video_memory_budget_change_notification(cookie)
