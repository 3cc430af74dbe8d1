"""Packets: what is written comes back, and nothing that is no packet gets through."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlemu_hw import kernels, packets
from dmlemu_hw.kernels import ffi
from dmlemu_hw.packets import (
    ABSENT_TENSOR,
    BarrierPacket,
    ClearUavPacket,
    CopyBufferPacket,
    DispatchPacket,
    DispatchShaderPacket,
    ExecuteIndirectPacket,
    ExecutePacket,
    MapTilesPacket,
    MarkerPacket,
    Opcode,
    PacketWriter,
    ResolveQueryPacket,
    SetDescriptorHeapsPacket,
    SignalPacket,
    Tensor,
    TimestampPacket,
    WaitPacket,
    WriteImmediatePacket,
    decode,
    disassemble,
)

u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
layouts = st.integers(1, 8).flatmap(lambda n: st.tuples(*[st.lists(u32, min_size=n, max_size=n)] * 2))
tensors = st.builds(
    lambda slot, access, kind, layout, size, offset: Tensor(
        slot, access, kind, tuple(layout[0]), tuple(layout[1]), size, offset
    ),
    st.integers(0, 2**32 - 2),
    st.integers(1, 3),
    st.integers(0, 13),
    layouts,
    u64,
    u64,
)
words = st.lists(u32, max_size=6).map(lambda found: struct.pack(f"<{len(found)}I", *found))
groups = st.tuples(u32, u32, u32)
commands = st.one_of(
    st.tuples(st.just("dispatch_shader"), u64, u64, groups, words),
    st.tuples(
        st.just("execute_indirect"),
        *(u64, u64, st.tuples(u64, u64, u32, u32)),
        st.just([(0, 1), (2, 2)]),
        st.binary(min_size=16, max_size=16),
    ),
    st.tuples(st.just("dispatch"), u32, u64, st.lists(tensors, max_size=5), st.binary(max_size=30), u32),
    st.tuples(st.just("copy_buffer"), u64, u64, u64),
    st.tuples(
        st.just("clear_uav"), u64, st.tuples(u32, u32, u32, u32), st.lists(st.tuples(u64, u64), max_size=3)
    ),
    st.tuples(st.just("barrier"), u32, u64, u64, u32, u32, u32),
    st.tuples(st.just("timestamp"), u64),
    st.tuples(st.just("resolve_query"), u64, u64, u64),
    st.tuples(st.just("write_immediate"), st.lists(st.tuples(u64, u32, u32), max_size=4)),
    st.tuples(st.just("marker"), u32, u32, st.binary(max_size=30)),
    st.tuples(st.just("set_descriptor_heaps"), st.lists(u64, max_size=3)),
)


def write(writer: PacketWriter, name: str, *arguments: object) -> int:
    if name == "dispatch":
        kernel, table, operands, constants, flags = arguments
        arguments = (kernel, table, [encode(each) for each in operands], constants, flags)
    return getattr(writer, name)(*arguments)


def encode(each: Tensor) -> bytes:
    return packets.tensor(
        each.slot, each.access, each.data_type, each.sizes, each.strides, each.byte_size, each.offset
    )


def fields(packet: packets.Packet) -> tuple[object, ...]:
    """What the packet says, in the order of the writer's arguments."""
    match packet:
        case DispatchPacket():
            return packet.kernel, packet.table, list(packet.tensors), packet.constants, packet.flags
        case CopyBufferPacket():
            return packet.destination, packet.source, packet.byte_count
        case ClearUavPacket():
            return packet.table, packet.values, list(packet.ranges)
        case BarrierPacket():
            return (
                packet.kind,
                packet.address,
                packet.address_after,
                packet.before,
                packet.after,
                packet.flags,
            )
        case TimestampPacket():
            return (packet.address,)
        case ResolveQueryPacket():
            return packet.destination, packet.source, packet.count
        case WriteImmediatePacket():
            return (list(packet.writes),)
        case MarkerPacket():
            return packet.kind, packet.metadata, packet.data
        case SetDescriptorHeapsPacket():
            return (list(packet.addresses),)
        case DispatchShaderPacket():
            return packet.program, packet.heap, packet.groups, packet.arguments
        case ExecuteIndirectPacket():
            place = packet.address, packet.count_address, packet.stride, packet.most
            return packet.program, packet.heap, place, list(packet.steps), packet.arguments
    raise AssertionError(packet)


