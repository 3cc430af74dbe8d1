"""The device: creates everything, and knows how the GPU fares."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from dmlemu_hw.chaos import Mode
from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor
from dmlemu_hw.faults import OutOfMemory
from dmlemu_hw.frozen import Frozen
from dmlemu_hw.gpu import Gpu
from dmlemu_hw.memory import Allocation, Memory
from dmlemu_hw.memory import Heap as HardwareHeap

from ..diagnostics import ids
from ..errors import HOST_IS_FULL, Error, HResult, Severity, Strictness
from ..reporting import defaults, on_created
from . import command_queue, descriptor_heap, features, fence, footprints, query_heap, rules, views
from .adapter import Adapter, create_adapter_list
from .arguments import choice, instance, integer, integers, sequence
from .command_allocator import CommandAllocator
from .command_list import CommandList, check_allocator
from .command_queue import CommandQueue
from .delayed_visibility import LateVisibility
from .descriptor_heap import DescriptorHeap
from .descriptor_uses import DescriptorUses
from .device_context import GpuAtWork
from .enums import (
    CommandListFlags,
    CommandListType,
    DescriptorHeapFlags,
    DescriptorHeapType,
    Feature,
    FeatureLevel,
    FenceFlags,
    HeapFlags,
    HeapType,
    MessageId,
    MultipleFenceWaitFlags,
    ResourceStates,
)
from .events import Evicted
from .fence import Event, Fence
from .info_queue import not_implemented, refusal, spell
from .live_objects import LiveObjects
from .object import DeviceChild, Object, released_at
from .query_heap import QueryHeap
from .resource import Heap, Resource
from .structs import (
    ClearValue,
    CommandQueueDesc,
    ConstantBufferViewDesc,
    CopyableFootprints,
    DescriptorHeapDesc,
    HeapDesc,
    HeapProperties,
    Luid,
    QueryHeapDesc,
    ResourceAllocationInfo,
    ResourceDesc,
    ShaderResourceViewDesc,
    UnorderedAccessViewDesc,
)

_Result = TypeVar("_Result")

_LIST_TYPES = (
    CommandListType.DIRECT,
    CommandListType.BUNDLE,
    CommandListType.COMPUTE,
    CommandListType.COPY,
)


def create_device(
    adapter: Adapter | None = None,
    minimum_feature_level: FeatureLevel = FeatureLevel.LEVEL_11_0,
    *,
    strictness: Strictness | None = None,
) -> Device:
    """The device of an adapter (None: the default one); the same object while it lives (DEV5).

    Mirrors ``D3D12CreateDevice`` (nf-d3d12-d3d12createdevice).  ``strictness`` says how mistakes are
    answered: None takes that of the living device, or of ``dmlemu.reporting.defaults``, which is
    ``strict``.  E_INVALIDARG: the level is none that Direct3D 12 has (DEV3), or the living device has
    another strictness (DEV7).
    DXGI_ERROR_UNSUPPORTED: the adapter does not reach the level (DEV4).  E_OUTOFMEMORY: this machine
    has no memory or no open files left.  In a forked process, where objects of its parent's device fail
    with DEVICE_FORKED, the adapter has a new device.
    """
    _check_feature_level(minimum_feature_level)
    adapter = create_adapter_list()[0] if adapter is None else instance(adapter, Adapter, "adapter")
    strictness = None if strictness is None else choice(strictness, Strictness, "strictness")
    with adapter._lock:
        device = adapter._living_device()
        if device is not None and strictness not in (None, device._strictness):
            device = None
            gc.collect()  # what only a cycle of garbage keeps, as that of `evaluate`, does not live
            device = adapter._living_device()
        if device is None:
            try:
                device = _new_device(adapter, strictness or defaults.strictness)
            except Error as error:
                if error.hresult is not HResult.E_OUTOFMEMORY:
                    raise
                gc.collect()  # devices that are garbage have open files until they are collected
                device = _new_device(adapter, strictness or defaults.strictness)
        else:
            device._check_strictness(strictness)
            device._references += 1
            device._released = False
        return device


def _new_device(adapter: Adapter, strictness: Strictness) -> Device:
    device = Device(adapter, strictness)
    adapter._device = weakref.ref(device)
    if device._gpu.chaos is not None and device._gpu.chaos.is_fresh:
        print(f"dmlemu: the GPU runs under {device._gpu.chaos}", file=sys.stderr)
    _introduce(device)
    return device


def _introduce(device: Device) -> None:
    """Tells the layers above of a new device; if one of them refuses it, there is none."""
    try:
        for tell in on_created:
            tell(device)
    except BaseException as error:
        device._adapter._forget(device)
        if isinstance(error, OSError) and error.errno in HOST_IS_FULL:  # the checks need a file, too
            raise _host_is_full(error.strerror) from None
        raise


def _check_feature_level(level: FeatureLevel) -> None:
    integer(level, "MinimumFeatureLevel")
    known = level in list(FeatureLevel) and not FeatureLevel.LEVEL_9_1 <= level <= FeatureLevel.LEVEL_10_1
    if known and level <= features.MAX_FEATURE_LEVEL:
        return
    highest = features.MAX_FEATURE_LEVEL.name
    raise refusal(
        ids.FEATURE_LEVEL,
        f"Feature level ({spell(level)}) is "
        + ("above what the adapter reaches." if known else "not one of Direct3D 12."),
        operation="D3D12CreateDevice",
        rule=f"{'DEV4' if known else 'DEV3'}: D3D12CreateDevice",
        hresult=HResult.DXGI_ERROR_UNSUPPORTED if known else HResult.E_INVALIDARG,
        field="MinimumFeatureLevel",
        given=level,
        expected=f"at most {highest}" if known else f"LEVEL_11_0 to {highest}, LEVEL_1_0_CORE",
    )


def _create_gpu(adapter: Adapter, *, poison: bool) -> Gpu:
    """The adapter's GPU; E_OUTOFMEMORY when this machine has no memory, or no open files, for it."""
    try:
        return Gpu(
            name=adapter.driver_description,
            memory_bytes=adapter.dedicated_adapter_memory,
            policy=adapter.policy,
            poison=poison,
        )
    except (OSError, OutOfMemory) as error:
        raise _host_is_full(error.strerror if isinstance(error, OSError) else str(error)) from None


