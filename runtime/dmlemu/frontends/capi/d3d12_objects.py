"""The interfaces of Direct3D 12 but for the device and the command list."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

from ... import d3d12
from ...d3d12.core.c_memory import pack, read, read_array, read_blob, read_bytes, read_wide_text, write
from ...d3d12.core.object import Object
from ...errors import HResult
from ._capi import lib
from .objects import Interface, guid, hand_out, invalid, reporter, thing, things, write_pointer
from .reports import remark
from .values import by_value, write_numbers

__all__ = ["D3D12Child", "D3D12Object", "DeviceOrDmlChild", "ID3DDestructionNotifier"]


class D3D12Object(Interface):
    """ID3D12Object, and IDMLObject, whose methods are the same."""

    # Private data that are COM objects, each with a reference; those few objects have a dict of their own.
    _interfaces: dict[Any, int] = {}  # noqa: RUF012

    def GetPrivateData(self, name: int, size: int, data: int) -> HResult:
        key = guid(name, "GetPrivateData")
        if not size:
            raise invalid("pDataSize", None, "the address of a size", "GetPrivateData")
        room = int.from_bytes(read_bytes(size, 4), "little")
        write_numbers(size, "I", 0)
        pointer = self._interfaces.get(key)
        found: bytes = self.thing.get_private_data(key) if pointer is None else struct.pack("<Q", pointer)
        write_numbers(size, "I", len(found))
        if data and room < len(found):
            return HResult.DXGI_ERROR_MORE_DATA
        if data:
            if pointer:
                lib.capi_add_ref_any(pointer)
            write(data, found)
        return HResult.S_OK

    def SetPrivateData(self, name: int, size: int, data: int) -> HResult:
        key = guid(name, "SetPrivateData")
        if size and not data:  # removes what is stored, as with size 0
            error = invalid("pData", None, f"the address of {size} bytes", "SetPrivateData")
            remark(error, reporter(self.address))
        value = read_blob(data, size, "pData", "SetPrivateData") if data else None
        had_interface = self._drop(key)
        result: HResult = self.thing.set_private_data(key, value)
        return HResult.S_OK if had_interface else result

    def SetPrivateDataInterface(self, name: int, data: int) -> None:
        key = guid(name, "SetPrivateDataInterface")
        if data:
            lib.capi_add_ref_any(data)
        self._drop(key)
        self.thing.set_private_data(key, None)
        self.__dict__.setdefault("_interfaces", {})[key] = data

    def _drop(self, key: Any) -> bool:
        pointer = self._interfaces.pop(key, None)
        if pointer:
            lib.capi_release_any(pointer)
        return pointer is not None

    def SetName(self, name: int) -> None:
        text = read_wide_text(name)
        if text is None:
            raise invalid("Name", None, "a string", "SetName")
        self.thing.set_name(text)

    def release(self) -> None:
        for key in list(self._interfaces):
            self._drop(key)
        super().release()


class ID3DDestructionNotifier(Interface):
    """Of every Direct3D object; those of DirectML have none."""

    thing: Object

    def RegisterDestructionCallback(self, function: int, data: int, out: int) -> None:
        operation = "RegisterDestructionCallback"
        if not function or not out:
            field = "pCallbackID" if function else "callbackFn"
            raise invalid(field, None, "an address", operation)
        call = partial(lib.capi_notify, function)
        write_numbers(out, "I", self.thing.register_destruction_callback(call, data))

    def UnregisterDestructionCallback(self, callback: int) -> None:
        self.thing.unregister_destruction_callback(callback)


class DeviceOrDmlChild(D3D12Object):
    """ID3D12DeviceChild, and IDMLDeviceChild."""

    def GetDevice(self, riid: int, out: int) -> HResult:
        if not out:
            return HResult.E_POINTER
        write_pointer(out, 0)
        return hand_out(self.thing.get_device(), riid, out)


class D3D12Child(DeviceOrDmlChild):
    """ID3D12DeviceChild."""

    OTHERS = (ID3DDestructionNotifier,)


class ID3D12CommandQueue(D3D12Child, of=d3d12.CommandQueue):
    thing: d3d12.CommandQueue

    def UpdateTileMappings(
        self,
        resource: int,
        regions: int,
        starts: int,
        sizes: int,
        heap: int,
        ranges: int,
        range_flags: int,
        offsets: int,
        tile_counts: int,
        flags: int,
    ) -> None:
        operation = "UpdateTileMappings"

        def rows(kind: Any, address: int, count: int, field: str) -> list[Any] | None:
            return read_array(kind, address, count, field, operation) if address else None

        self.thing.update_tile_mappings(
            thing(resource, d3d12.Resource, "pResource", operation),  # type: ignore[arg-type]
            rows(d3d12.TiledResourceCoordinate, starts, regions, "pResourceRegionStartCoordinates"),
            rows(d3d12.TileRegionSize, sizes, regions, "pResourceRegionSizes"),
            thing(heap, d3d12.Heap, "pHeap", operation),
            rows("I", range_flags, ranges, "pRangeFlags"),
            rows("I", offsets, ranges, "pHeapRangeStartOffsets"),
            rows("I", tile_counts, ranges, "pRangeTileCounts"),
            d3d12.TileMappingFlags(flags),
        )

    def ExecuteCommandLists(self, count: int, lists: int) -> None:
        operation = "ExecuteCommandLists"
        found = things(lists, count, d3d12.CommandList, "ppCommandLists", operation)
        self.thing.execute_command_lists(found)  # type: ignore[arg-type]

    def SetMarker(self, metadata: int, data: int, size: int) -> None:
        text = read_blob(data, size, "pData", "SetMarker") if data else b""
        self.thing.set_marker(metadata, text)

    def BeginEvent(self, metadata: int, data: int, size: int) -> None:
        text = read_blob(data, size, "pData", "BeginEvent") if data else b""
        self.thing.begin_event(metadata, text)

    def EndEvent(self) -> None:
        self.thing.end_event()

    def Signal(self, fence: int, value: int) -> None:
        self.thing.signal(thing(fence, d3d12.Fence, "pFence", "Signal"), value)  # type: ignore[arg-type]

    def Wait(self, fence: int, value: int) -> None:
        self.thing.wait(thing(fence, d3d12.Fence, "pFence", "Wait"), value)  # type: ignore[arg-type]

    def GetTimestampFrequency(self, out: int) -> None:
        if not out:
            raise invalid("pFrequency", None, "the address of a number", "GetTimestampFrequency")
        write_numbers(out, "Q", self.thing.get_timestamp_frequency())

    def GetClockCalibration(self, gpu: int, cpu: int) -> None:
        if not gpu or not cpu:
            raise invalid("pGpuTimestamp", None, "the address of a number", "GetClockCalibration")
        both = self.thing.get_clock_calibration()
        write_numbers(gpu, "Q", both.gpu_timestamp)
        write_numbers(cpu, "Q", both.cpu_timestamp)

    def GetDesc(self) -> Any:
        return by_value(pack(self.thing.get_desc()))


class ID3D12CommandAllocator(D3D12Child, of=d3d12.CommandAllocator):
    def Reset(self) -> None:
        self.thing.reset()


class ID3D12Fence(D3D12Child, of=d3d12.Fence, name="ID3D12Fence1"):
    thing: d3d12.Fence

    def GetCompletedValue(self) -> int:
        return self.thing.get_completed_value()

    def SetEventOnCompletion(self, value: int, event: int) -> None:
        self.thing.set_event_on_completion(value, event or None)

    def Signal(self, value: int) -> None:
        self.thing.signal(value)

    def GetCreationFlags(self) -> int:
        return int(self.thing.get_creation_flags())


class ID3D12Heap(D3D12Child, of=d3d12.Heap, name="ID3D12Heap1"):
    def GetDesc(self) -> Any:
        return by_value(pack(self.thing.get_desc()))


class ID3D12Resource(D3D12Child, of=d3d12.Resource, name="ID3D12Resource2"):
    thing: d3d12.Resource

    def Map(self, subresource: int, read_range: int, out: int) -> None:
        address = self.thing.map(subresource, read(d3d12.Range, read_range)).address
        if out:
            write_pointer(out, address)

    def Unmap(self, subresource: int, written_range: int) -> None:
        self.thing.unmap(subresource, read(d3d12.Range, written_range))

    def GetDesc(self) -> Any:
        return by_value(pack(self.thing.get_desc()))

    def GetDesc1(self) -> Any:
        return by_value(pack(self.thing.get_desc1()))

    def GetGPUVirtualAddress(self) -> int:
        return self.thing.get_gpu_virtual_address()

    def GetHeapProperties(self, properties: int, flags: int) -> None:
        found, found_flags = self.thing.get_heap_properties()
        if properties:
            write(properties, pack(found))
        write_numbers(flags, "I", found_flags)


class ID3D12DescriptorHeap(D3D12Child, of=d3d12.DescriptorHeap):
    thing: d3d12.DescriptorHeap

    def GetDesc(self) -> Any:
        return by_value(pack(self.thing.get_desc()))

    def GetCPUDescriptorHandleForHeapStart(self) -> int:
        return self.thing.get_cpu_descriptor_handle_for_heap_start()

    def GetGPUDescriptorHandleForHeapStart(self) -> int:
        return self.thing.get_gpu_descriptor_handle_for_heap_start()


class ID3D12QueryHeap(D3D12Child, of=d3d12.QueryHeap):
    pass
