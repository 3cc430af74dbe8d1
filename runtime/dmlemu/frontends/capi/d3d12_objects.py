"""The interfaces of Direct3D 12 but for the device and the command list."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

from ... import d3d12
from ...d3d12.core.c_memory import read, read_blob, read_bytes, read_wide_text, write
from ...d3d12.core.object import Object
from ...errors import HResult
from ._capi import lib
from .objects import guid, invalid, reporter, write_pointer
from .reports import remark
from .signatures import MethodsByName
from .values import write_numbers

__all__ = ["D3D12Child", "D3D12Object", "ID3DDestructionNotifier"]


class D3D12Object(MethodsByName):
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


class ID3DDestructionNotifier(MethodsByName, target=Object):
    """Of every Direct3D object; those of DirectML have none."""

    thing: Object

    def RegisterDestructionCallback(self, function: int, data: int, out: int) -> None:
        operation = "RegisterDestructionCallback"
        if not function or not out:
            field = "pCallbackID" if function else "callbackFn"
            raise invalid(field, None, "an address", operation)
        call = partial(lib.capi_notify, function)
        write_numbers(out, "I", self.thing.register_destruction_callback(call, data))


class D3D12Child(D3D12Object):
    """ID3D12DeviceChild."""

    OTHERS = (ID3DDestructionNotifier,)


class ID3D12CommandQueue(D3D12Child, of=d3d12.CommandQueue):
    thing: d3d12.CommandQueue

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


class ID3D12CommandAllocator(D3D12Child, of=d3d12.CommandAllocator):
    pass


class ID3D12Fence(D3D12Child, of=d3d12.Fence, name="ID3D12Fence1"):
    thing: d3d12.Fence


class ID3D12Heap(D3D12Child, of=d3d12.Heap, name="ID3D12Heap1"):
    pass


class ID3D12Resource(D3D12Child, of=d3d12.Resource, name="ID3D12Resource2"):
    thing: d3d12.Resource

    def Map(self, subresource: int, read_range: int, out: int) -> None:
        address = self.thing.map(subresource, read(d3d12.Range, read_range)).address
        if out:
            write_pointer(out, address)


class ID3D12DescriptorHeap(D3D12Child, of=d3d12.DescriptorHeap):
    thing: d3d12.DescriptorHeap


class ID3D12QueryHeap(D3D12Child, of=d3d12.QueryHeap):
    pass
