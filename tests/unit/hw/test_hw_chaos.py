"""Chaos in the hardware: which commands may swap, what repeats by the seed, and what every mode draws."""

from collections.abc import Iterable
from itertools import combinations, pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from dmlemu_hw import events, packets, reordering
from dmlemu_hw.allocation import Allocation
from dmlemu_hw.chaos import Chaos, Mode, chaos, fill
from dmlemu_hw.descriptors import Descriptor, DescriptorKind
from dmlemu_hw.faults import FaultKind, GpuFault
from dmlemu_hw.gpu import Gpu, Policy, QueueKind
from dmlemu_hw.memory import POISON_BYTE
from dmlemu_hw.packets import FLAG_JOINED, FLAG_POISON, FLAG_TAIL, Opcode, PacketWriter
from dmlemu_hw.reordering import Step, shuffled
from dmlemu_hw.storage import TILE_SIZE

BUFFER = 256
R32_UINT = 42
TRANSITION, ALIASING, UAV = range(3)
BEGIN_ONLY, END_ONLY = 1, 2


def chaotic(seed: int, *modes: Mode, **more: Any) -> Gpu:
    return Gpu(name="test", memory_bytes=64 << 20, policy=chaos(seed, modes or None), **more)


class World:
    """Buffers 0, 1, 2 ..., each with a UAV, and a writer; commands name buffers by number."""

    def __init__(self, gpu: Gpu, buffers: int = 4) -> None:
        self.gpu = gpu
        self.buffers = [self.buffer() for _ in range(buffers)]
        self.views = gpu.descriptors.create_heap(buffers, True)
        for i, buffer in enumerate(self.buffers):
            view = Descriptor(DescriptorKind.UAV, format=R32_UINT, address=buffer.address, size=BUFFER)
            gpu.descriptors.write(self.views.cpu_start + 32 * i, view)
        self.writer = PacketWriter()

    def buffer(self) -> Allocation:
        return self.gpu.memory.place(self.gpu.memory.create_heap(BUFFER), 0, BUFFER)

    def view(self, buffer: int) -> int:
        return self.views.gpu_start + 32 * buffer

    def clear(self, buffer: int, value: int = 0, first: int = 0, end: int = 1) -> int:
        return self.writer.clear_uav(self.view(buffer), [value] * 4, [(first, end)])

    def copy(self, to: int, origin: int, offset: int = 0, size: int = 16) -> int:
        target, source = self.buffers[to].address + offset, self.buffers[origin].address
        return self.writer.copy_buffer(target, source, size)

    def write(self, buffer: int, value: int, offset: int = 0, mode: int = 0) -> int:
        return self.writer.write_immediate([(self.buffers[buffer].address + offset, value, mode)])

    def barrier(self, kind: int, buffer: int | None, after: int | None = None, flags: int = 0) -> int:
        address, other = (0 if each is None else self.buffers[each].address for each in (buffer, after))
        return self.writer.barrier(kind, address, other, 1, 2, flags)

    def take(self) -> bytes:
        data, self.writer = self.writer.bytes(), PacketWriter()
        return data

    def orders(self, *lists: bytes, seeds: int = 200) -> set[tuple[tuple[int, int], ...]]:
        """All orders that come up: (list, command) of each step."""
        found = set()
        for seed in range(seeds):
            steps = shuffled(lists, self.gpu.memory, Random(seed))
            found.add(tuple((step.list, step.command) for step in steps))
        return found

    def swaps(self, *lists: bytes) -> set[tuple[int, int]]:
        """Pairs of commands that come in either order; for one list, by their numbers."""
        orders = self.orders(*(lists or (self.take(),)))
        places = [{command: at for at, (_, command) in enumerate(order)} for order in orders]
        pairs = combinations(range(len(places[0])), 2)
        return {(a, b) for a, b in pairs if len({place[a] < place[b] for place in places}) == 2}


@pytest.fixture
def world(gpu: Gpu) -> World:
    return World(gpu)


