"""The exported functions of the three libraries, as methods of one object."""

from __future__ import annotations

from typing import Any

from ... import d3d12, dml
from ...errors import HResult, Strictness
from ...reporting import defaults
from . import dxgi, objects, root_signatures
from .additions import Additions
from .debug import DebugLayer, watch
from .dxcore import factory
from .objects import hand_out, interface_of, invalid, write_pointer
from .reports import no_effect
from .values import create, give

__all__ = ["Exports"]

debug_layer = DebugLayer()


class Exports(Additions):
    """The exports; :mod:`.calls` treats them as it does methods."""

    def D3D12CreateDevice(self, adapter: int, level: Any, riid: int, out: int) -> HResult:
        if out:
            write_pointer(out, 0)
        device = d3d12.create_device(_adapter(adapter), level, raises=False)
        with objects.lock:  # of several threads that get one device, one makes its COM object
            is_known = objects.is_known(device)
            result = hand_out(device, riid, out) if out else HResult.S_FALSE
        if is_known or result is not HResult.S_OK:
            device.release()  # the COM object has one reference, whatever its own count is
        return result

    def DMLCreateDevice1(self, device: int, flags: Any, level: Any, riid: int, out: int) -> HResult:
        found: Any = objects.thing(device, d3d12.Device, "d3d12Device", "DMLCreateDevice1")
        if flags & dml.CreateDeviceFlags.DEBUG:
            self._debug(found)

        def make() -> dml.Device:
            made = dml.create_device(found, flags, level)
            if out:
                interface_of(made).is_debug = bool(flags & dml.CreateDeviceFlags.DEBUG)
            return made

        return create(riid, out, make)

    def _debug(self, device: d3d12.Device | None) -> None:
        """DML_CREATE_DEVICE_FLAG_DEBUG: refused calls are printed from here on, and devices of Direct3D 12
        that do not exist yet have the debug layer."""
        debug_layer.enable()
        if device is not None and not device.context.has_layer and not debug_layer.is_set_outside:
            no_effect(
                "DML_CREATE_DEVICE_FLAG_DEBUG on the Direct3D 12 device",
                "it was created without the debug layer, so that only calls of DirectML are checked (call "
                "EnableDebugLayer before D3D12CreateDevice, or run it under dmlemu exec --strictness debug)",
            )

    def DMLCreateDevice(self, device: int, flags: Any, riid: int, out: int) -> HResult:
        return self.DMLCreateDevice1(device, flags, dml.FeatureLevel.LEVEL_1_0, riid, out)

    def DXCoreCreateAdapterFactory(self, riid: int, out: int) -> HResult:
        return give(factory, riid, out)

    def CreateDXGIFactory(self, riid: int, out: int) -> HResult:
        return dxgi.create_factory(0, riid, out)

    CreateDXGIFactory1 = CreateDXGIFactory

    def CreateDXGIFactory2(self, flags: int, riid: int, out: int) -> HResult:
        return dxgi.create_factory(flags, riid, out)

    def DXGIGetDebugInterface1(self, flags: int, riid: int, out: int) -> HResult:
        if out:
            write_pointer(out, 0)
        return HResult.E_NOINTERFACE

    def D3D12GetDebugInterface(self, riid: int, out: int) -> HResult:
        if not out:
            return HResult.S_FALSE
        write_pointer(out, 0)
        return hand_out(debug_layer, riid, out)

    def D3D12GetInterface(self, clsid: int, riid: int, out: int) -> HResult:
        if out:
            write_pointer(out, 0)
        return HResult.E_NOINTERFACE

    def D3D12SerializeRootSignature(self, desc: int, version: Any, blob: int, error: int) -> None:
        root_signatures.serialize(desc, version, blob, error)

    def D3D12SerializeVersionedRootSignature(self, desc: int, blob: int, error: int) -> None:
        root_signatures.serialize_versioned(desc, blob, error)

    def D3D12CreateRootSignatureDeserializer(self, data: int, size: int, riid: int, out: int) -> HResult:
        return root_signatures.create_deserializer(data, size, riid, out)

    def D3D12CreateVersionedRootSignatureDeserializer(
        self, data: int, size: int, riid: int, out: int
    ) -> HResult:
        return root_signatures.create_versioned_deserializer(data, size, riid, out)

    def D3D12EnableExperimentalFeatures(self, count: int, iids: int, structs: int, sizes: int) -> None:
        if count:
            raise invalid(
                "NumFeatures", count, "0: there are no experimental features", "EnableExperimentalFeatures"
            )


def _adapter(pointer: int) -> d3d12.Adapter | None:
    """An adapter of DXCore or of DXGI; None for NULL."""
    found: Any = objects.thing(pointer, object, "pAdapter", "D3D12CreateDevice")
    if isinstance(found, dxgi.Adapter):
        return found.adapter
    return objects.thing(pointer, d3d12.Adapter, "pAdapter", "D3D12CreateDevice")


def set_strictness(given: str | None) -> None:
    """``given``: DMLEMU_STRICTNESS, which wins over the program's own calls."""
    debug_layer.is_set_outside = bool(given)
    defaults.strictness = Strictness.RUNTIME
    if given and Strictness(given) is not Strictness.RUNTIME:
        watch(Strictness(given))
