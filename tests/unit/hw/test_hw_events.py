"""The event stream."""

import numpy as np
import pytest

from dmlemu_hw import events, kernels, packets
from dmlemu_hw.descriptors import Descriptor, DescriptorKind
from dmlemu_hw.events import Access, Event, EventStream, Footprint
from dmlemu_hw.gpu import Gpu, QueueKind
from dmlemu_hw.memory import POISON_BYTE
from dmlemu_hw.packets import READ, READ_WRITE, WRITE, Opcode, PacketWriter
from dmlemu_hw.storage import TILE_SIZE


def of(kind: type, seen: list[Event]) -> list[Event]:
    return [event for event in seen if isinstance(event, kind)]


def test_a_stream_is_true_while_somebody_listens():
    stream, seen = EventStream(), []
    assert not stream
    with stream.subscribe(seen.append):
        assert stream
        stream.emit(events.Signalled(1, 2, 3))
    assert not stream
    stream.emit(events.Signalled(1, 2, 4))
    assert seen == [events.Signalled(1, 2, 3)]


def test_a_subscriber_may_leave_while_it_is_called():
    stream, seen = EventStream(), []
    first = stream.subscribe(lambda event: (seen.append("first"), first.close()))
    stream.subscribe(lambda event: seen.append("second"))
    for _ in range(2):
        stream.emit(events.Waited(1, 2, 3))
    assert seen == ["first", "second", "second"]


@pytest.mark.parametrize(
    ("bits", "sizes", "strides", "expected"),
    [
        (32, (2, 3), (3, 1), (100, 124)),
        (16, (2, 3), (10, 2), (100, 130)),
        (8, (4, 5), (0, 1), (100, 105)),
        (4, (5,), (1,), (100, 103)),
        (64, (1,), (7,), (100, 108)),
    ],
)
def test_byte_range_of_a_footprint(bits, sizes, strides, expected):
    assert Footprint(100, bits, sizes, strides).byte_range == expected


def test_memory_tells_of_what_comes_and_goes(gpu):
    seen: list[Event] = []
    with gpu.events.subscribe(seen.append):
        heap = gpu.memory.create_heap(100, label="pool")
        placed = gpu.memory.place(heap, 16, 20, "placed")
        reserved = gpu.memory.reserve(TILE_SIZE, "reserved")
        gpu.memory.map_tiles(reserved, 0, 1, heap, 0, reuse=True)
        gpu.memory.map_tiles(reserved, 0, 1, None, 0)
        for each in (placed, reserved, heap):
            each.close()
    assert seen == [
        events.Allocated("heap", heap.serial, 0, 100, "pool"),
        events.Allocated("placed", placed.serial, placed.address, 20, "placed", heap.serial, 16),
        events.Allocated("reserved", reserved.serial, reserved.address, TILE_SIZE, "reserved"),
        events.Mapped(reserved.serial, 0, 1, heap.serial, 0, True),
        events.Mapped(reserved.serial, 0, 1, 0, 0, False),
        events.Freed("placed", placed.serial, placed.address, 20, "placed"),
        events.Freed("reserved", reserved.serial, reserved.address, TILE_SIZE, "reserved"),
        events.Freed("heap", heap.serial, 0, 100, "pool"),
    ]


