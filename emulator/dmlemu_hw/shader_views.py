"""The views of a shader's dispatch: where its root arguments lead, and what it may access through them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from .descriptors import DESCRIPTOR_SIZE, Descriptor, DescriptorKind
from .events import READ, WRITE, Access, Footprint
from .faults import FaultKind, GpuFault
from .formats import number_type
from .memory import Memory
from .packets import DispatchShaderPacket, ExecuteIndirectPacket
from .programs import Kind, Program, ProgramRange, Source, address_in

__all__ = [
    "Table",
    "commands_of",
    "declared",
    "fits",
    "heap_of",
    "number_type_in",
    "number_type_of",
    "program_of",
    "shader_accesses",
    "table_of",
]

_DESCRIPTORS = np.dtype(
    [
        ("kind", "u1"),
        ("flags", "u1"),
        ("stride", "<u2"),
        ("format", "<u4"),
        ("address", "<u8"),
        ("size", "<u8"),
        ("counter", "<u8"),
    ]
)
_KINDS = {int(each) for each in DescriptorKind}
_NUMBERS = {
    "half": "FLOAT16",
    "float": "FLOAT32",
    "double": "FLOAT64",
    "short": "INT16",
    "ushort": "UINT16",
    "int": "INT32",
    "int64": "INT64",
    "uint64": "UINT64",
}
_FEW = 64  # views of a range that are told apart; of more, those of one buffer are joined
_COUNT = struct.Struct("<I")

assert _DESCRIPTORS.itemsize == DESCRIPTOR_SIZE


class Table:
    """Consecutive descriptors: the GPU handle of the first, and their bytes, which may change."""

    def __init__(self, handle: int, data: memoryview) -> None:
        self.handle = handle
        self.data = data

    def __len__(self) -> int:
        return len(self.data) // DESCRIPTOR_SIZE

    def descriptor(self, index: int) -> Descriptor | None:
        """None: the bytes are not a descriptor."""
        data = bytes(self.data[index * DESCRIPTOR_SIZE : (index + 1) * DESCRIPTOR_SIZE])
        return Descriptor.decode(data) if data[0] in _KINDS else None

    def written(self) -> list[int]:
        """The indices of the descriptors that have been written."""
        found: list[int] = np.flatnonzero(np.frombuffer(self.data, _DESCRIPTORS)["kind"]).tolist()
        return found


def program_of(serial: int, memory: Memory) -> Program:
    """GpuFault: its pipeline state has been released."""
    program: Program | None = memory.programs.find(serial)
    if program is None:
        raise GpuFault(FaultKind.PROGRAM_RELEASED, "The pipeline state of the dispatch has been released.")
    return program


def table_of(number: int, each: ProgramRange, arguments: bytes, memory: Memory) -> Table:
    """The descriptors of range ``number``, which come from a table.

    GpuFault: they do not lie in one heap.
    """
    handle = address_in(arguments, each.word) + each.first * DESCRIPTOR_SIZE
    return _table(number, handle, each.count, memory)


def heap_of(program: Program, packet: DispatchShaderPacket, memory: Memory) -> Table:
    """All descriptors of the heap that is set.  GpuFault: none is."""
    return _table(program.heap_operand, packet.heap, 0, memory)


def _table(operand: int, handle: int, count: int, memory: Memory) -> Table:
    allocation = memory.find(handle)
    if allocation is None:
        count = max(1, count)
    elif not count:
        count = max(1, (allocation.address + allocation.size - handle) // DESCRIPTOR_SIZE)
    try:
        return Table(handle, memory.view(handle, count * DESCRIPTOR_SIZE))
    except GpuFault as fault:
        if allocation is not None or memory.find_freed(handle) is None:
            fault.kind = FaultKind.DESCRIPTOR_OUTSIDE
        fault.handle, fault.operand = handle, operand
        raise


def fits(descriptor: Descriptor, each: ProgramRange, sizes: bytes) -> bool:
    """Whether the descriptor is what the shader declares; as ``dmlk_shader_views`` decides it.

    ``sizes``: by format, bytes of the elements that a typed range can have.
    """
    if descriptor.kind is not each.descriptor:
        return False
    if not descriptor.address or each.kind is Kind.CBUFFER:
        return True
    is_raw = bool(descriptor.flags)
    if each.kind is Kind.RAW:
        return is_raw
    if each.kind is Kind.STRUCTURED:
        has_counter = not each.has_counter or bool(descriptor.counter_address)
        return not is_raw and descriptor.stride == each.stride and has_counter
    has_format = descriptor.format < len(sizes) and bool(sizes[descriptor.format])
    return not is_raw and not descriptor.stride and has_format


def declared(each: ProgramRange) -> str:
    """``"an SRV of a structured buffer with elements of 4 bytes"``."""
    if each.kind is Kind.CBUFFER:
        return "a constant buffer"
    name = "a UAV" if each.writes else "an SRV"
    if each.kind is Kind.RAW:
        return f"{name} of a raw buffer"
    if each.kind is Kind.TYPED:
        return f"{name} of a typed buffer of {each.element}"
    counter = " and a counter" if each.has_counter else ""
    return f"{name} of a structured buffer with elements of {each.stride} bytes{counter}"


def number_type_of(program: Program, operand: int, arguments: bytes, memory: Memory) -> str:
    """The type of the numbers that an operand of a dispatch consists of, as DirectML names it.

    A typed buffer's is that of its view's format; UINT32 where the shader does not say one, and for
    constants, raw buffers and counters.
    """
    if operand >= len(program.ranges):
        return "UINT32"
    each = program.ranges[operand]
    if each.kind is not Kind.TYPED:
        return number_type_in(each, 0)
    try:
        found = table_of(operand, each, arguments, memory).descriptor(0)
    except GpuFault:  # as running it will say
        found = None
    return number_type_in(each, 0 if found is None else found.format)


def number_type_in(each: ProgramRange, format: int) -> str:
    """The same of a view of a range; ``format``: the ``DXGI_FORMAT`` of a typed one."""
    if each.kind is not Kind.TYPED:
        return _NUMBERS.get(each.element, "UINT32")
    return number_type(format) or "UINT8"


# --- accesses ---


def shader_accesses(packet: DispatchShaderPacket | ExecuteIndirectPacket, memory: Memory) -> Iterator[Access]:
    """What the dispatches may access: all bytes of their views."""
    program = program_of(packet.program, memory)
    if isinstance(packet, DispatchShaderPacket):
        yield from _of_dispatch(program, packet, memory)
        return
    yield from _of_commands(program, packet, memory)
    for each in commands_of(packet, memory):
        yield from _of_dispatch(program, each, memory)


def commands_of(packet: ExecuteIndirectPacket, memory: Memory) -> Iterator[DispatchShaderPacket]:
    """The dispatches of an ExecuteIndirect, as its buffers are now.  GpuFault: these are not in memory."""
    count = packet.most
    if packet.count_address:
        count = min(count, _COUNT.unpack(memory.view(packet.count_address, _COUNT.size))[0])
    for i in range(count):
        command = bytes(memory.view(packet.address + i * packet.stride, packet.command_size))
        yield packet.dispatch(command)


def _of_commands(program: Program, packet: ExecuteIndirectPacket, memory: Memory) -> Iterator[Access]:
    operand, count = program.heap_operand + 1, packet.most
    if packet.count_address:
        count = min(count, _COUNT.unpack(memory.view(packet.count_address, _COUNT.size))[0])
        yield Access(operand + 1, READ, _bytes_at(packet.count_address, _COUNT.size))
    for i in range(count):
        yield Access(operand, READ, _bytes_at(packet.address + i * packet.stride, packet.command_size))


def _of_dispatch(program: Program, packet: DispatchShaderPacket, memory: Memory) -> Iterator[Access]:
    if 0 in packet.groups:
        return
    for number, each in enumerate(program.ranges):
        if each.source is Source.ROOT:
            yield from _of_root(number, each, packet.arguments, memory)
        elif each.source is Source.TABLE:
            table = table_of(number, each, packet.arguments, memory)
            yield from _of_table(program, number, each, table, memory)
    if program.uses_heap and packet.heap:
        yield from _of_heap(program, heap_of(program, packet, memory), memory)


def _of_root(number: int, each: ProgramRange, arguments: bytes, memory: Memory) -> Iterator[Access]:
    address = address_in(arguments, each.word)
    allocation = memory.find(address)
    if allocation is not None and allocation.is_buffer:
        size = allocation.address + allocation.size - address
        yield Access(number, READ | (WRITE if each.writes else 0), _bytes_at(address, size))


def _of_table(
    program: Program, number: int, each: ProgramRange, table: Table, memory: Memory
) -> Iterator[Access]:
    rows = np.frombuffer(table.data, _DESCRIPTORS)
    rows = rows[(rows["kind"] == each.descriptor) & (rows["address"] != 0)]
    access = READ | (WRITE if each.writes else 0)
    yield from _joined(number, access, rows["address"], rows["size"], memory)
    if each.has_counter:
        counters = rows["counter"][rows["counter"] != 0]
        sizes = np.full(len(counters), _COUNT.size, np.uint64)
        yield from _joined(program.counter_operand(number), READ | WRITE, counters, sizes, memory)


def _of_heap(program: Program, table: Table, memory: Memory) -> Iterator[Access]:
    """Which of the heap's views it accesses is not known."""
    rows = np.frombuffer(table.data, _DESCRIPTORS)
    for kind, access in (
        (DescriptorKind.CBV, READ),
        (DescriptorKind.SRV, READ),
        (DescriptorKind.UAV, READ | WRITE),
    ):
        chosen = rows[(rows["kind"] == kind) & (rows["address"] != 0)]
        yield from _joined(program.heap_operand, access, chosen["address"], chosen["size"], memory)


def _joined(
    operand: int, access: int, addresses: np.ndarray, sizes: np.ndarray, memory: Memory
) -> Iterator[Access]:
    """Of each view once; of many, one for each allocation."""
    views = dict.fromkeys(zip(addresses.tolist(), sizes.tolist(), strict=True))
    if len(views) <= _FEW:
        for address, size in views:
            yield Access(operand, access, _bytes_at(address, size))
        return
    spans: dict[int, tuple[int, int]] = {}
    for address, size in views:
        allocation = memory.find(address)
        if allocation is not None:
            first, end = spans.get(allocation.serial, (address, address))
            spans[allocation.serial] = min(first, address), max(end, address + size)
    for first, end in spans.values():
        yield Access(operand, access, _bytes_at(first, end - first))


def _bytes_at(address: int, size: int) -> Footprint:
    return Footprint(address, 8, (size,), (1,))
