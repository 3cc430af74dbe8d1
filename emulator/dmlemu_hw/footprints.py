"""Which bytes a command is going to touch, for those who listen to the events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from . import packets
from .descriptors import DESCRIPTOR_SIZE, Descriptor, DescriptorKind
from .events import READ, UNDEFINE, WRITE, Access, Accesses, Footprint
from .faults import FaultKind, GpuFault
from .formats import element_size
from .memory import Memory
from .packets import (
    ClearUavPacket,
    CopyBufferPacket,
    DiscardPacket,
    DispatchPacket,
    Packet,
    ResolveQueryPacket,
    Tensor,
    TimestampPacket,
    WriteImmediatePacket,
)


def accesses(packet: Packet, memory: Memory) -> Accesses:
    """What the command reads and writes, with its descriptors as they are now."""
    return Accesses.of(list(_accesses(packet, memory)))


def _accesses(packet: Packet, memory: Memory) -> Iterator[Access]:
    if isinstance(packet, DispatchPacket):
        yield from _of_dispatch(packet, memory)
    elif isinstance(packet, DiscardPacket):
        view = read_descriptor(packet.handle, memory)
        if view.address and packet.byte_count:
            yield Access(0, UNDEFINE, _bytes_at(view.address + packet.start, packet.byte_count))
    elif isinstance(packet, CopyBufferPacket):
        yield from _of_copy(packet.destination, packet.source, packet.byte_count)
    elif isinstance(packet, ResolveQueryPacket):
        yield from _of_copy(packet.destination, packet.source, 8 * packet.count)
    elif isinstance(packet, TimestampPacket):
        yield Access(0, WRITE, _bytes_at(packet.address, 8))
    elif isinstance(packet, WriteImmediatePacket):
        for operand, (address, _, _) in enumerate(packet.writes):
            yield Access(operand, WRITE, _bytes_at(address, 4))
    elif isinstance(packet, ClearUavPacket):
        yield from _of_clear(packet, memory)


def view_to_clear(packet: ClearUavPacket, memory: Memory) -> Descriptor:
    """The descriptor of a clear.  GpuFault: not the UAV of a raw or typed buffer."""
    descriptor = read_descriptor(packet.table, memory)
    if descriptor.kind == DescriptorKind.UAV and not descriptor.stride:
        return descriptor
    found = "UAV of a structured buffer" if descriptor.stride else descriptor.kind.name
    raise GpuFault(
        FaultKind.BAD_DESCRIPTOR,
        f"The descriptor at {packet.table:#x} cannot be cleared: it is {found}, "
        "not the UAV of a raw or typed buffer.",
        address=packet.table,
    )


def read_descriptor(address: int, memory: Memory) -> Descriptor:
    """The descriptor at a GPU handle.  GpuFault: no memory there, or bytes that are none."""
    data = memory.view(address, DESCRIPTOR_SIZE)
    try:
        return Descriptor.decode(data)
    except ValueError:
        raise GpuFault(
            FaultKind.BAD_DESCRIPTOR, f"The bytes at {address:#x} are no descriptor.", address=address
        ) from None


@cache
def type_bits(data_type: int) -> int:
    """Bits of one element of an ``enum dmlk_type``; ValueError: no such type."""
    name = packets.type_name(data_type)
    return int(name.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def _of_dispatch(packet: DispatchPacket, memory: Memory) -> Iterator[Access]:
    for operand, tensor in enumerate(packet.tensors):
        try:
            footprint = _of_tensor(packet.table, tensor, memory)
        except (GpuFault, ValueError):
            continue  # executing it will tell what is wrong
        if footprint is not None:
            yield Access(operand, tensor.access, footprint)


def _of_tensor(table: int, tensor: Tensor, memory: Memory) -> Footprint | None:
    if tensor.absent:
        return None
    view = read_descriptor(table + tensor.slot * DESCRIPTOR_SIZE, memory)
    if view.address == 0 or view.kind == DescriptorKind.UNWRITTEN:
        return None
    return Footprint(view.address + tensor.offset, type_bits(tensor.data_type), tensor.sizes, tensor.strides)


def _of_clear(packet: ClearUavPacket, memory: Memory) -> Iterator[Access]:
    view = view_to_clear(packet, memory)
    width = element_size(view.format)
    if view.address == 0 or width is None:
        return
    count = view.size // width
    for first, end in packet.ranges or ((0, count),):
        size = (min(end, count) - first) * width
        if size > 0:
            yield Access(0, WRITE, _bytes_at(view.address + first * width, size))


def _of_copy(destination: int, source: int, size: int) -> Iterator[Access]:
    if size:
        yield Access(0, READ, _bytes_at(source, size))
        yield Access(1, WRITE, _bytes_at(destination, size))


def _bytes_at(address: int, size: int) -> Footprint:
    return Footprint(address, 8, (size,), (1,))
