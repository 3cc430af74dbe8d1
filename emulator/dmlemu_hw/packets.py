"""Command packets: the binary format of GPU commands.

A command list is a sequence of packets, little endian: u32 opcode, u32 size of the whole packet (a
multiple of 8), then the fields of the opcode as declared below.  A queue entry is a packet too.
The layout of dispatch packets is defined in ``kernels_c/include/dmlk.h``.
"""

from __future__ import annotations

import builtins
import struct
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from . import kernels
from .kernels import ffi, lib

MAX_RANK: int = lib.DMLK_MAX_RANK
SLOT_NONE: int = lib.DMLK_SLOT_NONE  # slot of an optional tensor that is absent
FLAG_POISON: int = lib.DMLK_FLAG_POISON
FLAG_JOINED: int = lib.DMLK_FLAG_JOINED
ORDER_SHIFT: int = lib.DMLK_FLAG_ORDER_SHIFT
ORDERS = 1 << 32 - ORDER_SHIFT
FLAG_FUSED: int = lib.DMLK_FLAG_FUSED
FLAG_PASSED: int = lib.DMLK_FLAG_PASSED
FLAG_TAIL = 4  # of a discard: applies to the bytes after the last element of an output
READ: int = lib.DMLK_READ
WRITE: int = lib.DMLK_WRITE
READ_WRITE: int = lib.DMLK_READ_WRITE

U64_MAX = 2**64 - 1


_UAV, _COPY_DEST, _COPY_SOURCE, _INDIRECT = 0x8, 0x400, 0x800, 0x200  # D3D12_RESOURCE_STATES
_SHADER_READS = _UAV | 0x40 | 0x1  # or NON_PIXEL_SHADER_RESOURCE, VERTEX_AND_CONSTANT_BUFFER


class Effects:
    """What a command does to memory: the processor, chaos, the checks and the tools all follow this row.

    ``reads`` and ``writes``: the ``D3D12_RESOURCE_STATES`` of the buffers that it reads and writes; 0: none.
    Of several states, each buffer that it reads must be in one: see :meth:`.Program.state_of`.
    ``queries``: how it accesses query heaps, which have no states; READ, WRITE or 0.
    ``by_view``: it accesses memory through descriptors; otherwise its packet contains addresses.
    ``copies``: its accesses are a source and a destination, which receives the bytes of the source.
    ``immediate``: it writes numbers that its packet contains.
    ``computes``: it runs a kernel or a shader.
    """

    def __init__(
        self,
        *,
        reads: int = 0,
        writes: int = 0,
        queries: int = 0,
        by_view: bool = False,
        copies: bool = False,
        immediate: bool = False,
        computes: bool = False,
    ) -> None:
        self.reads = reads
        self.writes = writes
        self.queries = queries
        self.by_view = by_view
        self.copies = copies
        self.immediate = immediate
        self.computes = computes

    @property
    def on_buffers(self) -> bool:
        """Whether it accesses buffers."""
        return bool(self.reads | self.writes)

    @property
    def on_memory(self) -> bool:
        """Whether it accesses buffers or query heaps."""
        return self.on_buffers or bool(self.queries)


class Opcode(IntEnum):
    """Commands of a list, with their effects; from EXECUTE on, entries of a queue."""

    effects: Effects

    DISPATCH = 1, Effects(reads=_UAV, writes=_UAV, by_view=True, computes=True)
    COPY_BUFFER = 2, Effects(reads=_COPY_SOURCE, writes=_COPY_DEST, copies=True)
    CLEAR_UAV = 3, Effects(writes=_UAV, by_view=True)
    BARRIER = 4
    TIMESTAMP = 5, Effects(queries=WRITE)
    RESOLVE_QUERY = 6, Effects(writes=_COPY_DEST, queries=READ)
    WRITE_IMMEDIATE = 7, Effects(writes=_COPY_DEST, immediate=True)
    MARKER = 8
    SET_DESCRIPTOR_HEAPS = 9
    DISCARD = 10, Effects(writes=_UAV, by_view=True)
    DISPATCH_SHADER = 11, Effects(reads=_SHADER_READS, writes=_UAV, by_view=True, computes=True)
    EXECUTE_INDIRECT = (
        12,
        Effects(reads=_SHADER_READS | _INDIRECT, writes=_UAV, by_view=True, computes=True),
    )
    EXECUTE = 32
    SIGNAL = 33
    WAIT = 34
    MAP_TILES = 35

    def __new__(cls, number: int, effects: Effects | None = None) -> Opcode:
        opcode = int.__new__(cls, number)
        opcode._value_ = number
        opcode.effects = effects or Effects()
        return opcode