class TestOrder:
    """The rules, one by one: numbers are those of the commands in the list."""

    def test_commands_without_barriers_come_in_every_order(self, world):
        for buffer in range(3):
            world.clear(buffer)
        assert len(world.orders(world.take())) == 6

    def test_conflicts_alone_order_nothing(self, world):
        world.clear(0, 1)
        world.clear(0, 2)
        world.copy(1, 0)
        assert world.swaps() == {(0, 1), (0, 2), (1, 2)}

    def test_ST15_a_uav_barrier_orders_accesses_of_its_resource_by_views(self, world):
        world.clear(0)
        world.clear(1)
        world.copy(2, 0)
        world.barrier(UAV, 0)
        world.clear(0)
        world.clear(1)
        swaps = world.swaps()
        assert not swaps & {(0, 3), (3, 4), (0, 4)}
        assert swaps == set(combinations(range(6), 2)) - {(0, 3), (3, 4), (0, 4)}

    def test_ST15_a_uav_barrier_without_a_resource_orders_all_of_them(self, world):
        world.clear(0)
        world.copy(2, 3)
        world.barrier(UAV, None)
        world.clear(1)
        world.copy(3, 2)
        assert world.swaps() == set(combinations(range(5), 2)) - {(0, 2), (2, 3), (0, 3)}

    def test_a_transition_orders_all_accesses_of_its_resource(self, world):
        world.copy(0, 1)
        world.copy(2, 1)
        world.barrier(TRANSITION, 0)
        world.clear(0)
        world.clear(3)
        assert world.swaps() == set(combinations(range(5), 2)) - {(0, 2), (2, 3), (0, 3)}

    def test_ST13_of_a_split_transition_the_end_orders(self, world):
        world.copy(0, 1)
        world.barrier(TRANSITION, 0, flags=BEGIN_ONLY)
        world.clear(2)
        world.barrier(TRANSITION, 0, flags=END_ONLY)
        world.clear(0)
        swaps = world.swaps()
        assert not swaps & {(0, 3), (3, 4), (0, 4)}
        assert {(0, 1), (0, 2), (2, 3), (2, 4)} <= swaps

    def test_an_aliasing_barrier_orders_one_resource_before_another(self, world):
        world.clear(0)
        world.clear(2)
        world.barrier(ALIASING, 0, 1)
        world.clear(1)
        world.clear(0)
        assert world.swaps() == set(combinations(range(5), 2)) - {(0, 2), (2, 3), (0, 3)}

    def test_an_aliasing_barrier_of_nothing_orders_everything(self, world):
        world.clear(0)
        world.copy(1, 2)
        world.barrier(ALIASING, None, None)
        world.copy(3, 1)
        world.clear(2)
        assert world.swaps() == {(0, 1), (3, 4)}

    def test_barriers_of_two_resources_do_not_add_up(self, world):
        """Command 0 ends before barrier 1, and barrier 2 before command 3: that is no order of 0 and 3."""
        world.clear(0)
        world.barrier(UAV, 0)
        world.barrier(UAV, 1)
        world.clear(1)
        assert (0, 3) in world.swaps()

    def test_order_is_handed_on_by_a_command_between(self, world):
        world.clear(0)
        world.barrier(UAV, 0)
        world.copy(1, 0)  # not covered: nothing hands the order on
        world.barrier(TRANSITION, 1)
        world.clear(1)
        assert (0, 4) in world.swaps()
        world.clear(0)
        world.barrier(TRANSITION, 0)
        world.copy(1, 0)
        world.barrier(TRANSITION, 1)
        world.clear(1)
        assert world.swaps() == set()

    def test_copies_that_write_a_common_byte_keep_their_order(self, world):
        world.copy(0, 1, offset=0, size=16)
        world.copy(0, 2, offset=16, size=16)
        world.copy(0, 3, offset=15, size=2)
        assert world.swaps() == {(0, 1)}
        world.write(0, 5, offset=8)
        world.copy(0, 1, offset=0, size=16)
        assert world.swaps() == set()

    def test_a_copy_that_reads_what_another_wrote_may_come_first(self, world):
        world.copy(1, 0)
        world.copy(2, 1)
        assert world.swaps() == {(0, 1)}

    def test_timestamps_and_marks_come_after_everything_before(self, world):
        world.clear(0)
        world.writer.timestamp(world.buffers[3].address)
        world.clear(1)
        world.write(2, 1, mode=1)  # MARKER_IN
        world.clear(0)
        world.writer.timestamp(world.buffers[3].address + 8)
        assert world.swaps() == {(0, 2), (0, 4), (2, 4), (1, 2), (1, 4), (3, 4)}

    def test_results_come_after_their_timestamps(self, world):
        world.clear(0)
        world.writer.timestamp(world.buffers[3].address)
        world.writer.resolve_query(world.buffers[2].address, world.buffers[3].address, 1)
        world.clear(0)
        assert world.swaps() == {(1, 3), (2, 3), (0, 3)}

    def test_markers_keep_their_order_and_bind_nothing(self, world):
        world.writer.marker(1, 1, b"begin")
        world.clear(0)
        world.writer.marker(2, 0, b"")
        world.writer.set_descriptor_heaps([world.views.gpu_start])
        assert world.swaps() == {(0, 1), (1, 2), (1, 3)}

    def test_joined_packets_stay_together(self, world):
        for buffer in range(3):
            world.writer.discard(world.view(buffer), 0, 16, 0)
            world.writer.discard(world.view(buffer), 16, 16, FLAG_JOINED)
        orders = world.orders(world.take())
        assert len(orders) == 6
        assert all(
            b == (0, a[1] + 1) for order in orders for a, b in zip(order[::2], order[1::2], strict=True)
        )

    def test_a_barrier_for_any_packet_of_a_dispatch_orders_it_whole(self, world):
        world.writer.discard(world.view(0), 0, 16, 0)
        world.writer.discard(world.view(1), 0, 16, FLAG_JOINED)
        world.barrier(UAV, 1)
        world.clear(1)
        assert world.swaps() == set()

    def test_lists_of_one_call_are_one_group(self, world):
        world.clear(0)
        first = world.take()
        world.clear(1)
        world.barrier(UAV, 0)
        world.clear(0)
        orders = world.orders(first, world.take())
        assert len({order.index((0, 0)) for order in orders}) > 1
        assert all(order.index((0, 0)) < order.index((1, 1)) < order.index((1, 2)) for order in orders)

    def test_all_packets_come_once(self, world):
        rows = [world.clear(i % 4) for i in range(30)]
        for order in world.orders(world.take(), seeds=5):
            assert sorted(order) == [(0, row) for row in rows]


