"""ID3D12Device, up to ID3D12Device15, and ID3D12DeviceConfiguration."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

from ... import d3d12
from ...d3d12.core.c_memory import c_size, pack, read, read_array, read_bytes, write
from ...d3d12.core.features import struct_of
from ...d3d12.core.rows import API_SIZE
from ...errors import HResult, Strictness
from ._capi import lib
from .d3d12_objects import D3D12Object, ID3DDestructionNotifier
from .debug import ID3D12DebugDevice, ID3D12DebugDevice1, ID3D12InfoQueue
from .objects import Interface, guid, invalid, push_reason, refuses, thing, things
from .reports import no_effect
from .values import by_value, create, luid_number, write_numbers

__all__ = ["ID3D12Device"]

_LEVELS = struct.Struct("@IQIxxxx")  # D3D12_FEATURE_DATA_FEATURE_LEVELS


class ID3D12DeviceConfiguration(Interface, name="ID3D12DeviceConfiguration1"):
    thing: d3d12.Device

    def GetDesc(self) -> Any:
        return by_value(pack(self.thing.get_configuration_desc()))

    def GetEnabledExperimentalFeatures(self, guids: int, count: int) -> None:
        enabled = self.thing.get_configuration_desc().num_enabled_experimental_features
        if count > enabled:
            expected = f"at most {enabled}, as GetDesc says"
            raise invalid("NumGuids", count, expected, "GetEnabledExperimentalFeatures")


class ID3D12Device(D3D12Object, of=d3d12.Device, name="ID3D12Device15"):
    OTHERS = (
        ID3D12InfoQueue,
        ID3D12DebugDevice,
        ID3D12DebugDevice1,
        ID3D12DeviceConfiguration,
        ID3DDestructionNotifier,
    )
    thing: d3d12.Device

    def __init__(self, thing: d3d12.Device, owner: Interface | None = None) -> None:
        super().__init__(thing, owner)
        push_reason(self, thing)

    def offers(self, kind: type[Interface]) -> bool:
        of_layer = kind not in (ID3D12DeviceConfiguration, ID3DDestructionNotifier)
        return not of_layer or self.thing.context.strictness is not Strictness.RUNTIME

    def GetNodeCount(self) -> int:
        return self.thing.get_node_count()

    def GetAdapterLuid(self) -> int:
        return luid_number(self.thing.get_adapter_luid())

    def GetDeviceRemovedReason(self) -> HResult:
        return self.thing.get_device_removed_reason()

    def RemoveDevice(self) -> None:
        self.thing.remove_device()

    # --- queues, lists, fences ---

    def CreateCommandQueue(self, desc: int, riid: int, out: int) -> HResult:
        given: Any = read(d3d12.CommandQueueDesc, desc)
        return create(riid, out, lambda: self.thing.create_command_queue(given))

    def CreateCommandQueue1(self, desc: int, creator: int, riid: int, out: int) -> HResult:
        given: Any = read(d3d12.CommandQueueDesc, desc)
        id = guid(creator, "CreateCommandQueue1")
        return create(riid, out, lambda: self.thing.create_command_queue1(given, id))

    def CreateCommandAllocator(self, type: Any, riid: int, out: int) -> HResult:
        return create(riid, out, lambda: self.thing.create_command_allocator(type))

    def CreateCommandList(
        self, mask: int, type: Any, allocator: int, state: Any, riid: int, out: int
    ) -> HResult:
        operation = "CreateCommandList"

        def make() -> d3d12.CommandList:
            found: Any = thing(allocator, d3d12.CommandAllocator, "pCommandAllocator", operation)
            return self.thing.create_command_list(mask, type, found, state or None)

        return create(riid, out, make)

    def CreateCommandList1(self, mask: int, type: Any, flags: Any, riid: int, out: int) -> HResult:
        return create(riid, out, lambda: self.thing.create_command_list1(mask, type, flags))

    def CreateFence(self, value: int, flags: Any, riid: int, out: int) -> HResult:
        return create(riid, out, lambda: self.thing.create_fence(value, d3d12.FenceFlags(flags)))

    def SetEventOnMultipleFenceCompletion(
        self, fences: int, values: int, count: int, flags: Any, event: int
    ) -> None:
        operation = "SetEventOnMultipleFenceCompletion"
        found: Any = things(fences, count, d3d12.Fence, "ppFences", operation)
        numbers = read_array("Q", values, count, "pFenceValues", operation)
        self.thing.set_event_on_multiple_fence_completion(found, numbers, flags, event or None)

    # --- memory ---

    def CreateHeap(self, desc: int, riid: int, out: int) -> HResult:
        given: Any = read(d3d12.HeapDesc, desc)
        return create(riid, out, lambda: self.thing.create_heap(given))

    def CreateHeap1(self, desc: int, session: int, riid: int, out: int) -> HResult:
        given: Any = read(d3d12.HeapDesc, desc)
        _unprotected(session, "CreateHeap1")
        return create(riid, out, lambda: self.thing.create_heap1(given))

    def CreateCommittedResource(
        self, properties: int, flags: Any, desc: int, state: Any, clear: int, riid: int, out: int
    ) -> HResult:
        call = self.thing.create_committed_resource
        values = *_implicit(properties, flags), *_described(d3d12.ResourceDesc, desc, state, clear)
        return create(riid, out, lambda: call(*values))

    def CreateCommittedResource1(
        self,
        properties: int,
        flags: Any,
        desc: int,
        state: Any,
        clear: int,
        session: int,
        riid: int,
        out: int,
    ) -> HResult:
        call = self.thing.create_committed_resource1
        values = *_implicit(properties, flags), *_described(d3d12.ResourceDesc, desc, state, clear)
        _unprotected(session, "CreateCommittedResource1")
        return create(riid, out, lambda: call(*values))

    def CreateCommittedResource2(
        self,
        properties: int,
        flags: Any,
        desc: int,
        state: Any,
        clear: int,
        session: int,
        riid: int,
        out: int,
    ) -> HResult:
        call = self.thing.create_committed_resource2
        values = *_implicit(properties, flags), *_described(d3d12.ResourceDesc1, desc, state, clear)
        _unprotected(session, "CreateCommittedResource2")
        return create(riid, out, lambda: call(*values))

    def CreateCommittedResource3(
        self,
        properties: int,
        flags: Any,
        desc: int,
        layout: int,
        clear: int,
        session: int,
        count: int,
        formats: int,
        riid: int,
        out: int,
    ) -> HResult:
        operation, call = "CreateCommittedResource3", self.thing.create_committed_resource3
        given: Any = read(d3d12.ResourceDesc1, desc)
        values = *_implicit(properties, flags), given, layout, read(d3d12.ClearValue, clear)
        _unprotected(session, operation)
        castable = _formats(formats, count, operation)
        return create(riid, out, lambda: call(*values, castable_formats=castable))

    def CreatePlacedResource(
        self, heap: int, offset: int, desc: int, state: Any, clear: int, riid: int, out: int
    ) -> HResult:
        call, found = self.thing.create_placed_resource, _heap(heap, "CreatePlacedResource")
        values = _described(d3d12.ResourceDesc, desc, state, clear)
        return create(riid, out, lambda: call(found, offset, *values), {"heap": found})

    def CreatePlacedResource1(
        self, heap: int, offset: int, desc: int, state: Any, clear: int, riid: int, out: int
    ) -> HResult:
        call, found = self.thing.create_placed_resource1, _heap(heap, "CreatePlacedResource1")
        values = _described(d3d12.ResourceDesc1, desc, state, clear)
        return create(riid, out, lambda: call(found, offset, *values), {"heap": found})

    def CreatePlacedResource2(
        self,
        heap: int,
        offset: int,
        desc: int,
        layout: int,
        clear: int,
        count: int,
        formats: int,
        riid: int,
        out: int,
    ) -> HResult:
        operation, call = "CreatePlacedResource2", self.thing.create_placed_resource2
        found, castable = _heap(heap, operation), _formats(formats, count, operation)
        given: Any = read(d3d12.ResourceDesc1, desc)
        value = read(d3d12.ClearValue, clear)
        return create(riid, out, lambda: call(found, offset, given, layout, value, castable), {"heap": found})

    def CreateReservedResource(self, desc: int, state: Any, clear: int, riid: int, out: int) -> HResult:
        values = _described(d3d12.ResourceDesc, desc, state, clear)
        return create(riid, out, lambda: self.thing.create_reserved_resource(*values))

    def CreateReservedResource1(
        self, desc: int, state: Any, clear: int, session: int, riid: int, out: int
    ) -> HResult:
        values = _described(d3d12.ResourceDesc, desc, state, clear)
        _unprotected(session, "CreateReservedResource1")
        return create(riid, out, lambda: self.thing.create_reserved_resource1(*values))

    def CreateReservedResource2(
        self, desc: int, layout: int, clear: int, session: int, count: int, formats: int, riid: int, out: int
    ) -> HResult:
        operation, call = "CreateReservedResource2", self.thing.create_reserved_resource2
        _unprotected(session, operation)
        castable = _formats(formats, count, operation)
        given: Any = read(d3d12.ResourceDesc, desc)
        value = read(d3d12.ClearValue, clear)
        return create(riid, out, lambda: call(given, layout, value, castable_formats=castable))

    def GetResourceAllocationInfo(self, mask: int, count: int, descs: int) -> Any:
        rows = read_array(d3d12.ResourceDesc, descs, count, "pResourceDescs", "GetResourceAllocationInfo")
        return by_value(pack(self.thing.get_resource_allocation_info(mask, rows)))

    def GetResourceAllocationInfo1(self, mask: int, count: int, descs: int, infos: int) -> Any:
        rows = read_array(d3d12.ResourceDesc, descs, count, "pResourceDescs", "GetResourceAllocationInfo1")
        return _allocation_info(infos, *self.thing.get_resource_allocation_info1(mask, rows))

    def GetResourceAllocationInfo2(self, mask: int, count: int, descs: int, infos: int) -> Any:
        rows = read_array(d3d12.ResourceDesc1, descs, count, "pResourceDescs", "GetResourceAllocationInfo2")
        return _allocation_info(infos, *self.thing.get_resource_allocation_info2(mask, rows))

    def GetResourceAllocationInfo3(
        self, mask: int, count: int, descs: int, format_counts: int, formats: int, infos: int
    ) -> Any:
        rows = read_array(d3d12.ResourceDesc1, descs, count, "pResourceDescs", "GetResourceAllocationInfo3")
        return _allocation_info(infos, *self.thing.get_resource_allocation_info3(mask, rows))

    def GetResourceTiling(
        self, resource: int, total: int, packed: int, shape: int, count: int, first: int, tilings: int
    ) -> None:
        found: Any = thing(resource, d3d12.Resource, "pTiledResource", "GetResourceTiling")
        room = int.from_bytes(read_bytes(count, 4), "little") if count else 0
        answer = self.thing.get_resource_tiling(found, first, room)
        write_numbers(total, "I", answer.num_tiles_for_entire_resource)
        for address, value in (
            (packed, answer.packed_mip_desc),
            (shape, answer.standard_tile_shape_for_non_packed_mips),
        ):
            if address:
                write(address, pack(value))
        write_numbers(count, "I", len(answer.subresource_tilings))
        if tilings:
            write(tilings, b"".join(map(pack, answer.subresource_tilings)))

    def GetCustomHeapProperties(self, mask: int, type: Any) -> Any:
        return by_value(pack(self.thing.get_custom_heap_properties(mask, type)))

    def GetCopyableFootprints(
        self, desc: int, first: int, count: int, base: int, layouts: int, rows: int, sizes: int, total: int
    ) -> None:
        given: Any = read(d3d12.ResourceDesc, desc)
        found = self.thing.get_copyable_footprints(given, first, count, base)
        _write_footprints(found, layouts, rows, sizes, total)

    def GetCopyableFootprints1(
        self, desc: int, first: int, count: int, base: int, layouts: int, rows: int, sizes: int, total: int
    ) -> None:
        given: Any = read(d3d12.ResourceDesc1, desc)
        found = self.thing.get_copyable_footprints1(given, first, count, base)
        _write_footprints(found, layouts, rows, sizes, total)

    def MakeResident(self, count: int, objects: int) -> None:
        self.thing.make_resident(_pageables(objects, count, "MakeResident"))

    def Evict(self, count: int, objects: int) -> None:
        self.thing.evict(_pageables(objects, count, "Evict"))

    def SetResidencyPriority(self, count: int, objects: int, priorities: int) -> None:
        operation = "SetResidencyPriority"
        found = _pageables(objects, count, operation)
        numbers = read_array("I", priorities, count, "pPriorities", operation)
        self.thing.set_residency_priority(found, numbers)

    def EnqueueMakeResident(self, flags: Any, count: int, objects: int, fence: int, value: int) -> None:
        operation = "EnqueueMakeResident"
        found = _pageables(objects, count, operation)
        signalled: Any = thing(fence, d3d12.Fence, "pFenceToSignal", operation)
        self.thing.enqueue_make_resident(flags, found, signalled, value)

    # --- descriptors ---

    def CreateDescriptorHeap(self, desc: int, riid: int, out: int) -> HResult:
        given: Any = read(d3d12.DescriptorHeapDesc, desc)
        return create(riid, out, lambda: self.thing.create_descriptor_heap(given))

    def GetDescriptorHandleIncrementSize(self, type: Any) -> int:
        return self.thing.get_descriptor_handle_increment_size(type)

    def CreateConstantBufferView(self, desc: int, handle: int) -> None:
        self.thing.create_constant_buffer_view(read(d3d12.ConstantBufferViewDesc, desc), handle)

    def CreateShaderResourceView(self, resource: int, desc: int, handle: int) -> None:
        found = thing(resource, d3d12.Resource, "pResource", "CreateShaderResourceView")
        self.thing.create_shader_resource_view(found, read(d3d12.ShaderResourceViewDesc, desc), handle)

    def CreateUnorderedAccessView(self, resource: int, counter: int, desc: int, handle: int) -> None:
        operation = "CreateUnorderedAccessView"
        found = thing(resource, d3d12.Resource, "pResource", operation)
        counts = thing(counter, d3d12.Resource, "pCounterResource", operation)
        self.thing.create_unordered_access_view(
            found, counts, read(d3d12.UnorderedAccessViewDesc, desc), handle
        )

    def CopyDescriptors(
        self,
        to_count: int,
        to_starts: int,
        to_sizes: int,
        from_count: int,
        from_starts: int,
        from_sizes: int,
        type: Any,
    ) -> None:
        def rows(code: str, address: int, count: int, field: str) -> list[int]:
            return read_array(code, address, count, field, "CopyDescriptors")

        self.thing.copy_descriptors(
            rows("Q", to_starts, to_count, "pDestDescriptorRangeStarts"),
            rows("I", to_sizes, to_count, "pDestDescriptorRangeSizes") if to_sizes else None,
            rows("Q", from_starts, from_count, "pSrcDescriptorRangeStarts"),
            rows("I", from_sizes, from_count, "pSrcDescriptorRangeSizes") if from_sizes else None,
            type,
        )

    def CopyDescriptorsSimple(self, count: int, destination: int, source: int, type: Any) -> None:
        self.thing.copy_descriptors_simple(count, destination, source, type)

    def TryCreateConstantBufferView(self, desc: int, handle: int) -> None:
        self.thing.try_create_constant_buffer_view(read(d3d12.ConstantBufferViewDesc, desc), handle)

    def TryCreateShaderResourceView(self, resource: int, desc: int, handle: int) -> None:
        found = thing(resource, d3d12.Resource, "pResource", "TryCreateShaderResourceView")
        self.thing.try_create_shader_resource_view(found, read(d3d12.ShaderResourceViewDesc, desc), handle)

    def TryCreateUnorderedAccessView(self, resource: int, counter: int, desc: int, handle: int) -> None:
        operation = "TryCreateUnorderedAccessView"
        found = thing(resource, d3d12.Resource, "pResource", operation)
        counts = thing(counter, d3d12.Resource, "pCounterResource", operation)
        given = read(d3d12.UnorderedAccessViewDesc, desc)
        self.thing.try_create_unordered_access_view(found, counts, given, handle)

    def CreateQueryHeap1(self, desc: int, flags: Any, riid: int, out: int) -> HResult:
        given: Any = read(d3d12.QueryHeapDesc, desc)
        return create(riid, out, lambda: self.thing.create_query_heap1(given, flags))

    @refuses
    def ResolveQueryData(self, heap: int, type: Any, start: int, count: int, out: int) -> None:
        self.thing.resolve_query_data()

    def CreateQueryHeap(self, desc: int, riid: int, out: int) -> HResult:
        given: Any = read(d3d12.QueryHeapDesc, desc)
        return create(riid, out, lambda: self.thing.create_query_heap(given))

    # --- features and settings ---

    def CheckFeatureSupport(self, feature: Any, data: int, size: int) -> None:
        if not data:
            raise invalid("pFeatureSupportData", None, "the address of a struct", "CheckFeatureSupport")
        kind, operation = struct_of(feature), "CheckFeatureSupport"
        of_levels = kind is d3d12.FeatureDataFeatureLevels  # has a pointer to its inputs
        wanted = _LEVELS.size if of_levels else c_size(kind)
        if size != wanted:
            rule = f"ID3D12Device::{operation}: FeatureSupportDataSize"
            raise invalid("FeatureSupportDataSize", size, str(wanted), operation, API_SIZE, rule=rule)
        if of_levels:
            count, levels, _ = _LEVELS.unpack(read_bytes(data, size))
            asked = read_array("I", levels, count, "pFeatureLevelsRequested", operation)
            answer = self.thing.check_feature_support(feature, d3d12.FeatureDataFeatureLevels(tuple(asked)))
            write(data, _LEVELS.pack(count, levels, answer.max_supported_feature_level))
        else:
            write(data, pack(self.thing.check_feature_support(feature, read(kind, data))))

    def RegisterTrimNotificationCallback(self, data: int) -> None:
        operation = "RegisterTrimNotificationCallback"
        if not data:
            raise invalid("pData", None, "the address of a D3D12_REGISTER_TRIM_NOTIFICATION", operation)
        function = int.from_bytes(read_bytes(data, 8), "little")
        if not function:
            raise invalid("pData.pfnCallback", None, "the address of a function", operation)
        never_called = partial(lib.capi_notify, function)
        write_numbers(data + 16, "I", self.thing.register_trim_notification_callback(never_called))
        no_effect(operation, "memory of the emulated GPU is not trimmed")

    def UnregisterTrimNotificationCallback(self, cookie: int) -> None:
        self.thing.unregister_trim_notification_callback(cookie)

    def SetStablePowerState(self, enable: int) -> None:
        self.thing.set_stable_power_state(bool(enable))

    def SetBackgroundProcessingMode(self, mode: Any, action: Any, event: int, further: int) -> None:
        wanted = self.thing.set_background_processing_mode(mode, action, event or None)
        write_numbers(further, "I", wanted)
        no_effect("SetBackgroundProcessingMode", "there is no background processing")

    def ShaderCacheControl(self, kinds: Any, control: Any) -> None:
        self.thing.shader_cache_control(kinds, control)
        no_effect("ShaderCacheControl", "there is no shader cache")


def _implicit(properties: int, flags: Any) -> tuple[Any, Any]:
    """The heap of a committed resource."""
    return read(d3d12.HeapProperties, properties), d3d12.HeapFlags(flags)


def _described(kind: type[d3d12.ResourceDesc], desc: int, state: Any, clear: int) -> tuple[Any, Any, Any]:
    """A resource, its first state and its clear value."""
    return read(kind, desc), d3d12.ResourceStates(state), read(d3d12.ClearValue, clear)


def _heap(heap: int, operation: str) -> Any:
    return thing(heap, d3d12.Heap, "pHeap", operation)


def _formats(formats: int, count: int, operation: str) -> list[int]:
    return read_array("I", formats, count, "pCastableFormats", operation)


def _unprotected(session: int, operation: str) -> None:
    if session:
        raise invalid("pProtectedSession", f"0x{session:X}", "NULL", operation)


def _allocation_info(
    infos: int, whole: d3d12.ResourceAllocationInfo, each: tuple[d3d12.ResourceAllocationInfo1, ...]
) -> Any:
    """Writes where each resource lies, and returns what all take."""
    if infos:
        write(infos, b"".join(map(pack, each)))
    return by_value(pack(whole))


def _write_footprints(
    found: d3d12.CopyableFootprints, layouts: int, rows: int, sizes: int, total: int
) -> None:
    if layouts:
        write(layouts, b"".join(map(pack, found.layouts)))
    write_numbers(rows, f"{len(found.num_rows)}I", *found.num_rows)
    write_numbers(sizes, f"{len(found.row_size_in_bytes)}Q", *found.row_size_in_bytes)
    write_numbers(total, "Q", found.total_bytes)


def _pageables(objects: int, count: int, operation: str) -> Any:
    return things(objects, count, d3d12.DeviceChild, "ppObjects", operation)