def _host_is_full(reason: str | None) -> Error:
    return refusal(
        ids.OUT_OF_MEMORY,
        f"The host cannot hold one more emulated GPU ({reason}).",
        operation="D3D12CreateDevice",
        rule="D3D12CreateDevice",
        hresult=HResult.E_OUTOFMEMORY,
        hint="Release devices that are no longer used; each needs open files.",
        message_id=0,
    )


class _OutOfMemory(Frozen):
    """Turns the hardware's running out of memory into the error of a create method.

    ``field`` is empty where no argument has an influence.
    """

    operation: str
    rule: str
    field: str
    message_id: int

    def guard(self, work: Callable[[], _Result]) -> _Result:
        try:
            return work()
        except OutOfMemory as error:
            left = max(0, error.budget - error.used)
            raise refusal(
                ids.OUT_OF_MEMORY,
                str(error),
                operation=self.operation,
                rule=f"{self.rule}: ID3D12Device::{self.operation}",
                hresult=HResult.E_OUTOFMEMORY,
                message_id=self.message_id,
                field=self.field,
                given=f"{error.needed} bytes" if self.field else "",
                expected=f"at most {left} bytes: the rest is in use" if self.field else "",
            ) from None


def _out_of_memory_for_buffer(operation: str) -> _OutOfMemory:
    return _OutOfMemory(operation, "RB10", "pDesc.Width", MessageId.CREATERESOURCE_OUTOFMEMORY_RETURN)


def _place(memory: Memory, heap: HardwareHeap) -> tuple[HardwareHeap, Allocation]:
    """An allocation over all of a new heap, which is given up again when there are no addresses."""
    try:
        return heap, memory.place(heap, 0, heap.size)
    except OutOfMemory:
        heap.close()
        raise