def commands(chosen: Callable[[Effects], bool]) -> frozenset[int]:
    """The opcodes of the commands of a list with such effects; numbers are found faster than members."""
    return frozenset(int(each) for each in Opcode if each < Opcode.EXECUTE and chosen(each.effects))


HEADER = struct.Struct("<II")  # opcode, size

# Fields of a whole dispatch packet that are read without decoding it.
KERNEL = struct.Struct("<8xI")
_OPCODE_AND_FLAGS = struct.Struct("<I8xI")  # of DISPATCH and DISCARD packets
FLAGS_AT = 12  # the byte with FLAG_JOINED and FLAG_FUSED

# Array elements that follow the fields of a packet.
_TENSOR = struct.Struct("<IIIIQQ8I8I")  # struct dmlk_tensor
_RANGE = struct.Struct("<QQ")  # first element, element after the last
_WRITE = struct.Struct("<QII")  # address, value, mode
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_GROUPS = struct.Struct("<III")
_STEP = struct.Struct("<II")  # first DWORD, count
_REGION = struct.Struct("<QQQQII")  # tile, count, heap serial (0: NULL), heap tile, reuse, 0

TENSOR_SIZE = _TENSOR.size
assert ffi.sizeof("dmlk_tensor") == TENSOR_SIZE


# --- the packets ---


class Tensor(NamedTuple):
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


Move = tuple[int, int, int]
"""Bytes that a command copies: destination and source, which may overlap, and size."""

Store = tuple[int, bytes, int]
"""Bytes that a command writes: address, data, and a ``D3D12_WRITEBUFFERIMMEDIATE_MODE``."""


class Packet:
    """A decoded packet: its offset in the bytes, and its size.

    Each opcode has a class: ``opcode``, the ``form`` of its fields (including the counts of variable-length
    parts that follow), :meth:`read` to decode them, and :meth:`text`.  What the command does at the addresses
    in its packet is declared by :meth:`moves` and :meth:`stores`, which it does in this order.
    """

    of: ClassVar[dict[int, type[Packet]]] = {}  # by opcode

    opcode: ClassVar[Opcode]
    form: ClassVar[struct.Struct]
    head: ClassVar[struct.Struct]  # the header and the fields
    _fields: ClassVar[tuple[str, ...]] = ("offset", "size")
    offset: int
    size: int

    def __init_subclass__(cls) -> None:
        cls._fields = (*cls._fields, *cls.__annotations__)
        if "opcode" in cls.__dict__:
            cls.head = struct.Struct(HEADER.format + cls.form.format.removeprefix("<"))
            Packet.of[cls.opcode] = cls

    def __init__(self, *values: Any) -> None:
        self.__dict__.update(zip(self._fields, values, strict=True))

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        """The packet at the reader's position; by default all fields unchanged."""
        return cls(*reader.place, *reader.fields(cls.form))

    def text(self) -> str:
        """The fields as readable text."""
        raise NotImplementedError

    def moves(self) -> Sequence[Move]:
        """What the command copies."""
        return ()

    def stores(self, now: int = 0) -> Sequence[Store]:
        """What the command writes when the GPU's clock shows ``now``."""
        return ()


class DispatchPacket(Packet):
    opcode = Opcode.DISPATCH
    form = struct.Struct("<IIQII")  # kernel, flags, table, tensor count, bytes of constants
    kernel: int
    flags: int
    table: int
    tensors: tuple[Tensor, ...]
    constants: bytes

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        kernel, flags, table, count, constants = reader.fields(cls.form)
        tensors = tuple(map(_tensor, reader.rows(_TENSOR, count)))
        return cls(*reader.place, kernel, flags, table, tensors, reader.data(constants))

    def text(self) -> str:
        known = self.kernel < kernels.count()
        name = kernels.name(self.kernel) if known else f"kernel {self.kernel}"
        flags = _flags_text(self.flags)
        tensors = " ".join(map(_tensor_text, self.tensors))
        constants = f" constants {self.constants.hex()}" if self.constants else ""
        return f"{name} table={self.table:#x}{flags} {tensors}{constants}"


