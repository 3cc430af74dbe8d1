"""Command packets: the bytes in which the host tells the GPU what to do.

A command list is a row of packets, little endian: u32 opcode, u32 size of the whole packet (a
multiple of 8), then the fields of the opcode as declared below.  A queue entry is a packet too.
Dispatch packets are laid out as ``kernels_c/include/dmlk.h`` says.
"""

from __future__ import annotations

import builtins
import struct
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import ClassVar

from . import kernels
from .frozen import Frozen
from .kernels import ffi, lib

MAX_RANK: int = lib.DMLK_MAX_RANK
SLOT_NONE: int = lib.DMLK_SLOT_NONE  # slot of an optional tensor that is absent
FLAG_POISON: int = lib.DMLK_FLAG_POISON
FLAG_JOINED: int = lib.DMLK_FLAG_JOINED
FLAG_TAIL = 4  # of a discard: the bytes after the last element of an output
READ: int = lib.DMLK_READ
WRITE: int = lib.DMLK_WRITE
READ_WRITE: int = lib.DMLK_READ_WRITE

U64_MAX = 2**64 - 1


class Opcode(IntEnum):
    """Commands of a list, and from EXECUTE on the entries of a queue."""

    DISPATCH = 1
    COPY_BUFFER = 2
    CLEAR_UAV = 3
    BARRIER = 4
    TIMESTAMP = 5
    RESOLVE_QUERY = 6
    WRITE_IMMEDIATE = 7
    MARKER = 8
    SET_DESCRIPTOR_HEAPS = 9
    DISCARD = 10
    EXECUTE = 32
    SIGNAL = 33
    WAIT = 34
    MAP_TILES = 35


HEADER = struct.Struct("<II")  # opcode, size

# Fields after the header.  Where something of variable length follows, its count is among them.
_DISPATCH = struct.Struct("<IIQII")  # kernel, flags, table, tensor count, bytes of constants
KERNEL = struct.Struct("<8xI")  # of a whole dispatch packet
TENSOR_COUNT = struct.Struct("<24xI")
_TENSOR = struct.Struct("<IIIIQQ8I8I")  # struct dmlk_tensor
_OPCODE_AND_FLAGS = struct.Struct("<I8xI")  # of DISPATCH and DISCARD packets
_DISCARD = struct.Struct("<IIQQQ")  # 0, flags, handle of a descriptor, offset and size in its view
_COPY_BUFFER = struct.Struct("<QQQ")  # destination, source, size
_CLEAR_UAV = struct.Struct("<Q4III")  # table, values, is_float, range count
_RANGE = struct.Struct("<QQ")  # first element, element after the last
BARRIER = struct.Struct("<IIQQII")  # kind, flags, address, address after, before, after
_TIMESTAMP = struct.Struct("<Q")  # address
_RESOLVE_QUERY = struct.Struct("<QQQ")  # destination, source, count
_COUNT = struct.Struct("<II")  # count, 0
_WRITE = struct.Struct("<QII")  # address, value, mode
_MARKER = struct.Struct("<IIII")  # kind, metadata, bytes of data, 0
_U64 = struct.Struct("<Q")
_EXECUTE = struct.Struct("<Q")  # list serial; the list's packets follow
_FENCE = struct.Struct("<QQ")  # address of the fence's value, value
_MAP_TILES = struct.Struct("<QII")  # allocation, region count, 0
_REGION = struct.Struct("<QQQQII")  # tile, count, heap serial (0: NULL), heap tile, reuse, 0

EXECUTE_HEADER_SIZE = HEADER.size + _EXECUTE.size
DISPATCH_HEADER_SIZE = HEADER.size + _DISPATCH.size
BARRIER_SIZE = HEADER.size + BARRIER.size
_HEAPS_SIZE = HEADER.size + _COUNT.size  # without the heaps
TENSOR_SIZE = _TENSOR.size

assert ffi.sizeof("dmlk_dispatch_header") == DISPATCH_HEADER_SIZE
assert ffi.sizeof("dmlk_tensor") == TENSOR_SIZE


# --- writing ---