def test_a_program_is_told_in_order(gpu):
    data = gpu.memory.place(gpu.memory.create_heap(256), 0, 256)
    queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
    writer = PacketWriter()
    writer.copy_buffer(data.address, data.address + 64, 8)
    writer.barrier(2, data.address, 0, 0, 0, 0)
    seen: list[Event] = []
    with gpu.events.subscribe(seen.append):
        queue.submit([(5, b""), (7, writer.bytes())])
        queue.wait(fence, 1)
        queue.signal(fence, 2)
        fence.signal(1)
        gpu.wait(fence, 2)
    copy, barrier = writer.bytes()[:32], writer.bytes()[32:]
    place = (queue.serial, 2, 7)
    assert seen == [
        events.Submitted(queue.serial, 2, (5, 7)),
        events.Queued(queue.serial, 3, Opcode.WAIT, fence.address, 1),
        events.Queued(queue.serial, 4, Opcode.SIGNAL, fence.address, 2),
        events.Signalled(0, fence.address, 1),
        events.HostWaiting(((fence.address, 2),)),
        events.Executing(
            *place,
            0,
            Opcode.COPY_BUFFER,
            copy,
            False,
            [
                Access(0, READ, Footprint(data.address + 64, 8, (8,), (1,))),
                Access(1, WRITE, Footprint(data.address, 8, (8,), (1,))),
            ],
        ),
        events.Executed(*place, 0, Opcode.COPY_BUFFER, copy, 2000, 3001),
        events.Executing(*place, 1, Opcode.BARRIER, barrier, False, []),
        events.Barrier(*place, 1, 2, data.address, 0, 0, 0, 0),
        events.Executed(*place, 1, Opcode.BARRIER, barrier, 3001, 4001),
        events.Waited(queue.serial, fence.address, 1),
        events.Signalled(queue.serial, fence.address, 2),
        events.HostResumed(((fence.address, 2),)),
        events.Waited(0, fence.address, 2),
    ]


def test_a_dispatch_tells_its_strided_footprints(gpu):
    data = gpu.memory.place(gpu.memory.create_heap(256), 0, 256)
    heap = gpu.descriptors.create_heap(2, True)
    for i in range(2):
        view = Descriptor(DescriptorKind.UAV, 1, 0, 39, data.address + 128 * i, 128)
        gpu.descriptors.write(heap.cpu_start + 32 * i, view)
    writer = PacketWriter()
    operands = [
        packets.tensor(0, READ, 2, (2, 3), (8, 2), 32, 16),
        packets.tensor(1, WRITE, 2, (2, 3), (3, 1), 12),
    ]
    writer.dispatch(kernels.number("copy"), heap.gpu_start, operands, b"", 0)
    queue, seen = gpu.create_queue(QueueKind.DIRECT), []
    queue.submit([(1, writer.bytes())])
    with gpu.events.subscribe(seen.append):
        gpu.drain()
    (event,) = of(events.Executing, seen)
    assert event.accesses == [
        Access(0, READ, Footprint(data.address + 16, 16, (2, 3), (8, 2))),
        Access(1, WRITE, Footprint(data.address + 128, 16, (2, 3), (3, 1))),
    ]


def test_a_discard_makes_part_of_a_view_undefined(gpu):
    data = gpu.memory.place(gpu.memory.create_heap(256), 0, 256)
    heap = gpu.descriptors.create_heap(2, True)
    gpu.descriptors.write(heap.cpu_start, Descriptor(DescriptorKind.UAV, 1, 0, 39, data.address + 64, 64))
    gpu.descriptors.write(heap.cpu_start + 32, Descriptor(DescriptorKind.UAV, 1, 0, 39))
    writer = PacketWriter()
    writer.discard(heap.gpu_start, 3, 5, packets.FLAG_POISON)
    writer.discard(heap.gpu_start, 60, 5, packets.FLAG_POISON | packets.FLAG_JOINED)
    writer.discard(heap.gpu_start, 32, 4, 0)
    writer.discard(heap.gpu_start + 32, 0, 4, packets.FLAG_POISON)
    queue, seen = gpu.create_queue(QueueKind.DIRECT), []
    queue.submit([(1, writer.bytes())])
    with gpu.events.subscribe(seen.append, events.Executing):
        gpu.drain()
    assert [(event.joined, [access.footprint.byte_range for access in event.accesses]) for event in seen] == [
        (False, [(data.address + 67, data.address + 72)]),
        (True, [(data.address + 124, data.address + 129)]),
        (False, [(data.address + 96, data.address + 100)]),
        (False, []),
    ]
    poisoned = np.flatnonzero(np.asarray(data.buffer()) == POISON_BYTE)
    assert poisoned.tolist() == [67, 68, 69, 70, 71, 124, 125, 126, 127]