class DiscardPacket(Packet):
    opcode = Opcode.DISCARD
    form = struct.Struct("<IIQQQ")  # 0, flags, handle of a descriptor, offset and size in its view
    flags: int
    handle: int
    start: int
    byte_count: int

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        return cls(*reader.place, *reader.fields(cls.form)[1:])

    def text(self) -> str:
        return f"view={self.handle:#x}+{self.start} {self.byte_count} bytes{_flags_text(self.flags)}"


class CopyBufferPacket(Packet):
    opcode = Opcode.COPY_BUFFER
    form = struct.Struct("<QQQ")
    destination: int
    source: int
    byte_count: int

    def text(self) -> str:
        return f"{self.destination:#x} <- {self.source:#x} {self.byte_count} bytes"

    def moves(self) -> Sequence[Move]:
        return ((self.destination, self.source, self.byte_count),)


class ClearUavPacket(Packet):
    opcode = Opcode.CLEAR_UAV
    form = struct.Struct("<Q4III")  # table, values, is_float, range count
    table: int
    values: tuple[int, int, int, int]
    is_float: bool
    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        table, a, b, c, d, is_float, count = reader.fields(cls.form)
        ranges = tuple((first, end) for first, end in reader.rows(_RANGE, count))
        return cls(*reader.place, table, (a, b, c, d), bool(is_float), ranges)

    def text(self) -> str:
        values = " ".join(f"{value:#x}" for value in self.values)
        ranges = " ".join(f"[{first}, {end})" for first, end in self.ranges) or "all"
        return f"table={self.table:#x} {'float' if self.is_float else 'uint'} {values} elements {ranges}"


class BarrierPacket(Packet):
    opcode = Opcode.BARRIER
    form = struct.Struct("<IIQQII")
    kind: int
    flags: int
    address: int
    address_after: int
    before: int
    after: int

    def text(self) -> str:
        kind = {0: "transition", 1: "aliasing", 2: "uav"}.get(self.kind, str(self.kind))
        address = f"{self.address:#x}" if self.address else "any"
        if self.kind == 1:
            after = f"{self.address_after:#x}" if self.address_after else "any"
            return f"{kind} {address} -> {after}"
        if self.kind == 0:
            return f"{kind} {address} {self.before:#x} -> {self.after:#x} flags={self.flags}"
        return f"{kind} {address}"


class TimestampPacket(Packet):
    opcode = Opcode.TIMESTAMP
    form = _U64
    address: int

    def text(self) -> str:
        return f"{self.address:#x}"

    def stores(self, now: int = 0) -> Sequence[Store]:
        return ((self.address, _U64.pack(now), 0),)


class ResolveQueryPacket(Packet):
    opcode = Opcode.RESOLVE_QUERY
    form = struct.Struct("<QQQ")
    destination: int
    source: int
    count: int

    def text(self) -> str:
        return f"{self.destination:#x} <- {self.source:#x} {self.count} queries"

    def moves(self) -> Sequence[Move]:
        return ((self.destination, self.source, _U64.size * self.count),)


class WriteImmediatePacket(Packet):
    opcode = Opcode.WRITE_IMMEDIATE
    form = struct.Struct("<II")  # count, 0
    writes: tuple[tuple[int, int, int], ...]

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        count, _ = reader.fields(cls.form)
        writes = tuple((address, value, mode) for address, value, mode in reader.rows(_WRITE, count))
        return cls(*reader.place, writes)

    def text(self) -> str:
        return " ".join(f"{address:#x} <- {value:#x} (mode {mode})" for address, value, mode in self.writes)

    def stores(self, now: int = 0) -> Sequence[Store]:
        return [(address, _U32.pack(value), mode) for address, value, mode in self.writes]


class MarkerPacket(Packet):
    opcode = Opcode.MARKER
    form = struct.Struct("<IIII")  # kind, metadata, bytes of data, 0
    kind: int
    metadata: int
    data: bytes

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        kind, metadata, size, _ = reader.fields(cls.form)
        return cls(*reader.place, kind, metadata, reader.data(size))

    def text(self) -> str:
        kind = {0: "set", 1: "begin", 2: "end"}.get(self.kind, str(self.kind))
        return f"{kind} metadata={self.metadata} {self.data!r}"


