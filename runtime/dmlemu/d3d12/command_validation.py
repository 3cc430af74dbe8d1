"""The arguments of recorded commands: what copies, clears and writes check before they are recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dmlemu_hw.descriptors import DescriptorKind
from dmlemu_hw.formats import element_size

from ..errors import Error
from .arguments import instance, integer, integers, sequence
from .descriptor_heap import DescriptorHeap, find_slot
from .enums import DescriptorHeapFlags, DescriptorHeapType, MessageId, WriteBufferImmediateMode
from .info_queue import failure, spell, spell_handle, spell_object
from .resource import Resource, resource_at
from .structs import Rect, WriteBufferImmediateParameter

if TYPE_CHECKING:
    from .device_context import DeviceContext
    from .list_recorder import ListRecorder


def _bad(
    check: str,
    rule: str,
    operation: str,
    message: str,
    field: str,
    given: Any,
    expected: Any,
    message_id: MessageId | None,
    object: Any = "",
    hint: str = "",
) -> Error:
    return failure(
        check,
        message,
        operation=operation,
        rule=f"{rule}: ID3D12GraphicsCommandList::{operation}",
        message_id=message_id,
        field=field,
        given=given,
        expected=expected,
        object=object,
        hint=hint,
    )


# --- copies (CM1, CM2) ---


def _check_buffer(resource: object, operation: str, field: str) -> None:
    """A buffer at all; whether it is alive and of this device is checked where it is used."""
    if not isinstance(resource, Resource):
        given = spell_object(resource)
        raise _bad(
            "COPY_NULL", "OB3", operation, f"{field} ({given}) is no buffer.", field, given, "a buffer", None
        )


def check_copy_buffer_region(
    dst: Resource, dst_offset: int, src: Resource, src_offset: int, size: int
) -> None:
    """CM1."""
    operation = "CopyBufferRegion"
    for resource, field, null in (
        (dst, "pDstBuffer", MessageId.COPYBUFFERREGION_NULLDST),
        (src, "pSrcBuffer", MessageId.COPYBUFFERREGION_NULLSRC),
    ):
        if resource is None:
            message = f"A buffer is copied, and {field} is None."
            raise _bad("COPY_NULL", "CM1", operation, message, field, None, "a buffer", null)
        _check_buffer(resource, operation, field)
    for resource, offset, field, outside in (
        (dst, dst_offset, "DstOffset", MessageId.COPYBUFFERREGION_DSTRANGEOUTOFBOUNDS),
        (src, src_offset, "SrcOffset", MessageId.COPYBUFFERREGION_SRCRANGEOUTOFBOUNDS),
    ):
        width, offset, size = resource.width, integer(offset, field), integer(size, "num_bytes")
        if offset < 0 or size < 0 or offset + size > width:
            past = offset + size - width
            where = "do not lie in" if min(offset, size) < 0 else f"run {past} bytes past the end of"
            message = f"The {size} bytes at offset {offset} {where} {resource}, which has {width}."
            given, expected = f"[{offset}, {offset + size})", f"within [0, {width})"
            raise _bad("COPY_RANGE", "CM1", operation, message, field, given, expected, outside, resource)
    if dst is src:
        message, same = f"{dst} is both source and destination of a copy.", MessageId.COPY_ON_SAME_SUBRESOURCE
        hint = "Two buffers placed over the same memory may stand for the two sides."
        raise _bad(
            "COPY_SAME", "CM1", operation, message, "pSrcBuffer", src, "another buffer", same, dst, hint
        )


def check_copy_resource(dst: Resource, src: Resource) -> None:
    """CM2."""
    operation = "CopyResource"
    for resource, field, null in (
        (dst, "pDstResource", MessageId.COPYRESOURCE_NULLDST),
        (src, "pSrcResource", MessageId.COPYRESOURCE_NULLSRC),
    ):
        if resource is None:
            message = f"A buffer is copied, and {field} is None."
            raise _bad("COPY_NULL", "CM2", operation, message, field, None, "a buffer", null)
        _check_buffer(resource, operation, field)
    field, wrong = "pSrcResource", MessageId.COPYRESOURCE_INVALIDSRCRESOURCE
    if dst is src:
        message = f"{dst} is copied onto itself."
        raise _bad("COPY_SAME", "CM2", operation, message, field, src, "another buffer", wrong, dst)
    if dst.width != src.width:
        message = f"{src} of {src.width} bytes is copied into {dst} of {dst.width} bytes."
        hint = "CopyBufferRegion copies parts of buffers."
        field = f"{field}.Width"
        raise _bad("COPY_RANGE", "CM2", operation, message, field, src.width, dst.width, wrong, dst, hint)


# --- WriteBufferImmediate (CM5) ---


def check_immediate(
    context: DeviceContext,
    params: Sequence[WriteBufferImmediateParameter],
    modes: Sequence[WriteBufferImmediateMode] | None,
) -> list[tuple[Resource, tuple[int, int, int]]]:
    """CM5: the buffers written, each with its (address, value, mode)."""

    def bad(field: str, given: Any, expected: Any, message: str) -> Error:
        return _bad("COPY_RANGE", "CM5", "WriteBufferImmediate", message, field, given, expected, None)

    params = sequence(params, "params")
    if modes is None:
        modes = [WriteBufferImmediateMode.DEFAULT] * len(params)
    modes = sequence(modes, "modes")
    if len(modes) != len(params):
        raise bad("pModes", len(modes), len(params), "The modes are not one per write.")
    writes = []
    for i, (param, mode) in enumerate(zip(params, modes, strict=True)):
        field = f"pParams[{i}]"
        address = spell_handle(instance(param, WriteBufferImmediateParameter, field).dest)
        if param.dest % 4:
            raise bad(
                f"{field}.Dest", address, "a multiple of 4", f"Address ({address}) is not a multiple of 4."
            )
        if not 0 <= param.value < 2**32:
            message = f"Value ({param.value}) is not an unsigned 32-bit number."
            raise bad(f"{field}.Value", param.value, "0 to 2**32 - 1", message)
        if integer(mode, f"pModes[{i}]") not in list(WriteBufferImmediateMode):
            expected = "a member of D3D12_WRITEBUFFERIMMEDIATE_MODE"
            raise bad(f"pModes[{i}]", mode, expected, f"Mode ({spell(mode)}) is not known.")
        resource = resource_at(context, param.dest)
        if resource is None or param.dest + 4 > resource.address + resource.width:
            message = f"The 4 bytes at address ({address}) lie in no buffer."
            raise bad(f"{field}.Dest", address, "an address inside a buffer", message)
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
        wrong, message = MessageId.CLEARUNORDEREDACCESSVIEW_INVALID_RESOURCE_PTR, "No resource is given."
        raise _bad("DESC_KIND", "CM4", operation, message, "pResource", None, "the viewed resource", wrong)
    command_list.context.check_child(resource, Resource, operation, "pResource")
    elements = _check_cleared_view(command_list.context, cpu_handle, resource, operation)
    rects = [instance(rect, Rect, f"rects[{i}]") for i, rect in enumerate(sequence(rects, "rects"))]
    for i, rect in enumerate(rects):
        if not 0 <= rect.left <= rect.right <= elements:
            given, expected = f"[{rect.left}, {rect.right})", f"within [0, {elements})"
            message = f"Elements {given} do not lie in the view of {elements} elements."
            raise _bad(
                "BIND_RANGE", "CM4", operation, message, f"pRects[{i}]", given, expected, None, resource
            )
    return [(rect.left, rect.right) for rect in rects]


def check_clear_values(operation: str, values: Iterable[int]) -> list[int]:
    """CM4: four unsigned 32-bit numbers."""
    raw = integers(values, "values")
    if len(raw) != 4:
        message = f"Values holds {len(raw)} numbers, and a clear takes 4."
        raise _bad("DESC_KIND", "CM4", operation, message, "Values", len(raw), "4 numbers", None)
    for i, value in enumerate(raw):
        if not 0 <= value < 2**32:
            field, expected = f"Values[{i}]", "0 to 2**32 - 1"
            message = f"{field} ({value}) is not an unsigned 32-bit number."
            raise _bad("DESC_KIND", "CM4", operation, message, field, value, expected, None)
    return raw


def _check_current_handle(command_list: ListRecorder, gpu_handle: int, operation: str) -> None:
    heap = command_list.descriptor_heaps.get(DescriptorHeapType.CBV_SRV_UAV)
    field = "ViewGPUHandleInCurrentHeap"
    found = command_list.context.gpu.descriptors.locate_gpu(integer(gpu_handle, field))
    if heap is not None and found is not None and found[0] is heap.hardware:
        return
    if found is not None and command_list.context.is_runtime:
        return  # the runtime of Windows does not look at what is set
    where = "no shader-visible heap" if found is None else found[0].label
    raise _bad(
        "DESC_HEAP_NOT_SET",
        "CM4",
        operation,
        "The GPU descriptor handle is not of the shader-visible heap that is set on the list.",
        field,
        f"{spell_handle(gpu_handle)} of {where}",
        "a heap set by SetDescriptorHeaps" if heap is None else f"a handle of {heap}",
        MessageId.DESCRIPTOR_HEAP_NOT_SHADER_VISIBLE,
        command_list,
    )


def _check_cleared_view(context: DeviceContext, cpu_handle: int, resource: Resource, operation: str) -> int:
    """The CPU handle holds a clearable UAV of the resource; returns its number of elements."""
    field = "ViewCPUHandle"
    heap, _ = find_slot(context, cpu_handle, operation, field)
    invalid = MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE
    if heap.get_desc().flags & DescriptorHeapFlags.SHADER_VISIBLE:
        message = f"The CPU descriptor handle is of {heap}, which is shader-visible: it cannot be read."
        flags, none = heap.get_desc().flags, DescriptorHeapFlags.NONE
        raise _bad("DESC_HEAP_KIND", "DH5", operation, message, field, flags, none, invalid, heap)
    view = context.gpu.descriptors.read(cpu_handle)
    if view.kind is not DescriptorKind.UAV:
        check = "DESC_UNINIT" if view.kind is DescriptorKind.UNWRITTEN else "DESC_KIND"
        message = "The CPU descriptor handle holds no unordered access view."
        raise _bad(check, "CM4", operation, message, field, view.kind, DescriptorKind.UAV, invalid, heap)
    if view.stride:
        message = f"A structured view (StructureByteStride {view.stride}) of {resource} is cleared."
        wrong = MessageId.CLEARUNORDEREDACCESSVIEW_INCOMPATIBLE_WITH_STRUCTURED_BUFFERS
        given, expected = "a structured view", "a raw or typed view"
        raise _bad("DESC_KIND", "CM4", operation, message, field, given, expected, wrong, resource)
    if not resource.address <= view.address < resource.address + resource.width:
        wrong = MessageId.CLEARUNORDEREDACCESSVIEW_INVALID_RESOURCE_PTR
        message = f"The view that is cleared is not of {resource}."
        expected = context.names.address(view.address)
        raise _bad("DESC_KIND", "CM4", operation, message, "pResource", resource, expected, wrong, resource)
    width = element_size(view.format)
    assert width is not None  # of every view that can be created
    return view.size // width


# --- SetDescriptorHeaps (DH8) ---


def check_heaps(
    context: DeviceContext, heaps: Sequence[DescriptorHeap]
) -> dict[DescriptorHeapType, DescriptorHeap]:
    """DH8: the heaps by type."""
    operation, wrong = "SetDescriptorHeaps", MessageId.SET_DESCRIPTOR_HEAP_INVALID

    def bad(message: str, field: str, given: Any, expected: Any) -> Error:
        return _bad("DESC_HEAP_NOT_VISIBLE", "DH8", operation, message, field, given, expected, wrong)

    chosen: dict[DescriptorHeapType, DescriptorHeap] = {}
    for i, heap in enumerate(sequence(heaps, "descriptor_heaps")):
        field = f"ppDescriptorHeaps[{i}]"
        if heap is None:
            raise bad("No heap is given.", field, None, "a descriptor heap")
        context.check_child(heap, DescriptorHeap, operation, field)
        desc = heap.get_desc()
        if not desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
            message = f"{heap} is not shader-visible."
            raise bad(message, field, desc.flags, DescriptorHeapFlags.SHADER_VISIBLE)
        if desc.type in chosen:
            message = f"{heap} is the second heap of type {spell(desc.type)}."
            raise bad(message, field, desc.type, "at most one heap of each type")
        chosen[desc.type] = heap
    return chosen
