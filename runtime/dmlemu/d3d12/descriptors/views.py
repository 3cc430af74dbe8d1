"""Views of buffers: checks a view's description and encodes it as the 32 bytes of a descriptor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dmlemu_hw.descriptors import DESCRIPTOR_RAW, Descriptor, DescriptorKind

from ...diagnostics.rule import Breach
from ...errors import Error
from ..core.info_queue import not_implemented, spell, spell_handle
from ..core.rows import DH4
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
from .rows import VW1, VW2, VW3, VW4, VW5, VW6, VW7, VW8

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

_Desc = TypeVar("_Desc", UnorderedAccessViewDesc, ShaderResourceViewDesc)

MAX_CONSTANT_BUFFER = 65536
MAX_STRUCTURE_STRIDE = 2048

_UAV = "CreateUnorderedAccessView"
_SRV = "CreateShaderResourceView"
_CBV = "CreateConstantBufferView"


class _Faults:
    """Makes the errors of one kind of view; the attributes are the message numbers of its breaches."""

    def __init__(self, operation: str, desc: str) -> None:
        self.operation = operation
        self.desc = desc
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

    def error(self, broken: Breach, message_id: MessageId | None = None, **more: Any) -> Error:
        """The error of a breach, with the method that creates such a view and its desc's page."""
        return broken(message_id=message_id, page=self.desc, operation=self.operation, **more)


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
        raise faults.error(
            VW5.resource,
            given=resource.get_desc().flags,
            expected=ResourceFlags.ALLOW_UNORDERED_ACCESS,
            resource=resource,
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

    if desc is None or instance(desc, ConstantBufferViewDesc, "desc").size_in_bytes == 0:
        return Descriptor(DescriptorKind.CBV)
    address, size = desc.buffer_location, desc.size_in_bytes
    if address % CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT:
        raise VW1.address_misaligned(given=spell_handle(address))
    if size % CONSTANT_BUFFER_DATA_PLACEMENT_ALIGNMENT:
        raise VW1.size_misaligned(given=size)
    if not 0 < size <= MAX_CONSTANT_BUFFER:
        raise VW1.too_large(given=size, expected=f"at most {MAX_CONSTANT_BUFFER}")
    resource = resource_at(context, address)
    if resource is None or address + size > resource.address + resource.width:
        where = "no buffer" if resource is None else f"{resource}, which ends before"
        raise VW1.in_no_buffer(given=spell_handle(address), size=size, where=where)
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
    raise faults.error(VW7.none, faults.invalid_desc, message=message)


def _bad_dimension(given: int, unknown: int, members: type, faults: _Faults) -> Error:
    if given != unknown and given in list(members):  # type: ignore[call-overload]
        return not_implemented(faults.operation, f"A view of dimension {spell(given)}")
    return faults.error(VW7.not_a_buffer, faults.invalid_desc, given=given)


def _check_flags(flags: int, raw: int, faults: _Faults) -> bool:
    if flags & ~raw:
        raise faults.error(VW2.flags, faults.flags, given=flags)
    return flags == raw


def _element_size(format: Format, view: BufferUav | BufferSrv, raw: bool, faults: _Faults) -> int:
    """Bytes per element of a raw (VW2), structured (VW3) or typed (VW4) view."""
    stride = view.structure_byte_stride
    if raw:
        if format != Format.R32_TYPELESS:
            raise faults.error(VW2.format, faults.format, given=format, expected=Format.R32_TYPELESS)
        if stride != 0:
            raise faults.error(VW2.structure_byte_stride, faults.invalid_desc, given=stride)
        return 4
    if format == Format.UNKNOWN:
        if not 0 < stride <= MAX_STRUCTURE_STRIDE or stride % 2:  # of 16-bit types
            raise faults.error(
                VW3.structure_byte_stride,
                faults.invalid_desc,
                given=stride,
                expected=f"a multiple of 2 from 2 to {MAX_STRUCTURE_STRIDE}",
            )
        return stride
    info = TYPED.get(int(format))
    if info is None:
        raise faults.error(VW4.format, faults.format, given=format)
    if stride != 0:
        raise faults.error(VW4.structure_byte_stride, faults.invalid_desc, given=stride)
    return info.size


def _extent(
    resource: Resource, view: BufferUav | BufferSrv, element: int, raw: bool, faults: _Faults
) -> tuple[int, int]:
    """First byte and size of the view; it must lie in the buffer (VW6)."""
    start, size = view.first_element * element, view.num_elements * element
    if raw and start % RAW_UAV_SRV_BYTE_ALIGNMENT:
        raise faults.error(
            VW2.first_element, faults.dimensions, given=view.first_element, start=start, resource=resource
        )
    if view.num_elements < 1:
        raise faults.error(
            VW6.num_elements,
            faults.dimensions,
            given=view.num_elements,
            resource=resource,
        )
    if view.first_element < 0 or start + size > resource.width:
        left = max(0, resource.width // element - max(0, view.first_element))
        raise faults.error(
            VW6.past_the_end,
            faults.dimensions,
            given=view.num_elements,
            expected=f"at most {left}",
            element_size=element,
            first_element=view.first_element,
            resource=resource,
            width=resource.width,
        )
    return start, size


def _counter_address(context: DeviceContext, counter: Resource | None, view: BufferUav, raw: bool) -> int:
    """VW8: the counter of a structured unordered access view."""

    offset = view.counter_offset_in_bytes
    if counter is None:
        if offset:
            raise VW8.offset_without_counter(given=offset)
        return 0
    context.check_child(counter, Resource, _UAV, "pCounterResource")
    counter.check_open(_UAV)
    if raw or view.structure_byte_stride == 0:
        raise VW8.not_structured(given=view.structure_byte_stride, counter=counter)
    if offset % 4 or offset < 0:
        raise VW8.misaligned(given=offset)
    if offset + 4 > counter.width:
        raise VW8.past_the_end(
            given=offset,
            expected=f"at most {counter.width - 4}",
            counter=counter,
            width=counter.width,
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
        raise DH4.dest_descriptor(
            heap,
            given=heap.get_desc().type,
            expected=DescriptorHeapType.CBV_SRV_UAV,
            page=f"ID3D12Device::{operation}",
            operation=operation,
        )
    write = partial(context.gpu.descriptors.write, dest_descriptor, make())
    write_descriptors(context, [(heap.hardware, index, 1)], operation, write)