def tensor(
    slot: int,
    access: int,
    data_type: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    byte_size: int,
    offset: int = 0,
) -> bytes:
    """One tensor of a dispatch packet (``struct dmlk_tensor``).

    ``slot`` counts descriptors from the packet's table on, ``offset`` bytes from where that
    descriptor's range starts; ``strides`` count elements.  ValueError: rank above 8 or unequal.
    """
    rank = len(sizes)
    if rank > MAX_RANK or rank != len(strides):
        raise ValueError(f"Tensor has {rank} sizes and {len(strides)} strides; expected equal, at most 8.")
    rest = (0,) * (MAX_RANK - rank)
    try:
        return _TENSOR.pack(slot, access, data_type, rank, offset, byte_size, *sizes, *rest, *strides, *rest)
    except struct.error as error:
        raise ValueError(f"A number of the tensor does not fit its field ({error}).") from None


def read_tensor(data: bytes) -> Tensor:
    """The tensor that :func:`tensor` made."""
    return _tensor(_TENSOR.unpack(data))


ABSENT_TENSOR = tensor(SLOT_NONE, READ, 0, (), (), 0)


class PacketWriter:
    """Appends packets.  Each method returns the index of its command; ValueError: a number too large."""

    def __init__(self) -> None:
        self.count = 0
        self._packets: list[builtins.bytes] = []
        self.size = 0

    def bytes(self) -> builtins.bytes:
        """Everything written so far."""
        return b"".join(self._packets)

    def dispatch(
        self,
        kernel: int,
        table: int,
        tensors: Sequence[builtins.bytes],
        constants: builtins.bytes,
        flags: int,
    ) -> int:
        """Runs a kernel.  ``table`` is the GPU descriptor handle of slot 0."""
        fields = (kernel, flags, table, len(tensors), len(constants))
        return self._append(Opcode.DISPATCH, _DISPATCH, fields, *tensors, constants)

    def discard(self, handle: int, offset: int, size: int, flags: int) -> int:
        """What ``size`` bytes of a view hold becomes undefined; FLAG_POISON fills them so.

        ``handle`` is the GPU handle of the view's descriptor, ``offset`` counts bytes in the view.
        FLAG_TAIL tells what the bytes are.
        """
        return self._append(Opcode.DISCARD, _DISCARD, (0, flags, handle, offset, size))

    def copy_buffer(self, destination: int, source: int, size: int) -> int:
        """Copies bytes between GPU virtual addresses; they may overlap."""
        return self._append(Opcode.COPY_BUFFER, _COPY_BUFFER, (destination, source, size))

    def clear_uav(
        self,
        table: int,
        values: Sequence[int],
        ranges: Sequence[tuple[int, int]] = (),
        *,
        is_float: bool = False,
    ) -> int:
        """Fills the view behind a GPU descriptor handle with four values, given as raw u32.

        ``ranges`` are [first, end) elements of the view, empty for all.  ``is_float``: the values
        are bits of FLOAT32, to be converted to the view's format.
        """
        if len(values) != 4:
            raise ValueError(f"A clear has {len(values)} values; expected 4.")
        fields = (table, *values, is_float, len(ranges))
        return self._append(Opcode.CLEAR_UAV, _CLEAR_UAV, fields, *_rows(_RANGE, ranges))

    def barrier(
        self, kind: int, address: int, address_after: int, before: int, after: int, flags: int
    ) -> int:
        """A resource barrier: D3D12's numbers; address 0 stands for any resource."""
        fields = (kind, flags, address, address_after, before, after)
        return self._append(Opcode.BARRIER, BARRIER, fields)

    def timestamp(self, address: int) -> int:
        """Writes the clock (u64 ticks) to an address."""
        return self._append(Opcode.TIMESTAMP, _TIMESTAMP, (address,))

    def resolve_query(self, destination: int, source: int, count: int) -> int:
        """Copies ``count`` query results of 8 bytes."""
        return self._append(Opcode.RESOLVE_QUERY, _RESOLVE_QUERY, (destination, source, count))

    def write_immediate(self, writes: Sequence[tuple[int, int, int]]) -> int:
        """Writes u32 values: (address, value, ``D3D12_WRITEBUFFERIMMEDIATE_MODE``) each."""
        rows = _rows(_WRITE, writes)
        return self._append(Opcode.WRITE_IMMEDIATE, _COUNT, (len(writes), 0), *rows)

    def marker(self, kind: int, metadata: int, data: builtins.bytes) -> int:
        """A marker for tools; ``kind``: 0 set, 1 begin, 2 end."""
        return self._append(Opcode.MARKER, _MARKER, (kind, metadata, len(data), 0), data)

    def set_descriptor_heaps(self, addresses: Sequence[int]) -> int:
        """Which descriptor heaps (GPU start addresses) the following commands use."""
        rows = _rows(_U64, [(address,) for address in addresses])
        return self._append(Opcode.SET_DESCRIPTOR_HEAPS, _COUNT, (len(addresses), 0), *rows)

    def _append(
        self, opcode: Opcode, form: struct.Struct, fields: tuple[int, ...], *tail: builtins.bytes
    ) -> int:
        packet = pack(opcode, form, fields, *tail)
        self._packets.append(packet)
        self.size += len(packet)
        self.count += 1
        return self.count - 1