def test_a_subscriber_may_choose_kinds_of_events():
    stream, seen = EventStream(), []
    assert not stream.wants(events.Waited)
    subscription = stream.subscribe(seen.append, events.Waited, events.Signalled)
    assert stream.wants(events.Waited)
    assert not stream.wants(events.Executed)
    for event in (events.Waited(1, 2, 3), events.Recorded(1, 2, 3), events.Signalled(1, 2, 3)):
        stream.emit(event)
    assert seen == [events.Waited(1, 2, 3), events.Signalled(1, 2, 3)]
    subscription.close()
    assert not stream.wants(events.Waited)


def test_who_asks_for_commands_that_access_memory_is_spared_the_others(gpu):
    data = gpu.memory.place(gpu.memory.create_heap(256), 0, 256)
    writer = PacketWriter()
    writer.barrier(2, 0, 0, 0, 0, 0)
    writer.copy_buffer(data.address, data.address + 8, 8)
    queue, some, every = gpu.create_queue(QueueKind.DIRECT), [], []
    queue.submit([(1, writer.bytes())])
    with (
        gpu.events.subscribe(some.append, events.Accessing),
        gpu.events.subscribe(every.append, events.Executing),
    ):
        gpu.drain()
    assert [event.opcode for event in some] == [Opcode.COPY_BUFFER]
    assert [event.opcode for event in every] == [Opcode.BARRIER, Opcode.COPY_BUFFER]
    assert every[1] is some[0]


def test_other_commands_tell_what_they_write(gpu):
    data = gpu.memory.place(gpu.memory.create_heap(256), 0, 256)
    heap = gpu.descriptors.create_heap(1, True)
    gpu.descriptors.write(heap.cpu_start, Descriptor(DescriptorKind.UAV, 0, 0, 57, data.address + 64, 64))
    writer = PacketWriter()
    writer.timestamp(data.address)
    writer.write_immediate([(data.address + 8, 1, 0), (data.address + 12, 1, 0)])
    writer.clear_uav(heap.gpu_start, (1, 1, 1, 1), [(1, 3), (30, 99), (40, 41)])
    writer.clear_uav(heap.gpu_start, (1, 1, 1, 1))
    writer.resolve_query(data.address + 24, data.address, 2)
    queue, seen = gpu.create_queue(QueueKind.DIRECT), []
    queue.submit([(1, writer.bytes())])
    with gpu.events.subscribe(seen.append):
        gpu.drain()

    def ranges(access: int) -> list[tuple[int, int, int]]:
        return [
            (event.command, *[end - data.address for end in each.footprint.byte_range])
            for event in of(events.Executing, seen)
            for each in event.accesses
            if each.access == access
        ]

    assert ranges(READ) == [(4, 0, 16)]
    assert ranges(WRITE) == [
        (0, 0, 8),
        (1, 8, 12),
        (1, 12, 16),
        (2, 66, 70),
        (2, 124, 128),
        (3, 64, 128),
        (4, 24, 40),
    ]


def test_listening_changes_nothing_but_what_is_told():
    def program(listen: bool) -> tuple[bytes, int]:
        gpu = Gpu(name="test", memory_bytes=1 << 20)
        data = gpu.memory.place(gpu.memory.create_heap(256), 0, 256)
        np.asarray(data.buffer())[:] = range(256)
        reserved = gpu.memory.reserve(TILE_SIZE)
        if listen:
            gpu.events.subscribe(lambda event: None)
        heap = gpu.descriptors.create_heap(1, True)
        view = Descriptor(DescriptorKind.UAV, 0, 0, 42, data.address + 64, 64)
        gpu.descriptors.write(heap.cpu_start, view)
        writer = PacketWriter()
        writer.copy_buffer(reserved.address, data.address, 16)
        writer.copy_buffer(data.address + 32, reserved.address, 16)
        operand = packets.tensor(0, READ_WRITE, 3, (4,), (1,), 16)
        writer.dispatch(kernels.number("copy"), heap.gpu_start, [operand, operand], b"", 0)
        writer.clear_uav(heap.gpu_start, (1, 2, 3, 4), [(2, 3)])
        writer.timestamp(data.address)
        gpu.create_queue(QueueKind.DIRECT).submit([(1, writer.bytes())])
        gpu.drain()
        return bytes(data.buffer()), gpu.clock.now

    assert program(True) == program(False)


class Stop(Exception):
    pass