class SetDescriptorHeapsPacket(Packet):
    opcode = Opcode.SET_DESCRIPTOR_HEAPS
    form = struct.Struct("<II")  # count, 0
    addresses: tuple[int, ...]

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        count, _ = reader.fields(cls.form)
        return cls(*reader.place, tuple(row[0] for row in reader.rows(_U64, count)))

    def text(self) -> str:
        return " ".join(f"{address:#x}" for address in self.addresses)


class DispatchShaderPacket(Packet):
    """``program``: its serial.  ``heap``: where the CBV_SRV_UAV heap that is set begins; 0: none is.

    ``arguments``: the DWORDs of the root arguments.
    """

    opcode = Opcode.DISPATCH_SHADER
    form = struct.Struct("<QQIIII")  # program, heap, groups, DWORDs of arguments
    program: int
    heap: int
    groups: tuple[int, int, int]
    arguments: bytes

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        program, heap, x, y, z, words = reader.fields(cls.form)
        return cls(*reader.place, program, heap, (x, y, z), reader.data(4 * words))

    def text(self) -> str:
        x, y, z = self.groups
        return f"program={self.program} groups={x}x{y}x{z}{_words_text(self.arguments)}"


class ExecuteIndirectPacket(Packet):
    """Dispatches of a program, with arguments from memory.

    ``address`` of the first command, ``stride`` bytes from one to the next; ``count_address`` of the number
    of commands, at most ``most``; 0: as many as that.  ``steps``: the DWORDs of the root arguments, first and
    count, that the DWORDs of a command replace, in their order; three more are the groups.
    """

    opcode = Opcode.EXECUTE_INDIRECT
    form = struct.Struct("<QQQQIIII")
    program: int
    heap: int
    address: int
    count_address: int
    stride: int
    most: int
    steps: tuple[tuple[int, int], ...]
    arguments: bytes

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        *fields, steps, words = reader.fields(cls.form)
        rows = tuple((first, count) for first, count in reader.rows(_STEP, steps))
        if any(first + count > words for first, count in rows):
            raise struct.error("a command replaces DWORDs behind the last root argument")
        return cls(*reader.place, *fields, rows, reader.data(4 * words))

    def text(self) -> str:
        count = f" count at {self.count_address:#x}" if self.count_address else ""
        steps = "".join(f" [{first}, {first + count})" for first, count in self.steps)
        where = f"{self.address:#x}, stride {self.stride}, at most {self.most}{count}"
        return f"program={self.program} commands at {where}{steps}{_words_text(self.arguments)}"

    @property
    def command_size(self) -> int:
        """Bytes of one command."""
        return 4 * sum(count for _, count in self.steps) + _GROUPS.size

    def dispatch(self, command: bytes) -> DispatchShaderPacket:
        """What a command, of :attr:`command_size` bytes, dispatches."""
        arguments, at = bytearray(self.arguments), 0
        for first, count in self.steps:
            arguments[4 * first : 4 * (first + count)] = command[at : at + 4 * count]
            at += 4 * count
        groups = _GROUPS.unpack_from(command, at)
        return DispatchShaderPacket(self.offset, self.size, self.program, self.heap, groups, bytes(arguments))


class ExecutePacket(Packet):
    opcode = Opcode.EXECUTE
    form = _U64  # list serial; the list's packets follow
    list_serial: int
    packets: bytes

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        (serial,) = reader.fields(cls.form)
        return cls(*reader.place, serial, reader.rest())

    def text(self) -> str:
        return f"list {self.list_serial}"


class _FencePacket(Packet):
    form = struct.Struct("<QQ")  # address of the fence's value, value
    fence: int
    value: int

    def text(self) -> str:
        return f"fence {self.fence:#x} value {self.value}"


class SignalPacket(_FencePacket):
    opcode = Opcode.SIGNAL


class WaitPacket(_FencePacket):
    opcode = Opcode.WAIT


