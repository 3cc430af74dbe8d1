"""Views of buffers: checks a view's description and encodes it as the 32 bytes of a descriptor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dmlemu_hw.descriptors import DESCRIPTOR_RAW, Descriptor, DescriptorKind

from ...errors import Error
from ..core.info_queue import not_implemented, refusal, spell, spell_handle
from ..memory.resource import Resource, resource_at
from ..types.arguments import instance
from ..types.enums import (
    BufferSrvFlags,
    BufferUavFlags,
    DescriptorHeapType,
    Format,
    MessageId,
    ResourceFlags,
    SrvDimension,
    UavDimension,
)
from ..types.formats import TYPED
from ..types.structs import (
    CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT,
    RAW_UAV_SRV_BYTE_ALIGNMENT,
    BufferSrv,
    BufferUav,
    ConstantBufferViewDesc,
    ShaderResourceViewDesc,
    UnorderedAccessViewDesc,
)
from .descriptor_heap import find_slot, write_descriptors
from .rows import DESC_HEAP_KIND, RES_VIEW

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

_Desc = TypeVar("_Desc", UnorderedAccessViewDesc, ShaderResourceViewDesc)

MAX_CONSTANT_BUFFER = 65536
MAX_STRUCTURE_STRIDE = 2048

_UAV = "CreateUnorderedAccessView"
_SRV = "CreateShaderResourceView"
_CBV = "CreateConstantBufferView"


class _Faults:
    """The message numbers of one kind of view."""

    def __init__(self, operation: str, desc: str) -> None:
        self.operation = operation
        self.refused = partial(refusal, RES_VIEW, operation=operation, page=desc)
        uav = operation == _UAV
        self.invalid_desc = (
            MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDDESC
            if uav
            else MessageId.CREATESHADERRESOURCEVIEW_INVALIDDESC
        )
        self.format = (
            MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDFORMAT
            if uav
            else MessageId.CREATESHADERRESOURCEVIEW_INVALIDFORMAT
        )
        self.dimensions = (
            MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDDIMENSIONS
            if uav
            else MessageId.CREATESHADERRESOURCEVIEW_INVALIDDIMENSIONS
        )
        self.flags = (
            MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDFLAGS
            if uav
            else MessageId.CREATESHADERRESOURCEVIEW_INVALIDDESC
        )


_UAV_FAULTS = _Faults(_UAV, "D3D12_UNORDERED_ACCESS_VIEW_DESC")
_SRV_FAULTS = _Faults(_SRV, "D3D12_SHADER_RESOURCE_VIEW_DESC")


def unordered_access_view(
    context: DeviceContext,
    resource: Resource | None,
    counter: Resource | None,
    desc: UnorderedAccessViewDesc | None,
) -> Descriptor:
    """The descriptor of ``CreateUnorderedAccessView``."""
    faults = _UAV_FAULTS
    desc_given = _check_view_pair(context, resource, desc, UnorderedAccessViewDesc, faults)
    if desc_given.view_dimension != UavDimension.BUFFER:
        raise _bad_dimension(desc_given.view_dimension, UavDimension.UNKNOWN, UavDimension, faults)
    view = desc_given.buffer
    raw = _check_flags(int(view.flags), int(BufferUavFlags.RAW), faults)
    element = _element_size(desc_given.format, view, raw, faults)
    flags = DESCRIPTOR_RAW if raw else 0
    if resource is None:
        return Descriptor(DescriptorKind.UAV, flags, view.structure_byte_stride, int(desc_given.format))
    if not resource.flags & ResourceFlags.ALLOW_UNORDERED_ACCESS:
        raise faults.refused(
            f"{resource} lacks flag ALLOW_UNORDERED_ACCESS, and an unordered access view of it is created.",
            field="pResource",
            given=resource.get_desc().flags,
            expected=ResourceFlags.ALLOW_UNORDERED_ACCESS,
            rule="VW5",
            message_id=MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDRESOURCE,
        )
    start, size = _extent(resource, view, element, raw, faults)
    counter_address = _counter_address(context, counter, view, raw)
    return Descriptor(
        DescriptorKind.UAV,
        flags,
        view.structure_byte_stride,
        int(desc_given.format),
        resource.address + start,
        size,
        counter_address,
    )


def shader_resource_view(
    context: DeviceContext, resource: Resource | None, desc: ShaderResourceViewDesc | None
) -> Descriptor:
    """The descriptor of ``CreateShaderResourceView``."""
    faults = _SRV_FAULTS
    desc_given = _check_view_pair(context, resource, desc, ShaderResourceViewDesc, faults)
    if desc_given.view_dimension != SrvDimension.BUFFER:
        raise _bad_dimension(desc_given.view_dimension, SrvDimension.UNKNOWN, SrvDimension, faults)
    view = desc_given.buffer
    raw = _check_flags(int(view.flags), int(BufferSrvFlags.RAW), faults)
    element = _element_size(desc_given.format, view, raw, faults)
    flags = DESCRIPTOR_RAW if raw else 0
    if resource is None:
        return Descriptor(DescriptorKind.SRV, flags, view.structure_byte_stride, int(desc_given.format))
    start, size = _extent(resource, view, element, raw, faults)
    address = resource.address + start
    return Descriptor(
        DescriptorKind.SRV, flags, view.structure_byte_stride, int(desc_given.format), address, size
    )


def constant_buffer_view(context: DeviceContext, desc: ConstantBufferViewDesc | None) -> Descriptor:
    """The descriptor of ``CreateConstantBufferView``; None or size 0 is a null view."""

    refused = partial(refusal, RES_VIEW, operation=_CBV, page="D3D12_CONSTANT_BUFFER_VIEW_DESC")

    if desc is None or instance(desc, ConstantBufferViewDesc, "desc").size_in_bytes == 0:
        return Descriptor(DescriptorKind.CBV)
    invalid = MessageId.CREATE_CONSTANT_BUFFER_VIEW_INVALID_DESC
    address, size = desc.buffer_location, desc.size_in_bytes
    if address % CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT:
        raise refused(
            "Address ({given}) of the constant buffer is not a multiple of 256.",
            field="pDesc.BufferLocation",
            given=spell_handle(address),
            expected="a multiple of 256",
            rule="VW1",
            message_id=invalid,
        )
    if size % CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT:
        raise refused(
            "Size ({given}) of the constant buffer is not a multiple of 256.",
            field="pDesc.SizeInBytes",
            given=size,
            expected="a multiple of 256",
            rule="VW1",
            message_id=invalid,
        )
    if not 0 < size <= MAX_CONSTANT_BUFFER:
        raise refused(
            "Size ({given}) of the constant buffer is above what a shader can see.",
            field="pDesc.SizeInBytes",
            given=size,
            expected=f"at most {MAX_CONSTANT_BUFFER}",
            rule="VW1",
            message_id=invalid,
        )
    resource = resource_at(context, address)
    if resource is None or address + size > resource.address + resource.width:
        where = "no buffer" if resource is None else f"{resource}, which ends before"
        raise refused(
            f"The {size} bytes at address ({spell_handle(address)}) lie in {where}.",
            field="pDesc.BufferLocation",
            given=spell_handle(address),
            expected="a range inside one buffer",
            rule="VW1",
            message_id=MessageId.CREATE_CONSTANT_BUFFER_VIEW_INVALID_RESOURCE,
        )
    return Descriptor(DescriptorKind.CBV, address=address, size=size)


def _check_view_pair(
    context: DeviceContext,
    resource: Resource | None,
    desc: _Desc | None,
    kind: type[_Desc],
    faults: _Faults,
) -> _Desc:
    if resource is not None:
        context.check_child(resource, Resource, faults.operation, "pResource")
        resource.check_open(faults.operation)
    if desc is not None:
        return instance(desc, kind, "desc")
    if resource is None:
        message = (
            "Neither a resource nor a description is given: nothing says what kind of null view is meant."
        )
    else:
        message = f"No description is given, and {resource} has no format to take a default view from."
    raise faults.refused(
        message,
        field="pDesc",
        given=None,
        expected="a description: a buffer has no default view",
        rule="VW7",
        message_id=faults.invalid_desc,
    )


def _bad_dimension(given: int, unknown: int, members: type, faults: _Faults) -> Error:
    if given != unknown and given in list(members):  # type: ignore[call-overload]
        return not_implemented(faults.operation, f"A view of dimension {spell(given)}")
    return faults.refused(
        "View dimension ({given}) is not the one of a buffer.",
        field="pDesc.ViewDimension",
        given=given,
        expected="BUFFER",
        rule="VW7",
        message_id=faults.invalid_desc,
    )


def _check_flags(flags: int, raw: int, faults: _Faults) -> bool:
    if flags & ~raw:
        raise faults.refused(
            "Buffer view flags ({given}) have bits that are not known.",
            field="pDesc.Buffer.Flags",
            given=flags,
            expected="NONE or RAW",
            rule="VW2",
            message_id=faults.flags,
        )
    return flags == raw


def _element_size(format: Format, view: BufferUav | BufferSrv, raw: bool, faults: _Faults) -> int:
    """Bytes per element of a raw (VW2), structured (VW3) or typed (VW4) view."""
    stride = view.structure_byte_stride
    if raw:
        if format != Format.R32_TYPELESS:
            raise faults.refused(
                "A raw view has Format ({given}).",
                field="pDesc.Format",
                given=format,
                expected=Format.R32_TYPELESS,
                rule="VW2",
                message_id=faults.format,
            )
        if stride != 0:
            raise faults.refused(
                "A raw view has StructureByteStride ({given}).",
                field="pDesc.Buffer.StructureByteStride",
                given=stride,
                expected=0,
                rule="VW2",
                message_id=faults.invalid_desc,
            )
        return 4
    if format == Format.UNKNOWN:
        if not 0 < stride <= MAX_STRUCTURE_STRIDE or stride % 4:
            raise faults.refused(
                "A structured view has StructureByteStride ({given}).",
                field="pDesc.Buffer.StructureByteStride",
                given=stride,
                expected=f"a multiple of 4 from 4 to {MAX_STRUCTURE_STRIDE}",
                rule="VW3",
                message_id=faults.invalid_desc,
            )
        return stride
    info = TYPED.get(int(format))
    if info is None:
        raise faults.refused(
            "A typed buffer view has Format ({given}).",
            field="pDesc.Format",
            given=format,
            expected="a format with components and a type, such as R32_UINT",
            rule="VW4",
            message_id=faults.format,
        )
    if stride != 0:
        raise faults.refused(
            "A typed view has StructureByteStride ({given}).",
            field="pDesc.Buffer.StructureByteStride",
            given=stride,
            expected=0,
            rule="VW4",
            message_id=faults.invalid_desc,
        )
    return info.size


def _extent(
    resource: Resource, view: BufferUav | BufferSrv, element: int, raw: bool, faults: _Faults
) -> tuple[int, int]:
    """First byte and size of the view; it must lie in the buffer (VW6)."""
    start, size = view.first_element * element, view.num_elements * element
    if raw and start % RAW_UAV_SRV_BYTE_ALIGNMENT:
        raise faults.refused(
            f"A raw view starts at byte {start} of {resource}, which is not a multiple of 16.",
            field="pDesc.Buffer.FirstElement",
            given=view.first_element,
            expected="a multiple of 4",
            rule="VW2",
            message_id=faults.dimensions,
        )
    if view.num_elements < 1:
        raise faults.refused(
            f"A view of {resource} has NumElements ({view.num_elements}).",
            field="pDesc.Buffer.NumElements",
            given=view.num_elements,
            expected="at least 1",
            rule="VW6",
            message_id=faults.dimensions,
        )
    if view.first_element < 0 or start + size > resource.width:
        left = max(0, resource.width // element - max(0, view.first_element))
        raise faults.refused(
            f"{view.num_elements} elements of {element} bytes from element {view.first_element} on "
            f"run past {resource} of {resource.width} bytes.",
            field="pDesc.Buffer.NumElements",
            given=view.num_elements,
            expected=f"at most {left}",
            rule="VW6",
            message_id=faults.dimensions,
        )
    return start, size


def _counter_address(context: DeviceContext, counter: Resource | None, view: BufferUav, raw: bool) -> int:
    """VW8: the counter of a structured unordered access view."""

    refused = partial(
        refusal,
        RES_VIEW,
        operation=_UAV,
        rule="VW8",
        page="D3D12_UNORDERED_ACCESS_VIEW_DESC",
        message_id=MessageId.CREATE_UNORDEREDACCESS_VIEW_INVALID_COUNTER_USAGE,
    )

    offset = view.counter_offset_in_bytes
    if counter is None:
        if offset:
            raise refused(
                "CounterOffsetInBytes ({given}) is given without a counter resource.",
                field="pDesc.Buffer.CounterOffsetInBytes",
                given=offset,
                expected="0",
            )
        return 0
    context.check_child(counter, Resource, _UAV, "pCounterResource")
    counter.check_open(_UAV)
    if raw or view.structure_byte_stride == 0:
        raise refused(
            f"{counter} is the counter of a view that is not structured.",
            field="pDesc.Buffer.StructureByteStride",
            given=view.structure_byte_stride,
            expected="at least 4, no RAW",
        )
    if offset % 4 or offset < 0:
        raise refused(
            "CounterOffsetInBytes ({given}) is not a multiple of 4.",
            field="pDesc.Buffer.CounterOffsetInBytes",
            given=offset,
            expected="a multiple of 4",
        )
    if offset + 4 > counter.width:
        raise refused(
            f"CounterOffsetInBytes ({offset}) lies outside {counter} of {counter.width} bytes.",
            field="pDesc.Buffer.CounterOffsetInBytes",
            given=offset,
            expected=f"at most {counter.width - 4}",
        )
    return counter.address + offset


def write_view(
    context: DeviceContext, make: Callable[[], Descriptor], dest_descriptor: int, operation: str
) -> None:
    """:func:`try_write_view` of a void method, which rejects wrong arguments as all such methods do."""
    if context.removed is not None:
        return
    try:
        _write_view(context, make, dest_descriptor, operation)
    except Error as error:
        context.reject(error)


def try_write_view(
    context: DeviceContext, make: Callable[[], Descriptor], dest_descriptor: int, operation: str
) -> None:
    """Writes the descriptor that ``make`` returns to a CPU handle of a CBV_SRV_UAV heap (DH4)."""
    context.check_alive(operation)
    _write_view(context, make, dest_descriptor, operation)


def _write_view(
    context: DeviceContext, make: Callable[[], Descriptor], dest_descriptor: int, operation: str
) -> None:
    heap, index = find_slot(context, dest_descriptor, operation, "DestDescriptor")
    if heap.get_desc().type != DescriptorHeapType.CBV_SRV_UAV:
        raise refusal(
            DESC_HEAP_KIND,
            f"A view of a buffer is written into {heap} of type {spell(heap.get_desc().type)}.",
            operation=operation,
            rule=f"DH4: ID3D12Device::{operation}",
            message_id=MessageId.INVALID_DESCRIPTOR_HANDLE,
            field="DestDescriptor",
            given=heap.get_desc().type,
            expected=DescriptorHeapType.CBV_SRV_UAV,
            object=heap,
        )
    write = partial(context.gpu.descriptors.write, dest_descriptor, make())
    write_descriptors(context, [(heap.hardware, index, 1)], operation, write)