class Device(GpuAtWork):
    """Creates resources, queues, lists and views; mirrors ``ID3D12Device``.

    Methods with an HRESULT raise :class:`dmlemu.Error` when it is a failure.  Void methods with bad
    arguments raise at strictness ``debug`` and ``strict`` and change nothing; at ``runtime`` they
    remove the device (DXGI_ERROR_INVALID_CALL), as Windows does.  After removal, creation methods,
    Map, Signal, Close and Reset raise DXGI_ERROR_DEVICE_REMOVED, void methods do nothing, and fences
    read 2**64 - 1.

    ``removal_record`` tells what is known of a removal: the command, the address, what ran before.
    ``info_queue`` holds warnings.  Devices are made by :func:`create_device`.
    """

    kind = "device"

    def __init__(self, adapter: Adapter, strictness: Strictness) -> None:
        super().__init__(_create_gpu(adapter, poison=strictness is Strictness.STRICT), strictness)
        self._adapter = adapter
        is_late = self._gpu.random(Mode.VISIBILITY) is not None
        self._maps_lock = threading.RLock()  # buffers may be mapped from any thread (MP8)
        self._late_visibility = LateVisibility(self) if is_late else None
        self._references = 1
        self._ended = False
        self._children: weakref.WeakValueDictionary[int, DeviceChild] = weakref.WeakValueDictionary()
        self._child_numbers = itertools.count(1)
        self._serials: dict[str, Iterator[int]] = {}
        self._descriptor_heaps: weakref.WeakValueDictionary[int, DescriptorHeap] = (
            weakref.WeakValueDictionary()
        )
        self._descriptor_uses = DescriptorUses(self._gpu.descriptors)
        self._host_heaps: weakref.WeakSet[Heap] = weakref.WeakSet()  # those that the CPU can see

    # --- queues, lists, fences ---

    def create_command_queue(self, desc: CommandQueueDesc | None = None) -> CommandQueue:
        """A queue (None: of type DIRECT); E_INVALIDARG by Q1.

        Mirrors ``ID3D12Device::CreateCommandQueue`` (nf-d3d12-id3d12device-createcommandqueue).
        """
        self._check_alive("CreateCommandQueue")
        desc = CommandQueueDesc() if desc is None else desc
        command_queue.check_desc(desc)
        return CommandQueue(self, desc)

    def create_command_allocator(self, type: CommandListType) -> CommandAllocator:
        """An allocator for lists of one type (CL1).

        Mirrors ``ID3D12Device::CreateCommandAllocator`` (nf-d3d12-id3d12device-createcommandallocator).
        """
        self._check_alive("CreateCommandAllocator")
        self._check_list_type(type, "CreateCommandAllocator", "CL1")
        return CommandAllocator(self, CommandListType(type))

    def create_command_list(
        self,
        node_mask: int,
        type: CommandListType,
        command_allocator: CommandAllocator,
        initial_state: None = None,
    ) -> CommandList:
        """A list that is open and records with the allocator (CL2).

        Mirrors ``ID3D12Device::CreateCommandList`` (nf-d3d12-id3d12device-createcommandlist).
        ``initial_state`` (a pipeline state) must be None.
        """
        operation = "CreateCommandList"
        self._check_alive(operation)
        rules.check_node_mask(node_mask, operation, "nodeMask")
        self._check_list_type(type, operation, "CL2")
        if initial_state is not None:
            raise not_implemented(operation, "A pipeline state")
        check_allocator(self, command_allocator, type, operation)
        command_list = CommandList(self, CommandListType(type))
        command_list._start(command_allocator, operation)
        return command_list

    def create_command_list1(
        self, node_mask: int, type: CommandListType, flags: CommandListFlags = CommandListFlags.NONE
    ) -> CommandList:
        """A closed list without an allocator (CL3).

        Mirrors ``ID3D12Device4::CreateCommandList1`` (nf-d3d12-id3d12device4-createcommandlist1).
        """
        operation = "CreateCommandList1"
        self._check_alive(operation)
        rules.check_node_mask(node_mask, operation, "nodeMask")
        self._check_list_type(type, operation, "CL3")
        if integer(flags, "flags") != CommandListFlags.NONE:
            raise refusal(
                ids.LIST_TYPE,
                "Command list flags ({given}) are not known.",
                operation=operation,
                rule="CL3: ID3D12Device4::CreateCommandList1",
                field="flags",
                given=flags,
                expected=CommandListFlags.NONE,
                message_id=0,
            )
        return CommandList(self, CommandListType(type))

    def create_fence(self, initial_value: int = 0, flags: FenceFlags = FenceFlags.NONE) -> Fence:
        """A fence (FN1).  Mirrors ``ID3D12Device::CreateFence`` (nf-d3d12-id3d12device-createfence)."""
        self._check_alive("CreateFence")
        fence.check_flags(flags)
        fence.check_value(initial_value, "ID3D12Device::CreateFence", "InitialValue")
        lacking = _OutOfMemory("CreateFence", "FN1", "", 0)
        return Fence(self, lacking.guard(lambda: self._gpu.create_fence(initial_value)), flags)

    def set_event_on_multiple_fence_completion(
        self,
        fences: Sequence[Fence],
        fence_values: Sequence[int],
        flags: MultipleFenceWaitFlags = MultipleFenceWaitFlags.ALL,
        event: Event | int | None = None,
    ) -> None:
        """As ``Fence.set_event_on_completion``, for all or any of several fences (FN7).

        Mirrors ``ID3D12Device1::SetEventOnMultipleFenceCompletion``.
        """
        fences, fence_values = sequence(fences, "fences"), integers(fence_values, "fence_values")
        fence.check_multiple(fences, fence_values, flags)
        pairs = list(zip(fences, fence_values, strict=True))
        for each, value in pairs:
            self._check_child(each, Fence, "SetEventOnMultipleFenceCompletion", "ppFences")
            fence.check_value(value, "SetEventOnMultipleFenceCompletion", "pFenceValues")
        all_of_them = flags == MultipleFenceWaitFlags.ALL
        if event is not None:
            self._watch(pairs, all_of_them=all_of_them, fire=fence.notifier(event))
            return
        check = all if all_of_them else any

        def reached() -> bool:
            return check(each._fence.value >= value for each, value in pairs)

        def why() -> str:
            texts = ", ".join(f"{each} to reach {value} (it is {each._fence.value})" for each, value in pairs)
            return f"Waiting for {'all' if all_of_them else 'any'} of {texts} would never end."

        self._run_gpu(lambda: self._gpu.wait_until(reached, why), True)
        for each, value in pairs:
            if each._fence.value >= value:
                each._fence.observe(value)

    # --- memory ---

    def create_heap(self, desc: HeapDesc) -> Heap:
        """Memory for placed and reserved resources; E_INVALIDARG by HP1 to HP9, E_OUTOFMEMORY.

        Mirrors ``ID3D12Device::CreateHeap`` (nf-d3d12-id3d12device-createheap).
        """
        self._check_alive("CreateHeap")
        rules.check_heap_desc(desc)
        memory, size, poison = self._gpu.memory, desc.size_in_bytes, self._poisons(desc.flags)
        lacking = _OutOfMemory(
            "CreateHeap", "HP1", "pDesc.SizeInBytes", MessageId.CREATEHEAP_OUTOFMEMORY_RETURN
        )
        heap = lacking.guard(lambda: memory.create_heap(size, poison=poison))
        alignment = desc.alignment or rules.TILE
        properties = rules.full_properties(desc.properties)
        desc = replace(desc, alignment=alignment, properties=properties, flags=HeapFlags(desc.flags))
        made = Heap(self, desc, heap)
        if rules.is_cpu_visible(properties):
            self._host_heaps.add(made)
        return made

    def create_committed_resource(
        self,
        heap_properties: HeapProperties,
        heap_flags: HeapFlags,
        desc: ResourceDesc,
        initial_resource_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
    ) -> Resource:
        """A buffer with a heap of its own; E_INVALIDARG by HP3 to HP9 and RB1 to RB7, E_OUTOFMEMORY.

        Mirrors ``ID3D12Device::CreateCommittedResource``
        (nf-d3d12-id3d12device-createcommittedresource).  The memory is zero unless ``heap_flags``
        hold CREATE_NOT_ZEROED: then it is poison at strictness ``strict``.
        """
        operation = "CreateCommittedResource"
        self._check_alive(operation)
        rules.check_committed_heap(heap_properties, heap_flags)
        kind = HeapType(heap_properties.type)
        desc = rules.check_buffer(
            desc, initial_resource_state, optimized_clear_value, kind, operation, self._is_runtime
        )
        width, poison = desc.width, self._poisons(heap_flags)
        allocate = partial(self._gpu.memory.create_heap, mappable=False)
        lacking = _out_of_memory_for_buffer(operation)
        heap, allocation = lacking.guard(lambda: _place(self._gpu.memory, allocate(width, poison=poison)))
        resource = Resource(
            self,
            desc,
            allocation,
            created_as="committed",
            properties=rules.full_properties(heap_properties),
            heap_flags=HeapFlags(heap_flags),
            implicit_heap=heap,
        )
        return self._finish(resource, initial_resource_state, operation)

    def create_placed_resource(
        self,
        heap: Heap,
        heap_offset: int,
        desc: ResourceDesc,
        initial_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
    ) -> Resource:
        """A buffer at an offset of a heap, with an address of its own; E_INVALIDARG by PL1-PL3, RB1-RB7.

        Mirrors ``ID3D12Device::CreatePlacedResource`` (nf-d3d12-id3d12device-createplacedresource).
        Buffers may overlap (PL4): they are the same bytes.
        """
        operation = "CreatePlacedResource"
        self._check_alive(operation)
        rules.check_heap_given(heap)
        self._check_child(heap, Heap, operation, "pHeap")
        properties = heap._desc.properties
        kind = HeapType(properties.type)
        desc = rules.check_buffer(
            desc, initial_state, optimized_clear_value, kind, operation, self._is_runtime
        )
        rules.check_placement(desc, heap._desc, str(heap), heap_offset)
        memory, width = self._gpu.memory, desc.width
        lacking = _out_of_memory_for_buffer(operation)
        allocation = lacking.guard(lambda: memory.place(heap._heap, heap_offset, width))
        resource = Resource(
            self,
            desc,
            allocation,
            created_as="placed",
            properties=properties,
            heap_flags=heap._desc.flags,
            heap=heap,
        )
        return self._finish(resource, initial_state, operation)

    def create_reserved_resource(
        self,
        desc: ResourceDesc,
        initial_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
    ) -> Resource:
        """A buffer of addresses only, all tiles NULL (RS2): ``CommandQueue.update_tile_mappings`` maps them.

        Mirrors ``ID3D12Device::CreateReservedResource``
        (nf-d3d12-id3d12device-createreservedresource).  NULL tiles read 0 and drop writes.
        """
        operation = "CreateReservedResource"
        self._check_alive(operation)
        desc = rules.check_buffer(
            desc, initial_state, optimized_clear_value, None, operation, self._is_runtime
        )
        memory, width = self._gpu.memory, desc.width
        allocation = _out_of_memory_for_buffer(operation).guard(lambda: memory.reserve(width))
        resource = Resource(self, desc, allocation, created_as="reserved", properties=None)
        return self._finish(resource, initial_state, operation)

    def get_resource_allocation_info(
        self, visible_mask: int, resource_descs: Sequence[ResourceDesc]
    ) -> ResourceAllocationInfo:
        """Size and alignment of buffers laid one behind the other; size 2**64 - 1 for an invalid desc.

        Mirrors ``ID3D12Device::GetResourceAllocationInfo``.
        """
        integer(visible_mask, "visibleMask")
        return footprints.resource_allocation_info(
            sequence(resource_descs, "resource_descs"), self._is_runtime
        )

    def get_copyable_footprints(
        self,
        resource_desc: ResourceDesc,
        first_subresource: int = 0,
        num_subresources: int = 1,
        base_offset: int = 0,
    ) -> CopyableFootprints:
        """How a buffer lies in an upload buffer; all ones when the arguments are wrong.

        Mirrors ``ID3D12Device::GetCopyableFootprints``.
        """
        result, error = footprints.copyable_footprints(
            resource_desc, first_subresource, num_subresources, base_offset, self._is_runtime
        )
        if error is not None:
            self._keep(error)
        return result

    def get_custom_heap_properties(self, node_mask: int, heap_type: HeapType) -> HeapProperties:
        """What a heap type stands for, as properties of type CUSTOM (HP8).

        Mirrors ``ID3D12Device::GetCustomHeapProperties``; a type that is none raises.
        """
        return rules.custom_properties(node_mask, heap_type)

    def make_resident(self, objects: Sequence[DeviceChild]) -> None:
        """Counts each object's residency up (RD1); mirrors ``ID3D12Device::MakeResident``."""
        self._check_alive("MakeResident")
        for each in self._check_pageables(objects, "MakeResident", MessageId.MAKERESIDENT_NULLOBJECTARRAY):
            each._residency += 1

    def evict(self, objects: Sequence[DeviceChild]) -> None:
        """Counts each object's residency down; at 0 lists that use it must not run (RD2).

        Mirrors ``ID3D12Device::Evict``.  Contents and addresses stay.
        """
        self._check_alive("Evict")
        chosen = self._check_pageables(objects, "Evict", MessageId.EVICT_NULLOBJECTARRAY)
        for each, count in Counter(chosen).items():
            if each._residency < count:
                raise refusal(
                    ids.RES_NOT_RESIDENT,
                    f"{each} is evicted more often than it was made resident.",
                    operation="Evict",
                    rule="RD1: ID3D12Device::Evict",
                    message_id=MessageId.EVICT_UNDERFLOW,
                    object=each,
                )
        here = self._here()
        for each in chosen:
            each._residency -= 1
            each._evicted_at = here
        self._tell(*(Evicted(each) for each in dict.fromkeys(chosen) if each._residency == 0))

    # --- descriptors ---

    def create_descriptor_heap(self, descriptor_heap_desc: DescriptorHeapDesc) -> DescriptorHeap:
        """An array of descriptors; E_INVALIDARG by DH1 and DH2.

        Mirrors ``ID3D12Device::CreateDescriptorHeap`` (nf-d3d12-id3d12device-createdescriptorheap).
        """
        desc = descriptor_heap_desc
        self._check_alive("CreateDescriptorHeap")
        descriptor_heap.check_desc(desc)
        visible = bool(desc.flags & DescriptorHeapFlags.SHADER_VISIBLE)
        lacking = _OutOfMemory("CreateDescriptorHeap", "DH2", "pDescriptorHeapDesc.NumDescriptors", 0)
        heap = lacking.guard(lambda: self._gpu.descriptors.create_heap(desc.num_descriptors, visible))
        result = DescriptorHeap(self, desc, heap)
        self._descriptor_heaps[heap.cpu_start] = result
        return result

    def get_descriptor_handle_increment_size(self, descriptor_heap_type: DescriptorHeapType) -> int:
        """Bytes from one descriptor handle to the next (DH4): 32 for every type.

        Mirrors ``ID3D12Device::GetDescriptorHandleIncrementSize``.
        """
        integer(descriptor_heap_type, "DescriptorHeapType")
        return DESCRIPTOR_SIZE

    def create_unordered_access_view(
        self,
        resource: Resource | None,
        counter_resource: Resource | None,
        desc: UnorderedAccessViewDesc | None,
        dest_descriptor: int,
    ) -> None:
        """Writes a raw, structured or typed UAV of a buffer; without a resource a null descriptor.

        Mirrors ``ID3D12Device::CreateUnorderedAccessView``
        (nf-d3d12-id3d12device-createunorderedaccessview).
        """
        self._write_view(
            lambda: views.unordered_access_view(self, resource, counter_resource, desc),
            dest_descriptor,
            "CreateUnorderedAccessView",
        )

    def create_shader_resource_view(
        self, resource: Resource | None, desc: ShaderResourceViewDesc | None, dest_descriptor: int
    ) -> None:
        """Writes a raw, structured or typed SRV of a buffer; without a resource a null descriptor.

        Mirrors ``ID3D12Device::CreateShaderResourceView``
        (nf-d3d12-id3d12device-createshaderresourceview).
        """
        self._write_view(
            lambda: views.shader_resource_view(self, resource, desc),
            dest_descriptor,
            "CreateShaderResourceView",
        )

    def create_constant_buffer_view(self, desc: ConstantBufferViewDesc | None, dest_descriptor: int) -> None:
        """Writes a CBV of an address range; None or size 0 is a null descriptor.

        Mirrors ``ID3D12Device::CreateConstantBufferView``
        (nf-d3d12-id3d12device-createconstantbufferview).
        """
        self._write_view(
            lambda: views.constant_buffer_view(self, desc), dest_descriptor, "CreateConstantBufferView"
        )

    def copy_descriptors(
        self,
        dest_descriptor_range_starts: Sequence[int],
        dest_descriptor_range_sizes: Sequence[int] | None,
        src_descriptor_range_starts: Sequence[int],
        src_descriptor_range_sizes: Sequence[int] | None,
        descriptor_heaps_type: DescriptorHeapType,
    ) -> None:
        """Copies rows of descriptors; sizes None means one each (DH5, DH6).

        Mirrors ``ID3D12Device::CopyDescriptors``.
        """
        if self._removed is not None:
            return
        try:
            descriptor_heap.copy_descriptors(
                self,
                dest_descriptor_range_starts,
                dest_descriptor_range_sizes,
                src_descriptor_range_starts,
                src_descriptor_range_sizes,
                descriptor_heaps_type,
                "CopyDescriptors",
            )
        except Error as error:
            self._reject(error)

    def copy_descriptors_simple(
        self,
        num_descriptors: int,
        dest_descriptor_range_start: int,
        src_descriptor_range_start: int,
        descriptor_heaps_type: DescriptorHeapType,
    ) -> None:
        """Copies one row of descriptors (DH5, DH6).

        Mirrors ``ID3D12Device::CopyDescriptorsSimple``.
        """
        if self._removed is not None:
            return
        try:
            descriptor_heap.copy_descriptors(
                self,
                [dest_descriptor_range_start],
                [num_descriptors],
                [src_descriptor_range_start],
                [num_descriptors],
                descriptor_heaps_type,
                "CopyDescriptorsSimple",
            )
        except Error as error:
            self._reject(error)

    def create_query_heap(self, desc: QueryHeapDesc) -> QueryHeap:
        """An array of timestamps; E_INVALIDARG by QY1.

        Mirrors ``ID3D12Device::CreateQueryHeap`` (nf-d3d12-id3d12device-createqueryheap).
        """
        self._check_alive("CreateQueryHeap")
        query_heap.check_desc(desc)
        memory, size = self._gpu.memory, query_heap.QUERY_SIZE * desc.count
        lacking = _OutOfMemory("CreateQueryHeap", "QY1", "pDesc.Count", 0)
        heap, allocation = lacking.guard(lambda: _place(memory, memory.create_heap(size, mappable=False)))
        heap.close()  # the allocation keeps the bytes
        return QueryHeap(self, desc, allocation)

    # --- what the device is ---

    def check_feature_support(self, feature: Feature, feature_support_data: Any = None) -> Any:
        """What the device can do: the struct of the feature, filled in.

        ``feature_support_data`` is needed where the struct has inputs.  Mirrors
        ``ID3D12Device::CheckFeatureSupport`` (nf-d3d12-id3d12device-checkfeaturesupport).
        E_INVALIDARG: another struct than the feature's (DEV8), inputs out of range (DEV9), an
        unknown feature (DEV11).
        """
        return features.answer(feature, feature_support_data)

    def get_node_count(self) -> int:
        """``ID3D12Device::GetNodeCount``: 1."""
        return 1

    def get_adapter_luid(self) -> Luid:
        """``ID3D12Device::GetAdapterLuid``."""
        return self._adapter.instance_luid

    def get_device_removed_reason(self) -> HResult:
        """S_OK while the device lives, else why it was removed.

        Mirrors ``ID3D12Device::GetDeviceRemovedReason``.
        """
        return HResult.S_OK if self._removed is None else self._removed

    def remove_device(self) -> None:
        """Takes the device away, for testing; mirrors ``ID3D12Device5::RemoveDevice``."""
        error = refusal(
            ids.DEVICE_REMOVED,
            f"{self} was removed by RemoveDevice.",
            operation="RemoveDevice",
            rule="RM1: ID3D12Device5::RemoveDevice",
            message_id=0,  # nobody is at fault
            hresult=HResult.DXGI_ERROR_DEVICE_REMOVED,
        )
        self._remove(HResult.DXGI_ERROR_DEVICE_REMOVED, error.report)

    def report_live_device_objects(self) -> LiveObjects:
        """The objects not released yet, in the order of their creation; ``str`` of it says who holds them.

        Mirrors ``ID3D12DebugDevice::ReportLiveDeviceObjects``, which prints them.
        """
        return LiveObjects(self, [child for _, child in sorted(self._children.items())])

    def create_compute_pipeline_state(self, *arguments: Any) -> None:
        """``ID3D12Device::CreateComputePipelineState`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("CreateComputePipelineState", "ID3D12Device::CreateComputePipelineState")

    def create_root_signature(self, *arguments: Any) -> None:
        """``ID3D12Device::CreateRootSignature`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("CreateRootSignature", "ID3D12Device::CreateRootSignature")

    def create_command_signature(self, *arguments: Any) -> None:
        """``ID3D12Device::CreateCommandSignature`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("CreateCommandSignature", "ID3D12Device::CreateCommandSignature")

    def create_shared_handle(self, *arguments: Any) -> None:
        """``ID3D12Device::CreateSharedHandle`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("CreateSharedHandle", "ID3D12Device::CreateSharedHandle")

    def open_shared_handle(self, *arguments: Any) -> None:
        """``ID3D12Device::OpenSharedHandle`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("OpenSharedHandle", "ID3D12Device::OpenSharedHandle")

    def release(self) -> None:
        """Gives up one reference; :func:`create_device` on a living device takes one more (DEV5).

        The device ends when all are given up and the last object it created is gone.
        """
        super().release()

    def _release(self, *, tell: bool) -> None:
        with self._adapter._lock:
            if self._references == 0:
                return
            self._references -= 1
            if self._references:
                return
            super()._release(tell=tell)
            try:
                if tell:
                    self._tell_released(self)
            finally:
                self._end_if_unused()

    # --- for the rest of the package ---

    def _register(self, child: DeviceChild) -> None:
        child.serial = next(self._serials.setdefault(child.kind, itertools.count(1)))
        child._number = next(self._child_numbers)
        self._children[child._number] = child

    def _forget(self, child: DeviceChild) -> None:
        self._children.pop(child._number, None)
        if self._references == 0:
            self._end_if_unused()

    def _end_if_unused(self) -> None:
        if self._children or self._ended:
            return
        self._ended = True
        self._adapter._forget(self)
        if self.checks is not None:
            self.checks.end()
        self._gpu.close()
        self.reports.raise_pending()

    def _check_strictness(self, strictness: Strictness | None) -> None:
        if strictness is not None and strictness is not self._strictness:
            raise refusal(
                ids.DEVICE_STRICTNESS,
                f"The adapter's device lives, and its strictness is {self._strictness.value}.",
                operation="D3D12CreateDevice",
                rule="DEV7: ID3D12Debug::EnableDebugLayer",
                field="strictness",
                given=strictness.value,
                expected=self._strictness.value,
                object=self,
                hint="Create a d3d12.Adapter of its own for a device of another strictness.",
            )

    def _check_alive(self, operation: str) -> None:
        """Raises DXGI_ERROR_DEVICE_REMOVED after removal (RM2), and when the device has ended or is another
        process's."""
        self._check_process()
        if self._ended:
            raise refusal(
                ids.OBJECT_DELETED_IN_USE,
                f"{operation} is called on {self}, which has been released.",
                operation=operation,
                rule="DEV5: D3D12CreateDevice",
                message_id=MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE,
                object=self,
            )
        if self._removed is None:
            self._begin_call(operation)
            return
        record = self.removal_record
        why = "" if record is None else record.report.message
        raise refusal(
            ids.DEVICE_REMOVED,
            f"{operation} is called on a removed device.",
            operation=operation,
            rule="RM2: ID3D12Device::GetDeviceRemovedReason",
            hresult=HResult.DXGI_ERROR_DEVICE_REMOVED,
            message_id=MessageId.DEVICE_REMOVAL_PROCESS_AT_FAULT,
            object=self,
            context=(f"Removed with {self._removed.name}: {why}",),
        )

    def _check_child(self, child: object, kind: type[DeviceChild], operation: str, field: str) -> None:
        """An argument must be a live object of this device and of its kind (OB3, CL9)."""
        if isinstance(child, kind) and child._device is self and not child._released:
            return
        if not isinstance(child, kind):
            what = f"is no {kind.kind}"
        elif child._device is not self:
            what = "belongs to another device"
        else:
            what = "has been released"
        given = child._title() if isinstance(child, Object) else type(child).__name__
        released = what == "has been released"
        raise refusal(
            ids.OBJECT_DELETED_IN_USE if released else ids.BIND_FOREIGN_DEVICE,
            f"{field} ({given}) {what}.",
            operation=operation,
            rule=f"{'CL9' if released else 'OB3'}: {operation}",
            message_id=MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE if released else 0,
            field=field,
            given=given,
            expected=f"a live {kind.kind} of the device",
            object=child if isinstance(child, Object) else "",
            context=released_at(child) if released and isinstance(child, Object) else (),
        )

    def _check_list_type(self, type: CommandListType, operation: str, rule: str) -> None:
        if integer(type, "type") in _LIST_TYPES:
            return
        if type in list(CommandListType) and type != CommandListType.NONE:
            raise not_implemented(operation, f"A command list of type {spell(type)}")
        raise refusal(
            ids.LIST_TYPE,
            "Command list type ({given}) is not known.",
            operation=operation,
            rule=f"{rule}: ID3D12Device::{operation}",
            message_id=MessageId.CREATE_COMMAND_LIST_INVALID_COMMAND_LIST_TYPE,
            field="type",
            given=type,
            expected="DIRECT, BUNDLE, COMPUTE or COPY",
        )

    def _check_pageables(
        self, objects: Sequence[DeviceChild] | None, operation: str, message_id: MessageId
    ) -> list[DeviceChild]:
        if objects is None:
            raise refusal(
                ids.RES_NOT_RESIDENT,
                "No objects are given.",
                operation=operation,
                rule=f"RD1: ID3D12Device::{operation}",
                message_id=message_id,
                field="ppObjects",
                given=None,
                expected="a sequence of heaps, resources, descriptor heaps or query heaps",
            )
        objects = sequence(objects, "objects")
        for i, each in enumerate(objects):
            self._check_child(each, DeviceChild, operation, f"ppObjects[{i}]")
        return [each for each in objects if isinstance(each, Heap | Resource | DescriptorHeap | QueryHeap)]

    def _poisons(self, flags: HeapFlags) -> bool:
        return self._gpu.poison and bool(flags & HeapFlags.CREATE_NOT_ZEROED)

    def _finish(self, resource: Resource, state: ResourceStates, operation: str) -> Resource:
        """Last steps of every created buffer: addresses know it, and its initial state is remarked (RB8)."""
        resource._began_common = state == ResourceStates.COMMON
        self._resources[resource._address] = resource
        if state != ResourceStates.COMMON and resource._fixed_states is None and self.info_queue.enabled:
            error = refusal(
                ids.RES_STATE_IGNORED,
                "Initial state ({given}) is ignored: buffers start COMMON.",
                operation=operation,
                rule=f"RB8: ID3D12Device::{operation}",
                message_id=MessageId.CREATERESOURCE_STATE_IGNORED,
                field="InitialResourceState",
                given=ResourceStates(state),
                expected=ResourceStates.COMMON,
                object=resource,
            )
            self._info(error, Severity.INFO)
        return resource

    def _write_view(self, make: Callable[[], Descriptor], dest_descriptor: int, operation: str) -> None:
        if self._removed is not None:
            return
        try:
            heap, _ = descriptor_heap.find_slot(self, dest_descriptor, operation, "DestDescriptor")
            if heap._desc.type != DescriptorHeapType.CBV_SRV_UAV:
                raise refusal(
                    ids.DESC_HEAP_KIND,
                    f"A view of a buffer is written into {heap} of type {spell(heap._desc.type)}.",
                    operation=operation,
                    rule=f"DH4: ID3D12Device::{operation}",
                    message_id=MessageId.INVALID_DESCRIPTOR_HANDLE,
                    field="DestDescriptor",
                    given=heap._desc.type,
                    expected=DescriptorHeapType.CBV_SRV_UAV,
                    object=heap,
                )
            write = partial(self._gpu.descriptors.write, dest_descriptor, make())
            descriptor_heap.write_descriptors(self, [(dest_descriptor, 1)], operation, write)
        except Error as error:
            self._reject(error)
