"""Command lists: recording methods, which check their arguments and write packets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from dmlemu_hw.packets import Opcode, disassemble

from ...errors import Error, HResult
from ..barriers.barrier_structs import ResourceBarrier
from ..barriers.barriers import check_barriers, named_by, no_barriers, packet_of
from ..core import states
from ..core.recording import DRAWING, IMMEDIATE, SETTING, SHADING, TRANSFER
from ..descriptors.descriptor_heap import DescriptorHeap
from ..memory.query_heap import (
    QUERY_SIZE,
    QueryHeap,
    begin_error,
    check_end,
    check_ended,
    check_resolve,
    mark_ended,
)
from ..memory.resource import Resource
from ..pipelines.pipeline_state import PipelineState
from ..types.arguments import floats, instance, integer, sequence
from ..types.enums import (
    CommandListType,
    QueryType,
    WriteBufferImmediateMode,
)
from ..types.structs import (
    Rect,
    WriteBufferImmediateParameter,
)
from . import command_validation
from .command_allocator import CommandAllocator
from .compute_commands import ComputeCommands
from .list_recorder import ListRecording
from .recording_method import records, unsupported
from .rows import CL5, CL6

__all__ = ["SHADING", "CommandList", "ListRecording"]


class CommandList(ComputeCommands):
    """Records commands; mirrors ``ID3D12GraphicsCommandList``.

    Recording methods are void in Direct3D 12.  At strictness ``debug`` and ``strict`` an invalid call
    raises :class:`dmlemu.Error`, its command is not recorded, and the list stays usable.  At
    ``runtime`` the first such error is kept and :meth:`close` raises it as E_INVALIDARG; calls on a
    closed list are ignored, and resource states are not checked.

    Every recording method raises E_FAIL on a closed list (CL11), and E_INVALIDARG on a list of a type that
    cannot record it (CL13) or for an object that was released (CL9) or belongs to another device (OB3).  A
    method names its other errors; all are E_INVALIDARG unless it says otherwise.

    :meth:`close` ends the recording, as ``Close`` does; :meth:`release` releases the object.
    """

    # --- life cycle ---

    def get_type(self) -> CommandListType:
        """``ID3D12CommandList::GetType``; legal in every state of the list."""
        return self.type

    def close(self) -> None:
        """Ends the recording: the list can be executed.

        Mirrors ``ID3D12GraphicsCommandList::Close`` (nf-d3d12-id3d12graphicscommandlist-close).
        E_FAIL when it is already closed (CL5).  E_INVALIDARG at strictness ``runtime`` when a
        recording call was invalid, with the report of that call.
        """
        self.check_open("Close")
        self.context.check_alive("Close")
        if not self.is_open or self.recording is None:
            raise CL5.closed(self, context=self.turned)
        recording = self.recording
        recording.packets = self.writer.bytes()
        recording.owner = str(self)
        self._opened_or_closed_at = self.context.here()
        self.is_open = False  # an exception before this line leaves the list open
        recording.allocator.recorder = None
        if self._error is not None:
            error, self._error = self._error, None
            self.failed = True
            failed = Error(HResult.E_INVALIDARG, error.report)
            failed.is_stored = error.is_stored
            raise failed

    def reset(self, allocator: CommandAllocator, initial_state: PipelineState | None = None) -> None:
        """Starts a new recording with an allocator; legal right after ExecuteCommandLists (CL6).

        Mirrors ``ID3D12GraphicsCommandList::Reset`` (nf-d3d12-id3d12graphicscommandlist-reset).
        E_FAIL while the list is open; E_INVALIDARG for an allocator of another type or one that
        another list records with (CL2, CL4).  ``initial_state``: as :meth:`set_pipeline_state`.
        """
        operation = "ID3D12GraphicsCommandList::Reset"
        self.check_open("Reset")
        self.context.check_alive("Reset")
        if self.is_open:
            raise CL6.open(self, operation=operation, context=self.turned)
        self.check_pipeline(initial_state, operation, "pInitialState")
        self.start(allocator, operation)
        self.begin_with(initial_state)

    def disassemble(self) -> str:
        """Disassembles the closed list: its packets, one per line, grouped by the command that wrote them.

        A line holds number and offset of the packet, its name and its fields.  Not in Direct3D 12.
        E_FAIL while the list is open.
        """
        self.check_open("disassemble")
        if self.is_open:
            raise CL6.no_packets(self, context=self.turned, page="disassemble", operation="disassemble")
        if self.recording is None:  # created closed
            return ""
        lines: list[str] = []
        last = -1
        packets = disassemble(self.recording.packets).splitlines()
        for command, packet in zip(self.recording.commands, packets, strict=True):
            if command.number != last:
                last = command.number
                at = f" ({command.recorded_at})" if command.recorded_at else ""
                lines.append(f"{command.name}{at}")
            lines.append(packet)
        return "\n".join(lines)

    def _free(self) -> None:  # end an open recording, so that its allocator is free again
        if self.is_open and self.recording is not None:
            self.is_open = False
            self.recording.allocator.recorder = None
        self.recording = None

    @records("ClearState", SETTING)
    def clear_state(self, pipeline_state: PipelineState | None = None) -> None:
        """Unsets the descriptor heaps, the root signature and its arguments (CL12).

        ``pipeline_state``: what is set from then on; None: nothing.  Mirrors
        ``ID3D12GraphicsCommandList::ClearState``.
        """
        self.check_pipeline(pipeline_state, "ClearState", "pPipelineState")
        self.descriptor_heaps = {}
        self.begin_with(pipeline_state)

    # --- copies and writes ---

    @records("CopyBufferRegion", TRANSFER)
    def copy_buffer_region(
        self, dst_buffer: Resource, dst_offset: int, src_buffer: Resource, src_offset: int, num_bytes: int
    ) -> None:
        """Copies ``num_bytes`` between two buffers; offsets in bytes, of any alignment.

        Within one buffer a copy is refused at strictness ``debug`` and ``strict``; at ``runtime`` it is made.
        Mirrors ``ID3D12GraphicsCommandList::CopyBufferRegion``
        (nf-d3d12-id3d12graphicscommandlist-copybufferregion).

        Raises for a missing buffer, bytes outside of one, or a copy within one (CM1), and for a buffer in
        another state than COPY_SOURCE and COPY_DEST (ST1, ST3, ST6).
        """
        command_validation.check_copy_buffer_region(dst_buffer, dst_offset, src_buffer, src_offset, num_bytes)
        if dst_buffer is src_buffer:
            self.context.object_to(command_validation.same_buffer(dst_buffer))
        uses = (dst_buffer, states.COPY_DEST, "pDstBuffer"), (src_buffer, states.COPY_SOURCE, "pSrcBuffer")
        self.use_all("CopyBufferRegion", *uses, executes=num_bytes != 0)
        if num_bytes:
            destination, source = dst_buffer.address + dst_offset, src_buffer.address + src_offset
            self.writer.copy_buffer(destination, source, num_bytes)
            self.announce(Opcode.COPY_BUFFER, "CopyBufferRegion", ("pSrcBuffer", "pDstBuffer"))

    @records("CopyResource", TRANSFER)
    def copy_resource(self, dst_resource: Resource, src_resource: Resource) -> None:
        """Copies a whole buffer into another of the same width.

        Mirrors ``ID3D12GraphicsCommandList::CopyResource``
        (nf-d3d12-id3d12graphicscommandlist-copyresource).

        Raises for a missing buffer, one buffer given twice, or different widths (CM2), and for a buffer in
        another state than COPY_SOURCE and COPY_DEST (ST1, ST3, ST6).
        """
        command_validation.check_copy_resource(dst_resource, src_resource)
        target = dst_resource, states.COPY_DEST, "pDstResource"
        self.use_all("CopyResource", target, (src_resource, states.COPY_SOURCE, "pSrcResource"))
        self.writer.copy_buffer(dst_resource.address, src_resource.address, dst_resource.width)
        self.announce(Opcode.COPY_BUFFER, "CopyResource", ("pSrcResource", "pDstResource"))

    @records("WriteBufferImmediate", IMMEDIATE, "ID3D12GraphicsCommandList2")
    def write_buffer_immediate(
        self,
        params: Sequence[WriteBufferImmediateParameter],
        modes: Sequence[WriteBufferImmediateMode] | None = None,
    ) -> None:
        """Writes 32-bit values to GPU virtual addresses, which must be multiples of 4.

        Mirrors ``ID3D12GraphicsCommandList2::WriteBufferImmediate``
        (nf-d3d12-id3d12graphicscommandlist2-writebufferimmediate).

        Raises for an address that is not a multiple of 4 or lies in no buffer, a value of more than 32 bits,
        or another number of modes than writes (CM5), and for a buffer that is not in COPY_DEST (ST1, ST3,
        ST6).
        """
        writes = command_validation.check_immediate(self.context, params, modes)
        names = tuple(f"pParams[{i}]" for i in range(len(writes)))
        uses = [(write[0], states.COPY_DEST, name) for write, name in zip(writes, names, strict=True)]
        self.use_all("WriteBufferImmediate", *uses)
        if writes:
            self.writer.write_immediate([write for _, write in writes])
            self.announce(Opcode.WRITE_IMMEDIATE, "WriteBufferImmediate", names)

    # --- clears ---

    @records("ClearUnorderedAccessViewUint", SHADING)
    def clear_unordered_access_view_uint(
        self,
        view_gpu_handle_in_current_heap: int,
        view_cpu_handle: int,
        resource: Resource,
        values: Sequence[int],
        rects: Sequence[Rect] = (),
    ) -> None:
        """Fills a view with ``values`` (four u32; the view's format uses as many as it has components).

        The GPU handle must belong to the shader-visible heap that is set; the CPU handle is the same view
        in a heap that is not shader-visible.  ``rects`` limit it to elements [left, right).  Mirrors
        ``ID3D12GraphicsCommandList::ClearUnorderedAccessViewUint``
        (nf-d3d12-id3d12graphicscommandlist-clearunorderedaccessviewuint).

        Raises for a GPU handle that is not of the heap that is set, a CPU handle without an unordered access
        view of ``resource`` that is raw or typed, other values than four of 32 bits, or a rect outside of
        the view (CM4); for a CPU handle of no heap (DH4) or of a shader-visible one (DH5); and for a resource
        that is not in UNORDERED_ACCESS (ST1, ST3).
        """
        operation = "ClearUnorderedAccessViewUint"
        raw = command_validation.check_clear_values(operation, values)
        self._clear(operation, view_gpu_handle_in_current_heap, view_cpu_handle, resource, raw, rects, False)

    @records("ClearUnorderedAccessViewFloat", SHADING)
    def clear_unordered_access_view_float(
        self,
        view_gpu_handle_in_current_heap: int,
        view_cpu_handle: int,
        resource: Resource,
        values: Sequence[float],
        rects: Sequence[Rect] = (),
    ) -> None:
        """As :meth:`clear_unordered_access_view_uint`, with values converted to the view's format.

        Mirrors ``ID3D12GraphicsCommandList::ClearUnorderedAccessViewFloat``.  Raises the same errors.
        """
        operation = "ClearUnorderedAccessViewFloat"
        with np.errstate(over="ignore"):  # becomes infinite, as the conversion to FLOAT makes it
            bits = np.array(floats(values, "values")).astype(np.float32).view(np.uint32)
        raw = command_validation.check_clear_values(operation, bits.tolist())
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
        ranges = command_validation.check_clear(self, operation, gpu_handle, cpu_handle, resource, rects)
        self.use_all(operation, (resource, states.UNORDERED_ACCESS, "pResource"))
        self.need(*self.descriptor_heaps.values())
        self.writer.clear_uav(gpu_handle, values, ranges, is_float=is_float)
        self.announce(Opcode.CLEAR_UAV, operation, ("pResource",))

    # --- barriers and descriptor heaps ---

    @records("ResourceBarrier", TRANSFER)
    def resource_barrier(self, barriers: Sequence[ResourceBarrier] | ResourceBarrier) -> None:
        """Records transition, aliasing and UAV barriers, which take effect in order (ST14).

        Mirrors ``ID3D12GraphicsCommandList::ResourceBarrier``
        (nf-d3d12-id3d12graphicscommandlist-resourcebarrier).  If one of them is invalid, none is
        recorded.

        Raises for a barrier without a resource or of an unknown type (ST10), a state that the resource, its
        heap or the list cannot have (ST6, ST9, ST16 to ST18), equal states (ST7), a state before that is not
        the tracked one (ST8), and halves of a split barrier that do not match (ST13).
        """
        if barriers is None:
            raise no_barriers()
        rows = [barriers] if isinstance(barriers, ResourceBarrier) else sequence(barriers, "barriers")
        assert self.recording is not None
        check_barriers(self, self.recording, rows)
        site = self.context.here()
        for barrier in rows:
            named = named_by(barrier)
            if named:
                self.need(*named)
            self.writer.barrier(*packet_of(barrier))
            self.announce(Opcode.BARRIER, "ResourceBarrier", site=site)

    @records("SetDescriptorHeaps", SETTING)
    def set_descriptor_heaps(self, descriptor_heaps: Sequence[DescriptorHeap]) -> None:
        """Sets the shader-visible heaps: at most one CBV_SRV_UAV and one SAMPLER heap (DH8).

        Mirrors ``ID3D12GraphicsCommandList::SetDescriptorHeaps``
        (nf-d3d12-id3d12graphicscommandlist-setdescriptorheaps).  Raises for a missing heap, one that is not
        shader-visible, and a second one of the same type (DH8).
        """
        chosen = command_validation.check_heaps(self.context, descriptor_heaps)
        for heap in chosen.values():
            self.need(heap)
        self.change_heaps(chosen)
        self.writer.set_descriptor_heaps([heap.hardware.gpu_start for heap in chosen.values()])
        self.announce(Opcode.SET_DESCRIPTOR_HEAPS, "SetDescriptorHeaps")

    # --- queries ---

    @records("BeginQuery", DRAWING)
    def begin_query(self, query_heap: QueryHeap, type: QueryType, index: int) -> None:
        """Always invalid: timestamps have only EndQuery, other queries are not emulated (QY2).

        Mirrors ``ID3D12GraphicsCommandList::BeginQuery``.  Raises QY2 whatever is given.
        """
        raise begin_error(type)

    @records("EndQuery", TRANSFER)
    def end_query(self, query_heap: QueryHeap, type: QueryType, index: int) -> None:
        """Writes the GPU's clock to a slot of the heap when all preceding commands have run.

        Mirrors ``ID3D12GraphicsCommandList::EndQuery``
        (nf-d3d12-id3d12graphicscommandlist-endquery).  Raises for a missing heap, one of a type that does not
        fit the list, a query type other than TIMESTAMP, and a slot past the heap's end (QY2).
        """
        check_end(self, query_heap, type, index)
        self.need(query_heap)
        self.writer.timestamp(query_heap.allocation.address + QUERY_SIZE * index)
        self.announce(Opcode.TIMESTAMP, "EndQuery", ("pQueryHeap",))
        if self.context.has_layer:
            self.at_submit(partial(mark_ended, query_heap, index))

    @records("ResolveQueryData", TRANSFER)
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
        (nf-d3d12-id3d12graphicscommandlist-resolvequerydata).  Raises as :meth:`end_query` does, for slots
        past the heap's end, for an offset that is not a multiple of 8, for results past the buffer's end
        (QY3), and for a buffer that is not in COPY_DEST (ST1, ST3, ST6).
        """
        offset = aligned_destination_buffer_offset
        check_resolve(self, query_heap, type, start_index, num_queries, destination_buffer, offset)
        use = destination_buffer, states.COPY_DEST, "pDestinationBuffer"
        self.use_all("ResolveQueryData", use, executes=num_queries != 0)
        if num_queries:
            self.need(query_heap)
            source = query_heap.allocation.address + QUERY_SIZE * start_index
            self.writer.resolve_query(destination_buffer.address + offset, source, num_queries)
            self.announce(Opcode.RESOLVE_QUERY, "ResolveQueryData", ("pQueryHeap", "pDestinationBuffer"))
            if self.context.has_layer:
                here = self.context.here()
                self.at_submit(partial(check_ended, str(self), query_heap, start_index, num_queries, here))

    # --- markers ---

    def set_marker(self, metadata: int, data: bytes | str) -> None:
        """A marker for tools: metadata 0 UTF-16, 1 ANSI, 2 PIX; a str is encoded accordingly (Q5).

        Mirrors ``ID3D12GraphicsCommandList::SetMarker``.  TypeError: ``data`` is neither bytes nor a str.
        """
        self._mark("SetMarker", 0, metadata, data)

    def begin_event(self, metadata: int, data: bytes | str) -> None:
        """Opens a region for tools; mirrors ``ID3D12GraphicsCommandList::BeginEvent``.

        TypeError: ``data`` is neither bytes nor a str.
        """
        self._mark("BeginEvent", 1, metadata, data)

    def end_event(self) -> None:
        """Ends the innermost region; mirrors ``ID3D12GraphicsCommandList::EndEvent``.

        Raises nothing if no region is open.
        """
        self._mark("EndEvent", 2, 0, b"")

    def _mark(self, operation: str, kind: int, metadata: int, data: bytes | str) -> None:
        if self.may_record(operation, IMMEDIATE):
            metadata = integer(metadata, "metadata") & 0xFFFFFFFF
            self.writer.marker(kind, metadata, encode_marker(metadata, data))
            self.announce(Opcode.MARKER, operation)

    # --- not emulated; each raises E_NOTIMPL with its name ---

    atomic_copy_buffer_uint = unsupported("AtomicCopyBufferUINT")
    atomic_copy_buffer_uint64 = unsupported("AtomicCopyBufferUINT64")
    barrier = unsupported("Barrier")
    copy_texture_region = unsupported("CopyTextureRegion")
    copy_tiles = unsupported("CopyTiles")
    discard_resource = unsupported("DiscardResource")
    draw_indexed_instanced = unsupported("DrawIndexedInstanced")
    draw_instanced = unsupported("DrawInstanced")
    execute_bundle = unsupported("ExecuteBundle")
    resolve_subresource = unsupported("ResolveSubresource")
    set_predication = unsupported("SetPredication")


def encode_marker(metadata: int, data: bytes | str) -> bytes:
    """The bytes of a marker's text: UTF-16 for metadata 0, else one byte per character."""
    if isinstance(data, bytes):
        return data
    data = instance(data, str, "data")
    return (data + "\0").encode("utf-16-le" if metadata == 0 else "latin-1", "replace")
