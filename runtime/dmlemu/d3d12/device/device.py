"""ID3D12Device: object creation, descriptors, feature queries, removal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlemu_hw.chaos import Mode
from dmlemu_hw.descriptors import DESCRIPTOR_SIZE
from dmlemu_hw.events import EventStream
from dmlemu_hw.gpu import Gpu

from ...errors import Error, HResult, Strictness, call_site
from ...reporting import Reporter
from ..core import features
from ..core.adapter import Adapter
from ..core.device_child import DeviceChild
from ..core.device_context import DeviceContext
from ..core.events import Marked
from ..core.host_events import Event
from ..core.info_queue import InfoQueue, not_implemented
from ..core.removal import RemovalRecord
from ..descriptors import descriptor_heap, views
from ..descriptors.descriptor_heap import DescriptorHeap
from ..lists.command_allocator import CommandAllocator
from ..lists.command_list import CommandList
from ..lists.list_recorder import check_allocator, check_list_type
from ..lists.rows import CL1, CL2, CL3
from ..memory import checks as rules
from ..memory import footprints, resource_creation, tiles
from ..memory.delayed_visibility import LateVisibility
from ..memory.query_heap import QueryHeap
from ..memory.resource import Heap, Resource
from ..memory.resource_creation import OutOfMemoryGuard
from ..pipelines import command_signature as command_signatures
from ..pipelines import pipeline_state as pipelines
from ..pipelines import root_signature as root_signatures
from ..pipelines.command_signature import CommandSignature
from ..pipelines.pipeline_state import PipelineState
from ..pipelines.root_signature import RootSignature
from ..pipelines.structs import CommandSignatureDesc, ComputePipelineStateDesc
from ..queues import fence
from ..queues.command_queue import CommandQueue, create_queue
from ..queues.fence import Fence
from ..types.arguments import instance, integer, sequence
from ..types.enums import (
    CommandListFlags,
    CommandListType,
    DescriptorHeapFlags,
    DescriptorHeapType,
    DeviceFlags,
    Feature,
    FenceFlags,
    HeapFlags,
    HeapType,
    MultipleFenceWaitFlags,
    PipelineStateSubobjectType,
    ResourceStates,
)
from ..types.structs import (
    SDK_VERSION,
    ClearValue,
    CommandQueueDesc,
    ConstantBufferViewDesc,
    CopyableFootprints,
    DescriptorHeapDesc,
    DeviceConfigurationDesc,
    HeapDesc,
    HeapProperties,
    Luid,
    QueryHeapDesc,
    ResourceAllocationInfo,
    ResourceDesc,
    ResourceTiling,
    ShaderResourceViewDesc,
    UnorderedAccessViewDesc,
)
from . import residency
from .device_versions import NumberedMethods
from .live_objects import LiveObjects
from .rows import RM1

_DEFAULT_QUEUE = CommandQueueDesc()


class Device(NumberedMethods):
    """Creates resources, queues, lists and views; mirrors ``ID3D12Device``.

    Methods with an HRESULT raise :class:`dmlemu.Error` when it is a failure.  Void methods with invalid
    arguments raise at strictness ``debug`` and ``strict`` and change nothing; at ``runtime`` they
    remove the device (DXGI_ERROR_INVALID_CALL), as Windows does.  After removal, creation methods,
    Map, Signal, Close and Reset raise DXGI_ERROR_DEVICE_REMOVED, void methods do nothing, and fences
    read 2**64 - 1.

    ``removal_record`` describes a removal: the command, the address, what ran before.
    ``info_queue`` holds warnings.  Devices are made by :func:`create_device`.
    """

    kind = "device"

    def __init__(self, adapter: Adapter, gpu: Gpu, strictness: Strictness, *, raises: bool) -> None:
        super().__init__()
        self.context = DeviceContext(gpu, strictness, adapter, self, raises=raises)
        if gpu.random(Mode.VISIBILITY) is not None:
            self.context.late_visibility = LateVisibility(gpu)

    # --- events and reports ---

    @property
    def events(self) -> EventStream:
        """The event stream of the device."""
        return self.context.events

    @property
    def reports(self) -> Reporter:
        """The reporter that receives the reports of checks."""
        return self.context.reports

    @property
    def info_queue(self) -> InfoQueue:
        """Mirrors ``ID3D12InfoQueue``: messages of every severity."""
        return self.context.info_queue

    @property
    def checks(self) -> Any:
        """The checks that watch the device; see ``dmlemu.checks``."""
        return self.context.checks

    def lineage(self, resource: Resource, offset: int) -> Any:
        """The dispatches and copies that byte ``offset`` of a buffer comes from, back to the CPU.

        A :class:`dmlemu.checks.Lineage`: steps, the last write first; ``str()`` is one line each,
        ``to_json()`` the same as data.  Not part of Direct3D.  ValueError: the byte lies outside, or in a
        buffer of another device, or the device was not created at strictness ``strict``, which alone keeps
        track.
        """
        if instance(resource, Resource, "resource").context is not self.context:
            raise ValueError(f"resource must belong to {self}, not {resource}.")
        start = integer(offset, "offset")
        if not 0 <= start < resource.width:
            raise ValueError(
                f"offset must lie in {resource}, which has {resource.width} bytes, not at {start}."
            )
        return self.checks.lineage(resource.address + start)

    def mark(self, text: str) -> None:
        """Marks this moment of the program with a text, for tools; not part of Direct3D.

        ``dmlemu step`` and its page show it between the calls before and after it, a timeline in the track of
        the thread.  It is about the program: the GPU may execute later what was recorded before it.
        TypeError: not a str.
        """
        instance(text, str, "text")
        if self.events.wants(Marked):
            self.context.emit(Marked(text, call_site()))

    @property
    def removal_record(self) -> RemovalRecord | None:
        """Why and where the device was removed; None while it is not."""
        return self.context.removal_record

    # --- queues, lists, fences ---

    def create_command_queue(self, desc: CommandQueueDesc = _DEFAULT_QUEUE) -> CommandQueue:
        """A queue, by default of type DIRECT; E_INVALIDARG by Q1.

        Mirrors ``ID3D12Device::CreateCommandQueue`` (nf-d3d12-id3d12device-createcommandqueue).
        """
        return create_queue(self.context, desc)

    def create_command_allocator(self, type: CommandListType) -> CommandAllocator:
        """An allocator for lists of one type (CL1).

        Mirrors ``ID3D12Device::CreateCommandAllocator`` (nf-d3d12-id3d12device-createcommandallocator).
        """
        self.context.check_alive("CreateCommandAllocator")
        check_list_type(type, "CreateCommandAllocator", CL1)
        return CommandAllocator(self.context, CommandListType(type))

    def create_command_list(
        self,
        node_mask: int,
        type: CommandListType,
        command_allocator: CommandAllocator,
        initial_state: PipelineState | None = None,
    ) -> CommandList:
        """An open list that records with the allocator (CL2).

        Mirrors ``ID3D12Device::CreateCommandList`` (nf-d3d12-id3d12device-createcommandlist).
        ``initial_state``: the pipeline state that is set at first; None: none.
        """
        operation = "CreateCommandList"
        self.context.check_alive(operation)
        rules.check_node_mask(node_mask, operation, "nodeMask")
        check_list_type(type, operation, CL2)
        check_allocator(self.context, command_allocator, type, operation)
        if initial_state is not None:
            self.context.check_child(initial_state, PipelineState, operation, "pInitialState")
        command_list = CommandList(self.context, CommandListType(type))
        command_list.start(command_allocator, operation)
        command_list.begin_with(initial_state)
        return command_list

    def create_command_list1(
        self, node_mask: int, type: CommandListType, flags: CommandListFlags = CommandListFlags.NONE
    ) -> CommandList:
        """A closed list without an allocator (CL3).

        Mirrors ``ID3D12Device4::CreateCommandList1`` (nf-d3d12-id3d12device4-createcommandlist1).
        """
        operation = "CreateCommandList1"
        self.context.check_alive(operation)
        rules.check_node_mask(node_mask, operation, "nodeMask")
        check_list_type(type, operation, CL3)
        if integer(flags, "flags") != CommandListFlags.NONE:
            raise CL3.flags(given=flags, expected=CommandListFlags.NONE)
        return CommandList(self.context, CommandListType(type))

    def create_fence(self, initial_value: int = 0, flags: FenceFlags = FenceFlags.NONE) -> Fence:
        """A fence (FN1).  Mirrors ``ID3D12Device::CreateFence`` (nf-d3d12-id3d12device-createfence)."""
        self.context.check_alive("CreateFence")
        fence.check_flags(flags)
        fence.check_value(initial_value, "ID3D12Device::CreateFence", "InitialValue")
        lacking = OutOfMemoryGuard("CreateFence", "FN1", "", 0)
        return Fence(self.context, lacking.run(lambda: self.context.gpu.create_fence(initial_value)), flags)

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
        fence.set_event_on_multiple(self.context, fences, fence_values, flags, event)

    # --- pipelines ---

    def create_root_signature(self, node_mask: int, blob_with_root_signature: Any) -> RootSignature:
        """The root signature that bytes contain: those of a serialized one, or of a shader that has one.

        E_INVALIDARG for bytes without a valid one; E_NOTIMPL for static samplers.  Mirrors
        ``ID3D12Device::CreateRootSignature`` (nf-d3d12-id3d12device-createrootsignature).
        """
        return root_signatures.create_root_signature(self.context, blob_with_root_signature, node_mask)

    def create_compute_pipeline_state(self, desc: ComputePipelineStateDesc) -> PipelineState:
        """A compute shader, compiled to the code of this machine's CPU (PS1, PS2).

        Mirrors ``ID3D12Device::CreateComputePipelineState``
        (nf-d3d12-id3d12device-createcomputepipelinestate).  E_INVALIDARG: the bytes are not a compute shader,
        or the root signature does not bind what it uses.  E_NOTIMPL: the shader uses what is not emulated, or
        the compiler, which the extra ``hlsl`` brings, is not installed.
        """
        return pipelines.create_compute_pipeline_state(self.context, desc)

    def create_pipeline_state(
        self,
        stream: Mapping[PipelineStateSubobjectType, Any] | Sequence[tuple[PipelineStateSubobjectType, Any]],
    ) -> PipelineState:
        """As :meth:`create_compute_pipeline_state`, from subobjects: their types and values, in any order
        (PS3).

        The values are those of the fields of :class:`ComputePipelineStateDesc`; subobjects of other pipelines
        are ignored.  Mirrors ``ID3D12Device2::CreatePipelineState``
        (nf-d3d12-id3d12device2-createpipelinestate).  E_NOTIMPL: VS or MS is given, and not None.
        """
        return pipelines.create_pipeline_state(self.context, stream)

    def create_command_signature(
        self, desc: CommandSignatureDesc, root_signature: RootSignature | None = None
    ) -> CommandSignature:
        """What the commands of an ExecuteIndirect are (CS1).

        Mirrors ``ID3D12Device::CreateCommandSignature`` (nf-d3d12-id3d12device-createcommandsignature).
        E_INVALIDARG by CS1; E_NOTIMPL: commands that draw.
        """
        return command_signatures.create_command_signature(self.context, desc, root_signature)

    # --- memory ---

    def create_heap(self, desc: HeapDesc) -> Heap:
        """Memory for placed and reserved resources; E_INVALIDARG by HP1 to HP9, E_OUTOFMEMORY.

        Mirrors ``ID3D12Device::CreateHeap`` (nf-d3d12-id3d12device-createheap).
        """
        return resource_creation.create_heap(self.context, desc)

    def create_committed_resource(
        self,
        heap_properties: HeapProperties,
        heap_flags: HeapFlags,
        desc: ResourceDesc,
        initial_resource_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
    ) -> Resource:
        """A buffer with an implicit heap; E_INVALIDARG by HP3 to HP9 and RB1 to RB7, E_OUTOFMEMORY.

        Mirrors ``ID3D12Device::CreateCommittedResource``
        (nf-d3d12-id3d12device-createcommittedresource).  The memory is zero unless ``heap_flags``
        hold CREATE_NOT_ZEROED: then it is poison at strictness ``strict``.
        """
        return resource_creation.create_committed(
            self.context, heap_properties, heap_flags, desc, initial_resource_state, optimized_clear_value
        )

    def create_placed_resource(
        self,
        heap: Heap,
        heap_offset: int,
        desc: ResourceDesc,
        initial_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
    ) -> Resource:
        """A buffer at an offset in a heap, with its own address; E_INVALIDARG by PL1-PL3, RB1-RB7.

        Mirrors ``ID3D12Device::CreatePlacedResource`` (nf-d3d12-id3d12device-createplacedresource).
        Buffers may overlap (PL4); they then share bytes.
        """
        return resource_creation.create_placed(
            self.context, heap, heap_offset, desc, initial_state, optimized_clear_value
        )

    def create_reserved_resource(
        self,
        desc: ResourceDesc,
        initial_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
    ) -> Resource:
        """A buffer without memory, all tiles NULL (RS2): ``CommandQueue.update_tile_mappings`` maps them.

        Mirrors ``ID3D12Device::CreateReservedResource``
        (nf-d3d12-id3d12device-createreservedresource).  NULL tiles read 0 and drop writes.
        """
        return resource_creation.create_reserved(self.context, desc, initial_state, optimized_clear_value)

    def get_resource_allocation_info(
        self, visible_mask: int, resource_descs: Sequence[ResourceDesc]
    ) -> ResourceAllocationInfo:
        """Size and alignment of consecutively placed resources; size 2**64 - 1 for an invalid desc.

        An invalid desc is reported at strictness ``debug`` and ``strict``.  Among textures only TEXTURE2D
        has a size: that of its texels, rounded up to its alignment. On a card it may be larger.

        Mirrors ``ID3D12Device::GetResourceAllocationInfo``.
        """
        integer(visible_mask, "visibleMask")
        descs = sequence(resource_descs, "resource_descs")
        info, _ = footprints.resource_allocation_infos(self.context, descs)
        return info

    def get_resource_tiling(
        self,
        tiled_resource: Resource,
        first_subresource_tiling_to_get: int = 0,
        num_subresource_tilings: int = 1,
    ) -> ResourceTiling:
        """The tiles of a reserved buffer: one subresource, a row of tiles of 65536 bytes (RS9).

        All fields are 0 for a buffer that is not reserved.  Mirrors ``ID3D12Device::GetResourceTiling``.
        """
        self.context.check_child(tiled_resource, Resource, "GetResourceTiling", "pTiledResource")
        first = integer(first_subresource_tiling_to_get, "FirstSubresourceTilingToGet")
        count = integer(num_subresource_tilings, "NumSubresourceTilings")
        return tiles.resource_tiling(tiled_resource, max(0, first), max(0, count))

    def get_copyable_footprints(
        self,
        resource_desc: ResourceDesc,
        first_subresource: int = 0,
        num_subresources: int = 1,
        base_offset: int = 0,
    ) -> CopyableFootprints:
        """The layout of a buffer's one subresource in an upload buffer, at ``base_offset`` bytes.

        It is one row: the footprint is Width x 1 x 1 bytes of format UNKNOWN, with RowPitch rounded up to 256
        bytes.  ``num_rows`` is (1,), ``row_size_in_bytes`` (Width,) and ``total_bytes`` Width, without the
        offset; with ``num_subresources`` 0 the tuples are empty.  Mirrors
        ``ID3D12Device::GetCopyableFootprints``.

        Invalid arguments raise nothing, as on Windows: every number is all ones, and the mistake is reported
        (CF1, RB1).  A texture raises E_NOTIMPL.
        """
        return footprints.copyable_footprints(
            self.context, resource_desc, first_subresource, num_subresources, base_offset
        )

    def get_custom_heap_properties(self, node_mask: int, heap_type: HeapType) -> HeapProperties:
        """The CUSTOM heap properties equivalent to a heap type (HP8).

        Mirrors ``ID3D12Device::GetCustomHeapProperties``; an unknown type raises.
        """
        return rules.custom_properties(node_mask, heap_type)

    def make_resident(self, objects: Sequence[DeviceChild]) -> None:
        """Increments each object's residency count (RD1); mirrors ``ID3D12Device::MakeResident``."""
        residency.make_resident(self.context, objects)

    def evict(self, objects: Sequence[DeviceChild]) -> None:
        """Decrements each object's residency count; at 0, lists that use it must not be executed (RD2).

        Mirrors ``ID3D12Device::Evict``.  Contents and addresses are kept.
        """
        residency.evict(self.context, objects)

    # --- descriptors ---

    def create_descriptor_heap(self, descriptor_heap_desc: DescriptorHeapDesc) -> DescriptorHeap:
        """An array of descriptors; E_INVALIDARG by DH1 and DH2.

        Mirrors ``ID3D12Device::CreateDescriptorHeap`` (nf-d3d12-id3d12device-createdescriptorheap).
        """
        desc = descriptor_heap_desc
        self.context.check_alive("CreateDescriptorHeap")
        descriptor_heap.check_desc(desc)
        visible = bool(desc.flags & DescriptorHeapFlags.SHADER_VISIBLE)
        lacking = OutOfMemoryGuard("CreateDescriptorHeap", "DH2", "pDescriptorHeapDesc.NumDescriptors", 0)
        heap = lacking.run(lambda: self.context.gpu.descriptors.create_heap(desc.num_descriptors, visible))
        result = DescriptorHeap(self.context, desc, heap)
        self.context.descriptor_heaps[heap.cpu_start] = result
        return result

    def get_descriptor_handle_increment_size(self, descriptor_heap_type: DescriptorHeapType) -> int:
        """The distance between descriptor handles in bytes (DH4): 32 for every type.

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
        views.write_view(
            self.context,
            lambda: views.unordered_access_view(self.context, resource, counter_resource, desc),
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
        views.write_view(
            self.context,
            lambda: views.shader_resource_view(self.context, resource, desc),
            dest_descriptor,
            "CreateShaderResourceView",
        )

    def create_constant_buffer_view(self, desc: ConstantBufferViewDesc | None, dest_descriptor: int) -> None:
        """Writes a CBV of an address range; None or size 0 is a null descriptor.

        Mirrors ``ID3D12Device::CreateConstantBufferView``
        (nf-d3d12-id3d12device-createconstantbufferview).
        """
        views.write_view(
            self.context,
            lambda: views.constant_buffer_view(self.context, desc),
            dest_descriptor,
            "CreateConstantBufferView",
        )

    def copy_descriptors(
        self,
        dest_descriptor_range_starts: Sequence[int],
        dest_descriptor_range_sizes: Sequence[int] | None,
        src_descriptor_range_starts: Sequence[int],
        src_descriptor_range_sizes: Sequence[int] | None,
        descriptor_heaps_type: DescriptorHeapType,
    ) -> None:
        """Copies ranges of descriptors; sizes None means one each (DH5, DH6).

        Mirrors ``ID3D12Device::CopyDescriptors``.
        """
        if self.context.removed is not None:
            return
        try:
            descriptor_heap.copy_descriptors(
                self.context,
                dest_descriptor_range_starts,
                dest_descriptor_range_sizes,
                src_descriptor_range_starts,
                src_descriptor_range_sizes,
                descriptor_heaps_type,
                "CopyDescriptors",
            )
        except Error as error:
            self.context.reject(error)

    def copy_descriptors_simple(
        self,
        num_descriptors: int,
        dest_descriptor_range_start: int,
        src_descriptor_range_start: int,
        descriptor_heaps_type: DescriptorHeapType,
    ) -> None:
        """Copies one range of descriptors (DH5, DH6).

        Mirrors ``ID3D12Device::CopyDescriptorsSimple``.
        """
        if self.context.removed is not None:
            return
        try:
            descriptor_heap.copy_descriptors(
                self.context,
                [dest_descriptor_range_start],
                [num_descriptors],
                [src_descriptor_range_start],
                [num_descriptors],
                descriptor_heaps_type,
                "CopyDescriptorsSimple",
            )
        except Error as error:
            self.context.reject(error)

    def create_query_heap(self, desc: QueryHeapDesc) -> QueryHeap:
        """An array of timestamps; E_INVALIDARG by QY1.

        Mirrors ``ID3D12Device::CreateQueryHeap`` (nf-d3d12-id3d12device-createqueryheap).
        """
        return resource_creation.create_query_heap(self.context, desc)

    # --- properties and state ---

    def check_feature_support(self, feature: Feature, feature_support_data: Any = features.NO_INPUTS) -> Any:
        """Feature support: the struct of the feature, filled in.

        ``feature_support_data`` is needed where the struct has inputs without defaults.  Mirrors
        ``ID3D12Device::CheckFeatureSupport`` (nf-d3d12-id3d12device-checkfeaturesupport).
        E_INVALIDARG: a struct that is not the feature's (DEV8), inputs out of range (DEV9), an
        unknown feature (DEV11).
        """
        return features.answer(feature, feature_support_data)

    def get_node_count(self) -> int:
        """``ID3D12Device::GetNodeCount``: 1."""
        return 1

    def get_adapter_luid(self) -> Luid:
        """``ID3D12Device::GetAdapterLuid``."""
        return self.context.adapter.instance_luid

    def get_device_removed_reason(self) -> HResult:
        """S_OK until the device is removed, then the reason.

        Mirrors ``ID3D12Device::GetDeviceRemovedReason``.
        """
        return HResult.S_OK if self.context.removed is None else self.context.removed

    def remove_device(self) -> None:
        """Removes the device, for testing; mirrors ``ID3D12Device5::RemoveDevice``."""
        error = RM1.removed(device=self)
        self.context.remove(HResult.DXGI_ERROR_DEVICE_REMOVED, error.report)

    def report_live_device_objects(self) -> LiveObjects:
        """The unreleased objects in creation order; ``str`` of the result names their holders.

        Mirrors ``ID3D12DebugDevice::ReportLiveDeviceObjects``, which prints them.
        """
        children = self.context.live_children()
        return LiveObjects(self.context, [child for child in children if isinstance(child, DeviceChild)])

    def get_configuration_desc(self) -> DeviceConfigurationDesc:
        """How the device was made; no experimental features are enabled.

        It has the debug layer at strictness ``debug``, with GPU-based validation at ``strict``.
        Mirrors ``ID3D12DeviceConfiguration::GetDesc``.
        """
        layer, gpu_based = DeviceFlags.DEBUG_LAYER_ENABLED, DeviceFlags.GPU_BASED_VALIDATION_ENABLED
        flags = {
            Strictness.RUNTIME: DeviceFlags.NONE,
            Strictness.DEBUG: layer,
            Strictness.STRICT: layer | gpu_based,
        }
        return DeviceConfigurationDesc(flags[self.context.strictness], 0, SDK_VERSION, 0)

    def create_shared_handle(self, *arguments: Any) -> None:
        """``ID3D12Device::CreateSharedHandle`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("CreateSharedHandle", "ID3D12Device::CreateSharedHandle")

    def open_shared_handle(self, *arguments: Any) -> None:
        """``ID3D12Device::OpenSharedHandle`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("OpenSharedHandle", "ID3D12Device::OpenSharedHandle")

    def release(self) -> None:
        """Releases one reference; :func:`create_device` on a living device adds one (DEV5).

        The device is destroyed when all references and all objects it created are released.
        """
        super().release()

    def _release(self, *, emit: bool) -> None:
        with self.context.adapter.lock:
            if self.context.references == 0:
                return
            self.context.references -= 1
            if self.context.references:
                return
            super()._release(emit=emit)
            try:
                if emit:
                    self.context.emit_released(self)
                    self.context.end_program()
            finally:
                self.context.end_if_unused()
