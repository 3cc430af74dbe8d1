"""Argument checks of recorded commands: copies, clears, immediate writes, descriptor heaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dmlemu_hw.descriptors import DescriptorKind
from dmlemu_hw.formats import element_size

from ...errors import Error, number_of
from ..core.info_queue import refusal, spell, spell_handle, spell_object
from ..core.rows import DESC_KIND, DESC_UNINIT
from ..descriptors.descriptor_heap import DescriptorHeap, find_slot
from ..descriptors.rows import DESC_HEAP_KIND, DESC_HEAP_NOT_VISIBLE
from ..memory.resource import Resource, resource_at
from ..types.arguments import instance, integer, integers, sequence
from ..types.enums import DescriptorHeapFlags, DescriptorHeapType, MessageId, WriteBufferImmediateMode
from ..types.structs import Rect, WriteBufferImmediateParameter
from .rows import BIND_RANGE, COPY_NULL, COPY_RANGE, COPY_SAME, DESC_HEAP_NOT_SET

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext
    from .list_recorder import ListRecorder


# --- copies (CM1, CM2) ---


def _check_buffer(resource: object, refused: Callable[..., Error], field: str, null: MessageId) -> None:
    """Checks that the argument is a buffer; lifetime and device are checked where it is used."""
    if resource is None:
        raise refused(
            COPY_NULL,
            "A buffer is copied, and {field} is {given}.",
            field=field,
            given=None,
            expected="a buffer",
            message_id=null,
        )
    if not isinstance(resource, Resource):
        given = spell_object(resource)
        raise refused(
            COPY_NULL,
            "{field} ({given}) is not a buffer.",
            field=field,
            given=given,
            expected="a buffer",
            rule="OB3",
            message_id=0,
        )


def check_copy_buffer_region(
    dst: Resource, dst_offset: int, src: Resource, src_offset: int, size: int
) -> None:
    """CM1."""
    operation = "CopyBufferRegion"
    refused = partial(
        refusal, operation=operation, rule="CM1", page=f"ID3D12GraphicsCommandList::{operation}"
    )
    _check_buffer(dst, refused, "pDstBuffer", MessageId.COPYBUFFERREGION_NULLDST)
    _check_buffer(src, refused, "pSrcBuffer", MessageId.COPYBUFFERREGION_NULLSRC)
    for resource, offset, field, outside in (
        (dst, dst_offset, "DstOffset", MessageId.COPYBUFFERREGION_DSTRANGEOUTOFBOUNDS),
        (src, src_offset, "SrcOffset", MessageId.COPYBUFFERREGION_SRCRANGEOUTOFBOUNDS),
    ):
        width, offset, size = resource.width, integer(offset, field), integer(size, "num_bytes")
        if offset < 0 or size < 0 or offset + size > width:
            past = offset + size - width
            where = "do not lie in" if min(offset, size) < 0 else f"run {past} bytes past the end of"
            raise refused(
                COPY_RANGE,
                f"The {size} bytes at offset {offset} {where} {resource}, which has {width}.",
                field=field,
                given=f"[{offset}, {offset + size})",
                expected=f"within [0, {width})",
                object=resource,
                message_id=outside,
            )


def same_buffer(dst: Resource) -> Error:
    """CM1: the error of a copy within one buffer, which only the debug layer looks at."""
    operation = "CopyBufferRegion"
    return refusal(
        COPY_SAME,
        f"{dst} is both source and destination of a copy.",
        operation=operation,
        rule=f"CM1: ID3D12GraphicsCommandList::{operation}",
        field="pSrcBuffer",
        given=dst,
        expected="another buffer",
        object=dst,
        hint="Two buffers placed over the same memory can be source and destination.",
        message_id=MessageId.COPY_ON_SAME_SUBRESOURCE,
    )


def check_copy_resource(dst: Resource, src: Resource) -> None:
    """CM2."""
    operation = "CopyResource"
    refused = partial(
        refusal, operation=operation, rule="CM2", page=f"ID3D12GraphicsCommandList::{operation}"
    )
    _check_buffer(dst, refused, "pDstResource", MessageId.COPYRESOURCE_NULLDST)
    _check_buffer(src, refused, "pSrcResource", MessageId.COPYRESOURCE_NULLSRC)
    field, wrong = "pSrcResource", MessageId.COPYRESOURCE_INVALIDSRCRESOURCE
    if dst is src:
        raise refused(
            COPY_SAME,
            f"{dst} is copied onto itself.",
            field=field,
            given=src,
            expected="another buffer",
            object=dst,
            message_id=wrong,
        )
    if dst.width != src.width:
        field = f"{field}.Width"
        raise refused(
            COPY_RANGE,
            f"{src} of {src.width} bytes is copied into {dst} of {dst.width} bytes.",
            field=field,
            given=src.width,
            expected=dst.width,
            object=dst,
            hint="CopyBufferRegion copies parts of buffers.",
            message_id=wrong,
        )


# --- WriteBufferImmediate (CM5) ---


def check_immediate(
    context: DeviceContext,
    params: Sequence[WriteBufferImmediateParameter],
    modes: Sequence[WriteBufferImmediateMode] | None,
) -> list[tuple[Resource, tuple[int, int, int]]]:
    """CM5: the buffers written, each with its (address, value, mode)."""

    refused = partial(
        refusal,
        COPY_RANGE,
        operation="WriteBufferImmediate",
        rule="CM5: ID3D12GraphicsCommandList::WriteBufferImmediate",
        message_id=0,
    )

    params = sequence(params, "params")
    if modes is None:
        modes = [WriteBufferImmediateMode.DEFAULT] * len(params)
    modes = sequence(modes, "modes")
    if len(modes) != len(params):
        raise refused(
            "The modes are not one per write.",
            field="pModes",
            given=number_of(len(modes), "mode"),
            expected=number_of(len(params), "mode"),
        )
    writes = []
    for i, (param, mode) in enumerate(zip(params, modes, strict=True)):
        field = f"pParams[{i}]"
        address = spell_handle(instance(param, WriteBufferImmediateParameter, field).dest)
        if param.dest % 4:
            raise refused(
                "Address ({given}) is not a multiple of 4.",
                field=f"{field}.Dest",
                given=address,
                expected="a multiple of 4",
            )
        if not 0 <= param.value < 2**32:
            raise refused(
                "Value ({given}) is not an unsigned 32-bit number.",
                field=f"{field}.Value",
                given=param.value,
                expected="0 to 2**32 - 1",
            )
        if integer(mode, f"pModes[{i}]") not in list(WriteBufferImmediateMode):
            raise refused(
                "Mode ({given}) is not known.",
                field=f"pModes[{i}]",
                given=mode,
                expected="a member of D3D12_WRITEBUFFERIMMEDIATE_MODE",
            )
        resource = resource_at(context, param.dest)
        if resource is None or param.dest + 4 > resource.address + resource.width:
            raise refused(
                "The 4 bytes at address ({given}) lie in no buffer.",
                field=f"{field}.Dest",
                given=address,
                expected="an address inside a buffer",
            )
        writes.append((resource, (param.dest, param.value, int(mode))))
    return writes


# --- ClearUnorderedAccessView (CM4) ---


def check_clear(
    command_list: ListRecorder,
    operation: str,
    gpu_handle: int,
    cpu_handle: int,
    resource: Resource,
    rects: Sequence[Rect],
) -> list[tuple[int, int]]:
    """CM4: the element ranges to be cleared, empty for all."""
    _check_current_handle(command_list, gpu_handle, operation)
    if resource is None:
        raise refusal(
            DESC_KIND,
            "No resource is given.",
            field="pResource",
            given=None,
            expected="the viewed resource",
            operation=operation,
            rule="CM4",
            page=f"ID3D12GraphicsCommandList::{operation}",
            message_id=MessageId.CLEARUNORDEREDACCESSVIEW_INVALID_RESOURCE_PTR,
        )
    command_list.context.check_child(resource, Resource, operation, "pResource")
    elements = _check_cleared_view(command_list.context, cpu_handle, resource, operation)
    rects = [instance(rect, Rect, f"rects[{i}]") for i, rect in enumerate(sequence(rects, "rects"))]
    for i, rect in enumerate(rects):
        if not 0 <= rect.left <= rect.right <= elements:
            given = f"[{rect.left}, {rect.right})"
            raise refusal(
                BIND_RANGE,
                f"Elements {given} do not lie in the view of {elements} elements.",
                field=f"pRects[{i}]",
                given=given,
                expected=f"within [0, {elements})",
                object=resource,
                operation=operation,
                rule="CM4",
                page=f"ID3D12GraphicsCommandList::{operation}",
                message_id=0,
            )
    return [(rect.left, rect.right) for rect in rects]


def check_clear_values(operation: str, values: Iterable[int]) -> list[int]:
    """CM4: four unsigned 32-bit numbers."""
    raw = integers(values, "values")
    if len(raw) != 4:
        raise refusal(
            DESC_KIND,
            f"Values holds {len(raw)} numbers, and a clear takes 4.",
            field="Values",
            given=number_of(len(raw), "number"),
            expected="4 numbers",
            operation=operation,
            rule="CM4",
            page=f"ID3D12GraphicsCommandList::{operation}",
            message_id=0,
        )
    for i, value in enumerate(raw):
        if not 0 <= value < 2**32:
            field = f"Values[{i}]"
            raise refusal(
                DESC_KIND,
                "{field} ({given}) is not an unsigned 32-bit number.",
                field=field,
                given=value,
                expected="0 to 2**32 - 1",
                operation=operation,
                rule="CM4",
                page=f"ID3D12GraphicsCommandList::{operation}",
                message_id=0,
            )
    return raw


def _check_current_handle(command_list: ListRecorder, gpu_handle: int, operation: str) -> None:
    heap = command_list.descriptor_heaps.get(DescriptorHeapType.CBV_SRV_UAV)
    field = "ViewGPUHandleInCurrentHeap"
    found = command_list.context.gpu.descriptors.locate_gpu(integer(gpu_handle, field))
    if heap is not None and found is not None and found[0] is heap.hardware:
        return
    context = command_list.context
    if found is not None and not context.has_layer:
        return
    where = "no shader-visible heap" if found is None else found[0].label
    error = refusal(
        DESC_HEAP_NOT_SET,
        "The GPU descriptor handle is not of the shader-visible heap that is set on the list.",
        field=field,
        given=f"{spell_handle(gpu_handle)} of {where}",
        expected="a heap set by SetDescriptorHeaps" if heap is None else f"a handle of {heap}",
        object=command_list,
        operation=operation,
        rule="CM4",
        page=f"ID3D12GraphicsCommandList::{operation}",
        message_id=MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
    )
    if found is None:
        raise error
    context.object_to(error)  # the Windows runtime does not check which heaps are set


def _check_cleared_view(context: DeviceContext, cpu_handle: int, resource: Resource, operation: str) -> int:
    """The CPU handle holds a clearable UAV of the resource; returns its number of elements."""
    field = "ViewCPUHandle"
    refused = partial(refusal, operation=operation, page=f"ID3D12GraphicsCommandList::{operation}")
    heap, _ = find_slot(context, cpu_handle, operation, field)
    invalid = MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE
    if heap.get_desc().flags & DescriptorHeapFlags.SHADER_VISIBLE:
        raise refused(
            DESC_HEAP_KIND,
            f"The CPU descriptor handle is of {heap}, which is shader-visible: it cannot be read.",
            field=field,
            given=heap.get_desc().flags,
            expected=DescriptorHeapFlags.NONE,
            object=heap,
            rule="DH5",
            message_id=invalid,
        )
    view = context.gpu.descriptors.read(cpu_handle)
    if view.kind is not DescriptorKind.UAV:
        raise refused(
            DESC_UNINIT if view.kind is DescriptorKind.UNWRITTEN else DESC_KIND,
            "The CPU descriptor handle holds no unordered access view.",
            field=field,
            given=view.kind,
            expected=DescriptorKind.UAV,
            object=heap,
            rule="CM4",
            message_id=invalid,
        )
    if view.stride:
        raise refused(
            DESC_KIND,
            f"A structured view (StructureByteStride {view.stride}) of {resource} is cleared.",
            field=field,
            given="a structured view",
            expected="a raw or typed view",
            object=resource,
            rule="CM4",
            message_id=MessageId.CLEARUNORDEREDACCESSVIEW_INCOMPATIBLE_WITH_STRUCTURED_BUFFERS,
        )
    if not resource.address <= view.address < resource.address + resource.width:
        raise refused(
            DESC_KIND,
            f"The view that is cleared is not of {resource}.",
            field="pResource",
            given=resource,
            expected=context.names.address(view.address),
            object=resource,
            rule="CM4",
            message_id=MessageId.CLEARUNORDEREDACCESSVIEW_INVALID_RESOURCE_PTR,
        )
    width = element_size(view.format)
    assert width is not None  # every view that can be created has one
    return view.size // width


# --- SetDescriptorHeaps (DH8) ---


def check_heaps(
    context: DeviceContext, heaps: Sequence[DescriptorHeap]
) -> dict[DescriptorHeapType, DescriptorHeap]:
    """DH8: the heaps by type."""
    operation, wrong = "SetDescriptorHeaps", MessageId.SET_DESCRIPTOR_HEAP_INVALID

    refused = partial(
        refusal,
        DESC_HEAP_NOT_VISIBLE,
        operation=operation,
        rule="DH8",
        page=f"ID3D12GraphicsCommandList::{operation}",
        message_id=wrong,
    )

    chosen: dict[DescriptorHeapType, DescriptorHeap] = {}
    for i, heap in enumerate(sequence(heaps, "descriptor_heaps")):
        field = f"ppDescriptorHeaps[{i}]"
        if heap is None:
            raise refused("No heap is given.", field=field, given=None, expected="a descriptor heap")
        context.check_child(heap, DescriptorHeap, operation, field)
        desc = heap.get_desc()
        if not desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
            raise refused(
                f"{heap} is not shader-visible.",
                field=field,
                given=desc.flags,
                expected=DescriptorHeapFlags.SHADER_VISIBLE,
            )
        if desc.type in chosen:
            raise refused(
                f"{heap} is the second heap of type {spell(desc.type)}.",
                field=field,
                given=desc.type,
                expected="at most one heap of each type",
            )
        chosen[desc.type] = heap
    return chosen