def pack(opcode: Opcode, form: struct.Struct, fields: tuple[int, ...], *tail: bytes) -> bytes:
    """One packet, padded to a multiple of 8 bytes."""
    body = b"".join(tail)
    size = HEADER.size + form.size + len(body)
    padding = -size % 8
    try:
        return HEADER.pack(opcode, size + padding) + form.pack(*fields) + body + bytes(padding)
    except struct.error as error:
        raise ValueError(f"A number of the {opcode.name} packet does not fit its field ({error}).") from None


def _rows(form: struct.Struct, rows: Sequence[tuple[int, ...]]) -> list[bytes]:
    try:
        return [form.pack(*row) for row in rows]
    except struct.error as error:
        raise ValueError(f"A number of the packet does not fit its field ({error}).") from None


def execute(list_serial: int, packets: bytes) -> bytes:
    """Queue entry: runs a command list."""
    return pack(Opcode.EXECUTE, _EXECUTE, (list_serial,), packets)


def signal(fence: int, value: int) -> bytes:
    """Queue entry: gives the fence at that address a value."""
    return pack(Opcode.SIGNAL, _FENCE, (fence, value))


def wait(fence: int, value: int) -> bytes:
    """Queue entry: holds the queue until the fence at that address reaches the value."""
    return pack(Opcode.WAIT, _FENCE, (fence, value))


def map_tiles(allocation: int, regions: Sequence[tuple[int, int, int, int, bool]]) -> bytes:
    """Queue entry: (tile, count, heap serial or 0 for NULL, heap tile, reuse) each, in order."""
    rows = _rows(_REGION, [(*region, 0) for region in regions])
    return pack(Opcode.MAP_TILES, _MAP_TILES, (allocation, len(regions), 0), *rows)


# --- reading ---


class Tensor(Frozen):
    """``struct dmlk_tensor``; see :func:`tensor`."""

    slot: int
    access: int
    data_type: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    byte_size: int
    offset: int

    @property
    def absent(self) -> bool:
        return self.slot == SLOT_NONE


class Packet(Frozen):
    """A decoded packet: where it starts in the bytes, and its size."""

    opcode: ClassVar[Opcode]
    offset: int
    size: int


class DispatchPacket(Packet):
    opcode = Opcode.DISPATCH
    kernel: int
    flags: int
    table: int
    tensors: tuple[Tensor, ...]
    constants: bytes


class DiscardPacket(Packet):
    opcode = Opcode.DISCARD
    flags: int
    handle: int
    start: int
    byte_count: int


class CopyBufferPacket(Packet):
    opcode = Opcode.COPY_BUFFER
    destination: int
    source: int
    byte_count: int


class ClearUavPacket(Packet):
    opcode = Opcode.CLEAR_UAV
    table: int
    values: tuple[int, int, int, int]
    is_float: bool
    ranges: tuple[tuple[int, int], ...]


class BarrierPacket(Packet):
    opcode = Opcode.BARRIER
    kind: int
    flags: int
    address: int
    address_after: int
    before: int
    after: int


class TimestampPacket(Packet):
    opcode = Opcode.TIMESTAMP
    address: int


class ResolveQueryPacket(Packet):
    opcode = Opcode.RESOLVE_QUERY
    destination: int
    source: int
    count: int


class WriteImmediatePacket(Packet):
    opcode = Opcode.WRITE_IMMEDIATE
    writes: tuple[tuple[int, int, int], ...]


class MarkerPacket(Packet):
    opcode = Opcode.MARKER
    kind: int
    metadata: int
    data: bytes


