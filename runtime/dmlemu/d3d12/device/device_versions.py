"""The newer methods of ID3D12Device: numbered forms, which do what the plain ones do, or refuse by name.

Protected sessions, layouts and castable formats are for textures, or not emulated, so that nothing is left of
what they add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from ...errors import Error
from ..core.device_child import DeviceChild
from ..core.device_context import DeviceContext
from ..core.host_events import Event, notifier
from ..core.info_queue import not_implemented
from ..core.object import Object
from ..descriptors import views
from ..memory import footprints
from ..memory.query_heap import QueryHeap
from ..memory.resource import Heap, Resource
from ..memory.resource_creation import (
    create_committed,
    create_heap,
    create_placed,
    create_query_heap,
    create_reserved,
)
from ..queues.command_queue import CommandQueue, create_queue
from ..queues.fence import Fence, check_value
from ..types.arguments import callback as check_callback
from ..types.arguments import instance, integer, integers, sequence
from ..types.enums import (
    BackgroundProcessingMode,
    HeapFlags,
    MeasurementsAction,
    QueryHeapFlags,
    ResidencyFlags,
    ResourceStates,
    ShaderCacheControlFlags,
    ShaderCacheKindFlags,
)
from ..types.structs import (
    BARRIER_LAYOUT_UNDEFINED,
    ClearValue,
    CommandQueueDesc,
    ConstantBufferViewDesc,
    CopyableFootprints,
    HeapDesc,
    HeapProperties,
    QueryHeapDesc,
    ResourceAllocationInfo,
    ResourceAllocationInfo1,
    ResourceDesc,
    ResourceDesc1,
    ShaderResourceViewDesc,
    UnorderedAccessViewDesc,
)
from . import residency
from .rows import DeviceArgument

__all__ = ["NumberedMethods"]


class NumberedMethods(Object):
    """Base of the device: methods of ``ID3D12Device3`` to ``ID3D12Device15``, and settings without effect."""

    context: DeviceContext

    def __init__(self) -> None:
        super().__init__()
        self._trim_callbacks: set[int] = set()  # the cookies
        self._next_trim_cookie = 1

    # --- queues and heaps ---

    def create_command_queue1(self, desc: CommandQueueDesc, creator_id: UUID) -> CommandQueue:
        """As ``create_command_queue``; ``creator_id``, which groups queues of a library, is ignored.

        Mirrors ``ID3D12Device9::CreateCommandQueue1``.
        """
        instance(creator_id, UUID, "CreatorID")
        return create_queue(self.context, desc)

    def create_heap1(self, desc: HeapDesc, protected_session: None = None) -> Heap:
        """As ``create_heap``; mirrors ``ID3D12Device4::CreateHeap1``.

        ``protected_session`` must be None: protected memory is not emulated (E_NOTIMPL).
        """
        _check_unprotected(protected_session, "CreateHeap1")
        return create_heap(self.context, desc)

    # --- resources ---

    def create_committed_resource1(
        self,
        heap_properties: HeapProperties,
        heap_flags: HeapFlags,
        desc: ResourceDesc,
        initial_resource_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
        protected_session: None = None,
    ) -> Resource:
        """As ``create_committed_resource``; mirrors ``ID3D12Device4::CreateCommittedResource1``.

        ``protected_session`` must be None: protected memory is not emulated (E_NOTIMPL).
        """
        _check_unprotected(protected_session, "CreateCommittedResource1")
        return create_committed(
            self.context, heap_properties, heap_flags, desc, initial_resource_state, optimized_clear_value
        )

    def create_committed_resource2(
        self,
        heap_properties: HeapProperties,
        heap_flags: HeapFlags,
        desc: ResourceDesc1,
        initial_resource_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
        protected_session: None = None,
    ) -> Resource:
        """As :meth:`create_committed_resource1`; mirrors ``ID3D12Device8::CreateCommittedResource2``.

        E_INVALIDARG: the buffer has a sampler feedback region.
        """
        _check_unprotected(protected_session, "CreateCommittedResource2")
        return create_committed(
            self.context, heap_properties, heap_flags, desc, initial_resource_state, optimized_clear_value
        )

    def create_committed_resource3(
        self,
        heap_properties: HeapProperties,
        heap_flags: HeapFlags,
        desc: ResourceDesc1,
        initial_layout: int = BARRIER_LAYOUT_UNDEFINED,
        optimized_clear_value: ClearValue | None = None,
        protected_session: None = None,
        castable_formats: Sequence[int] = (),
    ) -> Resource:
        """As :meth:`create_committed_resource2`, for a buffer that starts COMMON.

        Mirrors ``ID3D12Device10::CreateCommittedResource3``.  E_INVALIDARG: a layout other than UNDEFINED, or
        castable formats, which only textures have.
        """
        _check_texture_arguments(initial_layout, castable_formats, "CreateCommittedResource3")
        return self.create_committed_resource2(
            heap_properties, heap_flags, desc, ResourceStates.COMMON, optimized_clear_value, protected_session
        )

    def create_placed_resource1(
        self,
        heap: Heap,
        heap_offset: int,
        desc: ResourceDesc1,
        initial_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
    ) -> Resource:
        """As ``create_placed_resource``; mirrors ``ID3D12Device8::CreatePlacedResource1``.

        E_INVALIDARG: the buffer has a sampler feedback region.
        """
        return create_placed(self.context, heap, heap_offset, desc, initial_state, optimized_clear_value)

    def create_placed_resource2(
        self,
        heap: Heap,
        heap_offset: int,
        desc: ResourceDesc1,
        initial_layout: int = BARRIER_LAYOUT_UNDEFINED,
        optimized_clear_value: ClearValue | None = None,
        castable_formats: Sequence[int] = (),
    ) -> Resource:
        """As :meth:`create_placed_resource1`, for a buffer that starts COMMON.

        Mirrors ``ID3D12Device10::CreatePlacedResource2``.  E_INVALIDARG: a layout other than UNDEFINED, or
        castable formats, which only textures have.
        """
        _check_texture_arguments(initial_layout, castable_formats, "CreatePlacedResource2")
        return self.create_placed_resource1(
            heap, heap_offset, desc, ResourceStates.COMMON, optimized_clear_value
        )

    def create_reserved_resource1(
        self,
        desc: ResourceDesc,
        initial_state: ResourceStates,
        optimized_clear_value: ClearValue | None = None,
        protected_session: None = None,
    ) -> Resource:
        """As ``create_reserved_resource``; mirrors ``ID3D12Device4::CreateReservedResource1``.

        ``protected_session`` must be None: protected memory is not emulated (E_NOTIMPL).
        """
        _check_unprotected(protected_session, "CreateReservedResource1")
        return create_reserved(self.context, desc, initial_state, optimized_clear_value)

    def create_reserved_resource2(
        self,
        desc: ResourceDesc,
        initial_layout: int = BARRIER_LAYOUT_UNDEFINED,
        optimized_clear_value: ClearValue | None = None,
        protected_session: None = None,
        castable_formats: Sequence[int] = (),
    ) -> Resource:
        """As :meth:`create_reserved_resource1`, for a buffer that starts COMMON.

        Mirrors ``ID3D12Device10::CreateReservedResource2``.  E_INVALIDARG: a layout other than UNDEFINED, or
        castable formats, which only textures have.
        """
        _check_texture_arguments(initial_layout, castable_formats, "CreateReservedResource2")
        return self.create_reserved_resource1(
            desc, ResourceStates.COMMON, optimized_clear_value, protected_session
        )

    def get_resource_allocation_info1(
        self, visible_mask: int, resource_descs: Sequence[ResourceDesc]
    ) -> tuple[ResourceAllocationInfo, tuple[ResourceAllocationInfo1, ...]]:
        """As ``get_resource_allocation_info``, and the place of each buffer; none if a desc is invalid.

        Mirrors ``ID3D12Device4::GetResourceAllocationInfo1``.
        """
        integer(visible_mask, "visibleMask")
        descs = sequence(resource_descs, "resource_descs")
        return footprints.resource_allocation_infos(self.context, descs)

    def get_resource_allocation_info2(
        self, visible_mask: int, resource_descs: Sequence[ResourceDesc1]
    ) -> tuple[ResourceAllocationInfo, tuple[ResourceAllocationInfo1, ...]]:
        """As :meth:`get_resource_allocation_info1`; mirrors ``ID3D12Device8::GetResourceAllocationInfo2``."""
        return self.get_resource_allocation_info1(visible_mask, resource_descs)

    def get_resource_allocation_info3(
        self,
        visible_mask: int,
        resource_descs: Sequence[ResourceDesc1],
        castable_formats: Sequence[Sequence[int]] = (),
    ) -> tuple[ResourceAllocationInfo, tuple[ResourceAllocationInfo1, ...]]:
        """As :meth:`get_resource_allocation_info2`; mirrors ``ID3D12Device12::GetResourceAllocationInfo3``.

        ``castable_formats``, a sequence for each desc, change no size.
        """
        sequence(castable_formats, "castable_formats")
        return self.get_resource_allocation_info2(visible_mask, resource_descs)

    def get_copyable_footprints1(
        self,
        resource_desc: ResourceDesc1,
        first_subresource: int = 0,
        num_subresources: int = 1,
        base_offset: int = 0,
    ) -> CopyableFootprints:
        """As ``get_copyable_footprints``; mirrors ``ID3D12Device8::GetCopyableFootprints1``."""
        return footprints.copyable_footprints(
            self.context, resource_desc, first_subresource, num_subresources, base_offset
        )

    # --- descriptors and queries ---

    def try_create_shader_resource_view(
        self, resource: Resource | None, desc: ShaderResourceViewDesc | None, dest_descriptor: int
    ) -> None:
        """As ``create_shader_resource_view``; a wrong argument is E_INVALIDARG at every strictness.

        Mirrors ``ID3D12Device15::TryCreateShaderResourceView``.
        """
        views.try_write_view(
            self.context,
            lambda: views.shader_resource_view(self.context, resource, desc),
            dest_descriptor,
            "TryCreateShaderResourceView",
        )

    def try_create_unordered_access_view(
        self,
        resource: Resource | None,
        counter_resource: Resource | None,
        desc: UnorderedAccessViewDesc | None,
        dest_descriptor: int,
    ) -> None:
        """As ``create_unordered_access_view``; a wrong argument is E_INVALIDARG at every strictness.

        Mirrors ``ID3D12Device15::TryCreateUnorderedAccessView``.
        """
        views.try_write_view(
            self.context,
            lambda: views.unordered_access_view(self.context, resource, counter_resource, desc),
            dest_descriptor,
            "TryCreateUnorderedAccessView",
        )

    def try_create_constant_buffer_view(
        self, desc: ConstantBufferViewDesc | None, dest_descriptor: int
    ) -> None:
        """As ``create_constant_buffer_view``; a wrong argument is E_INVALIDARG at every strictness.

        Mirrors ``ID3D12Device15::TryCreateConstantBufferView``.
        """
        views.try_write_view(
            self.context,
            lambda: views.constant_buffer_view(self.context, desc),
            dest_descriptor,
            "TryCreateConstantBufferView",
        )

    def create_query_heap1(
        self, desc: QueryHeapDesc, flags: QueryHeapFlags = QueryHeapFlags.NONE
    ) -> QueryHeap:
        """As ``create_query_heap``; mirrors ``ID3D12Device15::CreateQueryHeap1``.

        CPU_RESOLVE is not emulated (E_NOTIMPL).  E_INVALIDARG: unknown flags.
        """
        operation = "CreateQueryHeap1"
        _check_flags(flags, QueryHeapFlags, "Flags", operation)
        if int(flags) & QueryHeapFlags.CPU_RESOLVE:
            raise not_implemented(operation, "Query heap flag CPU_RESOLVE")
        return create_query_heap(self.context, desc)

    # --- residency ---

    def set_residency_priority(self, objects: Sequence[DeviceChild], priorities: Sequence[int]) -> None:
        """Checks its arguments and does nothing more: all memory of the emulated GPU stays where it is.

        Mirrors ``ID3D12Device1::SetResidencyPriority``.  Any number is a priority.  E_INVALIDARG: an object
        of another device, or not one priority for each object.
        """
        operation = "SetResidencyPriority"
        count = residency.check_objects(self.context, objects, operation)
        numbers = integers(priorities, "pPriorities")
        if len(numbers) != count:
            raise _wrong(
                "pPriorities", f"{len(numbers)} priorities", f"one for each of {count} objects", operation
            )

    def enqueue_make_resident(
        self, flags: ResidencyFlags, objects: Sequence[DeviceChild], fence_to_signal: Fence, fence_value: int
    ) -> None:
        """As ``make_resident``, which is done at once; then the fence is signalled.

        Mirrors ``ID3D12Device3::EnqueueMakeResident``.
        """
        operation = "EnqueueMakeResident"
        _check_flags(flags, ResidencyFlags, "Flags", operation)
        self.context.check_child(fence_to_signal, Fence, operation, "pFenceToSignal")
        check_value(fence_value, operation, "FenceValueToSignal")
        residency.make_resident(self.context, objects)
        fence_to_signal.signal(fence_value)

    def register_trim_notification_callback(self, callback: Callable[[Any], object]) -> int:
        """Returns a cookie, and never calls ``callback``: memory of the emulated GPU is not trimmed.

        Mirrors ``ID3D12Device15::RegisterTrimNotificationCallback``.
        """
        self.context.check_alive("RegisterTrimNotificationCallback")
        check_callback(callback, "pfnCallback")
        cookie = self._next_trim_cookie
        self._next_trim_cookie += 1
        self._trim_callbacks.add(cookie)
        return cookie

    def unregister_trim_notification_callback(self, callback_cookie: int) -> None:
        """E_INVALIDARG: no callback has that cookie.

        Mirrors ``ID3D12Device15::UnregisterTrimNotificationCallback``.
        """
        cookie = integer(callback_cookie, "CallbackCookie")
        if cookie not in self._trim_callbacks:
            expected = "a cookie that RegisterTrimNotificationCallback returned"
            raise _wrong("CallbackCookie", cookie, expected, "UnregisterTrimNotificationCallback")
        self._trim_callbacks.remove(cookie)

    # --- settings ---

    def set_stable_power_state(self, enable: bool) -> None:
        """Does nothing: the clock of the emulated GPU is always stable.

        Mirrors ``ID3D12Device::SetStablePowerState``.
        """
        integer(enable, "Enable")
        self.context.check_alive("SetStablePowerState")

    def set_background_processing_mode(
        self,
        mode: BackgroundProcessingMode,
        measurements_action: MeasurementsAction,
        event: Event | int | None = None,
    ) -> bool:
        """Sets the event, an object with ``set()`` or an eventfd, and does nothing more.

        Returns whether further measurements are wanted: False, since drivers here compile nothing in the
        background.  Mirrors ``ID3D12Device6::SetBackgroundProcessingMode``.  E_HANDLE: no eventfd.
        """
        operation = "SetBackgroundProcessingMode"
        self.context.check_alive(operation)
        _check_member(mode, BackgroundProcessingMode, "Mode", operation)
        _check_member(measurements_action, MeasurementsAction, "MeasurementsAction", operation)
        if event is not None:
            notifier(event)()
        return False

    def shader_cache_control(self, kinds: ShaderCacheKindFlags, control: ShaderCacheControlFlags) -> None:
        """Checks its arguments and does nothing more: there are no shader caches.

        Mirrors ``ID3D12Device9::ShaderCacheControl``.  E_INVALIDARG: unknown flags, or DISABLE with ENABLE.
        """
        operation = "ShaderCacheControl"
        self.context.check_alive(operation)
        both = ShaderCacheControlFlags.DISABLE | ShaderCacheControlFlags.ENABLE
        _check_flags(kinds, ShaderCacheKindFlags, "Kinds", operation)
        _check_flags(control, ShaderCacheControlFlags, "Control", operation)
        if int(control) & both == both:
            raise _wrong("Control", control, "DISABLE or ENABLE, not both", operation)

    # --- not emulated; each raises E_NOTIMPL with its name ---

    def resolve_query_data(self, *arguments: Any) -> None:
        """``ID3D12Device15::ResolveQueryData``, on the CPU, is not emulated: raises E_NOTIMPL."""
        raise not_implemented("ResolveQueryData", "ID3D12Device15::ResolveQueryData")

    def open_existing_heap_from_address(self, *arguments: Any) -> None:
        """``ID3D12Device3::OpenExistingHeapFromAddress`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("OpenExistingHeapFromAddress", "ID3D12Device3::OpenExistingHeapFromAddress")

    def open_existing_heap_from_address1(self, *arguments: Any) -> None:
        """``ID3D12Device13::OpenExistingHeapFromAddress1`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("OpenExistingHeapFromAddress1", "ID3D12Device13::OpenExistingHeapFromAddress1")

    def open_existing_heap_from_file_mapping(self, *arguments: Any) -> None:
        """``ID3D12Device3::OpenExistingHeapFromFileMapping`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented(
            "OpenExistingHeapFromFileMapping", "ID3D12Device3::OpenExistingHeapFromFileMapping"
        )


def _wrong(field: str, given: object, expected: str, operation: str) -> Error:
    return DeviceArgument.out_of_range(
        field=field,
        given=given,
        expected=expected,
        page=f"ID3D12Device::{operation}",
        operation=operation,
    )


def _check_member(value: int, kind: Any, field: str, operation: str) -> None:
    if integer(value, field) not in list(kind):
        names = ", ".join(each.name for each in kind)
        raise _wrong(field, value, f"one of {names}", operation)


def _check_flags(value: int, kind: Any, field: str, operation: str) -> None:
    if integer(value, field) & ~sum(kind):
        names = ", ".join(each.name for each in kind)
        raise _wrong(field, value, f"made of {names}", operation)


def _check_unprotected(session: object, operation: str) -> None:
    if session is not None:
        raise not_implemented(operation, "A protected session")


def _check_texture_arguments(layout: int, formats: Sequence[int], operation: str) -> None:
    """A buffer has neither a layout nor formats that it can be cast to."""
    if integer(layout, "initial_layout") & 0xFFFF_FFFF != BARRIER_LAYOUT_UNDEFINED:
        raise _wrong("InitialLayout", layout, "UNDEFINED, as buffers have no layout", operation)
    count = len(sequence(formats, "castable_formats"))
    if count:
        raise _wrong("NumCastableFormats", count, "0: only textures are cast", operation)