@pytest.mark.parametrize("where", [events.Executing, events.Executed])
def test_what_a_subscriber_raises_reaches_the_host_and_the_gpu_goes_on(gpu, where):
    data = gpu.memory.place(gpu.memory.create_heap(256), 0, 256)
    queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
    writer = PacketWriter()
    writer.write_immediate([(data.address, 1, 0)])
    writer.write_immediate([(data.address + 1, 2, 0)])
    writer.write_immediate([(data.address + 2, 3, 0)])
    queue.submit([(1, writer.bytes())])
    queue.signal(fence, 1)

    def stop(event: Event) -> None:
        if isinstance(event, where) and event.command == 1:
            raise Stop

    with gpu.events.subscribe(stop):
        with pytest.raises(Stop):
            gpu.wait(fence, 1)
        assert not queue.done(1)
        assert gpu.wait(fence, 1)
    written = where is events.Executed
    assert bytes(data.buffer()[:4]) == bytes([1, 2 * written, 3, 0])


def test_a_subscriber_that_waits_does_not_run_the_gpu_inside_itself(gpu):
    data = gpu.memory.place(gpu.memory.create_heap(256), 0, 256)
    queue = gpu.create_queue(QueueKind.DIRECT)
    writer = PacketWriter()
    writer.write_immediate([(data.address, 1, 0)])
    queue.submit([(1, writer.bytes()), (2, writer.bytes())])
    steps = []
    with gpu.events.subscribe(lambda event: steps.append(gpu.step())):
        gpu.step()
    assert steps
    assert not any(steps)
    assert queue.completed == 1


def test_memory_closed_by_a_subscriber_stays_until_the_step_is_over(gpu):
    first, second = (gpu.memory.place(gpu.memory.create_heap(64), 0, 64) for _ in range(2))
    queue = gpu.create_queue(QueueKind.DIRECT)
    writer = PacketWriter()
    writer.write_immediate([(first.address, 1, 0)])
    writer.write_immediate([(second.address, 2, 0)])
    queue.submit([(1, writer.bytes())])

    def close(event: Event) -> None:
        if isinstance(event, events.Executing):
            second.close()

    with gpu.events.subscribe(close):
        gpu.drain()
    assert gpu.memory.find(second.address) is None
    assert gpu.fault is None


@pytest.mark.parametrize("kinds", [(), (events.LeftUndefined,)], ids=["all", "alone"])
def test_a_kernel_tells_which_rows_it_left_undefined(gpu, kinds):
    data = gpu.memory.place(gpu.memory.create_heap(256), 0, 256)
    np.asarray(data.buffer())[:4] = [0, 1, 0, 1]
    heap = gpu.descriptors.create_heap(3, True)
    for i, size in enumerate((4, 4, 64)):
        view = Descriptor(DescriptorKind.UAV, 1, 0, 39, data.address + 64 * i, size)
        gpu.descriptors.write(heap.cpu_start + 32 * i, view)
    operands = [
        packets.tensor(0, READ, 5, (4,), (1,), 4),
        packets.tensor(1, WRITE, 3, (1,), (1,), 4),
        packets.tensor(2, WRITE, 3, (4, 1), (2, 1), 32),
    ]
    writer = PacketWriter()
    constants = kernels.pack("nonzero_coordinates", columns=1)
    writer.dispatch(kernels.number("nonzero_coordinates"), heap.gpu_start, operands, constants, 0)
    queue, seen = gpu.create_queue(QueueKind.DIRECT), []
    queue.submit([(1, writer.bytes())])
    with gpu.events.subscribe(seen.append, *kinds):
        gpu.drain()
    (event,) = of(events.LeftUndefined, seen)
    rest = Footprint(data.address + 128 + 2 * 8, 32, (2, 1), (2, 1))
    assert event.access == Access(2, events.UNDEFINE, rest)


@pytest.mark.parametrize("arguments", [(None,), (5, events.Executing), (print, "Executing")])
def test_only_callables_and_kinds_of_events_subscribe(arguments: tuple[object, ...]) -> None:
    stream = events.EventStream()
    with pytest.raises(TypeError, match=" must be "):
        stream.subscribe(*arguments)
    assert not stream