class SetDescriptorHeapsPacket(Packet):
    opcode = Opcode.SET_DESCRIPTOR_HEAPS
    addresses: tuple[int, ...]


class ExecutePacket(Packet):
    opcode = Opcode.EXECUTE
    list_serial: int
    packets: bytes


class SignalPacket(Packet):
    opcode = Opcode.SIGNAL
    fence: int
    value: int


class WaitPacket(Packet):
    opcode = Opcode.WAIT
    fence: int
    value: int


class MapTilesPacket(Packet):
    opcode = Opcode.MAP_TILES
    allocation: int
    regions: tuple[tuple[int, int, int, int, bool], ...]


class _Reader:
    """Reads one packet's fields in order; struct.error when they run past its end."""

    def __init__(self, data: bytes, offset: int, size: int) -> None:
        self.place = (offset, size)
        self._data = data
        self._position = offset + HEADER.size
        self._end = offset + size

    def fields(self, form: struct.Struct) -> tuple[int, ...]:
        start = self._advance(form.size)
        return form.unpack_from(self._data, start)

    def rows(self, form: struct.Struct, count: int) -> Iterator[tuple[int, ...]]:
        start = self._advance(form.size * count)
        return form.iter_unpack(memoryview(self._data)[start : start + form.size * count])

    def data(self, size: int) -> bytes:
        start = self._advance(size)
        return self._data[start : start + size]

    def rest(self) -> bytes:
        return self.data(self._end - self._position)

    def finish(self) -> None:
        """Only padding may be left."""
        if self._end - self._position >= 8:
            raise struct.error("bytes are left over")

    def _advance(self, size: int) -> int:
        start = self._position
        if start + size > self._end:
            raise struct.error("it is too short for its fields")
        self._position = start + size
        return start


def _tensor(row: tuple[int, ...]) -> Tensor:
    slot, access, data_type, rank, offset, byte_size = row[:6]
    if rank > MAX_RANK:
        raise struct.error(f"a tensor has rank {rank}")
    sizes, strides = row[6 : 6 + rank], row[14 : 14 + rank]
    return Tensor(slot, access, data_type, sizes, strides, byte_size, offset)


def _read_dispatch(reader: _Reader) -> Packet:
    kernel, flags, table, count, constants = reader.fields(_DISPATCH)
    tensors = tuple(map(_tensor, reader.rows(_TENSOR, count)))
    return DispatchPacket(*reader.place, kernel, flags, table, tensors, reader.data(constants))


def _read_clear_uav(reader: _Reader) -> Packet:
    table, a, b, c, d, is_float, count = reader.fields(_CLEAR_UAV)
    ranges = tuple((first, end) for first, end in reader.rows(_RANGE, count))
    return ClearUavPacket(*reader.place, table, (a, b, c, d), bool(is_float), ranges)


def _read_write_immediate(reader: _Reader) -> Packet:
    count, _ = reader.fields(_COUNT)
    writes = tuple((address, value, mode) for address, value, mode in reader.rows(_WRITE, count))
    return WriteImmediatePacket(*reader.place, writes)


def _read_marker(reader: _Reader) -> Packet:
    kind, metadata, size, _ = reader.fields(_MARKER)
    return MarkerPacket(*reader.place, kind, metadata, reader.data(size))


def _read_set_descriptor_heaps(reader: _Reader) -> Packet:
    count, _ = reader.fields(_COUNT)
    return SetDescriptorHeapsPacket(*reader.place, tuple(row[0] for row in reader.rows(_U64, count)))


def _read_execute(reader: _Reader) -> Packet:
    (serial,) = reader.fields(_EXECUTE)
    return ExecutePacket(*reader.place, serial, reader.rest())


def _read_map_tiles(reader: _Reader) -> Packet:
    allocation, count, _ = reader.fields(_MAP_TILES)
    regions = tuple(
        (tile, tiles, heap, heap_tile, bool(reuse))
        for tile, tiles, heap, heap_tile, reuse, _ in reader.rows(_REGION, count)
    )
    return MapTilesPacket(*reader.place, allocation, regions)