KINDS = {
    "clear": lambda world, random: world.clear(random.randrange(4)),
    "copy": lambda world, random: world.copy(*random.sample(range(4), 2), offset=random.randrange(0, 64, 8)),
    "uav": lambda world, random: world.barrier(UAV, random.choice([0, 1, 2, 3, None])),
    "transition": lambda world, random: world.barrier(TRANSITION, random.randrange(4)),
    "aliasing": lambda world, random: world.barrier(ALIASING, *random.choices([0, 1, 2, 3, None], k=2)),
}


class Oracle:
    """The same rules, read from the packets pair by pair."""

    def __init__(self, world: World, data: bytes) -> None:
        self.packets = list(packets.decode(data))
        self.heap = world.views.gpu_start
        self.address = [buffer.address for buffer in world.buffers]

    def touches(self, packet: Any) -> tuple[set[int], bool]:
        if isinstance(packet, packets.ClearUavPacket):
            return {self.address[(packet.table - self.heap) // 32]}, True
        if isinstance(packet, packets.CopyBufferPacket):
            starts = {address for address in self.address if address <= packet.destination < address + BUFFER}
            return starts | {packet.source}, False
        return set(), False

    def covers(self, barrier: Any, packet: Any, *, after: bool) -> bool:
        touched, by_view = self.touches(packet)
        if barrier.kind == UAV and not by_view:
            return False
        address = barrier.address_after if barrier.kind == ALIASING and after else barrier.address
        return bool(touched) and (address == 0 or address in touched)

    def write_together(self, a: Any, b: Any) -> bool:
        if not all(isinstance(each, packets.CopyBufferPacket) for each in (a, b)):
            return False
        return abs(a.destination - b.destination) < 16

    def ordered(self) -> set[tuple[int, int]]:
        """Pairs that must keep their order, by chains too."""
        count = len(self.packets)
        is_barrier = [isinstance(packet, packets.BarrierPacket) for packet in self.packets]
        after: list[set[int]] = [set() for _ in range(count)]
        for a, b in combinations(range(count), 2):
            first, second = self.packets[a], self.packets[b]
            if (
                (is_barrier[b] and not is_barrier[a] and self.covers(second, first, after=False))
                or (is_barrier[a] and not is_barrier[b] and self.covers(first, second, after=True))
                or self.write_together(first, second)
            ):
                after[a].add(b)
        return closure(count, [(a, b) for a in range(count) for b in after[a]])


def closure(count: int, pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """With what follows from chains."""
    after: list[set[int]] = [set() for _ in range(count)]
    for a, b in pairs:
        after[a].add(b)
    for a in reversed(range(count)):
        for b in list(after[a]):
            after[a] |= after[b]
    return {(a, b) for a in range(count) for b in after[a]}


@pytest.mark.parametrize("seed", range(60))
def test_random_lists_keep_the_rules_and_use_their_freedom(world, seed):
    """Commands are ordered if, and only if, the rules say so; how barriers stand to one another is free."""
    random = Random(seed)
    for _ in range(12):
        KINDS[random.choice(list(KINDS))](world, random)
    data = world.take()
    oracle = Oracle(world, data)
    barriers = {i for i, each in enumerate(oracle.packets) if isinstance(each, packets.BarrierPacket)}
    expected = {pair for pair in oracle.ordered() if not barriers.issuperset(pair)}
    units = list(reordering._units([data], world.gpu.memory))
    found = closure(len(units), reordering._constraints(units))
    assert {pair for pair in found if not barriers.issuperset(pair)} == expected
    assert not world.swaps(data) & expected


class TestExecution:
    """What the GPU does with it."""

    def test_results_come_from_the_order_that_was_drawn(self):
        results = set()
        for seed in range(20):
            world = World(chaotic(seed, Mode.ORDER))
            world.clear(0, 1)
            world.clear(0, 2)
            queue = world.gpu.create_queue(QueueKind.COMPUTE)
            queue.submit([(1, world.take())])
            world.gpu.drain()
            results.add(world.buffers[0].buffer()[0])
        assert results == {1, 2}

    def test_events_and_faults_name_commands_as_they_were_recorded(self):
        world, seen = World(chaotic(3, Mode.ORDER)), []
        for value in range(20):
            world.clear(0, value)
        world.gpu.events.subscribe(seen.append, events.Executing, events.Executed)
        queue = world.gpu.create_queue(QueueKind.COMPUTE)
        lists = [(7, world.take())]
        world.clear(1)
        assert queue.submit([*lists, (8, world.take())]) == 2
        world.gpu.drain()
        numbers = [
            (event.list_serial, event.command) for event in seen if isinstance(event, events.Executing)
        ]
        assert sorted(numbers) == [*((7, i) for i in range(20)), (8, 0)]
        assert numbers != sorted(numbers)
        assert all((event.ticket, event.list_serial) in {(1, 7), (2, 8)} for event in seen)
        assert queue.completed == 2

        world.writer.copy_buffer(8, 16, 4)
        queue.submit([(9, world.take())])
        with pytest.raises(GpuFault) as raised:
            world.gpu.drain()
        assert (raised.value.list_serial, raised.value.command) == (9, 0)

    def test_a_fault_names_its_own_command(self):
        for seed in range(10):
            world = World(chaotic(seed, Mode.ORDER))
            for _ in range(5):
                world.clear(0)
            bad = world.writer.copy_buffer(8, 16, 4)
            for _ in range(5):
                world.clear(1)
            queue = world.gpu.create_queue(QueueKind.COMPUTE)
            with pytest.raises(GpuFault) as raised:
                queue.submit([(4, world.take())])
                world.gpu.drain()
            assert (raised.value.list_serial, raised.value.command) == (4, bad)
            assert raised.value.kind is FaultKind.BAD_ADDRESS
            assert world.gpu.fault is raised.value

    @pytest.mark.parametrize("junk", [b"\x04", bytes(8), packets.HEADER.pack(3, 1 << 20), bytes(64)])
    def test_malformed_lists_fault(self, junk):
        for seed in range(5):
            world = World(chaotic(seed, Mode.ORDER))
            world.clear(0)
            queue = world.gpu.create_queue(QueueKind.COMPUTE)
            with pytest.raises(GpuFault) as raised:
                queue.submit([(1, world.take() + junk)])
                world.gpu.drain()
            assert raised.value.kind is FaultKind.BAD_PACKET
            assert raised.value.command == 1

    def test_submissions_stay_in_order(self):
        """ExecuteCommandLists waits for what was submitted before, whatever is inside."""
        for seed in range(20):
            world = World(chaotic(seed, Mode.ORDER))
            queue = world.gpu.create_queue(QueueKind.COMPUTE)
            for value in range(1, 6):
                world.clear(0, value)
                queue.submit([(value, world.take())])
            world.gpu.drain()
            assert world.buffers[0].buffer()[0] == 5

    def test_signals_and_waits_order_queues(self):
        for seed in range(20):
            world = World(chaotic(seed, Mode.ORDER))
            first, second = (world.gpu.create_queue(QueueKind.COMPUTE) for _ in range(2))
            fence = world.gpu.create_fence()
            second.wait(fence, 1)
            world.copy(1, 0)
            second.submit([(1, world.take())])
            world.clear(0, 7)
            first.submit([(2, world.take())])
            first.signal(fence, 1)
            world.gpu.drain()
            assert world.buffers[1].buffer()[0] == 7

    def test_queues_run_in_any_order_and_between_one_another(self):
        histories = set()
        for seed in range(30):
            world, seen = World(chaotic(seed, Mode.ORDER)), []
            world.gpu.events.subscribe(lambda event, seen=seen: seen.append(event.queue), events.Executed)
            queues = [world.gpu.create_queue(QueueKind.COMPUTE) for _ in range(2)]
            fence = world.gpu.create_fence()
            for queue in queues:
                queue.wait(fence, 1)
                for _ in range(12):
                    world.clear(0)
                queue.submit([(queue.serial, world.take())])
            fence.signal(1)
            world.gpu.drain()
            changes = sum(a != b for a, b in pairwise(seen))
            histories.add((seen[0], changes))
        assert {first for first, _ in histories} == {1, 2}
        assert max(changes for _, changes in histories) > 1

    def test_the_gpu_may_run_before_the_host_waits(self):
        started = set()
        for seed in range(20):
            world = World(chaotic(seed, Mode.ORDER))
            world.clear(0, 1)
            world.gpu.create_queue(QueueKind.COMPUTE).submit([(1, world.take())])
            started.add(world.buffers[0].buffer()[0])
        assert started == {0, 1}

    def test_a_subscriber_that_raises_loses_nothing(self):
        """Each command runs once, whatever is raised before or after it."""

        class Stop(Exception):
            pass

        def interrupt(event: events.Executing | events.Executed) -> None:
            if isinstance(event, events.Executed):
                ran.append((event.list_serial, event.command))
            if random.random() < 0.3:
                raise Stop

        for seed in range(10):
            random, ran = Random(seed), []
            world = World(chaotic(seed, Mode.ORDER))
            queue = world.gpu.create_queue(QueueKind.COMPUTE)
            for _ in range(10):
                world.clear(0)
            first = world.take()
            for _ in range(10):
                world.clear(1)
            gate = world.gpu.create_fence()
            queue.wait(gate, 1)
            queue.submit([(1, first), (2, world.take())])
            world.gpu.events.subscribe(interrupt, events.Executed)
            while queue.completed < queue.submitted:
                try:
                    gate.signal(1)
                    world.gpu.drain()
                except Stop:
                    pass
            assert sorted(ran) == [(number, command) for number in (1, 2) for command in range(10)]

    def test_nothing_comes_between_the_packets_of_one_dispatch(self):
        for seed in range(20):
            world, seen = World(chaotic(seed, Mode.ORDER)), []
            queues = [world.gpu.create_queue(QueueKind.COMPUTE) for _ in range(2)]
            gate = world.gpu.create_fence()
            for queue in queues:
                queue.wait(gate, 1)
                for _ in range(5):
                    for part in range(4):
                        world.writer.discard(world.view(0), 0, 16, FLAG_JOINED if part else 0)
                queue.submit([(queue.serial, world.take())])
            world.gpu.events.subscribe(seen.append, events.Executing)
            gate.signal(1)
            world.gpu.drain()
            for first, *others in zip(*(seen[i::4] for i in range(4)), strict=True):
                assert not first.joined and all(each.joined for each in others)
                assert {(each.queue, each.command - i) for i, each in enumerate([first, *others])} == {
                    (first.queue, first.command)
                }

    def test_a_timeout_looks_between_commands(self):
        world = World(chaotic(1, Mode.ORDER))
        fence, queue = world.gpu.create_fence(), world.gpu.create_queue(QueueKind.COMPUTE)
        queue.wait(fence, 1)
        for value in range(50):
            world.clear(0, value)
        queue.submit([(1, world.take())])
        queue.signal(fence, 2)
        fence.signal(1)
        while not world.gpu.wait(fence, 2, timeout=0.0):
            pass
        assert queue.completed == queue.submitted

    def test_a_fault_tells_what_ran_before(self):
        world = World(chaotic(5, Mode.ORDER))
        queue, ran = world.gpu.create_queue(QueueKind.COMPUTE), []
        for _ in range(6):
            world.clear(0)
        world.writer.copy_buffer(8, 16, 4)
        world.gpu.events.subscribe(
            lambda event: ran.append((event.list_serial, event.command)), events.Executed
        )
        with pytest.raises(GpuFault):
            queue.submit([(9, world.take())])
            world.gpu.drain()
        (progress,) = world.gpu.fault.progress
        assert (progress.queue, progress.completed, progress.pending) == (queue.serial, 0, 1)
        assert list(progress.executed) == ran
        assert len(ran) == len(set(ran)) < 7


class TestSeeds:
    def test_one_seed_repeats(self):
        def run(seed: int) -> list[Any]:
            world, seen = World(chaotic(seed)), []
            world.gpu.events.subscribe(seen.append)
            queues = [world.gpu.create_queue(QueueKind.COMPUTE) for _ in range(2)]
            fence = world.gpu.create_fence()
            for queue in queues:
                for value in range(10):
                    world.clear(value % 4, value)
                    world.writer.discard(world.view(1), 64, 32, FLAG_POISON)
                queue.submit([(queue.serial, world.take())])
                queue.signal(fence, queue.serial)
            world.gpu.wait(fence, 2)
            world.gpu.drain()
            return [
                [each._replace(packet=b"") if hasattr(each, "packet") else each for each in seen],
                [bytes(buffer.buffer()) for buffer in world.buffers],
                [buffer.address for buffer in world.buffers],
            ]

        assert run(1) == run(1)
        assert run(1) != run(2)

    def test_a_mode_draws_the_same_whatever_the_others_do(self):
        def addresses(*modes: Mode) -> list[int]:
            return [buffer.address for buffer in World(chaotic(11, *modes, poison=False)).buffers]

        assert addresses(Mode.PLACEMENT) == addresses(*Mode)

    def test_without_a_seed_one_is_drawn(self):
        a, b = chaos(), chaos()
        assert a.seed != b.seed
        assert a.is_fresh and not chaos(3).is_fresh
        assert chaos(a.seed).random(Mode.ORDER).random() == a.random(Mode.ORDER).random()

    def test_it_is_spelled_as_it_is_written(self):
        for made in (chaos(7), chaos(7, ["order"]), chaos(7, [Mode.PADDING, "poison"]), chaos(7, [])):
            again = eval(str(made), {"chaos": chaos})
            assert again == made
        assert str(chaos(7, ["padding", "order"])) == "chaos(7, modes={'order', 'padding'})"

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            (("x",), TypeError, "seed must be an int or None, not str"),
            ((1.5,), TypeError, "seed must be an int or None, not float"),
            ((True,), TypeError, "seed must be an int or None, not bool"),
            ((1, "order"), TypeError, "modes must be a collection of modes, not a str"),
            ((1, 5), TypeError, "modes must be a collection of modes, not int"),
            ((1, ["speed"]), ValueError, "'speed' is not a mode of chaos; there are order, poison, "),
            ((1, [[]]), ValueError, r"\[\] is not a mode of chaos"),
        ],
    )
    def test_wrong_arguments(self, arguments, error, message):
        with pytest.raises(error, match=message):
            chaos(*arguments)

    def test_a_seed_may_be_an_integer_of_numpy(self):
        made = chaos(np.int64(7))
        assert made == chaos(7) and str(made) == "chaos(7)" and type(made.seed) is int

    def test_every_gpu_of_a_policy_draws_anew(self):
        policy = chaos(4)
        first, second = (World(Gpu(name="test", memory_bytes=1 << 24, policy=policy)) for _ in range(2))
        assert [each.address for each in first.buffers] == [each.address for each in second.buffers]


class TestPlacement:
    def test_addresses_are_aligned_to_a_tile_and_no_more(self):
        world = World(chaotic(2, Mode.PLACEMENT), 20)
        addresses = [buffer.address for buffer in world.buffers]
        assert all(address % (2 * TILE_SIZE) == TILE_SIZE for address in addresses)
        gaps = {b - a for a, b in pairwise(addresses)}
        assert len(gaps) > 5
        assert min(gaps) >= 2 * TILE_SIZE

    def test_without_it_addresses_follow_one_another(self, world):
        other = World(chaotic(2, *(mode for mode in Mode if mode is not Mode.PLACEMENT)))
        assert [each.address for each in other.buffers] == [each.address for each in world.buffers]


class TestPoison:
    def test_fill_takes_any_size(self):
        for size in (0, 1, 5, TILE_SIZE - 1, TILE_SIZE, 3 * TILE_SIZE + 7):
            memory = bytearray(size + 2)
            fill(memoryview(memory)[1 : size + 1], Random(1))
            assert memory[0] == memory[-1] == 0
            if size > 100:
                assert len(set(memory)) > 20

    @pytest.mark.parametrize("mode", [None, Mode.POISON, Mode.ORDER])
    def test_heaps_whose_contents_are_undefined(self, mode):
        policy = Policy.LAZY if mode is None else chaos(1, [mode])
        gpu = Gpu(name="test", memory_bytes=1 << 24, policy=policy, poison=True)
        heap = gpu.memory.create_heap(1000, poison=True)
        found = set(bytes(gpu.memory.place(heap, 0, 1000).buffer()))
        assert (found == {POISON_BYTE}) == (mode is not Mode.POISON)

    @pytest.mark.parametrize("mode", [Mode.POISON, Mode.PADDING])
    @pytest.mark.parametrize("flag", [0, FLAG_TAIL])
    def test_discards_fill_what_the_mode_is_about(self, mode, flag):
        world = World(chaotic(1, mode))
        world.writer.discard(world.view(0), 16, 100, FLAG_POISON | flag)
        world.gpu.create_queue(QueueKind.COMPUTE).submit([(1, world.take())])
        world.gpu.drain()
        found = bytes(world.buffers[0].buffer())
        assert not any(found[:16]) and not any(found[116:])
        is_random = set(found[16:116]) != {POISON_BYTE}
        assert is_random == ((mode is Mode.PADDING) == (flag == FLAG_TAIL))

    def test_poison_flags_of_a_gpu(self):
        for poison in (False, True):
            for modes in ([], [Mode.POISON], [Mode.PADDING]):
                gpu = Gpu(name="test", memory_bytes=1 << 20, policy=chaos(1, modes), poison=poison)
                assert gpu.poison == (poison or Mode.POISON in modes)
                assert gpu.overwrites_tails == (Mode.PADDING in modes)


def test_the_default_policies_draw_nothing(gpu):
    assert gpu.chaos is None
    assert all(gpu.random(mode) is None for mode in Mode)
    assert isinstance(chaos(1), Chaos)


def test_steps_keep_their_bytes(world):
    world.clear(0)
    world.copy(1, 2)
    data = world.take()
    steps = shuffled([data], world.gpu.memory, Random(0))
    assert sorted(steps) == [
        Step(0, packet.offset, packet.offset + packet.size, i)
        for i, packet in enumerate(packets.decode(data))
    ]
    assert {packets.HEADER.unpack_from(data, step.start)[0] for step in steps} == {
        Opcode.CLEAR_UAV,
        Opcode.COPY_BUFFER,
    }


def test_a_list_without_commands(world):
    assert shuffled([b"", b""], world.gpu.memory, Random(0)) == []
    other = World(chaotic(0, Mode.ORDER))
    queue = other.gpu.create_queue(QueueKind.COMPUTE)
    queue.submit([(1, b""), (2, b"")])
    other.gpu.drain()
    assert queue.completed == 2


def test_descriptors_that_make_no_sense_fault_when_the_command_runs(world):
    """Ordering looks at descriptors early, and must not be what fails."""
    world.writer.clear_uav(world.views.gpu_start + 4096, [0] * 4)
    world.writer.discard(5, 0, 4, 0)
    assert len(shuffled([world.take()], world.gpu.memory, Random(0))) == 2


def test_long_lists_take_time_in_proportion():
    """Barriers are looked at once, not for every command."""
    world = World(chaotic(0, Mode.ORDER))
    for i in range(3000):
        world.clear(i % 4)
        world.barrier(UAV, i % 4 if i % 3 else None)
    units = list(reordering._units([world.take()], world.gpu.memory))
    assert sum(1 for _ in reordering._of_barriers(units)) < 30_000


def test_values_in_views_are_kept(world):
    """The helper's own ground: a clear writes what it should."""
    world.clear(2, 9, 0, 64)
    world.gpu.create_queue(QueueKind.COMPUTE).submit([(1, world.take())])
    world.gpu.drain()
    assert (np.frombuffer(world.buffers[2].buffer(), np.uint32) == 9).all()
