"""Argument checks of recorded commands: copies, clears, immediate writes, descriptor heaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dmlemu_hw.descriptors import DescriptorKind
from dmlemu_hw.formats import element_size

from ...errors import Error, number_of
from ..core.info_queue import spell_handle, spell_object
from ..core.rows import OB3
from ..descriptors.descriptor_heap import DescriptorHeap, find_slot
from ..descriptors.rows import DH5
from ..memory.resource import Resource, resource_at
from ..types.arguments import instance, integer, integers, sequence
from ..types.enums import DescriptorHeapFlags, DescriptorHeapType, MessageId, WriteBufferImmediateMode
from ..types.structs import Rect, WriteBufferImmediateParameter
from .rows import CM1, CM2, CM4, CM5, DH8, CopiedBuffer

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext
    from .list_recorder import ListRecorder


# --- copies (CM1, CM2) ---


def _check_buffer(resource: object, rule: type[CopiedBuffer], field: str, null: MessageId) -> None:
    """Checks that the argument is a buffer; lifetime and device are checked where it is used."""
    if resource is None:
        raise rule.null(field=field, message_id=null)
    if not isinstance(resource, Resource):
        operation, page = rule.call.rpartition("::")[2], rule.call
        raise OB3.not_a_buffer(field=field, given=spell_object(resource), operation=operation, page=page)


def check_copy_buffer_region(
    dst: Resource, dst_offset: int, src: Resource, src_offset: int, size: int
) -> None:
    """CM1."""
    _check_buffer(dst, CM1, "pDstBuffer", MessageId.COPYBUFFERREGION_NULLDST)
    _check_buffer(src, CM1, "pSrcBuffer", MessageId.COPYBUFFERREGION_NULLSRC)
    for resource, offset, field, outside in (
        (dst, dst_offset, "DstOffset", MessageId.COPYBUFFERREGION_DSTRANGEOUTOFBOUNDS),
        (src, src_offset, "SrcOffset", MessageId.COPYBUFFERREGION_SRCRANGEOUTOFBOUNDS),
    ):
        width, offset, size = resource.width, integer(offset, field), integer(size, "num_bytes")
        if offset < 0 or size < 0 or offset + size > width:
            past = offset + size - width
            where = "do not lie in" if min(offset, size) < 0 else f"run {past} bytes past the end of"
            raise CM1.past_the_end(
                resource,
                field=field,
                given=f"[{offset}, {offset + size})",
                expected=f"within [0, {width})",
                message_id=outside,
                size=size,
                offset=offset,
                where=where,
                width=width,
            )


def same_buffer(dst: Resource) -> Error:
    """CM1: the error of a copy within one buffer, which only the debug layer looks at."""
    return CM1.src_buffer(dst, given=dst)


def check_copy_resource(dst: Resource, src: Resource) -> None:
    """CM2."""
    _check_buffer(dst, CM2, "pDstResource", MessageId.COPYRESOURCE_NULLDST)
    _check_buffer(src, CM2, "pSrcResource", MessageId.COPYRESOURCE_NULLSRC)
    field = "pSrcResource"
    if dst is src:
        raise CM2.same(dst, field=field, given=src)
    if dst.width != src.width:
        field = f"{field}.Width"
        raise CM2.widths_differ(dst, field=field, given=src.width, expected=dst.width, source=src)


# --- WriteBufferImmediate (CM5) ---


def check_immediate(
    context: DeviceContext,
    params: Sequence[WriteBufferImmediateParameter],
    modes: Sequence[WriteBufferImmediateMode] | None,
) -> list[tuple[Resource, tuple[int, int, int]]]:
    """CM5: the buffers written, each with its (address, value, mode)."""

    params = sequence(params, "params")
    if modes is None:
        modes = [WriteBufferImmediateMode.DEFAULT] * len(params)
    modes = sequence(modes, "modes")
    if len(modes) != len(params):
        raise CM5.modes(given=number_of(len(modes), "mode"), expected=number_of(len(params), "mode"))
    writes = []
    for i, (param, mode) in enumerate(zip(params, modes, strict=True)):
        field = f"pParams[{i}]"
        address = spell_handle(instance(param, WriteBufferImmediateParameter, field).dest)
        if param.dest % 4:
            raise CM5.misaligned(field=f"{field}.Dest", given=address)
        if not 0 <= param.value < 2**32:
            raise CM5.value_too_large(field=f"{field}.Value", given=param.value)
        if integer(mode, f"pModes[{i}]") not in list(WriteBufferImmediateMode):
            raise CM5.unknown_mode(field=f"pModes[{i}]", given=mode)
        resource = resource_at(context, param.dest)
        if resource is None or param.dest + 4 > resource.address + resource.width:
            raise CM5.in_no_buffer(field=f"{field}.Dest", given=address)
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
        raise CM4.resource(page=f"ID3D12GraphicsCommandList::{operation}", operation=operation)
    command_list.context.check_child(resource, Resource, operation, "pResource")
    elements = _check_cleared_view(command_list.context, cpu_handle, resource, operation)
    rects = [instance(rect, Rect, f"rects[{i}]") for i, rect in enumerate(sequence(rects, "rects"))]
    for i, rect in enumerate(rects):
        if not 0 <= rect.left <= rect.right <= elements:
            given = f"[{rect.left}, {rect.right})"
            raise CM4.past_the_view(
                resource,
                field=f"pRects[{i}]",
                given=given,
                expected=f"within [0, {elements})",
                page=f"ID3D12GraphicsCommandList::{operation}",
                operation=operation,
                elements=elements,
            )
    return [(rect.left, rect.right) for rect in rects]


def check_clear_values(operation: str, values: Iterable[int]) -> list[int]:
    """CM4: four unsigned 32-bit numbers."""
    raw = integers(values, "values")
    if len(raw) != 4:
        raise CM4.values(
            given=number_of(len(raw), "number"),
            page=f"ID3D12GraphicsCommandList::{operation}",
            operation=operation,
            count=len(raw),
        )
    for i, value in enumerate(raw):
        if not 0 <= value < 2**32:
            field = f"Values[{i}]"
            raise CM4.not_a_uint(
                field=field, given=value, page=f"ID3D12GraphicsCommandList::{operation}", operation=operation
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
    error = CM4.not_of_the_set_heap(
        command_list,
        field=field,
        given=f"{spell_handle(gpu_handle)} of {where}",
        expected="a heap set by SetDescriptorHeaps" if heap is None else f"a handle of {heap}",
        page=f"ID3D12GraphicsCommandList::{operation}",
        operation=operation,
    )
    if found is None:
        raise error
    context.object_to(error)  # the Windows runtime does not check which heaps are set


def _check_cleared_view(context: DeviceContext, cpu_handle: int, resource: Resource, operation: str) -> int:
    """The CPU handle holds a clearable UAV of the resource; returns its number of elements."""
    field = "ViewCPUHandle"
    heap, _ = find_slot(context, cpu_handle, operation, field)
    invalid = MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE
    if heap.get_desc().flags & DescriptorHeapFlags.SHADER_VISIBLE:
        raise DH5.cleared_from_visible(
            heap,
            field=field,
            given=heap.get_desc().flags,
            expected=DescriptorHeapFlags.NONE,
            page=f"ID3D12GraphicsCommandList::{operation}",
            operation=operation,
        )
    view = context.gpu.descriptors.read(cpu_handle)
    if view.kind is not DescriptorKind.UAV:
        raise (CM4.uninit if view.kind is DescriptorKind.UNWRITTEN else CM4.kind)(
            heap,
            field=field,
            given=view.kind,
            expected=DescriptorKind.UAV,
            message_id=invalid,
            page=f"ID3D12GraphicsCommandList::{operation}",
            operation=operation,
        )
    if view.stride:
        raise CM4.structured(
            resource,
            field=field,
            page=f"ID3D12GraphicsCommandList::{operation}",
            operation=operation,
            stride=view.stride,
        )
    if not resource.address <= view.address < resource.address + resource.width:
        raise CM4.other_resource(
            resource,
            given=resource,
            expected=context.names.address(view.address),
            page=f"ID3D12GraphicsCommandList::{operation}",
            operation=operation,
        )
    width = element_size(view.format)
    assert width is not None  # every view that can be created has one
    return view.size // width


# --- SetDescriptorHeaps (DH8) ---


def check_heaps(
    context: DeviceContext, heaps: Sequence[DescriptorHeap]
) -> dict[DescriptorHeapType, DescriptorHeap]:
    """DH8: the heaps by type."""
    operation = "SetDescriptorHeaps"

    chosen: dict[DescriptorHeapType, DescriptorHeap] = {}
    for i, heap in enumerate(sequence(heaps, "descriptor_heaps")):
        field = f"ppDescriptorHeaps[{i}]"
        if heap is None:
            raise DH8.none(field=field)
        context.check_child(heap, DescriptorHeap, operation, field)
        desc = heap.get_desc()
        if not desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
            raise DH8.not_visible(
                field=field, given=desc.flags, expected=DescriptorHeapFlags.SHADER_VISIBLE, heap=heap
            )
        if desc.type in chosen:
            raise DH8.second_of_its_type(field=field, given=desc.type, heap=heap)
        chosen[desc.type] = heap
    return chosen