_READERS: dict[int, Callable[[_Reader], Packet]] = {
    Opcode.DISPATCH: _read_dispatch,
    Opcode.DISCARD: lambda reader: DiscardPacket(*reader.place, *reader.fields(_DISCARD)[1:]),
    Opcode.COPY_BUFFER: lambda reader: CopyBufferPacket(*reader.place, *reader.fields(_COPY_BUFFER)),
    Opcode.CLEAR_UAV: _read_clear_uav,
    Opcode.BARRIER: lambda reader: BarrierPacket(*reader.place, *reader.fields(BARRIER)),
    Opcode.TIMESTAMP: lambda reader: TimestampPacket(*reader.place, *reader.fields(_TIMESTAMP)),
    Opcode.RESOLVE_QUERY: lambda reader: ResolveQueryPacket(*reader.place, *reader.fields(_RESOLVE_QUERY)),
    Opcode.WRITE_IMMEDIATE: _read_write_immediate,
    Opcode.MARKER: _read_marker,
    Opcode.SET_DESCRIPTOR_HEAPS: _read_set_descriptor_heaps,
    Opcode.EXECUTE: _read_execute,
    Opcode.SIGNAL: lambda reader: SignalPacket(*reader.place, *reader.fields(_FENCE)),
    Opcode.WAIT: lambda reader: WaitPacket(*reader.place, *reader.fields(_FENCE)),
    Opcode.MAP_TILES: _read_map_tiles,
}


def decode_one(data: bytes, offset: int = 0, first: int = 0) -> Packet:
    """The packet at ``offset``; in messages offsets count from ``first``.

    ValueError: it is truncated, unknown or inconsistent.
    """
    place = offset - first
    if offset + HEADER.size > len(data):
        raise ValueError(
            f"Packet at offset {place} is truncated: {len(data) - offset} of 8 header bytes are there."
        )
    opcode, size = HEADER.unpack_from(data, offset)
    read = _READERS.get(opcode)
    if read is None:
        raise ValueError(f"Packet at offset {place} has the unknown opcode {opcode}.")
    if size < HEADER.size or size % 8:
        raise ValueError(
            f"{Opcode(opcode).name} packet at offset {place} has size {size}; expected a multiple of 8."
        )
    if offset + size > len(data):
        there = f"{len(data) - offset} of {size} bytes are there"
        raise ValueError(f"{Opcode(opcode).name} packet at offset {place} is truncated: {there}.")
    reader = _Reader(data, offset, size)
    try:
        packet = read(reader)
        reader.finish()
    except struct.error as error:
        where = f"{Opcode(opcode).name} packet at offset {place} ({size} bytes)"
        raise ValueError(f"{where} is malformed: {error}.") from None
    return packet


def decode(data: bytes) -> Iterator[Packet]:
    """The packets of a command list or of a queue, one after the other.

    ValueError: a packet is truncated, unknown or inconsistent; says opcode and offset.
    """
    offset = 0
    while offset < len(data):
        packet = decode_one(data, offset)
        yield packet
        offset += packet.size


def names_heaps(data: bytes, offset: int, size: int) -> bool:
    """Does a SET_DESCRIPTOR_HEAPS packet of so many bytes hold as many heaps as it says?"""
    start = offset + HEADER.size
    return size >= _HEAPS_SIZE and size == _HEAPS_SIZE + _U64.size * int(_COUNT.unpack_from(data, start)[0])


def is_joined(packets: bytes, at: int = 0) -> bool:
    """Does a packet begin there that is a further part of what the one before began?"""
    if len(packets) - at < _OPCODE_AND_FLAGS.size:
        return False
    opcode, flags = _OPCODE_AND_FLAGS.unpack_from(packets, at)
    return flags & FLAG_JOINED != 0 and opcode in (Opcode.DISPATCH, Opcode.DISCARD)


def is_tail(packet: bytes) -> bool:
    """Of a DISCARD: is it about the bytes after the last element of an output?"""
    return bool(_OPCODE_AND_FLAGS.unpack_from(packet)[1] & FLAG_TAIL)


# --- for people ---


def disassemble(data: bytes) -> str:
    """One line per packet: index, offset, name and fields; the lists inside queue entries indented.

    ValueError as :func:`decode`.
    """
    return "\n".join(_lines(data, ""))


def _lines(data: bytes, indent: str) -> Iterator[str]:
    for index, packet in enumerate(decode(data)):
        yield f"{indent}{index:4} {packet.offset:#08x} {packet.opcode.name} {_text(packet)}".rstrip()
        if isinstance(packet, ExecutePacket):
            yield from _lines(packet.packets, indent + "    ")