class MapTilesPacket(Packet):
    opcode = Opcode.MAP_TILES
    form = struct.Struct("<QII")  # allocation, region count, 0
    allocation: int
    regions: tuple[tuple[int, int, int, int, bool], ...]

    @classmethod
    def read(cls, reader: _Reader) -> Packet:
        allocation, count, _ = reader.fields(cls.form)
        regions = tuple(
            (tile, tiles, heap, heap_tile, bool(reuse))
            for tile, tiles, heap, heap_tile, reuse, _ in reader.rows(_REGION, count)
        )
        return cls(*reader.place, allocation, regions)

    def text(self) -> str:
        return f"{self.allocation:#x} " + " ".join(map(_region_text, self.regions))


assert len(Packet.of) == len(Opcode)

BARRIER, SIGNAL = BarrierPacket.form, SignalPacket.form
EXECUTE_HEADER_SIZE = HEADER.size + ExecutePacket.form.size
DISPATCH_HEADER_SIZE = HEADER.size + DispatchPacket.form.size
BARRIER_SIZE = HEADER.size + BARRIER.size
_HEAPS_SIZE = HEADER.size + SetDescriptorHeapsPacket.form.size  # without the heaps
assert ffi.sizeof("dmlk_dispatch_header") == DISPATCH_HEADER_SIZE
assert lib.DMLK_BARRIER_SIZE == BARRIER_SIZE
assert (lib.DMLK_OPCODE_DISPATCH, lib.DMLK_OPCODE_BARRIER) == (Opcode.DISPATCH, Opcode.BARRIER)
assert lib.DMLK_OPCODE_SET_HEAPS == Opcode.SET_DESCRIPTOR_HEAPS


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

    ``slot`` is the descriptor's index in the packet's table, ``offset`` is in bytes from the start of that
    descriptor's range; ``strides`` are in elements.  ValueError: rank above 8, or different numbers of sizes
    and strides.
    """
    rank = len(sizes)
    if rank > MAX_RANK or rank != len(strides):
        raise ValueError(f"Tensor has {rank} sizes and {len(strides)} strides; expected equal, at most 8.")
    rest = (0,) * (MAX_RANK - rank)
    try:
        return _TENSOR.pack(slot, access, data_type, rank, offset, byte_size, *sizes, *rest, *strides, *rest)
    except struct.error as error:
        raise ValueError(f"A number of the tensor does not fit its field ({error}).") from None


ABSENT_TENSOR = tensor(SLOT_NONE, READ, 0, (), (), 0)


class PacketWriter:
    """Appends packets.  Each method returns the index of its command; ValueError: a value too large."""

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
        order: int = 0,
    ) -> int:
        """Runs a kernel.  ``table`` is the GPU descriptor handle of slot 0.

        ``order``, below ORDERS, draws the order in which the kernel writes several values to one element,
        where that is undefined; 0: logical order.
        """
        fields = (kernel, flags | order << ORDER_SHIFT, table, len(tensors), len(constants))
        return self._append(DispatchPacket, fields, *tensors, constants)

    def discard(self, handle: int, offset: int, size: int, flags: int) -> int:
        """Makes the contents of ``size`` bytes of a view undefined; FLAG_POISON fills them with poison.

        ``handle`` is the GPU handle of the view's descriptor, ``offset`` is in bytes from the start of the
        view.  FLAG_TAIL: the bytes are those after the last element of an output.
        """
        return self._append(DiscardPacket, (0, flags, handle, offset, size))

    def copy_buffer(self, destination: int, source: int, size: int) -> int:
        """Copies bytes between GPU virtual addresses; they may overlap."""
        return self._append(CopyBufferPacket, (destination, source, size))

    def clear_uav(
        self,
        table: int,
        values: Sequence[int],
        ranges: Sequence[tuple[int, int]] = (),
        *,
        is_float: bool = False,
    ) -> int:
        """Fills the view at a GPU descriptor handle with four values, given as raw u32.

        ``ranges`` are [first, end) elements of the view, empty for all.  ``is_float``: the values are FLOAT32
        bits, converted to the view's format.
        """
        if len(values) != 4:
            raise ValueError(f"A clear has {len(values)} values; expected 4.")
        fields = (table, *values, is_float, len(ranges))
        return self._append(ClearUavPacket, fields, *_rows(_RANGE, ranges))

    def barrier(
        self, kind: int, address: int, address_after: int, before: int, after: int, flags: int
    ) -> int:
        """A resource barrier with D3D12's values; address 0 stands for any resource."""
        return self._add(_barrier_packet(kind, flags, address, address_after, before, after))

    def timestamp(self, address: int) -> int:
        """Writes the clock (u64 ticks) to an address."""
        return self._append(TimestampPacket, (address,))

    def resolve_query(self, destination: int, source: int, count: int) -> int:
        """Copies ``count`` query results of 8 bytes."""
        return self._append(ResolveQueryPacket, (destination, source, count))

    def write_immediate(self, writes: Sequence[tuple[int, int, int]]) -> int:
        """Writes u32 values: (address, value, ``D3D12_WRITEBUFFERIMMEDIATE_MODE``) each."""
        rows = _rows(_WRITE, writes)
        return self._append(WriteImmediatePacket, (len(writes), 0), *rows)

    def marker(self, kind: int, metadata: int, data: builtins.bytes) -> int:
        """A marker for tools; ``kind``: 0 set, 1 begin, 2 end."""
        return self._append(MarkerPacket, (kind, metadata, len(data), 0), data)

    def set_descriptor_heaps(self, addresses: Sequence[int]) -> int:
        """Sets the descriptor heaps (GPU start addresses) that the following commands use."""
        rows = _rows(_U64, [(address,) for address in addresses])
        return self._append(SetDescriptorHeapsPacket, (len(addresses), 0), *rows)

    def dispatch_shader(
        self, program: int, heap: int, groups: Sequence[int], arguments: builtins.bytes
    ) -> int:
        """Runs ``groups`` (x, y, z) of a program.  ``heap``: the descriptor heap that is set; 0: none.

        ``arguments``: the DWORDs of its root arguments.
        """
        fields = (program, heap, *groups, len(arguments) // 4)
        return self._append(DispatchShaderPacket, fields, arguments)

    def execute_indirect(
        self,
        program: int,
        heap: int,
        commands: tuple[int, int, int, int],
        steps: Sequence[tuple[int, int]],
        arguments: builtins.bytes,
    ) -> int:
        """Runs a program with arguments from memory; see :class:`ExecuteIndirectPacket`.

        ``commands``: address, address of their number or 0, stride, and the greatest number.
        """
        fields = (program, heap, *commands, len(steps), len(arguments) // 4)
        return self._append(ExecuteIndirectPacket, fields, *_rows(_STEP, steps), arguments)

    def _append(self, kind: type[Packet], fields: tuple[int, ...], *tail: builtins.bytes) -> int:
        return self._add(pack(kind, fields, *tail))

    def _add(self, packet: builtins.bytes) -> int:
        self._packets.append(packet)
        self.size += len(packet)
        self.count += 1
        return self.count - 1


@lru_cache(maxsize=256)
def _barrier_packet(*fields: int) -> bytes:
    """The packet of a barrier; programs record few different ones, many times."""
    return pack(BarrierPacket, fields)


def pack(kind: type[Packet], fields: tuple[int, ...], *tail: bytes) -> bytes:
    """One packet, padded to a multiple of 8 bytes."""
    size = kind.head.size + (sum(map(len, tail)) if tail else 0)
    padding = -size % 8
    try:
        head = kind.head.pack(kind.opcode, size + padding, *fields)
    except struct.error as error:
        raise ValueError(
            f"A number of the {kind.opcode.name} packet does not fit its field ({error})."
        ) from None
    return b"".join((head, *tail, bytes(padding))) if tail or padding else head


def _rows(form: struct.Struct, rows: Sequence[tuple[int, ...]]) -> list[bytes]:
    try:
        return [form.pack(*row) for row in rows]
    except struct.error as error:
        raise ValueError(f"A number of the packet does not fit its field ({error}).") from None


def execute(list_serial: int, packets: bytes) -> bytes:
    """Queue entry: runs a command list."""
    size = EXECUTE_HEADER_SIZE + len(packets)
    if size % 8 or size >= 1 << 32:
        return pack(ExecutePacket, (list_serial,), packets)
    return ExecutePacket.head.pack(Opcode.EXECUTE, size, list_serial) + packets


def signal(fence: int, value: int) -> bytes:
    """Queue entry: signals the fence at that address with a value."""
    return pack(SignalPacket, (fence, value))


def wait(fence: int, value: int) -> bytes:
    """Queue entry: blocks the queue until the fence at that address reaches the value."""
    return pack(WaitPacket, (fence, value))


def map_tiles(allocation: int, regions: Sequence[tuple[int, int, int, int, bool]]) -> bytes:
    """Queue entry: (tile, count, heap serial or 0 for NULL, heap tile, reuse) each, in order."""
    rows = _rows(_REGION, [(*region, 0) for region in regions])
    return pack(MapTilesPacket, (allocation, len(regions), 0), *rows)


# --- reading ---


class _Reader:
    """Reads the fields of one packet in order; struct.error when they exceed it."""

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
        """struct.error unless only padding is left."""
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
    kind = Packet.of.get(opcode)
    if kind is None:
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
        packet = kind.read(reader)
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
    """Whether a SET_DESCRIPTOR_HEAPS packet of ``size`` bytes contains as many heaps as its count says."""
    start = offset + HEADER.size
    return size >= _HEAPS_SIZE and size == _HEAPS_SIZE + _U64.size * int(
        SetDescriptorHeapsPacket.form.unpack_from(data, start)[0]
    )


def skip(packets: bytes, at: int, count: int) -> int:
    """The offset of the packet ``count`` packets behind the one at ``at``."""
    for _ in range(count):
        at += HEADER.unpack_from(packets, at)[1]
    return at


def is_joined(packets: bytes, at: int = 0) -> bool:
    """Whether the packet at ``at`` continues the command that the previous packet began."""
    if len(packets) - at < _OPCODE_AND_FLAGS.size or not packets[at + FLAGS_AT] & FLAG_JOINED:
        return False
    return HEADER.unpack_from(packets, at)[0] in (Opcode.DISPATCH, Opcode.DISCARD)


def is_tail(packet: bytes) -> bool:
    """Whether a DISCARD applies to the bytes after the last element of an output."""
    return bool(_OPCODE_AND_FLAGS.unpack_from(packet)[1] & FLAG_TAIL)


# --- readable text ---


def disassemble(data: bytes) -> str:
    """One line per packet: index, offset, name and fields; lists inside queue entries are indented.

    ValueError as :func:`decode`.
    """
    return "\n".join(_lines(data, ""))


def _lines(data: bytes, indent: str) -> Iterator[str]:
    for index, packet in enumerate(decode(data)):
        yield f"{indent}{index:4} {packet.offset:#08x} {packet.opcode.name} {packet.text()}".rstrip()
        if isinstance(packet, ExecutePacket):
            yield from _lines(packet.packets, indent + "    ")


def _flags_text(flags: int) -> str:
    names = {
        FLAG_POISON: " poison",
        FLAG_JOINED: " joined",
        FLAG_FUSED: " fused",
        FLAG_PASSED: " passed",
        FLAG_TAIL: " tail",
    }
    order = f" order={flags >> ORDER_SHIFT}" if flags >> ORDER_SHIFT else ""
    return "".join(name for flag, name in names.items() if flags & flag) + order


def _tensor_text(tensor: Tensor) -> str:
    if tensor.absent:
        return "absent"
    access = {READ: "read", WRITE: "write", READ_WRITE: "read_write"}.get(tensor.access, "?")
    sizes, strides = (",".join(map(str, each)) for each in (tensor.sizes, tensor.strides))
    offset = f"+{tensor.offset}" if tensor.offset else ""
    name = type_name(tensor.data_type)
    return f"{access}:slot{tensor.slot}{offset}:{name}[{sizes}]/[{strides}]:{tensor.byte_size}B"


def type_name(data_type: int) -> str:
    """The name of an ``enum dmlk_type`` value, such as FLOAT32."""
    names: dict[int, str] = ffi.typeof("enum dmlk_type").elements
    return names.get(data_type, f"type {data_type}").removeprefix("DMLK_")


def _words_text(arguments: bytes) -> str:
    words = struct.unpack(f"<{len(arguments) // 4}I", arguments)
    return f" arguments {' '.join(f'{word:#x}' for word in words)}" if words else ""


def _region_text(region: tuple[int, int, int, int, bool]) -> str:
    tile, count, heap, heap_tile, reuse = region
    where = "NULL" if not heap else f"heap {heap} tile {heap_tile}{' for all' if reuse else ''}"
    return f"tiles [{tile}, {tile + count}) <- {where}"