@given(st.lists(commands, max_size=8))
def test_what_is_written_comes_back(program):
    writer = PacketWriter()
    assert [write(writer, *command) for command in program] == list(range(len(program)))
    data = writer.bytes()
    assert (writer.count, writer.size) == (len(program), len(data))
    decoded = list(decode(data))
    assert [(packet.opcode.name.lower(), *fields(packet)) for packet in decoded] == program
    assert all(packet.offset % 8 == 0 and packet.size % 8 == 0 for packet in decoded)
    assert len(disassemble(data).splitlines()) == len(program)
    for packet in decoded:
        effects = packet.opcode.effects
        moves, stores = packet.moves(), packet.stores()
        assert len(moves) == (effects.copies or effects.queries == packets.READ)
        assert not stores or effects.immediate or effects.queries == packets.WRITE
        assert not (moves or stores) or (effects.on_memory and not effects.by_view)


@given(
    u64,
    st.lists(commands, max_size=3),
    u64,
    st.lists(st.tuples(u64, u64, u64, u64, st.booleans()), max_size=3),
)
def test_queue_entries_come_back(serial, program, value, regions):
    writer = PacketWriter()
    for command in program:
        write(writer, *command)
    entries = [
        packets.execute(serial, writer.bytes()),
        packets.signal(serial, value),
        packets.wait(value, serial),
        packets.map_tiles(value, regions),
    ]
    execute, signal, wait, map_tiles = decode(b"".join(entries))
    assert isinstance(execute, ExecutePacket)
    assert (execute.list_serial, execute.packets) == (serial, writer.bytes())
    assert isinstance(signal, SignalPacket)
    assert (signal.fence, signal.value) == (serial, value)
    assert isinstance(wait, WaitPacket)
    assert (wait.fence, wait.value) == (value, serial)
    assert isinstance(map_tiles, MapTilesPacket)
    assert (map_tiles.allocation, list(map_tiles.regions)) == (value, regions)


@given(tensors)
def test_a_tensor_is_what_the_kernels_read(tensor):
    c = ffi.new("dmlk_tensor *")
    ffi.buffer(c)[:] = encode(tensor)
    rank = c.rank
    assert tensor == Tensor(
        c.slot, c.access, c.type, tuple(c.sizes[0:rank]), tuple(c.strides[0:rank]), c.byte_size, c.offset
    )


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=25).map(lambda data: data * 8)))
def test_random_bytes_decode_or_raise_ValueError(data):
    try:
        for packet in decode(data):
            assert packet.offset + packet.size <= len(data)
        disassemble(data)
    except ValueError as error:
        assert "offset" in str(error)


@given(st.lists(commands, min_size=1, max_size=3), st.data())
def test_damaged_packets_decode_or_raise_ValueError(program, data):
    writer = PacketWriter()
    for command in program:
        write(writer, *command)
    damaged = bytearray(writer.bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    try:
        disassemble(cut)
    except ValueError as error:
        assert "offset" in str(error)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\1\0\0\0", "Packet at offset 0 is truncated: 4 of 8 header bytes are there"),
        (struct.pack("<II", 99, 8), "Packet at offset 0 has the unknown opcode 99"),
        (struct.pack("<II", Opcode.TIMESTAMP, 0), "TIMESTAMP packet at offset 0 has size 0"),
        (struct.pack("<IIQ", Opcode.TIMESTAMP, 12, 0), "TIMESTAMP packet at offset 0 has size 12"),
        (struct.pack("<IIQ", Opcode.TIMESTAMP, 24, 0), "is truncated: 16 of 24 bytes are there"),
        (struct.pack("<II", Opcode.TIMESTAMP, 8), "is malformed: it is too short for its fields"),
        (struct.pack("<IIQQ", Opcode.TIMESTAMP, 24, 0, 0), "is malformed: bytes are left over"),
        (struct.pack("<IIII", Opcode.WRITE_IMMEDIATE, 16, 2**32 - 1, 0), "too short for its fields"),
    ],
)
def test_malformed_packets_name_opcode_and_offset(data, message):
    with pytest.raises(ValueError, match=message):
        list(decode(data))