def _text(packet: Packet) -> str:
    if isinstance(packet, DispatchPacket):
        return _dispatch_text(packet)
    if isinstance(packet, DiscardPacket):
        return f"view={packet.handle:#x}+{packet.start} {packet.byte_count} bytes{_flags_text(packet.flags)}"
    if isinstance(packet, CopyBufferPacket):
        return f"{packet.destination:#x} <- {packet.source:#x} {packet.byte_count} bytes"
    if isinstance(packet, ClearUavPacket):
        values = " ".join(f"{value:#x}" for value in packet.values)
        ranges = " ".join(f"[{first}, {end})" for first, end in packet.ranges) or "all"
        return f"table={packet.table:#x} {'float' if packet.is_float else 'uint'} {values} elements {ranges}"
    if isinstance(packet, BarrierPacket):
        return _barrier_text(packet)
    if isinstance(packet, TimestampPacket):
        return f"{packet.address:#x}"
    if isinstance(packet, ResolveQueryPacket):
        return f"{packet.destination:#x} <- {packet.source:#x} {packet.count} queries"
    if isinstance(packet, WriteImmediatePacket):
        return " ".join(f"{address:#x} <- {value:#x} (mode {mode})" for address, value, mode in packet.writes)
    if isinstance(packet, MarkerPacket):
        kind = {0: "set", 1: "begin", 2: "end"}.get(packet.kind, str(packet.kind))
        return f"{kind} metadata={packet.metadata} {packet.data!r}"
    if isinstance(packet, SetDescriptorHeapsPacket):
        return " ".join(f"{address:#x}" for address in packet.addresses)
    if isinstance(packet, ExecutePacket):
        return f"list {packet.list_serial}"
    if isinstance(packet, SignalPacket | WaitPacket):
        return f"fence {packet.fence:#x} value {packet.value}"
    assert isinstance(packet, MapTilesPacket)
    return f"{packet.allocation:#x} " + " ".join(map(_region_text, packet.regions))


def _dispatch_text(packet: DispatchPacket) -> str:
    known = packet.kernel < kernels.count()
    name = kernels.name(packet.kernel) if known else f"kernel {packet.kernel}"
    flags = _flags_text(packet.flags)
    tensors = " ".join(map(_tensor_text, packet.tensors))
    constants = f" constants {packet.constants.hex()}" if packet.constants else ""
    return f"{name} table={packet.table:#x}{flags} {tensors}{constants}"


def _flags_text(flags: int) -> str:
    names = {FLAG_POISON: " poison", FLAG_JOINED: " joined", FLAG_TAIL: " tail"}
    return "".join(name for flag, name in names.items() if flags & flag)


def _tensor_text(tensor: Tensor) -> str:
    if tensor.absent:
        return "absent"
    access = {READ: "read", WRITE: "write", READ_WRITE: "read_write"}.get(tensor.access, "?")
    sizes, strides = (",".join(map(str, each)) for each in (tensor.sizes, tensor.strides))
    offset = f"+{tensor.offset}" if tensor.offset else ""
    name = type_name(tensor.data_type)
    return f"{access}:slot{tensor.slot}{offset}:{name}[{sizes}]/[{strides}]:{tensor.byte_size}B"


def type_name(data_type: int) -> str:
    """The name of an ``enum dmlk_type``, such as FLOAT32."""
    names: dict[int, str] = ffi.typeof("enum dmlk_type").elements
    return names.get(data_type, f"type {data_type}").removeprefix("DMLK_")


def _barrier_text(packet: BarrierPacket) -> str:
    kind = {0: "transition", 1: "aliasing", 2: "uav"}.get(packet.kind, str(packet.kind))
    address = f"{packet.address:#x}" if packet.address else "any"
    if packet.kind == 1:
        after = f"{packet.address_after:#x}" if packet.address_after else "any"
        return f"{kind} {address} -> {after}"
    if packet.kind == 0:
        return f"{kind} {address} {packet.before:#x} -> {packet.after:#x} flags={packet.flags}"
    return f"{kind} {address}"


def _region_text(region: tuple[int, int, int, int, bool]) -> str:
    tile, count, heap, heap_tile, reuse = region
    where = "NULL" if not heap else f"heap {heap} tile {heap_tile}{' for all' if reuse else ''}"
    return f"tiles [{tile}, {tile + count}) <- {where}"
