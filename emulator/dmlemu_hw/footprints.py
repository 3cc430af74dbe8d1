"""Which bytes a command is going to touch, for those who listen to the events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from .descriptors import DESCRIPTOR_SIZE, Descriptor, DescriptorKind
from .events import MAYBE_READ, NO_ACCESSES, READ, UNDEFINE, WRITE, Access, Accesses, Footprint
from .faults import FaultKind, GpuFault
from .formats import element_size
from .kernels import ffi, lib
from .memory import Memory
from .packets import (
    DISPATCH_HEADER_SIZE,
    KERNEL,
    TENSOR_COUNT,
    TENSOR_SIZE,
    ClearUavPacket,
    CopyBufferPacket,
    DiscardPacket,
    Packet,
    ResolveQueryPacket,
    TimestampPacket,
    WriteImmediatePacket,
)

_FOOTPRINTS = ffi.typeof("dmlk_footprint[]")
_PIECES = 64  # footprints of one tensor that a kernel reads in pieces; of more, some are told as one
_CHOSEN = 1024  # of one of which it reads what data tells it to; of more, MAYBE_READ is told


def dispatch_accesses(packet: bytes, pointer: Any, memory: Memory, *, planned: bool = False) -> Accesses:
    """What a dispatch touches: nothing when its bytes, at ``pointer``, make no sense.

    ``planned``: it will run later, when tensors by which it chooses what it reads may hold other elements.
    """
    if len(packet) < DISPATCH_HEADER_SIZE:
        return NO_ACCESSES
    tensors = min(TENSOR_COUNT.unpack_from(packet)[0], len(packet) // TENSOR_SIZE)
    if not _selects(KERNEL.unpack_from(packet)[0]):
        array = ffi.new(_FOOTPRINTS, max(1, tensors))
        segments, count = memory.segments()
        found = lib.dmlk_footprints(pointer, len(packet), segments, count, planned, array, tensors)
        return Accesses(array, max(0, found))
    chosen = _in_pieces(packet, pointer, memory, planned, tensors + _PIECES)
    if not planned and any(chosen.pointer[i].access == MAYBE_READ for i in range(len(chosen))):
        chosen = _in_pieces(packet, pointer, memory, planned, tensors + _CHOSEN)
    return chosen


def _in_pieces(packet: bytes, pointer: Any, memory: Memory, planned: bool, room: int) -> Accesses:
    """What a dispatch touches whose tensors may have several footprints each, ``room`` in all."""
    array = ffi.new(_FOOTPRINTS, room)
    segments, count = memory.segments()
    found = max(0, lib.dmlk_footprints(pointer, len(packet), segments, count, planned, array, room))
    kept = ffi.new(_FOOTPRINTS, max(1, found))  # mostly few: who keeps them is spared the rest
    ffi.memmove(kept, array, found * ffi.sizeof("dmlk_footprint"))
    return Accesses(kept, found)


def reads_indices(packet: bytes) -> bool:
    """Does the kernel of a dispatch read indices from a tensor?"""
    return len(packet) >= DISPATCH_HEADER_SIZE and _indexes(KERNEL.unpack_from(packet)[0])


def bad_index(packet: bytes, pointer: Any, memory: Memory) -> Any:
    """A ``dmlk_bad_index`` if the dispatch would find indices outside of the axis that they choose from."""
    segments, count = memory.segments()
    found = ffi.new("dmlk_bad_index *")
    return found if lib.dmlk_find_bad_index(pointer, len(packet), segments, count, found) else None


@lru_cache(256)
def _selects(kernel: int) -> bool:
    """May one of its tensors have several footprints?"""
    return bool(lib.dmlk_kernel_selects(kernel))


@lru_cache(256)
def _indexes(kernel: int) -> bool:
    """Does it read indices from a tensor?"""
    return bool(lib.dmlk_kernel_indexes(kernel))


def accesses(packet: Packet, memory: Memory) -> Accesses:
    """What any other command reads and writes, with its descriptors as they are now."""
    return Accesses.of(list(_accesses(packet, memory)))


def _accesses(packet: Packet, memory: Memory) -> Iterator[Access]:
    if isinstance(packet, DiscardPacket):
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
    unwritten = descriptor.kind is DescriptorKind.UNWRITTEN
    raise GpuFault(
        FaultKind.DESCRIPTOR_UNWRITTEN if unwritten else FaultKind.BAD_DESCRIPTOR,
        f"The descriptor at {packet.table:#x} cannot be cleared: it is {found}, "
        "not the UAV of a raw or typed buffer.",
        address=packet.table,
        handle=packet.table,
        operand=0,
        access=WRITE,
        given=descriptor.kind,
    )


def read_descriptor(handle: int, memory: Memory) -> Descriptor:
    """The descriptor at a GPU handle.  GpuFault: no memory there, or bytes that are none."""
    try:
        return Descriptor.decode(memory.view(handle, DESCRIPTOR_SIZE))
    except GpuFault as fault:
        if memory.find_freed(handle) is None:
            fault.kind = FaultKind.DESCRIPTOR_OUTSIDE
        fault.handle = handle
        raise
    except ValueError:
        message = f"The bytes at {handle:#x} are no descriptor."
        raise GpuFault(FaultKind.BAD_DESCRIPTOR, message, address=handle, handle=handle) from None


def view_bytes(handle: int, descriptor: Descriptor, start: int, size: int, memory: Memory) -> memoryview:
    """``size`` bytes that the descriptor at a GPU handle shows, to be written.  GpuFault: not in memory."""
    try:
        return memory.view(descriptor.address + start, size)
    except GpuFault as fault:
        if memory.find(fault.address) is None and memory.find_freed(fault.address) is not None:
            fault.kind = FaultKind.DESCRIPTOR_STALE
        fault.handle, fault.operand, fault.access = handle, 0, WRITE
        fault.needed = size
        raise


def meet(a: Footprint, b: Footprint, shift: int = 0, low: int = 0, high: int = 2**64 - 1) -> int | None:
    """The lowest byte in [low, high) that both footprints hold; None: there is none, exactly.

    ``shift`` is added to the addresses of ``b``: where ``a`` sees the memory of ``b``.
    """
    byte = ffi.new("uint64_t *")
    status = lib.dmlk_footprints_meet(_struct(a), _struct(b), shift, low, high, byte)
    return int(byte[0]) if status == 1 else None


def element_at(footprint: Footprint, address: int) -> tuple[int, ...] | None:
    """Coordinates of the first element that holds the byte; None: none does."""
    index = ffi.new("uint64_t[8]")
    if lib.dmlk_footprint_index(_struct(footprint), address, index) != 1:
        return None
    return tuple(index[0 : len(footprint.sizes)])


def _struct(footprint: Footprint) -> Any:
    return Accesses.of([Access(0, READ, footprint)]).pointer


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