def test_the_offset_is_that_of_the_bad_packet():
    writer = PacketWriter()
    writer.timestamp(0)
    with pytest.raises(ValueError, match="Packet at offset 16 has the unknown opcode 0"):
        list(decode(writer.bytes() + bytes(8)))


@pytest.mark.parametrize(
    "arguments",
    [
        ("copy_buffer", 1 << 64, 0, 0),
        ("copy_buffer", 0, 0, -1),
        ("clear_uav", 0, (0, 0, 0), ()),
        ("clear_uav", 0, (1 << 32, 0, 0, 0), ()),
        ("clear_uav", 0, (0, 0, 0, 0), [(-1, 2)]),
        ("write_immediate", [(0, 1 << 32, 0)]),
        ("marker", 0, -1, b""),
    ],
)
def test_numbers_that_do_not_fit_are_refused_and_nothing_is_written(arguments):
    writer = PacketWriter()
    with pytest.raises(ValueError):
        write(writer, *arguments)
    assert (writer.count, writer.bytes()) == (0, b"")


@pytest.mark.parametrize(
    ("sizes", "strides"), [((1,) * 9, (1,) * 9), ((1, 2), (1,)), ((1 << 32,), (1,)), ((1,), (-1,))]
)
def test_tensors_that_do_not_fit_are_refused(sizes, strides):
    with pytest.raises(ValueError):
        packets.tensor(0, packets.READ, 1, sizes, strides, 4)


def test_disassembly_reads_well():
    writer = PacketWriter()
    operands = [
        packets.tensor(0, packets.READ, 2, (1, 2, 3), (6, 0, 1), 16, 64),
        ABSENT_TENSOR,
        packets.tensor(1, packets.WRITE, 2, (6,), (1,), 12),
    ]
    writer.dispatch(kernels.number("copy"), 0x1_0000_0040, operands, b"\1\2", packets.FLAG_POISON)
    writer.barrier(2, 0, 0, 0, 0, 0)
    writer.barrier(0, 0x1_0000_0000, 0, 0x400, 0x8, 0)
    writer.barrier(1, 0, 0x1_0002_0000, 0, 0, 0)
    writer.clear_uav(0x1_0000_0040, (0x3F800000, 0, 0, 0), [(0, 4)], is_float=True)
    text = disassemble(
        packets.execute(7, writer.bytes())
        + packets.map_tiles(0x1_0000_0000, [(0, 2, 3, 1, True), (2, 1, 0, 0, False)])
    )
    assert text.splitlines() == [
        "   0 0x000000 EXECUTE list 7",
        "       0 0x000000 DISPATCH copy table=0x100000040 poison "
        "read:slot0+64:FLOAT16[1,2,3]/[6,0,1]:16B absent write:slot1:FLOAT16[6]/[1]:12B constants 0102",
        "       1 0x000148 BARRIER uav any",
        "       2 0x000170 BARRIER transition 0x100000000 0x400 -> 0x8 flags=0",
        "       3 0x000198 BARRIER aliasing any -> 0x100020000",
        "       4 0x0001c0 CLEAR_UAV table=0x100000040 float 0x3f800000 0x0 0x0 0x0 elements [0, 4)",
        "   1 0x000208 MAP_TILES 0x100000000 tiles [0, 2) <- heap 3 tile 1 for all tiles [2, 3) <- NULL",
    ]


def test_commands_of_an_execute_indirect_replace_dwords_of_its_root_arguments():
    writer = PacketWriter()
    arguments = struct.pack("<4I", 1, 2, 3, 4)
    writer.execute_indirect(7, 0, (64, 0, 24, 1), [(1, 1), (2, 2)], arguments)
    (packet,) = decode(writer.bytes())
    assert packet.command_size == 24
    dispatch = packet.dispatch(struct.pack("<6I", 20, 30, 40, 8, 9, 10))
    assert (dispatch.program, dispatch.groups) == (7, (8, 9, 10))
    assert dispatch.arguments == struct.pack("<4I", 1, 20, 30, 40)


def test_an_execute_indirect_that_replaces_what_is_not_there_is_malformed():
    writer = PacketWriter()
    writer.execute_indirect(7, 0, (64, 0, 24, 1), [(3, 2)], bytes(16))
    with pytest.raises(ValueError, match="behind the last root argument"):
        list(decode(writer.bytes()))
