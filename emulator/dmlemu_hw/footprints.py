"""Footprints: the elements that a command will access, for subscribers of the events."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from .descriptors import DESCRIPTOR_SIZE, Descriptor, DescriptorKind
from .events import MAYBE_READ, NO_ACCESSES, READ, UNDEFINE, WRITE, Access, Accesses, Footprint
from .faults import FaultKind, GpuFault
from .formats import element_size
from .kernels import ffi, lib, take_interrupt
from .memory import Memory
from .packets import (
    DISPATCH_HEADER_SIZE,
    KERNEL,
    TENSOR_SIZE,
    ClearUavPacket,
    DiscardPacket,
    DispatchShaderPacket,
    ExecuteIndirectPacket,
    Packet,
)
from .programs import Program
from .shader_views import shader_accesses

_FOOTPRINTS = ffi.typeof("dmlk_footprint[]")
_FOOTPRINT_SIZE = ffi.sizeof("dmlk_footprint")
PIECES = 64  # footprints of one tensor read in several parts; beyond that, some are merged
_CHOSEN = 1024  # footprints of one tensor read by index; beyond that, MAYBE_READ is reported
_KEPT = 2048  # cached accesses
_KERNEL_AND_TENSOR_COUNT = struct.Struct("<8xI12xI")  # KERNEL and the number of tensors


def dispatch_accesses(packet: bytes, pointer: Any, memory: Memory, *, planned: bool = False) -> Accesses:
    """The accesses of a dispatch; none when its bytes, at ``pointer``, do not decode.

    ``planned``: it runs later, and its index tensors may hold other elements by then.
    """
    return DispatchReader(memory).read(packet, pointer, planned=planned)


class DispatchReader:
    """Computes the accesses of dispatches; equal accesses share one object while it is cached."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._capacity = 0
        self._array: Any = None
        self._bytes: Any = None  # the bytes of the array
        self._known: dict[bytes, Accesses] = {}

    def read(self, packet: bytes, pointer: Any, *, planned: bool = False) -> Accesses:
        """The accesses of a dispatch; none when the bytes of the packet, at ``pointer``, do not decode."""
        if len(packet) < DISPATCH_HEADER_SIZE:
            return NO_ACCESSES
        kernel, count = _KERNEL_AND_TENSOR_COUNT.unpack_from(packet)
        tensors: int = min(count, len(packet) // TENSOR_SIZE)
        if not _selects(kernel):
            found = self._fill(packet, pointer, planned, tensors)
        else:
            found = self._fill(packet, pointer, planned, tensors + PIECES)
            if not planned and any(self._array[i].access == MAYBE_READ for i in range(found)):
                found = self._fill(packet, pointer, planned, tensors + _CHOSEN)
        if found <= 0:
            return NO_ACCESSES
        content = self._bytes[: found * _FOOTPRINT_SIZE]
        known = self._known.get(content)
        return self._remember(content, found) if known is None else known

    def _fill(self, packet: bytes, pointer: Any, planned: bool, room: int) -> int:
        """Writes at most ``room`` footprints to the array; returns their number, below 0: malformed.

        Raises what a signal handler raised meanwhile.
        """
        if room >= self._capacity:
            self._capacity = room + 1
            self._array = ffi.new(_FOOTPRINTS, self._capacity)
            self._bytes = ffi.buffer(self._array)
        segments, count = self._memory.segments()
        found: int = lib.dmlk_footprints(pointer, len(packet), segments, count, planned, self._array, room)
        interrupt = take_interrupt() if found < 0 else None
        if interrupt is not None:
            raise interrupt
        return found

    def _remember(self, content: bytes, count: int) -> Accesses:
        array = ffi.new(_FOOTPRINTS, count)
        ffi.memmove(array, content, len(content))
        made = Accesses(array, count, content)
        if count <= PIECES:  # index-dependent accesses seldom repeat
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[content] = made
        return made


def reads_indices(packet: bytes) -> bool:
    """Whether the kernel of a dispatch reads indices from a tensor."""
    return len(packet) >= DISPATCH_HEADER_SIZE and _indexes(KERNEL.unpack_from(packet)[0])


def bad_index(packet: bytes, pointer: Any, memory: Memory) -> Any:
    """A ``dmlk_bad_index`` if the dispatch would read indices outside the axis that they index.

    Raises what a signal handler raised meanwhile.
    """
    return _search(lib.dmlk_find_bad_index, "dmlk_bad_index *", packet, pointer, memory)


def may_race(packet: bytes) -> bool:
    """Whether the kernel of a dispatch may write several values to one element."""
    return len(packet) >= DISPATCH_HEADER_SIZE and _races(KERNEL.unpack_from(packet)[0])


def scatter_race(packet: bytes, pointer: Any, memory: Memory) -> Any:
    """A ``dmlk_scatter_race`` if the dispatch would write several values to one element.

    Raises what a signal handler raised meanwhile.
    """
    return _search(lib.dmlk_find_scatter_race, "dmlk_scatter_race *", packet, pointer, memory)


def _search(find: Callable[..., int], kind: str, packet: bytes, pointer: Any, memory: Memory) -> Any:
    """What ``find`` filled in, of the C type ``kind``; None if it found nothing."""
    segments, count = memory.segments()
    found = ffi.new(kind)
    status = find(pointer, len(packet), segments, count, found)
    interrupt = take_interrupt() if status < 0 else None
    if interrupt is not None:
        raise interrupt
    return found if status > 0 else None


@lru_cache(256)
def _races(kernel: int) -> bool:
    return bool(lib.dmlk_kernel_races(kernel))


@lru_cache(256)
def _selects(kernel: int) -> bool:
    """Whether one of its tensors may have several footprints."""
    return bool(lib.dmlk_kernel_selects(kernel))


@lru_cache(256)
def _indexes(kernel: int) -> bool:
    """Whether it reads indices from a tensor."""
    return bool(lib.dmlk_kernel_indexes(kernel))


def accesses(packet: Packet, memory: Memory) -> Accesses:
    """The accesses of any other command, with its descriptors as they are now."""
    return Accesses.of(list(_accesses(packet, memory)))


def _accesses(packet: Packet, memory: Memory) -> Iterator[Access]:
    if isinstance(packet, DiscardPacket):
        view = read_descriptor(packet.handle, memory)
        if view.address and packet.byte_count:
            yield Access(0, UNDEFINE, _bytes_at(view.address + packet.start, packet.byte_count))
    elif isinstance(packet, ClearUavPacket):
        yield from _of_clear(packet, memory)
    elif isinstance(packet, DispatchShaderPacket | ExecuteIndirectPacket):
        yield from shader_accesses(packet, memory)
    operand = 0
    for destination, source, size in packet.moves():
        if size:
            yield Access(operand, READ, _bytes_at(source, size))
            yield Access(operand + 1, WRITE, _bytes_at(destination, size))
        operand += 2
    for address, data, _ in packet.stores():
        yield Access(operand, WRITE, _bytes_at(address, len(data)))
        operand += 1


def used_state(packet: Packet, operand: int, memory: Memory, *, writes: bool) -> int:
    """The ``D3D12_RESOURCE_STATES`` in which a command uses the buffer of an operand."""
    effects = packet.opcode.effects
    if isinstance(packet, DispatchShaderPacket | ExecuteIndirectPacket):
        program: Program | None = memory.programs.find(packet.program)
        return effects.writes if program is None else program.state_of(operand)
    return effects.writes if writes else effects.reads


def view_to_clear(packet: ClearUavPacket, memory: Memory) -> Descriptor:
    """The descriptor of a clear.  GpuFault: it is not the UAV of a raw or typed buffer."""
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
    """The descriptor at a GPU handle.  GpuFault: not in live memory, or the bytes are not a descriptor."""
    try:
        return Descriptor.decode(memory.view(handle, DESCRIPTOR_SIZE))
    except GpuFault as fault:
        if memory.find_freed(handle) is None:
            fault.kind = FaultKind.DESCRIPTOR_OUTSIDE
        fault.handle = handle
        raise
    except ValueError:
        message = f"The bytes at {handle:#x} are not a descriptor."
        raise GpuFault(FaultKind.BAD_DESCRIPTOR, message, address=handle, handle=handle) from None


def view_bytes(handle: int, descriptor: Descriptor, start: int, size: int, memory: Memory) -> memoryview:
    """``size`` writable bytes of the view at a GPU handle.  GpuFault: not in live memory."""
    try:
        return memory.view(descriptor.address + start, size)
    except GpuFault as fault:
        if memory.find(fault.address) is None and memory.find_freed(fault.address) is not None:
            fault.kind = FaultKind.DESCRIPTOR_STALE
        fault.handle, fault.operand, fault.access = handle, 0, WRITE
        fault.needed = size
        raise


def meet(a: Footprint, b: Footprint, shift: int = 0, low: int = 0, high: int = 2**64 - 1) -> int | None:
    """The lowest byte in [low, high) that both footprints contain; None: they share none.  Exact.

    ``shift`` is added to the addresses of ``b``, to map them to the addresses of ``a``.
    """
    byte = ffi.new("uint64_t *")
    status = lib.dmlk_footprints_meet(_struct(a), _struct(b), shift, low, high, byte)
    return int(byte[0]) if status == 1 else None


def element_at(footprint: Footprint, address: int) -> tuple[int, ...] | None:
    """Coordinates of the first element that contains the byte; None: no element does."""
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


def _bytes_at(address: int, size: int) -> Footprint:
    return Footprint(address, 8, (size,), (1,))
