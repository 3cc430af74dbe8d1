"""Command lists: what is recorded, checked, and handed to a queue as packets."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast

from dmlemu_hw.descriptors import DescriptorKind
from dmlemu_hw.events import Recorded
from dmlemu_hw.formats import clear_pattern
from dmlemu_hw.packets import Opcode, PacketWriter
from dmlemu_hw.queue import Queue as HardwareQueue

from ..errors import Error, HResult, Severity
from . import states
from .command_allocator import CommandAllocator
from .descriptor_heap import DescriptorHeap, find_slot
from .enums import (
    CommandListType,
    DescriptorHeapFlags,
    DescriptorHeapType,
    MessageId,
    QueryHeapType,
    QueryType,
    ResourceBarrierFlags,
    ResourceBarrierType,
    ResourceStates,
    WriteBufferImmediateMode,
)
from .object import DeviceChild
from .query_heap import QUERY_SIZE, QueryHeap
from .reports import failure, not_implemented, spell, spell_handle
from .resource import Resource
from .rules import missing_flag
from .states import Clash, Conflict, Track
from .structs import (
    RESOURCE_BARRIER_ALL_SUBRESOURCES,
    Rect,
    ResourceAliasingBarrier,
    ResourceBarrier,
    ResourceTransitionBarrier,
    ResourceUavBarrier,
    WriteBufferImmediateParameter,
)

if TYPE_CHECKING:
    from .device import Device

_Parameters = ParamSpec("_Parameters")
_Method = Callable[Concatenate["CommandList", _Parameters], None]

_DIRECT = CommandListType.DIRECT
_COMPUTE = CommandListType.COMPUTE
_COPY = CommandListType.COPY
_BUNDLE = CommandListType.BUNDLE

# Which list types may record what (section "Recording commands" of ID3D12GraphicsCommandList).
TRANSFER = frozenset({_DIRECT, _COMPUTE, _COPY})
SHADING = frozenset({_DIRECT, _COMPUTE})
SETTING = frozenset({_DIRECT, _COMPUTE, _BUNDLE})
IMMEDIATE = frozenset({_DIRECT, _COMPUTE, _COPY, _BUNDLE})


@dataclass(eq=False)
class Recording:
    """One list's commands from Reset to Close, and what executing them demands.

    It keeps the resources and heaps that its commands name: garbage collection does not free them
    under submitted work.  Releasing one explicitly does, and the GPU then faults.
    """

    serial: int
    allocator: CommandAllocator
    generation: int
    owner: str = ""
    tracks: dict[Resource, Track] = field(default_factory=dict)
    resources: set[Resource] = field(default_factory=set)
    kept: list[DeviceChild] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)
    # Last checks of ExecuteCommandLists, in recording order; each returns how to take back what it did.
    on_submit: list[Callable[[], Callable[[], None] | None]] = field(default_factory=list)
    submitted: tuple[HardwareQueue, int] | None = None
    packets: bytes = b""

    def is_needed_by(self, command_list: CommandList | None) -> bool:
        """Is the GPU still to execute it, or may ``command_list``, which recorded it, still submit it?"""
        if self.submitted is None:
            return command_list is not None and command_list._recording is self
        return not self.submitted[0].done(self.submitted[1])


def _records(
    operation: str, allowed: frozenset[CommandListType]
) -> Callable[[_Method[_Parameters]], _Method[_Parameters]]:
    """Makes a recording method: it does nothing on a removed device, checks that the list is open
    and of an allowed type, and rejects the command when its checks raise."""

    def decorate(method: _Method[_Parameters]) -> _Method[_Parameters]:
        @wraps(method)
        def record(self: CommandList, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
            if not self._may_record(operation, allowed):
                return
            try:
                method(self, *args, **kwargs)
            except Error as error:
                if error.hresult is HResult.E_NOTIMPL or not self._device._is_runtime:
                    raise
                self._reject(error)

        return cast("_Method[_Parameters]", record)

    return decorate


def _unsupported(operation: str) -> Callable[..., None]:
    def method(self: CommandList, *arguments: Any, **named: Any) -> None:
        raise not_implemented(operation, f"ID3D12GraphicsCommandList::{operation}")

    method.__doc__ = f"``ID3D12GraphicsCommandList::{operation}`` is not emulated: raises E_NOTIMPL."
    return method


class CommandList(DeviceChild):
    """Records commands; mirrors ``ID3D12GraphicsCommandList``.

    Recording methods are void in Direct3D 12.  At strictness ``debug`` and ``strict`` a wrong call
    raises :class:`dmlemu.Error`, its command is not recorded, and the list stays usable.  At
    ``runtime`` the first such error is kept and :meth:`close` raises it as E_INVALIDARG; calls on a
    closed list are ignored.

    :meth:`close` ends the recording, as ``Close`` does; :meth:`release` gives the object up.
    """

    kind = "command list"

    def __init__(self, device: Device, type: CommandListType) -> None:
        super().__init__(device)
        self._type = type
        self._is_open = False
        self._error: Error | None = None  # strictness runtime: the first one since Reset
        self._failed = False
        self._writer = PacketWriter()
        self._recording: Recording | None = None
        self._descriptor_heaps: dict[DescriptorHeapType, DescriptorHeap] = {}
        self._states = states.LIST_STATES.get(type, 0)
        self._submitted: tuple[HardwareQueue, int] | None = None

    # --- life cycle ---

    def get_type(self) -> CommandListType:
        """``ID3D12CommandList::GetType``."""
        return self._type

    def close(self) -> None:
        """Ends the recording: the list can be executed.

        Mirrors ``ID3D12GraphicsCommandList::Close`` (nf-d3d12-id3d12graphicscommandlist-close).
        E_FAIL when it is closed already (CL5).  E_INVALIDARG at strictness ``runtime`` when a
        recording call was wrong: the report is that call's.
        """
        self._device._check_alive("Close")
        if not self._is_open or self._recording is None:
            raise self._life_cycle_error(
                "LIST_CLOSED", f"{self} is closed twice.", "Close", "CL5", MessageId.COMMAND_LIST_CLOSED
            )
        recording = self._recording
        self._is_open = False
        recording.allocator._recording = None
        recording.packets = self._writer.bytes()
        recording.owner = str(self)
        if self._error is not None:
            error, self._error = self._error, None
            self._failed = True
            raise Error(HResult.E_INVALIDARG, error.report)

    def reset(self, allocator: CommandAllocator, initial_state: None = None) -> None:
        """Starts a new recording with an allocator; legal right after ExecuteCommandLists (CL6).

        Mirrors ``ID3D12GraphicsCommandList::Reset`` (nf-d3d12-id3d12graphicscommandlist-reset).
        E_FAIL while the list is open; E_INVALIDARG for an allocator of another type or one that
        another list records with (CL2, CL4).  ``initial_state`` (a pipeline state) must be None.
        """
        operation = "ID3D12GraphicsCommandList::Reset"
        self._device._check_alive("Reset")
        if self._is_open:
            raise self._life_cycle_error(
                "LIST_OPEN",
                f"{self} is reset while it is open.",
                operation,
                "CL6",
                MessageId.COMMAND_LIST_OPEN,
            )
        if initial_state is not None:
            raise not_implemented(operation, "A pipeline state")
        self._start(allocator, operation)

    def release(self) -> None:
        """Gives the list up; a recording that is open ends, so that its allocator is free again."""
        if self._is_open and self._recording is not None:
            self._recording.allocator._recording = None
            self._is_open = False
        self._recording = None
        super().release()

    def clear_state(self, pipeline_state: None = None) -> None:
        """Forgets the descriptor heaps; mirrors ``ID3D12GraphicsCommandList::ClearState`` (CL12)."""
        if self._may_record("ClearState", SETTING):
            if pipeline_state is not None:
                raise not_implemented("ClearState", "A pipeline state")
            self._descriptor_heaps = {}

    # --- copies ---

    @_records("CopyBufferRegion", TRANSFER)
    def copy_buffer_region(
        self, dst_buffer: Resource, dst_offset: int, src_buffer: Resource, src_offset: int, num_bytes: int
    ) -> None:
        """Copies ``num_bytes`` between two buffers; offsets in bytes, of any alignment.

        Mirrors ``ID3D12GraphicsCommandList::CopyBufferRegion``
        (nf-d3d12-id3d12graphicscommandlist-copybufferregion).
        """
        operation = "CopyBufferRegion"
        _check_copy_operand(dst_buffer, operation, "pDstBuffer", MessageId.COPYBUFFERREGION_NULLDST)
        _check_copy_operand(src_buffer, operation, "pSrcBuffer", MessageId.COPYBUFFERREGION_NULLSRC)
        _check_copy_range(
            dst_buffer, dst_offset, num_bytes, "Dst", MessageId.COPYBUFFERREGION_DSTRANGEOUTOFBOUNDS
        )
        _check_copy_range(
            src_buffer, src_offset, num_bytes, "Src", MessageId.COPYBUFFERREGION_SRCRANGEOUTOFBOUNDS
        )
        if dst_buffer is src_buffer:
            raise failure(
                "COPY_SAME",
                f"{dst_buffer} is both source and destination of a copy.",
                operation=operation,
                rule="CM1: ID3D12GraphicsCommandList::CopyBufferRegion",
                message_id=MessageId.COPY_ON_SAME_SUBRESOURCE,
                field="pSrcBuffer",
                given=src_buffer,
                expected="another buffer",
                object=dst_buffer,
            )
        self._use_all(operation, (dst_buffer, states.COPY_DEST), (src_buffer, states.COPY_SOURCE))
        if num_bytes:
            self._writer.copy_buffer(
                dst_buffer._address + dst_offset, src_buffer._address + src_offset, num_bytes
            )
            self._announce(Opcode.COPY_BUFFER)

    @_records("CopyResource", TRANSFER)
    def copy_resource(self, dst_resource: Resource, src_resource: Resource) -> None:
        """Copies a whole buffer into another of the same width.

        Mirrors ``ID3D12GraphicsCommandList::CopyResource``
        (nf-d3d12-id3d12graphicscommandlist-copyresource).
        """
        operation = "CopyResource"
        _check_copy_operand(dst_resource, operation, "pDstResource", MessageId.COPYRESOURCE_NULLDST)
        _check_copy_operand(src_resource, operation, "pSrcResource", MessageId.COPYRESOURCE_NULLSRC)
        if dst_resource is src_resource:
            raise failure(
                "COPY_SAME",
                f"{dst_resource} is copied onto itself.",
                operation=operation,
                rule="CM2: ID3D12GraphicsCommandList::CopyResource",
                message_id=MessageId.COPYRESOURCE_INVALIDSRCRESOURCE,
                field="pSrcResource",
                given=src_resource,
                expected="another buffer",
                object=dst_resource,
            )
        if dst_resource._width != src_resource._width:
            raise failure(
                "COPY_RANGE",
                f"{src_resource} of {src_resource._width} bytes is copied into {dst_resource} of "
                f"{dst_resource._width} bytes.",
                operation=operation,
                rule="CM2: ID3D12GraphicsCommandList::CopyResource",
                message_id=MessageId.COPYRESOURCE_INVALIDSRCRESOURCE,
                field="pSrcResource.Width",
                given=src_resource._width,
                expected=dst_resource._width,
                object=dst_resource,
                hint="CopyBufferRegion copies parts of buffers.",
            )
        self._use_all(operation, (dst_resource, states.COPY_DEST), (src_resource, states.COPY_SOURCE))
        self._writer.copy_buffer(dst_resource._address, src_resource._address, dst_resource._width)
        self._announce(Opcode.COPY_BUFFER)

    @_records("WriteBufferImmediate", IMMEDIATE)
    def write_buffer_immediate(
        self,
        params: Sequence[WriteBufferImmediateParameter],
        modes: Sequence[WriteBufferImmediateMode] | None = None,
    ) -> None:
        """Writes 32-bit values to GPU virtual addresses, each a multiple of 4.

        Mirrors ``ID3D12GraphicsCommandList2::WriteBufferImmediate``
        (nf-d3d12-id3d12graphicscommandlist2-writebufferimmediate).
        """
        operation = "WriteBufferImmediate"
        if modes is not None and len(modes) != len(params):
            raise _bad_immediate(
                "pModes", len(modes), f"{len(params)} modes", "The modes are not one per write."
            )
        writes, uses = [], []
        for i, param in enumerate(params):
            mode = WriteBufferImmediateMode.DEFAULT if modes is None else modes[i]
            uses.append((_check_immediate(self._device, i, param, mode), states.COPY_DEST))
            writes.append((param.dest, param.value, int(mode)))
        self._use_all(operation, *uses)
        if writes:
            self._writer.write_immediate(writes)
            self._announce(Opcode.WRITE_IMMEDIATE)

    # --- clears ---

    @_records("ClearUnorderedAccessViewUint", SHADING)
    def clear_unordered_access_view_uint(
        self,
        view_gpu_handle_in_current_heap: int,
        view_cpu_handle: int,
        resource: Resource,
        values: Sequence[int],
        rects: Sequence[Rect] = (),
    ) -> None:
        """Fills a view with ``values`` (four u32, of which the format's components are used).

        The GPU handle must be of the shader-visible heap that is set, the CPU handle the same view
        in a heap that is not shader-visible.  ``rects`` limit it to elements [left, right).  Mirrors
        ``ID3D12GraphicsCommandList::ClearUnorderedAccessViewUint``
        (nf-d3d12-id3d12graphicscommandlist-clearunorderedaccessviewuint).
        """
        operation = "ClearUnorderedAccessViewUint"
        raw = [int(value) for value in values]
        if len(raw) != 4 or any(not 0 <= value < 2**32 for value in raw):
            raise _bad_clear(
                operation, "Values", raw, "four unsigned 32-bit numbers", "The clear values are not four u32."
            )
        self._clear(operation, view_gpu_handle_in_current_heap, view_cpu_handle, resource, raw, rects, False)

    @_records("ClearUnorderedAccessViewFloat", SHADING)
    def clear_unordered_access_view_float(
        self,
        view_gpu_handle_in_current_heap: int,
        view_cpu_handle: int,
        resource: Resource,
        values: Sequence[float],
        rects: Sequence[Rect] = (),
    ) -> None:
        """As :meth:`clear_unordered_access_view_uint`, with values converted to the view's format.

        Mirrors ``ID3D12GraphicsCommandList::ClearUnorderedAccessViewFloat``.
        """
        operation = "ClearUnorderedAccessViewFloat"
        if len(values) != 4:
            raise _bad_clear(
                operation, "Values", len(values), "four numbers", "The clear values are not four."
            )
        raw = list(struct.unpack("<4I", struct.pack("<4f", *values)))
        self._clear(operation, view_gpu_handle_in_current_heap, view_cpu_handle, resource, raw, rects, True)

    def _clear(
        self,
        operation: str,
        gpu_handle: int,
        cpu_handle: int,
        resource: Resource,
        values: list[int],
        rects: Sequence[Rect],
        is_float: bool,
    ) -> None:
        self._check_gpu_handle(gpu_handle, operation)
        if resource is None:
            raise _bad_clear(operation, "pResource", None, "the viewed resource", "No resource is given.")
        self._device._check_child(resource, operation, "pResource")
        elements = self._check_cleared_view(cpu_handle, resource, operation)
        ranges = [_element_range(rect, elements, operation) for rect in rects]
        self._use_all(operation, (resource, states.UNORDERED_ACCESS))
        self._writer.clear_uav(gpu_handle, values, ranges, is_float=is_float)
        self._announce(Opcode.CLEAR_UAV)

    def _check_gpu_handle(self, gpu_handle: int, operation: str) -> None:
        heap = self._descriptor_heaps.get(DescriptorHeapType.CBV_SRV_UAV)
        found = self._device._gpu.descriptors.locate_gpu(gpu_handle)
        if heap is not None and found is not None and found[0] is heap._heap:
            return
        given = f"{spell_handle(gpu_handle)} of "
        if found is None:
            given += "no shader-visible heap"
        else:
            given += f"'{found[0].label}'"
        raise failure(
            "DESC_HEAP_NOT_SET",
            "The GPU descriptor handle is not of the shader-visible heap that is set on the list.",
            operation=operation,
            rule=f"CM4: ID3D12GraphicsCommandList::{operation}",
            message_id=MessageId.DESCRIPTOR_HEAP_NOT_SHADER_VISIBLE,
            field="ViewGPUHandleInCurrentHeap",
            given=given,
            expected=f"a handle of {heap}" if heap is not None else "a heap set by SetDescriptorHeaps",
            object=self,
        )

    def _check_cleared_view(self, cpu_handle: int, resource: Resource, operation: str) -> int:
        """The CPU handle holds a clearable UAV of the resource; returns its number of elements."""
        heap, _ = find_slot(self._device, cpu_handle, operation, "ViewCPUHandle")
        if heap._desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
            raise failure(
                "DESC_HEAP_KIND",
                f"The CPU descriptor handle is of {heap}, which is shader-visible: it cannot be read.",
                operation=operation,
                rule=f"DH5: ID3D12GraphicsCommandList::{operation}",
                message_id=MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
                field="ViewCPUHandle",
                given=spell_handle(cpu_handle),
                expected="a handle of a heap without SHADER_VISIBLE",
                object=heap,
            )
        view = self._device._gpu.descriptors.read(cpu_handle)
        if view.kind is not DescriptorKind.UAV:
            raise failure(
                "DESC_UNINIT" if view.kind is DescriptorKind.UNWRITTEN else "DESC_KIND",
                "The CPU descriptor handle holds no unordered access view.",
                operation=operation,
                rule=f"CM4: ID3D12GraphicsCommandList::{operation}",
                message_id=MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
                field="ViewCPUHandle",
                given=view.kind,
                expected=DescriptorKind.UAV,
                object=heap,
            )
        if view.stride:
            raise failure(
                "DESC_KIND",
                f"A structured view (StructureByteStride {view.stride}) of {resource} is cleared.",
                operation=operation,
                rule=f"CM4: ID3D12GraphicsCommandList::{operation}",
                message_id=MessageId.CLEARUNORDEREDACCESSVIEW_INCOMPATIBLE_WITH_STRUCTURED_BUFFERS,
                field="ViewCPUHandle",
                given="a structured view",
                expected="a raw or typed view",
                object=resource,
            )
        if not resource._address <= view.address < resource._address + resource._width:
            raise failure(
                "DESC_KIND",
                f"The view that is cleared is not of {resource}.",
                operation=operation,
                rule=f"CM4: ID3D12GraphicsCommandList::{operation}",
                message_id=MessageId.CLEARUNORDEREDACCESSVIEW_INVALID_RESOURCE_PTR,
                field="pResource",
                given=resource,
                expected=self._device._name_address(view.address),
                object=resource,
            )
        pattern = clear_pattern(view.format, (0, 0, 0, 0), False)
        if pattern is None:
            raise not_implemented(operation, f"Clearing a view of format {view.format}")
        return view.size // len(pattern)

    # --- barriers ---

    @_records("ResourceBarrier", TRANSFER)
    def resource_barrier(self, barriers: Sequence[ResourceBarrier] | ResourceBarrier) -> None:
        """Transitions, aliasing and UAV barriers; they take effect in order (ST14).

        Mirrors ``ID3D12GraphicsCommandList::ResourceBarrier``
        (nf-d3d12-id3d12graphicscommandlist-resourcebarrier).  When one of them is wrong, none is
        recorded.
        """
        rows = [barriers] if isinstance(barriers, ResourceBarrier) else list(barriers)
        if not rows:
            self._remark_no_barriers()
        undo: dict[Resource, Track | None] = {}
        try:
            for i, barrier in enumerate(rows):
                self._check_barrier(barrier, f"pBarriers[{i}]", undo)
        except Error:
            assert self._recording is not None
            for resource, track in undo.items():
                if track is None:
                    self._recording.tracks.pop(resource, None)
                else:
                    self._recording.tracks[resource] = track
            raise
        for barrier in rows:
            self._write_barrier(barrier)

    def _check_barrier(self, barrier: ResourceBarrier, path: str, undo: dict[Resource, Track | None]) -> None:
        inner = barrier.barrier
        kinds = {
            ResourceBarrierType.TRANSITION: ResourceTransitionBarrier,
            ResourceBarrierType.ALIASING: ResourceAliasingBarrier,
            ResourceBarrierType.UAV: ResourceUavBarrier,
        }
        if kinds.get(barrier.type) is not type(inner):
            raise self._bad_barrier(
                "ST10",
                f"Barrier type ({spell(barrier.type)}) is not the one of its contents.",
                f"{path}.Type",
                barrier.type,
                "TRANSITION, ALIASING or UAV with the struct of that name",
                MessageId.RESOURCE_BARRIER_INVALID_TYPE,
            )
        self._check_barrier_flags(barrier, path)
        if isinstance(inner, ResourceTransitionBarrier):
            self._check_transition(inner, int(barrier.flags), path, undo)
        elif isinstance(inner, ResourceUavBarrier):
            self._check_uav_barrier(inner, path)
        else:
            for resource in (inner.resource_before, inner.resource_after):
                if resource is not None:
                    self._device._check_child(resource, "ResourceBarrier", f"{path}.Aliasing")

    def _check_barrier_flags(self, barrier: ResourceBarrier, path: str) -> None:
        flags = int(barrier.flags)
        both = int(ResourceBarrierFlags.BEGIN_ONLY | ResourceBarrierFlags.END_ONLY)
        if flags & ~both or flags == both:
            raise self._bad_barrier(
                "ST13",
                f"Barrier flags ({spell(ResourceBarrierFlags(flags))}) are not one of those allowed.",
                f"{path}.Flags",
                ResourceBarrierFlags(flags),
                "NONE, BEGIN_ONLY or END_ONLY",
                MessageId.RESOURCE_BARRIER_INVALID_COMBINED_FLAGS,
                check="STATE_SPLIT",
            )
        if flags and barrier.type != ResourceBarrierType.TRANSITION:
            raise self._bad_barrier(
                "ST13",
                f"A barrier of type {spell(barrier.type)} has flag {spell(ResourceBarrierFlags(flags))}.",
                f"{path}.Flags",
                ResourceBarrierFlags(flags),
                "NONE: only transitions can be split",
                MessageId.RESOURCE_BARRIER_INVALID_SPLIT_BARRIER,
                check="STATE_SPLIT",
            )

    def _check_uav_barrier(self, barrier: ResourceUavBarrier, path: str) -> None:
        resource = barrier.resource
        if self._type == _COPY:
            raise self._bad_barrier(
                "ST17",
                "A UAV barrier is recorded on a list of type COPY.",
                f"{path}.Type",
                ResourceBarrierType.UAV,
                "a transition or an aliasing barrier",
                MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE,
                check="LIST_TYPE",
            )
        if resource is None:
            return
        self._device._check_child(resource, "ResourceBarrier", f"{path}.UAV.pResource")
        missing = missing_flag(states.UNORDERED_ACCESS, resource._flags)
        if missing is not None:
            raise self._bad_barrier(
                "ST16",
                f"A UAV barrier names {resource}, which lacks flag {spell(missing)}.",
                f"{path}.UAV.pResource",
                resource.get_desc().flags,
                spell(missing),
                MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
                resource=resource,
            )

    def _check_transition(
        self, barrier: ResourceTransitionBarrier, flags: int, path: str, undo: dict[Resource, Track | None]
    ) -> None:
        resource = barrier.resource
        path = f"{path}.Transition"
        if resource is None:
            raise self._bad_barrier(
                "ST10",
                "A transition names no resource.",
                f"{path}.pResource",
                None,
                "a resource",
                MessageId.RESOURCE_BARRIER_NULL_POINTER,
            )
        self._device._check_child(resource, "ResourceBarrier", f"{path}.pResource")
        if barrier.subresource not in (0, RESOURCE_BARRIER_ALL_SUBRESOURCES):
            raise self._bad_barrier(
                "ST10",
                f"Subresource ({barrier.subresource}) of {resource} does not exist: a buffer has one.",
                f"{path}.Subresource",
                barrier.subresource,
                "0 or ALL_SUBRESOURCES",
                MessageId.RESOURCE_BARRIER_INVALID_SUBRESOURCE,
                resource=resource,
            )
        before, after = int(barrier.state_before), int(barrier.state_after)
        self._check_transition_state(resource, before, f"{path}.StateBefore")
        self._check_transition_state(resource, after, f"{path}.StateAfter")
        if before == after:
            raise self._bad_barrier(
                "ST7",
                f"A transition of {resource} names the same state ({_state(before)}) before and after.",
                f"{path}.StateAfter",
                ResourceStates(after),
                "another state than StateBefore",
                MessageId.RESOURCE_BARRIER_MATCHING_STATES,
                check="STATE_SAME",
                resource=resource,
            )
        self._track_transition(resource, before, after, flags, path, undo)

    def _check_transition_state(self, resource: Resource, state: int, field: str) -> None:
        text = _state(state)
        if state & ~states.KNOWN_STATES:
            raise self._bad_barrier(
                "ST9",
                f"State ({text}) has bits that are not known.",
                field,
                text,
                "members of D3D12_RESOURCE_STATES",
                MessageId.RESOURCE_BARRIER_RESERVED_BITS,
                check="STATE_COMBO",
                resource=resource,
            )
        if not states.is_combination(state):
            raise self._bad_barrier(
                "ST9",
                f"State ({text}) joins a write state with another state.",
                field,
                text,
                "one write state alone, or read states only",
                MessageId.RESOURCE_BARRIER_INVALID_COMBINATION,
                check="STATE_COMBO",
                resource=resource,
            )
        if state & ~self._states:
            raise self._bad_barrier(
                "ST17" if self._type == _COPY else "ST18",
                f"State ({text}) is not one that a list of type {spell(self._type)} can express.",
                field,
                text,
                _state(self._states),
                MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE,
                check="LIST_TYPE",
                resource=resource,
            )
        if resource._fixed_states is not None and state & ~resource._fixed_states:
            raise self._bad_barrier(
                "ST6",
                f"A transition names state ({text}) of {resource}, which is in a heap of type "
                f"{spell(resource._heap_type)} and stays {_state(resource._fixed_states)}.",
                field,
                text,
                _state(resource._fixed_states),
                MessageId.RESOURCE_BARRIER_INVALID_HEAP,
                resource=resource,
            )
        missing = missing_flag(state, resource._flags)
        if missing is not None:
            raise self._bad_barrier(
                "ST16" if state & states.UNORDERED_ACCESS else "RB7",
                f"State ({text}) needs flag {spell(missing)}, which {resource} lacks.",
                field,
                text,
                f"a state that flags ({spell(resource.get_desc().flags)}) allow",
                MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
                resource=resource,
            )

    def _track_transition(
        self,
        resource: Resource,
        before: int,
        after: int,
        flags: int,
        path: str,
        undo: dict[Resource, Track | None],
    ) -> None:
        recording = self._recording
        assert recording is not None
        recording.resources.add(resource)
        if resource._fixed_states is not None:
            return
        track = recording.tracks.get(resource)
        if resource in undo:
            self._remark_duplicate(resource, path)
        else:
            undo[resource] = None if track is None else track.copy()
        if track is None:
            track = recording.tracks[resource] = Track()
        conflict = track.conflict_of_transition(before, after, flags)
        if conflict is not None:
            raise self._conflict_error(conflict, resource, "ResourceBarrier", f"{path}.StateBefore")
        track.transition(before, after, flags)

    def _write_barrier(self, barrier: ResourceBarrier) -> None:
        inner, writer = barrier.barrier, self._writer
        if isinstance(inner, ResourceTransitionBarrier):
            address = 0 if inner.resource is None else inner.resource._address
            before, after = int(inner.state_before), int(inner.state_after)
            writer.barrier(int(barrier.type), address, 0, before, after, int(barrier.flags))
        elif isinstance(inner, ResourceUavBarrier):
            address = 0 if inner.resource is None else inner.resource._address
            writer.barrier(int(barrier.type), address, 0, 0, 0, 0)
        else:
            before = 0 if inner.resource_before is None else inner.resource_before._address
            after = 0 if inner.resource_after is None else inner.resource_after._address
            writer.barrier(int(barrier.type), before, after, 0, 0, 0)
        self._announce(Opcode.BARRIER)

    def _remark_no_barriers(self) -> None:
        error = failure(
            "BARRIER_USELESS",
            "ResourceBarrier is called with no barriers.",
            operation="ResourceBarrier",
            rule="ST11: ID3D12GraphicsCommandList::ResourceBarrier",
            message_id=MessageId.RESOURCE_BARRIER_ZERO_BARRIERS,
            field="NumBarriers",
            given=0,
            expected="at least 1",
            object=self,
            severity=Severity.WARNING,
        )
        self._device._info(error)

    def _remark_duplicate(self, resource: Resource, path: str) -> None:
        error = failure(
            "STATE_COMBO",
            f"One ResourceBarrier call holds several transitions of {resource}.",
            operation="ResourceBarrier",
            rule="ST12: ID3D12GraphicsCommandList::ResourceBarrier",
            message_id=MessageId.RESOURCE_BARRIER_DUPLICATE_SUBRESOURCE_TRANSITIONS,
            field=path,
            object=resource,
            severity=Severity.WARNING,
        )
        self._device._info(error)

    def _bad_barrier(
        self,
        rule: str,
        message: str,
        field: str,
        given: Any,
        expected: Any,
        message_id: MessageId,
        check: str = "STATE_BEFORE",
        resource: Resource | None = None,
    ) -> Error:
        return failure(
            check,
            message,
            operation="ResourceBarrier",
            rule=f"{rule}: ID3D12GraphicsCommandList::ResourceBarrier",
            message_id=message_id,
            field=field,
            given=given,
            expected=expected,
            object="" if resource is None else resource,
        )

    # --- descriptor heaps ---

    @_records("SetDescriptorHeaps", SETTING)
    def set_descriptor_heaps(self, descriptor_heaps: Sequence[DescriptorHeap]) -> None:
        """Sets the shader-visible heaps: at most one of views and one of samplers (DH8).

        Mirrors ``ID3D12GraphicsCommandList::SetDescriptorHeaps``
        (nf-d3d12-id3d12graphicscommandlist-setdescriptorheaps).
        """
        chosen: dict[DescriptorHeapType, DescriptorHeap] = {}
        for i, heap in enumerate(descriptor_heaps):
            path = f"ppDescriptorHeaps[{i}]"
            if heap is None:
                raise _bad_heaps("No heap is given.", path, None, "a descriptor heap")
            self._device._check_child(heap, "SetDescriptorHeaps", path)
            desc = heap._desc
            if not desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
                raise _bad_heaps(f"{heap} is not shader-visible.", path, desc.flags, "SHADER_VISIBLE")
            if desc.type in chosen:
                message = f"{heap} is the second heap of type {spell(desc.type)}."
                raise _bad_heaps(message, path, desc.type, "at most one heap of each type")
            chosen[desc.type] = heap
        assert self._recording is not None
        self._recording.kept.extend(chosen.values())
        self._descriptor_heaps = chosen
        self._writer.set_descriptor_heaps([heap._heap.gpu_start for heap in chosen.values()])
        self._announce(Opcode.SET_DESCRIPTOR_HEAPS)

    # --- queries ---

    @_records("BeginQuery", frozenset({_DIRECT}))
    def begin_query(self, query_heap: QueryHeap, type: QueryType, index: int) -> None:
        """Timestamps have no begin: raises for them.  Other queries are not emulated.

        Mirrors ``ID3D12GraphicsCommandList::BeginQuery``.
        """
        raise failure(
            "QUERY",
            f"A query of type {spell(type)} is begun, and timestamps only end.",
            operation="BeginQuery",
            rule="QY2: ID3D12GraphicsCommandList::BeginQuery",
            message_id=MessageId.BEGIN_END_QUERY_INVALID_PARAMETERS,
            field="Type",
            given=type,
            expected="EndQuery for a TIMESTAMP",
        )

    @_records("EndQuery", TRANSFER)
    def end_query(self, query_heap: QueryHeap, type: QueryType, index: int) -> None:
        """Writes the GPU's clock into a slot of the heap when the commands before have run.

        Mirrors ``ID3D12GraphicsCommandList::EndQuery``
        (nf-d3d12-id3d12graphicscommandlist-endquery).
        """
        self._check_query(
            query_heap, type, index, 1, "EndQuery", MessageId.BEGIN_END_QUERY_INVALID_PARAMETERS
        )
        self._keep(query_heap)
        self._writer.timestamp(query_heap._allocation.address + QUERY_SIZE * index)
        self._announce(Opcode.TIMESTAMP)

    @_records("ResolveQueryData", TRANSFER)
    def resolve_query_data(
        self,
        query_heap: QueryHeap,
        type: QueryType,
        start_index: int,
        num_queries: int,
        destination_buffer: Resource,
        aligned_destination_buffer_offset: int,
    ) -> None:
        """Copies timestamps, 8 bytes each, into a buffer in state COPY_DEST.

        Mirrors ``ID3D12GraphicsCommandList::ResolveQueryData``
        (nf-d3d12-id3d12graphicscommandlist-resolvequerydata).
        """
        operation = "ResolveQueryData"
        message_id = MessageId.RESOLVE_QUERY_DATA_INVALID_PARAMETERS
        self._check_query(query_heap, type, start_index, num_queries, operation, message_id)
        if destination_buffer is None:
            raise _bad_query(
                "No destination is given.", operation, "pDestinationBuffer", None, "a buffer", message_id
            )
        self._device._check_child(destination_buffer, operation, "pDestinationBuffer")
        offset = aligned_destination_buffer_offset
        if offset < 0 or offset % QUERY_SIZE:
            message = f"Destination offset ({offset}) is not a multiple of 8."
            raise _bad_query(
                message, operation, "AlignedDestinationBufferOffset", offset, "a multiple of 8", message_id
            )
        if offset + QUERY_SIZE * num_queries > destination_buffer._width:
            message = (
                f"{num_queries} results of 8 bytes at offset {offset} run past {destination_buffer} of "
                f"{destination_buffer._width} bytes."
            )
            raise _bad_query(
                message,
                operation,
                "AlignedDestinationBufferOffset",
                offset,
                f"at most {destination_buffer._width - QUERY_SIZE * num_queries}",
                message_id,
            )
        self._use_all(operation, (destination_buffer, states.COPY_DEST))
        self._keep(query_heap)
        if num_queries:
            source = query_heap._allocation.address + QUERY_SIZE * start_index
            self._writer.resolve_query(destination_buffer._address + offset, source, num_queries)
            self._announce(Opcode.RESOLVE_QUERY)

    def _check_query(
        self, heap: QueryHeap, type: QueryType, start: int, count: int, operation: str, message_id: MessageId
    ) -> None:
        if heap is None:
            raise _bad_query(
                "No query heap is given.", operation, "pQueryHeap", None, "a query heap", message_id
            )
        self._device._check_child(heap, operation, "pQueryHeap")
        if type != QueryType.TIMESTAMP:
            message = f"Query type ({spell(type)}) does not fit {heap} of type {spell(heap._desc.type)}."
            raise _bad_query(message, operation, "Type", type, QueryType.TIMESTAMP, message_id)
        wanted = QueryHeapType.COPY_QUEUE_TIMESTAMP if self._type == _COPY else QueryHeapType.TIMESTAMP
        if heap._desc.type != wanted:
            message = f"A list of type {spell(self._type)} uses {heap} of type {spell(heap._desc.type)}."
            raise _bad_query(message, operation, "pQueryHeap", heap._desc.type, wanted, message_id)
        if start < 0 or count < 0 or start + count > heap._desc.count:
            message = f"Queries [{start}, {start + count}) run past {heap} of {heap._desc.count} queries."
            field = "Index" if operation == "EndQuery" else "StartIndex"
            raise _bad_query(message, operation, field, start, f"within [0, {heap._desc.count})", message_id)

    # --- markers ---

    def set_marker(self, metadata: int, data: bytes | str) -> None:
        """A remark for tools: metadata 0 UTF-16, 1 ANSI, 2 PIX; a str is encoded accordingly (Q5).

        Mirrors ``ID3D12GraphicsCommandList::SetMarker``.
        """
        self._mark("SetMarker", 0, metadata, data)

    def begin_event(self, metadata: int, data: bytes | str) -> None:
        """Opens a region for tools; mirrors ``ID3D12GraphicsCommandList::BeginEvent``."""
        self._mark("BeginEvent", 1, metadata, data)

    def end_event(self) -> None:
        """Ends the innermost region; mirrors ``ID3D12GraphicsCommandList::EndEvent``."""
        self._mark("EndEvent", 2, 0, b"")

    def _mark(self, operation: str, kind: int, metadata: int, data: bytes | str) -> None:
        if self._may_record(operation, IMMEDIATE):
            self._writer.marker(kind, metadata & 0xFFFFFFFF, encode_marker(metadata, data))
            self._announce(Opcode.MARKER)

    # --- not emulated; each raises E_NOTIMPL with its name ---

    atomic_copy_buffer_uint = _unsupported("AtomicCopyBufferUINT")
    atomic_copy_buffer_uint64 = _unsupported("AtomicCopyBufferUINT64")
    barrier = _unsupported("Barrier")
    copy_texture_region = _unsupported("CopyTextureRegion")
    copy_tiles = _unsupported("CopyTiles")
    discard_resource = _unsupported("DiscardResource")
    dispatch = _unsupported("Dispatch")
    draw_indexed_instanced = _unsupported("DrawIndexedInstanced")
    draw_instanced = _unsupported("DrawInstanced")
    execute_bundle = _unsupported("ExecuteBundle")
    execute_indirect = _unsupported("ExecuteIndirect")
    resolve_subresource = _unsupported("ResolveSubresource")
    set_compute_root_32bit_constant = _unsupported("SetComputeRoot32BitConstant")
    set_compute_root_32bit_constants = _unsupported("SetComputeRoot32BitConstants")
    set_compute_root_constant_buffer_view = _unsupported("SetComputeRootConstantBufferView")
    set_compute_root_descriptor_table = _unsupported("SetComputeRootDescriptorTable")
    set_compute_root_shader_resource_view = _unsupported("SetComputeRootShaderResourceView")
    set_compute_root_signature = _unsupported("SetComputeRootSignature")
    set_compute_root_unordered_access_view = _unsupported("SetComputeRootUnorderedAccessView")
    set_pipeline_state = _unsupported("SetPipelineState")
    set_predication = _unsupported("SetPredication")

    # --- for the rest of the package ---

    def _start(self, allocator: CommandAllocator, operation: str) -> None:
        """CL2, CL4: begins a recording with an allocator that is free and of the list's type."""
        device = self._device
        check_allocator(device, allocator, self._type, operation)
        allocator._recording = self
        self._recording = Recording(device._next_recording(), allocator, allocator._generation)
        device._recordings[self._recording.serial] = self._recording
        self._writer = PacketWriter()
        self._descriptor_heaps = {}
        self._error = None
        self._failed = False
        self._is_open = True

    def _may_record(self, operation: str, allowed: frozenset[CommandListType]) -> bool:
        """CL11 and the table of list types; False when the call is to do nothing."""
        if self._device._removed is not None:
            return False
        if not self._is_open:
            if not self._device._is_runtime:
                raise self._life_cycle_error(
                    "LIST_CLOSED",
                    f"{operation} is called on {self}, which is closed.",
                    operation,
                    "CL11",
                    MessageId.COMMAND_LIST_CLOSED,
                )
            return False
        if self._type not in allowed:
            self._reject(
                failure(
                    "LIST_TYPE",
                    f"{operation} is called on {self}, which is of type {spell(self._type)}.",
                    operation=operation,
                    rule=f"CL13: ID3D12GraphicsCommandList::{operation}",
                    message_id=MessageId.RESOURCE_BARRIER_INVALID_COMMAND_LIST_TYPE,
                    field="this",
                    given=self._type,
                    expected=" or ".join(spell(each) for each in sorted(allowed)),
                    object=self,
                )
            )
            return False
        return True

    def _reject(self, error: Error) -> None:
        """A recording call was wrong: raises, or at strictness runtime keeps the error for Close."""
        if not self._device._is_runtime:
            raise error
        if self._error is None:
            self._error = error

    def _use(self, resource: Resource, state: int, operation: str = "RecordDispatch") -> bool:
        """The command about to be recorded uses a resource in a state; False when it was rejected."""
        try:
            self._use_all(operation, (resource, int(state)))
        except Error as error:
            self._reject(error)
            return False
        return True

    def _use_all(self, operation: str, *uses: tuple[Resource, int]) -> None:
        """Checks all uses (ST1, ST3, ST6), then notes all of them; raises without noting any.

        Without the debug layer nobody looks at the state of a use: strictness runtime skips that.
        """
        recording = self._recording
        assert recording is not None
        tracks, resources, lenient = recording.tracks, recording.resources, self._device._is_runtime
        for resource, state in uses:
            if resource not in resources:
                self._device._check_child(resource, operation, "pResource")
                resource._check_open(operation)
            conflict = self._conflict_of_use(resource, state, tracks)
            if conflict is not None and not lenient:
                raise self._conflict_error(conflict, resource, operation, "")
        for resource, state in uses:
            resources.add(resource)
            if resource._fixed_states is None:
                track = tracks.get(resource)
                if track is None:
                    track = tracks[resource] = Track()
                if not lenient or track.conflict_of_use(state) is None:
                    track.use(state)

    @staticmethod
    def _conflict_of_use(resource: Resource, state: int, tracks: dict[Resource, Track]) -> Conflict | None:
        fixed = resource._fixed_states
        if fixed is not None:
            return Conflict(Clash.USE, fixed, False, state) if state & ~fixed else None
        track = tracks.get(resource)
        return None if track is None else track.conflict_of_use(state)

    def _conflict_error(self, conflict: Conflict, resource: Resource, operation: str, field: str) -> Error:
        return conflict_error(conflict, resource, operation, field, self)

    def _keep(self, thing: DeviceChild) -> None:
        assert self._recording is not None
        self._recording.kept.append(thing)

    def _record_named(self, text: str) -> None:
        """Labels the command just recorded, for messages."""
        assert self._recording is not None
        self._recording.labels[self._writer.count - 1] = text
        self._announce(Opcode.DISPATCH, text)

    def _announce(self, opcode: Opcode, label: str = "") -> None:
        """Tells the event stream of the command just recorded."""
        events = self._device._gpu.events
        if events and self._recording is not None:
            events.emit(Recorded(self._recording.serial, self._writer.count - 1, opcode, label))

    def _is_pending(self) -> bool:
        return self._submitted is not None and not self._submitted[0].done(self._submitted[1])

    def _life_cycle_error(
        self, check: str, message: str, operation: str, rule: str, message_id: MessageId
    ) -> Error:
        return failure(
            check,
            message,
            operation=operation,
            rule=f"{rule}: {operation}",
            hresult=HResult.E_FAIL,
            message_id=message_id,
            object=self,
        )


def check_allocator(
    device: Device, allocator: CommandAllocator | None, type: CommandListType, operation: str
) -> None:
    """CL2, CL4: an allocator that a list of ``type`` may record with now."""

    def bad(rule: str, check: str, message: str, given: Any, expected: Any, message_id: MessageId) -> Error:
        return failure(
            check,
            message,
            operation=operation,
            rule=f"{rule}: {operation}",
            message_id=message_id,
            field="pAllocator",
            given=given,
            expected=expected,
            object="" if allocator is None else allocator,
        )

    if allocator is None:
        null = MessageId.CREATECOMMANDLIST_NULL_COMMANDALLOCATOR
        raise bad("CL2", "LIST_TYPE", "No command allocator is given.", None, "a command allocator", null)
    device._check_child(allocator, operation, "pAllocator")
    if allocator._type != type:
        message = f"{allocator} is of type {spell(allocator._type)}, and the list of type {spell(type)}."
        wrong = MessageId.WRONG_COMMAND_ALLOCATOR_TYPE
        raise bad("CL2", "LIST_TYPE", message, allocator._type, type, wrong)
    if allocator._recording is not None:
        message = f"{allocator._recording} records with {allocator}, and a second list is opened on it."
        contention = MessageId.COMMAND_ALLOCATOR_CONTENTION
        raise bad(
            "CL4", "ALLOC_SHARED", message, "an allocator in use", "one that no open list uses", contention
        )


def conflict_error(
    conflict: Conflict, resource: Resource, operation: str, field: str, list: CommandList | str
) -> Error:
    """The message for a state that does not fit."""
    state, wanted = _state(conflict.state), _state(conflict.wanted)
    origin = " (promoted from COMMON)" if conflict.promoted else ""
    if conflict.clash is Clash.SPLIT:
        message = f"{resource} is touched between the begin and the end of a split barrier."
        rule, check, message_id = "ST13", "STATE_SPLIT", MessageId.RESOURCE_BARRIER_MISMATCHING_BEGIN_END
    elif conflict.clash is Clash.END:
        message = f"A split barrier of {resource} ends, and no barrier with the same states has begun."
        rule, check, message_id = "ST13", "STATE_SPLIT", MessageId.RESOURCE_BARRIER_UNMATCHED_END
    elif conflict.clash is Clash.BEFORE:
        message = (
            f"A transition of {resource} names state ({wanted}) before it; its state is {state}{origin}."
        )
        rule, check = "ST8", "STATE_BEFORE"
        message_id = MessageId.RESOURCE_BARRIER_BEFORE_AFTER_MISMATCH
    else:
        message = f"{operation} uses {resource} in state ({wanted}), and its state is {state}{origin}."
        rule = "ST6" if resource._fixed_states is not None else "ST3" if conflict.promoted else "ST1"
        check = "STATE_FOR_DISPATCH" if operation == "RecordDispatch" else "STATE_BEFORE"
        message_id = MessageId.INVALID_SUBRESOURCE_STATE
    return failure(
        check,
        message,
        operation=operation,
        rule=f"{rule}: resource states of Direct3D 12",
        message_id=message_id,
        field=field or "pResource",
        given=wanted,
        expected=f"{state}{origin}",
        object=resource,
        context=(f"While recording {list}",),
    )


def encode_marker(metadata: int, data: bytes | str) -> bytes:
    """The bytes of a marker's text: UTF-16 for metadata 0, else one byte per character."""
    if isinstance(data, bytes):
        return data
    return (data + "\0").encode("utf-16-le" if metadata == 0 else "latin-1", "replace")


def _state(state: int) -> str:
    return spell(ResourceStates(state))


def _check_copy_operand(resource: Resource | None, operation: str, field: str, message_id: MessageId) -> None:
    if resource is None:
        raise failure(
            "COPY_NULL",
            f"{field} is None.",
            operation=operation,
            rule=f"{'CM1' if operation == 'CopyBufferRegion' else 'CM2'}: ID3D12GraphicsCommandList::{operation}",
            message_id=message_id,
            field=field,
            given=None,
            expected="a buffer",
        )


def _check_copy_range(resource: Resource, offset: int, size: int, side: str, message_id: MessageId) -> None:
    if offset >= 0 and size >= 0 and offset + size <= resource._width:
        return
    raise failure(
        "COPY_RANGE",
        f"The {size} bytes at offset {offset} do not lie in {resource} of {resource._width} bytes.",
        operation="CopyBufferRegion",
        rule="CM1: ID3D12GraphicsCommandList::CopyBufferRegion",
        message_id=message_id,
        field=f"{side}Offset",
        given=f"[{offset}, {offset + size})",
        expected=f"within [0, {resource._width})",
        object=resource,
    )


def _bad_immediate(field: str, given: Any, expected: Any, message: str) -> Error:
    return failure(
        "COPY_RANGE",
        message,
        operation="WriteBufferImmediate",
        rule="CM5: ID3D12GraphicsCommandList2::WriteBufferImmediate",
        field=field,
        given=given,
        expected=expected,
    )


def _check_immediate(
    device: Device, index: int, param: WriteBufferImmediateParameter, mode: WriteBufferImmediateMode
) -> Resource:
    path = f"pParams[{index}]"
    if param.dest % 4:
        message = f"Address ({spell_handle(param.dest)}) is not a multiple of 4."
        raise _bad_immediate(f"{path}.Dest", spell_handle(param.dest), "a multiple of 4", message)
    if not 0 <= param.value < 2**32:
        message = f"Value ({param.value}) is not an unsigned 32-bit number."
        raise _bad_immediate(f"{path}.Value", param.value, "0 to 2**32 - 1", message)
    if mode not in (0, 1, 2):
        message = f"Mode ({spell(mode)}) is not known."
        raise _bad_immediate(f"pModes[{index}]", mode, "a member of D3D12_WRITEBUFFERIMMEDIATE_MODE", message)
    resource = device._resource_at(param.dest)
    if resource is None or param.dest + 4 > resource._address + resource._width:
        message = f"The 4 bytes at address ({spell_handle(param.dest)}) lie in no buffer."
        raise _bad_immediate(f"{path}.Dest", spell_handle(param.dest), "an address inside a buffer", message)
    return resource


def _bad_clear(operation: str, field: str, given: Any, expected: Any, message: str) -> Error:
    return failure(
        "CLEAR_UAV",
        message,
        operation=operation,
        rule=f"CM4: ID3D12GraphicsCommandList::{operation}",
        message_id=MessageId.CLEARUNORDEREDACCESSVIEW_INVALID_RESOURCE_PTR,
        field=field,
        given=given,
        expected=expected,
    )


def _element_range(rect: Rect, elements: int, operation: str) -> tuple[int, int]:
    if not 0 <= rect.left <= rect.right <= elements:
        message = f"Elements [{rect.left}, {rect.right}) do not lie in the view of {elements} elements."
        given = f"[{rect.left}, {rect.right})"
        raise _bad_clear(operation, "pRects", given, f"within [0, {elements})", message)
    return rect.left, rect.right


def _bad_heaps(message: str, field: str, given: Any, expected: Any) -> Error:
    return failure(
        "DESC_HEAP_NOT_VISIBLE",
        message,
        operation="SetDescriptorHeaps",
        rule="DH8: ID3D12GraphicsCommandList::SetDescriptorHeaps",
        message_id=MessageId.SET_DESCRIPTOR_HEAP_INVALID,
        field=field,
        given=given,
        expected=expected,
    )


def _bad_query(
    message: str, operation: str, field: str, given: Any, expected: Any, message_id: MessageId
) -> Error:
    return failure(
        "QUERY",
        message,
        operation=operation,
        rule=f"{'QY2' if operation == 'EndQuery' else 'QY3'}: ID3D12GraphicsCommandList::{operation}",
        message_id=message_id,
        field=field,
        given=given,
        expected=expected,
    )
