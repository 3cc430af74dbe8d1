"""Programs that keep all rules: every call is made so that it is legal, and a model knows what follows.

:class:`Program` knows which objects there are, what they are needed for, and until when.  What a rule of the
state machine wants it does, with all that this takes: uploads before something is read, barriers between what
would race, signals and waits between queues, waits of the host before memory, descriptors and allocators are
used again.  Which of several ways it goes is drawn by lot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import numpy as np
from legal_memory import (
    NOWHERE,
    Array,
    Barrier,
    Command,
    Copy,
    Dispatch,
    Index,
    Kind,
    Memory,
    Query,
    Set,
    Step,
    Tensor,
    Touch,
    View,
    clash,
    needs,
    touch,
)
from legal_operators import Recipe

from dmlemu import Strictness, d3d12, dml
from dmlemu.d3d12 import CommandListType, HeapType, Range

States = d3d12.ResourceStates
COMMON, UAV_STATE, SOURCE, DEST = (
    0,
    int(States.UNORDERED_ACCESS),
    int(States.COPY_SOURCE),
    int(States.COPY_DEST),
)
SOURCES = SOURCE | int(States.NON_PIXEL_SHADER_RESOURCE)
UAV = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
COPY, COMPUTE, DIRECT = CommandListType.COPY, CommandListType.COMPUTE, CommandListType.DIRECT
TILE = 65536
NOTHING = Range(0, 0)
STATE_OF = {Kind.UAV: UAV_STATE, Kind.COPY_SOURCE: SOURCE, Kind.COPY_DEST: DEST}
FIXED = {HeapType.UPLOAD: States.GENERIC_READ, HeapType.READBACK: States.COPY_DEST}
VIEWS = d3d12.DescriptorHeapType.CBV_SRV_UAV
TIMESTAMP = d3d12.QueryType.TIMESTAMP
MAX_WIDTH = 1536

Clock = dict["Queue", int]


def join(one: Clock, other: Clock) -> Clock:
    """What both know together."""
    return {queue: max(one.get(queue, 0), other.get(queue, 0)) for queue in one.keys() | other.keys()}


@dataclass(eq=False)
class Thing:
    """Something that calls need: ``last`` tells the last one of each queue."""

    api: Any
    last: Clock = field(default_factory=dict, init=False)
    released: bool = field(default=False, init=False)


@dataclass(eq=False)
class Heap(Thing):
    where: Index
    kind: HeapType


@dataclass(eq=False)
class Buffer(Thing):
    """``where``: the numbers of its bytes; ``tiles``: of a reserved one's mappings.

    ``mapped`` is the memory of a map that stays open, ``reads`` whether that lets the CPU read, ``views``
    arrays over it that the program has kept.
    """

    where: Index
    kind: HeapType
    heap: Heap | None = None
    tiles: Index = field(default_factory=lambda: NOWHERE)
    mapped: Any = None
    reads: bool = False
    views: list[Any] = field(default_factory=list)
    tiled_by: set[Heap] = field(default_factory=set)

    @property
    def width(self) -> int:
        return len(self.where)

    @property
    def is_fixed(self) -> bool:
        """It stays in one state for ever."""
        return self.kind in FIXED

    @property
    def is_uav(self) -> bool:
        return self.kind is HeapType.DEFAULT


@dataclass(eq=False)
class Operator(Thing):
    """``done``: a byte that stands for its having been initialised; ``weights`` are those of DirectML."""

    recipe: Recipe
    done: Index
    flags: int = 0
    persistent: View | None = None
    weights: dict[int, Array] = field(default_factory=dict)
    initialized: bool = False  # its initializer was executed


@dataclass(eq=False)
class Queries(Thing):
    where: Index  # 8 for each slot
    kind: CommandListType

    def slots(self, first: int, count: int) -> Index:
        return self.where[8 * first : 8 * (first + count)]


@dataclass(eq=False)
class Descriptors(Thing):
    """A descriptor heap; ``taken``: by whom each descriptor is needed."""

    visible: bool
    taken: list[Any]
    cpu: int = 0
    gpu: int = 0


@dataclass(eq=False)
class Allocator(Thing):
    kind: CommandListType
    recording: Any = None  # that is open


@dataclass(eq=False)
class List(Thing):
    kind: CommandListType
    recording: Any = None  # the last one


@dataclass(eq=False)
class Queue(Thing):
    """``number`` counts its calls, ``known`` are those of other queues that its next call comes after.

    ``signals``: values that its fence gets, and what each tells.
    """

    kind: CommandListType
    fence: Any
    number: int = 0
    value: int = 0
    known: Clock = field(default_factory=dict)
    signals: list[tuple[int, Clock]] = field(default_factory=list)


class Call(NamedTuple):
    """What one call gave a queue."""

    queue: Queue
    number: int
    touches: list[Touch]


@dataclass
class Track:
    """The state of a buffer within one list; it must be ``entry``, or COMMON, when the list begins."""

    entry: int
    state: int
    promoted: bool
    split: tuple[int, int] | None = None


@dataclass(eq=False)
class Recording(Thing):
    """What a list holds between Reset and Close.  ``makes``: operators that it initialises."""

    list: List
    allocator: Allocator
    is_open: bool = True
    dead: bool = False
    steps: list[tuple[Step, list[Touch]]] = field(default_factory=list)
    tracks: dict[Buffer, Track] = field(default_factory=dict)
    things: set[Thing] = field(default_factory=set)
    operators: set[Operator] = field(default_factory=set)
    makes: set[Operator] = field(default_factory=set)
    heap: Descriptors | None = None
    barriers: list[Any] = field(default_factory=list)  # to be recorded before the next command

    @property
    def commands(self) -> list[Command]:
        return [step for step, _ in self.steps if isinstance(step, Command)]


class Illegal(Exception):
    """What was drawn cannot be done legally here: nothing has happened."""


class Program:
    """A device and what the program has made on it."""

    def __init__(self, policy: Any, random: Random) -> None:
        self.random = random
        adapter = d3d12.Adapter(dedicated_memory=1 << 26, policy=policy)
        self.device = d3d12.create_device(adapter, strictness=Strictness.STRICT)
        self.device.reports.suppress("MEM_NULL_TILE", "on tier 2 they may be read and written")
        self.device.reports.suppress("QUERY_NOT_ENDED", "a query that was never ended gives zero")
        for id in ("LAYOUT_HANDOVER", "READ_MIXED"):
            self.device.reports.suppress(id, "bytes are drawn by lot; see test_legal_layouts")
        self.dml = dml.create_device(self.device)
        self.recorder = self.dml.create_command_recorder()
        self.memory = Memory()
        self.memory.keeps_tails = not self.device.context.gpu.overwrites_tails
        self.host: Clock = {}
        self.calls: list[Call] = []
        self.buffers: list[Buffer] = []
        self.heaps: list[Heap] = []
        self.operators: list[Operator] = []
        self.queries: list[Queries] = []
        self.allocators: list[Allocator] = []
        self.lists: list[List] = []
        self.tables: list[Any] = []
        self.recordings: list[Recording] = []  # open, or closed and not given up
        self.queues = [self._queue(kind) for kind in (COMPUTE, COMPUTE, DIRECT, COPY)]
        self.descriptors = [
            self._descriptors(count, visible) for count, visible in ((24, 1), (12, 1), (8, 0))
        ]
        self.host_fence, self.host_value = self.device.create_fence(), 0
        self.pinned: set[Recording] = set()  # about to be executed
        self.others: list[Thing] = []  # initializers and persistent resources, to be released in the end

    def draw(self, items: Sequence[Any]) -> Any:
        if not items:
            raise Illegal
        return self.random.choice(items)

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    # --- making things ---

    def _queue(self, kind: CommandListType) -> Queue:
        api = self.device.create_command_queue(d3d12.CommandQueueDesc(kind))
        return Queue(api, kind, self.device.create_fence())

    def _descriptors(self, count: int, visible: int) -> Descriptors:
        flags = d3d12.DescriptorHeapFlags(visible)
        api = self.device.create_descriptor_heap(d3d12.DescriptorHeapDesc(VIEWS, count, flags))
        cpu = api.get_cpu_descriptor_handle_for_heap_start()
        gpu = api.get_gpu_descriptor_handle_for_heap_start() if visible else 0
        return Descriptors(api, bool(visible), [None] * count, cpu, gpu)

    def properties(self, kind: HeapType) -> Any:
        if kind is HeapType.CUSTOM:
            page, pool = d3d12.CpuPageProperty.WRITE_BACK, d3d12.MemoryPool.L0
            return d3d12.HeapProperties(kind, page, pool)
        return d3d12.HeapProperties(kind)

    def create_committed(self, kind: HeapType, width: int, *, zeroed: bool = True) -> Buffer:
        flags = d3d12.HeapFlags.NONE if zeroed else d3d12.HeapFlags.CREATE_NOT_ZEROED
        desc = d3d12.ResourceDesc.buffer(width, UAV if kind is HeapType.DEFAULT else d3d12.ResourceFlags.NONE)
        state = FIXED.get(kind, States.COMMON)
        api = self.device.create_committed_resource(self.properties(kind), flags, desc, state)
        return self._keep(Buffer(api, self.memory.add(width, zeroed=zeroed), kind))

    def create_heap(self, kind: HeapType, tiles: int) -> Heap:
        api = self.device.create_heap(d3d12.HeapDesc(tiles * TILE, self.properties(kind)))
        heap = Heap(api, self.memory.add(tiles * TILE), kind)
        self.heaps.append(heap)
        return heap

    def create_placed(self, heap: Heap, width: int) -> Buffer:
        tile = self.random.randrange(len(heap.where) // TILE)
        width = min(width, len(heap.where) - tile * TILE)
        kind = heap.kind
        desc = d3d12.ResourceDesc.buffer(width, UAV if kind is HeapType.DEFAULT else d3d12.ResourceFlags.NONE)
        state = FIXED.get(kind, States.COMMON)
        api = self.device.create_placed_resource(heap.api, tile * TILE, desc, state)
        return self._keep(Buffer(api, heap.where[tile * TILE :][:width], kind, heap))

    def create_reserved(self, tiles: int, width: int) -> Buffer:
        desc = d3d12.ResourceDesc.buffer((tiles - 1) * TILE + width, UAV)
        api = self.device.create_reserved_resource(desc, States.COMMON)
        where = self.memory.add_null(desc.width)
        return self._keep(Buffer(api, where, HeapType.DEFAULT, tiles=self.memory.add(tiles)))

    def _keep(self, buffer: Buffer) -> Buffer:
        buffer.api.set_name(f"buffer {len(self.buffers)}")
        self.buffers.append(buffer)
        if buffer.kind is HeapType.UPLOAD and self.chance(2):
            buffer.reads = self.chance(2)
            buffer.mapped = buffer.api.map(0, None if buffer.reads else NOTHING)
        return buffer

    def create_operator(self, recipe: Recipe) -> Operator:
        flags = dml.ExecutionFlags.DESCRIPTORS_VOLATILE if self.chance(4) else dml.ExecutionFlags.NONE
        api = recipe.compile(self.dml, flags)
        operator = Operator(api, recipe, self.memory.add(1), int(flags))
        self.operators.append(operator)
        return operator

    def create_queries(self, kind: CommandListType, count: int) -> Queries:
        copies = kind is COPY
        heap = d3d12.QueryHeapType.COPY_QUEUE_TIMESTAMP if copies else d3d12.QueryHeapType.TIMESTAMP
        api = self.device.create_query_heap(d3d12.QueryHeapDesc(heap, count))
        queries = Queries(api, self.memory.add(8 * count), kind)
        self.queries.append(queries)
        return queries

    # --- who knows what ---

    def is_known(self, queue: Queue, number: int) -> bool:
        return self.host.get(queue, 0) >= number

    def is_idle(self, *things: Thing) -> bool:
        """Does the host know that all calls which need them are done?"""
        return all(self.is_known(*pair) for thing in things for pair in thing.last.items())

    def signal(self, queue: Queue) -> int:
        queue.value += self.random.choice([1, 1, 3])
        queue.api.signal(queue.fence, queue.value)
        return self._signalled(queue)

    def _signalled(self, queue: Queue) -> int:
        queue.known = join(queue.known, self.host)
        queue.signals.append((queue.value, {**queue.known, queue: queue.number}))
        return queue.value

    def signal_behind(self, queue: Queue, number: int) -> tuple[int, Clock]:
        """A value, old or new, that tells that a call is done."""
        found = [each for each in queue.signals if each[1][queue] >= number]
        if not found:
            self.signal(queue)
        return self.draw(found or queue.signals[-1:])  # type: ignore[no-any-return]

    def await_signal(self, queue: Queue, signal: tuple[int, Clock]) -> None:
        """The host waits, in one of many ways."""
        fence, value = queue.fence, signal[0]
        way = self.random.randrange(5)
        if way == 0:
            fence.set_event_on_completion(value, None)
        elif way == 1:
            event = threading.Event()
            fence.set_event_on_completion(value, event)
            assert event.is_set()
        elif way == 2:
            while fence.get_completed_value() < value:
                pass
        elif way == 3:
            self.device.set_event_on_multiple_fence_completion([fence, self.host_fence], [value, 0])
        else:
            assert fence.wait(value)
        self.host = join(self.host, signal[1])
        self.calls = [each for each in self.calls if not self.is_known(each.queue, each.number)]

    def wait_for(self, queue: Queue, number: int) -> None:
        """The host knows afterwards that the call is done."""
        if not self.is_known(queue, number):
            self.await_signal(queue, self.signal_behind(queue, number))

    def wait_until_idle(self, *things: Thing) -> None:
        for thing in things:
            for queue, number in thing.last.items():
                self.wait_for(queue, number)

    def wait_for_touches(self, touches: list[Touch]) -> None:
        """The host waits for all calls that conflict with what it is about to do."""
        for call in reversed(self.calls):
            if not self.is_known(call.queue, call.number) and self._conflict(call.touches, touches):
                self.wait_for(call.queue, call.number)

    def _conflict(self, one: list[Touch], other: list[Touch]) -> bool:
        return any(first.conflicts(second, self.memory) for first in one for second in other)

    # --- calls of queues ---

    def _order(self, queue: Queue, touches: list[Touch]) -> list[Callable[[], None]]:
        """Makes the next call of the queue come after those that it conflicts with.

        Returns what is still to be done when it is handed over: it cannot begin before that.
        """
        queue.known = join(queue.known, self.host)
        late: list[tuple[int, Callable[[], None]]] = []
        for other in self.queues:
            if other is queue:
                continue
            calls = [each for each in self.calls if each.queue is other]
            unknown = [each for each in calls if each.number > queue.known.get(other, 0)]
            found = [each.number for each in unknown if self._conflict(each.touches, touches)]
            if found:
                late += self._order_after(queue, other, max(found))
        return [work for _, work in sorted(late, key=lambda each: each[0])]

    def _order_after(
        self, queue: Queue, other: Queue, number: int
    ) -> Iterator[tuple[int, Callable[[], None]]]:
        way = self.random.randrange(5)
        if way == 0:
            self.wait_for(other, number)
            queue.known = join(queue.known, self.host)
        elif way == 1:  # the value is awaited before its signal is queued
            other.value += 1
            queue.api.wait(other.fence, other.value)
            value = other.value
            queue.known = join(queue.known, {**other.known, other: other.number})

            def signal() -> None:
                other.api.signal(other.fence, value)
                self._signalled(other)

            yield 0, signal
        elif way == 2:  # the host lets it go on
            self.host_value += 1
            queue.api.wait(self.host_fence, self.host_value)
            value = self.host_value

            def release() -> None:
                self.wait_for(other, number)
                self.host_fence.signal(value)
                queue.known = join(queue.known, self.host)

            queue.known = join(queue.known, {other: number})
            yield 1, release
        else:
            value, clock = self.signal_behind(other, number)
            queue.api.wait(other.fence, value)
            queue.known = join(queue.known, clock)

    def queue_wait(self, queue: Queue, other: Queue) -> None:
        """The queue waits for something that the other one has signalled."""
        value, clock = self.signal_behind(other, self.random.randint(0, other.number))
        queue.api.wait(other.fence, value)
        queue.known = join(join(queue.known, self.host), clock)

    def hand_over(
        self, queue: Queue, touches: list[Touch], things: Iterable[Thing], work: Callable[[], None]
    ) -> None:
        """A call of a queue."""
        late = self._order(queue, touches)
        work()
        queue.number += 1
        self.calls.append(Call(queue, queue.number, touches))
        for thing in things:
            thing.last[queue] = queue.number
        for each in late:
            each()

    def update_tiles(self, queue: Queue, buffer: Buffer, heap: Heap) -> None:
        tiles, there = len(buffer.tiles), len(heap.where) // TILE
        first = self.random.randrange(tiles)
        count = self.random.randint(1, tiles - first)
        flag = self.random.choice([0, 0, 0, 1, 2, 4])
        start = self.random.randrange(there)
        if flag == 0:
            count = min(count, there - start)
        place = [d3d12.TiledResourceCoordinate(first)], [d3d12.TileRegionSize(count)]
        chosen = heap.api if flag in (0, 4) or self.chance(2) else None

        def work() -> None:
            queue.api.update_tile_mappings(buffer.api, *place, chosen, [flag], [start], [count])

        changed = touch(Kind.QUEUE, None, buffer.tiles[first : first + count], writes=True)
        self.hand_over(queue, changed, [buffer, heap], work)
        if flag == 2:
            return
        for i in range(count):
            span = slice((first + i) * TILE, (first + i + 1) * TILE)
            size = len(buffer.where[span])
            at = (start + (i if flag == 0 else 0)) * TILE
            buffer.where[span] = self.memory.add_null(size) if flag == 1 else heap.where[at : at + size]
        buffer.tiled_by.add(heap)

    # --- recording ---

    def begin(self, kind: CommandListType) -> Recording:
        """A list that is open."""
        allocator = self._allocator(kind)
        lists = [each for each in self.lists if each.kind is kind]
        free = [each for each in lists if not _is_open(each) and each.recording not in self.pinned]
        unused = [
            each for each in free if each.recording is None or each.recording.dead or each.recording.last
        ]
        if free and (len(lists) >= 4 or (unused and self.chance(2))):
            target = self.draw(unused or free)
            self._forget(target)
            target.api.reset(allocator.api)
        elif self.chance(2):
            target = List(self.device.create_command_list(0, kind, allocator.api), kind)
            self.lists.append(target)
        else:
            target = List(self.device.create_command_list1(0, kind), kind)
            self.lists.append(target)
            target.api.reset(allocator.api)
        recording = Recording(None, target, allocator)
        target.recording = allocator.recording = recording
        self.recordings.append(recording)
        return recording

    def _allocator(self, kind: CommandListType) -> Allocator:
        free = [each for each in self.allocators if each.kind is kind and each.recording is None]
        if not free or (len(free) < 3 and self.chance(3)):
            made = Allocator(self.device.create_command_allocator(kind), kind)
            self.allocators.append(made)
            return made
        allocator: Allocator = self.draw(free)
        if self.chance(3):
            self.wait_until_idle(allocator)
        recorded = [each for each in self.recordings if each.allocator is allocator]
        if self.is_idle(allocator) and self.chance(2) and not self.pinned.intersection(recorded):
            for each in recorded:
                self.give_up(each)
            allocator.api.reset()
        return allocator

    def _forget(self, target: List) -> None:
        """The list gives up what it holds."""
        recording, target.recording = target.recording, None
        if recording is not None:
            self.give_up(recording)

    def give_up(self, recording: Recording) -> None:
        """It will not be executed any more."""
        recording.dead, recording.barriers = True, []
        if recording.is_open:
            self.close(recording)
        if recording in self.recordings:
            self.recordings.remove(recording)

    def close(self, recording: Recording) -> None:
        if not recording.dead:
            for buffer, track in recording.tracks.items():
                if track.split is not None:
                    self._end_split(recording, buffer)
                elif not track.promoted and track.state and not buffer.is_fixed and self.chance(3):
                    self._transition(recording, buffer, COMMON)
            self._flush(recording)
        recording.list.api.close()
        recording.is_open = False
        recording.allocator.recording = None

    # --- barriers ---

    def _barrier(self, recording: Recording, api: Any, *steps: Barrier) -> None:
        named = [each.barrier.resource for each in recording.barriers if _is_transition(each)]
        if _is_transition(api) and api.barrier.resource in named:
            self._flush(recording)
        recording.barriers.append(api)
        recording.steps += [(step, []) for step in steps]
        for step in steps:
            recording.things |= {each for each in (step.before, step.after) if each is not None}

    def _flush(self, recording: Recording) -> None:
        if recording.barriers:
            recording.list.api.resource_barrier(recording.barriers)
            recording.barriers = []
            if self.chance(8):
                recording.list.api.set_marker(1, "barriers")

    def _transition(self, recording: Recording, buffer: Buffer, after: int, flags: int = 0) -> None:
        track = recording.tracks.get(buffer)
        if track is None:  # really COMMON: any state that it could be promoted to may be named
            before = self.draw([each for each in (COMMON, COMMON, DEST, SOURCE) if each != after])
            track = recording.tracks[buffer] = Track(before, before, False)
        before = track.state
        barrier = d3d12.ResourceBarrier.transition(
            buffer.api, States(before), States(after), flags=d3d12.ResourceBarrierFlags(flags)
        )
        self._barrier(recording, barrier, *([] if flags == 1 else [Barrier("TRANSITION", buffer)]))
        recording.things.add(buffer)
        if flags == 1:
            track.split = before, after
        else:
            track.state, track.promoted, track.split = after, False, None

    def _end_split(self, recording: Recording, buffer: Buffer) -> None:
        track = recording.tracks[buffer]
        assert track.split is not None
        track.state = track.split[0]
        self._transition(recording, buffer, track.split[1], flags=2)

    def begin_split(self, recording: Recording, buffer: Buffer) -> None:
        """A transition of which the end comes with the next use."""
        track = recording.tracks.get(buffer)
        if buffer.is_fixed or (track is not None and track.split is not None):
            raise Illegal
        now = COMMON if track is None else track.state
        states = [SOURCE, DEST]
        states += [UAV_STATE] if buffer.is_uav and recording.list.kind is not COPY else []
        after = self.draw([each for each in states if each != now])
        if track is None:
            recording.tracks[buffer] = Track(COMMON, COMMON, False)
        self._transition(recording, buffer, after, flags=1)

    def _use(self, recording: Recording, buffer: Buffer, state: int) -> None:
        """The buffer is in the state for the next command."""
        if buffer.is_fixed:
            return
        track = recording.tracks.get(buffer)
        if track is not None and track.split is not None:
            self._end_split(recording, buffer)
        if track is None and self.chance(2):
            recording.tracks[buffer] = Track(state, state, True)
            return
        if track is not None and track.state == COMMON and not track.promoted and self.chance(2):
            track.state, track.promoted = state, True
            return
        if track is not None and (track.state == state or (not track.promoted and track.state & state)):
            return
        after = SOURCES if state == SOURCE and recording.list.kind is not COPY and self.chance(3) else state
        self._transition(recording, buffer, after)

    def _separate(self, recording: Recording, first: Touch, then: Touch) -> None:
        """One of the barriers that order the two."""
        barriers, one, other = d3d12.ResourceBarrier, first.buffer, then.buffer
        for each in dict.fromkeys(buffer for buffer in (one, other) if buffer is not None):
            track = recording.tracks.get(each)
            if track is not None and track.split is not None:
                self._end_split(recording, each)
        ways: list[Callable[[], None]] = []
        both_uav = first.kind is then.kind is Kind.UAV
        if both_uav:
            ways.append(lambda: self._barrier(recording, barriers.uav(None), Barrier("UAV")))
        if both_uav and one is other and one is not None:
            ways += [lambda: self._barrier(recording, barriers.uav(one.api), Barrier("UAV", one))] * 3
            ways.append(lambda: self._there_and_back(recording, one))
        if one is not other and one is not None and other is not None:
            for before, after in ((one, other), (one, other), (one, None), (None, other)):
                ways.append(lambda before=before, after=after: self._alias(recording, before, after))
        if not ways or self.chance(8):
            ways = [lambda: self._alias(recording, None, None)]
        self.draw(ways)()

    def _alias(self, recording: Recording, before: Buffer | None, after: Buffer | None) -> None:
        named = [None if each is None else each.api for each in (before, after)]
        self._barrier(recording, d3d12.ResourceBarrier.aliasing(*named), Barrier("ALIASING", before, after))

    def _there_and_back(self, recording: Recording, buffer: Buffer) -> None:
        state = recording.tracks[buffer].state
        self._transition(recording, buffer, SOURCE if state != SOURCE else DEST)
        self._transition(recording, buffer, state)

    def add_barrier(self, recording: Recording, buffer: Buffer) -> None:
        """One that nobody needs."""
        is_copy = recording.list.kind is COPY
        track = recording.tracks.get(buffer)
        if track is not None and track.split is not None:
            raise Illegal
        way = self.random.randrange(4)
        if way == 0 and not is_copy:
            self._barrier(recording, d3d12.ResourceBarrier.uav(None), Barrier("UAV"))
        elif way == 1 and not is_copy and buffer.is_uav:
            self._barrier(recording, d3d12.ResourceBarrier.uav(buffer.api), Barrier("UAV", buffer))
        elif way == 2:
            self._alias(recording, *self.draw([(buffer, None), (None, buffer), (None, None)]))
        elif not buffer.is_fixed and track is not None and track.state:
            self._transition(recording, buffer, COMMON)

    # --- commands ---

    def add(
        self, recording: Recording, command: Command, things: Iterable[Thing], emit: Callable[[], None]
    ) -> None:
        """Records a command behind the barriers that it takes.  Illegal: it reads what is left undefined."""
        touches = command.touches()
        if needs([*recording.commands, command], self.memory) is None:
            raise Illegal
        buffers = _uses(command)
        for buffer, kind in buffers.items():
            self._use(recording, buffer, STATE_OF[kind])
        for _ in range(64):
            found = clash(recording.steps, touches, self.memory)
            if found is None:
                break
            self._separate(recording, *found)
        else:
            raise AssertionError(f"no barrier orders {found}")
        self._flush(recording)
        emit()
        recording.steps.append((command, touches))
        mapped = [touch(Kind.QUEUE, None, each.tiles) for each in buffers if len(each.tiles)]
        recording.steps[-1][1].extend(each for row in mapped for each in row)
        recording.things |= {*buffers, *things}

    def copy(self, recording: Recording, target: View, source: View) -> None:
        if target.buffer is source.buffer or self.memory.meet(_real(target.where), _real(source.where)):
            raise Illegal
        if not _is_once(target.where):
            raise Illegal
        whole = target.size == target.buffer.width == source.size == source.buffer.width

        def emit() -> None:
            if whole:
                recording.list.api.copy_resource(target.buffer.api, source.buffer.api)
            else:
                recording.list.api.copy_buffer_region(
                    target.buffer.api, target.offset, source.buffer.api, source.offset, target.size
                )

        self.add(recording, Copy(target, source), [], emit)

    def write_immediate(self, recording: Recording, target: View) -> None:
        data = self.random.randbytes(4)
        address = target.buffer.api.get_gpu_virtual_address() + target.offset
        parameter = d3d12.WriteBufferImmediateParameter(address, int.from_bytes(data, "little"))
        mode = self.random.choice([*d3d12.WriteBufferImmediateMode])
        command = Set(target, Kind.COPY_DEST, data)
        self.add(
            recording, command, [], lambda: recording.list.api.write_buffer_immediate([parameter], [mode])
        )

    def clear(self, recording: Recording, target: View) -> None:
        """``target`` begins at a multiple of 16 and holds whole words."""
        if not _is_once(target.where):
            raise Illegal
        heap, first = self._range(recording, 1)
        cpu_heap = self.descriptors[-1]
        slot = 32 * self.random.randrange(len(cpu_heap.taken))
        kind, flags = self.draw([(39, 1), (42, 0)])
        uav = d3d12.BufferUav(target.offset // 4, target.size // 4, flags=d3d12.BufferUavFlags(flags))
        desc = d3d12.UnorderedAccessViewDesc(d3d12.Format(kind), buffer=uav)
        for handle in (heap.cpu + 32 * first, cpu_heap.cpu + slot):
            self.device.create_unordered_access_view(target.buffer.api, None, desc, handle)
        value = self.random.choice([0, 1, self.random.getrandbits(32)])
        rects: list[Any] = []
        if self.chance(3):
            words = target.size // 4
            low, high = sorted((self.random.randint(0, words), self.random.randint(0, words)))
            rects = [d3d12.Rect(low, 0, high, 1)]
            target = View(target.buffer, target.offset + 4 * low, 4 * (high - low))

        def emit() -> None:
            self._set_heap(recording, heap)
            recording.list.api.clear_unordered_access_view_uint(
                heap.gpu + 32 * first, cpu_heap.cpu + slot, target.buffer.api, [value] * 4, rects
            )

        data = value.to_bytes(4, "little") * (target.size // 4)
        self.add(recording, Set(target, Kind.UAV, data), [heap, target.buffer], emit)

    def end_query(self, recording: Recording, queries: Queries, slot: int) -> None:
        command = Query(queries.slots(slot, 1))
        self.add(
            recording, command, [queries], lambda: recording.list.api.end_query(queries.api, TIMESTAMP, slot)
        )

    def resolve(self, recording: Recording, queries: Queries, target: View) -> None:
        first = self.random.randrange(len(queries.where) // 8)
        count = self.random.randint(1, min(len(queries.where) // 8 - first, target.size // 8))
        target = View(target.buffer, target.offset, 8 * count)
        if not _is_once(target.where):
            raise Illegal
        read = touch(Kind.QUEUE, None, queries.slots(first, count))

        def emit() -> None:
            recording.list.api.resolve_query_data(
                queries.api, TIMESTAMP, first, count, target.buffer.api, target.offset
            )

        self.add(recording, Set(target, Kind.COPY_DEST, None, lambda: read), [queries], emit)

    # --- descriptors ---

    def _range(self, recording: Recording, count: int) -> tuple[Descriptors, int]:
        """Descriptors that nobody needs any more, from now on the recording's."""
        heaps = [each for each in self.descriptors if each.visible]
        heap = recording.heap if recording.heap is not None and not self.chance(6) else self.draw(heaps)
        for waits in (False, True):
            if waits:
                owners = dict.fromkeys(each for each in heap.taken if each is not None and each.last)
                self.wait_until_idle(*owners)
            for i, owner in enumerate(heap.taken):
                if owner is not None and owner.dead and _is_gone(owner) and self.is_idle(owner):
                    heap.taken[i] = None
            for first in range(len(heap.taken) - count + 1):
                if not any(heap.taken[first : first + count]):
                    heap.taken[first : first + count] = [recording] * count
                    return heap, first
        raise Illegal

    def _set_heap(self, recording: Recording, heap: Descriptors) -> None:
        if recording.heap is not heap or self.chance(10):
            recording.list.api.set_descriptor_heaps([heap.api])
            recording.heap = heap

    def _dispatch(
        self, recording: Recording, dispatchable: Any, bind: Callable[[Any], None], *, volatile: bool
    ) -> tuple[list[Thing], Callable[[], None]]:
        """What recording a dispatch needs, and how it is done."""
        count = dispatchable.get_binding_properties().required_descriptor_count
        if not count:
            desc = dml.BindingTableDesc(dispatchable, 2**64 - 1, 2**64 - 1, 0)
            return [], lambda: self._record(recording, dispatchable, self._table(desc), bind)
        heap, first = self._range(recording, count)
        cpu, gpu = heap.cpu + 32 * first, heap.gpu + 32 * first
        staged = self.descriptors[-1]
        is_copied = count <= len(staged.taken) and self.chance(4)
        written = staged.cpu if is_copied else cpu

        def emit() -> None:
            self._set_heap(recording, heap)
            table = self._table(dml.BindingTableDesc(dispatchable, written, gpu, count))

            def late() -> None:
                bind(table)
                if is_copied:
                    self.device.copy_descriptors_simple(count, cpu, written, VIEWS)

            if volatile and not is_copied and self.chance(2):
                self.recorder.record_dispatch(recording.list.api, dispatchable, table)
                late()
            else:
                self._record(recording, dispatchable, table, lambda table: late())

        return [heap], emit

    def _table(self, desc: Any) -> Any:
        """A binding table, a new one or one that was used before."""
        if self.tables and self.chance(2):
            table = self.tables.pop()
            table.reset(desc)
            return table
        if self.chance(3):
            table = self.dml.create_binding_table(None)
            table.reset(desc)
            return table
        return self.dml.create_binding_table(desc)

    def _record(
        self, recording: Recording, dispatchable: Any, table: Any, bind: Callable[[Any], None]
    ) -> None:
        bind(table)
        self.recorder.record_dispatch(recording.list.api, dispatchable, table)
        if self.chance(2):
            self.tables.append(table)
        elif self.chance(2):
            table.reset(None)

    # --- operators ---

    def initialize(self, recording: Recording, operators: list[Operator]) -> None:
        """One initializer for all of them."""
        rows: list[Any] = []
        inputs: list[tuple[Operator, int, Tensor]] = []
        writes: list[tuple[Any, Index]] = []
        for operator in operators:
            owned = operator.recipe.owned
            found = {i: self.place(operator.recipe.inputs[i], uploads=True) for i in owned}
            inputs += [(operator, i, Tensor(view, operator.recipe.inputs[i])) for i, view in found.items()]
            row = [_binding(found.get(i)) for i in range(len(operator.recipe.inputs))]
            rows.append(dml.BufferArrayBinding(row) if owned or self.chance(2) else None)
            size = operator.api.get_binding_properties().persistent_resource_size
            if size:
                buffer = self.create_committed(HeapType.DEFAULT, size + 256)
                operator.persistent = View(buffer, 256 * self.random.randrange(2), size)
                self.buffers.remove(buffer)
                self.others.append(buffer)
                writes.append((operator.persistent.buffer, operator.persistent.where))
            writes.append((None, operator.done))
        initializer = self.dml.create_operator_initializer([each.api for each in operators])

        def function(arrays: list[Array]) -> list[Any]:
            for (operator, i, _), array in zip(inputs, arrays, strict=True):
                operator.weights[i] = array.copy()
            return []

        def bind(table: Any) -> None:
            if inputs or self.chance(2):
                table.bind_inputs(rows)
            table.bind_outputs([_binding(each.persistent) for each in operators])

        command = Dispatch([each for _, _, each in inputs], [], function, writes=writes)
        owner = Thing(initializer)
        self.others.append(owner)
        things, emit = self._dispatch(recording, initializer, bind, volatile=False)
        persistent = [buffer for buffer, _ in writes if buffer is not None]
        self.add(recording, command, [*things, *operators, *persistent, owner], emit)
        recording.makes |= set(operators)

    def dispatch(self, recording: Recording, operator: Operator) -> None:
        recipe, api = operator.recipe, operator.api
        if not operator.initialized and operator not in recording.makes:
            raise Illegal
        size = api.get_binding_properties().temporary_resource_size
        for _ in range(20):
            views: list[View | None] = [
                None if each is None or i in recipe.owned else self.place(each)
                for i, each in enumerate(recipe.inputs)
            ]
            outputs = [Tensor(self.place(each), each) for each in recipe.outputs]
            if recipe.in_place is not None and self.chance(2):
                view = views[recipe.in_place]
                assert view is not None
                outputs = [Tensor(view, recipe.outputs[0])]
            temporary = self.place_bytes(size, 256) if size else None
            reads = [(None, operator.done)]
            if operator.persistent is not None:
                reads.append((operator.persistent.buffer, operator.persistent.where))
            command = Dispatch([], outputs, lambda arrays: [], reads, [], temporary, recipe.unsure)
            command.in_place = recipe.in_place is not None
            for view, desc in zip(views, recipe.inputs, strict=True):
                if view is not None and desc is not None:
                    command.inputs.append(Tensor(view, desc))
            if command.is_apart(self.memory):
                break
        else:
            raise Illegal
        present = [i for i, each in enumerate(recipe.inputs) if each is not None]

        def function(arrays: list[Array]) -> Any:
            rest = iter(arrays)
            return recipe.function(
                [operator.weights[i] if i in recipe.owned else next(rest) for i in present]
            )

        def bind(table: Any) -> None:
            table.bind_inputs([_binding(each) for each in views])
            table.bind_outputs([_binding(each.view) for each in outputs])
            if temporary is not None or self.chance(2):
                table.bind_temporary_resource(_binding(temporary))
            if operator.persistent is not None or self.chance(2):
                table.bind_persistent_resource(_binding(operator.persistent))

        command.function = function
        volatile = bool(operator.flags)
        things, emit = self._dispatch(recording, api, bind, volatile=volatile)
        buffers = [each.buffer for each in views if each is not None] + [each.view.buffer for each in outputs]
        extra = [each.buffer for each in (temporary, operator.persistent) if each is not None]
        self.add(recording, command, [*things, operator, *buffers, *extra], emit)
        recording.operators.add(operator)

    def place(self, desc: Any, *, uploads: bool = False) -> View:
        """A legal place for a tensor."""
        return self.place_bytes(
            desc.size_in_bytes, max(16, desc.guaranteed_base_offset_alignment), uploads=uploads
        )

    def place_bytes(self, size: int, alignment: int, *, uploads: bool = False) -> View:
        kinds = (HeapType.DEFAULT, HeapType.UPLOAD) if uploads else (HeapType.DEFAULT,)
        fitting = [each for each in self.buffers if each.kind in kinds and each.width >= size]
        buffer: Buffer = self.draw(fitting)
        last = buffer.width - size
        near = self.random.choice([0, 0, 0, alignment, 256, TILE - 2 * alignment, TILE, last])
        offset = min(near + self.random.randrange(4) * alignment, last) // alignment * alignment
        return View(buffer, offset, size)

    # --- executing ---

    def execute(self, queue: Queue, recordings: list[Recording]) -> None:
        """Executes them, in as few calls as may be."""
        for each in recordings:
            if each.is_open:
                self.close(each)
        self.pinned = set(recordings)
        try:
            self._execute_all(queue, recordings)
        finally:
            self.pinned = set()

    def _execute_all(self, queue: Queue, recordings: list[Recording]) -> None:
        group: list[Recording] = []
        for each in recordings:
            if not self._is_sound([each], group):
                continue
            if group and not self._fit([*group, each]):
                barriers = self._barrier_list(queue, [*group, each])
                if barriers is not None:
                    group += [barriers, each]
                    continue
                self._execute(queue, group)
                group = []
                if not self._is_sound([each], []):
                    continue
            group.append(each)
        self._execute(queue, group)

    def _is_sound(self, recordings: list[Recording], before: list[Recording]) -> bool:
        """May it be executed, alone?  What cannot is given up."""
        ready = {operator for each in [*before, *recordings] for operator in each.makes}
        for each in recordings:
            operators = all(operator.initialized or operator in ready for operator in each.operators)
            if each.dead or not operators or not self._fit([each]):
                self.give_up(each)
                return False
        return True

    def _fit(self, recordings: list[Recording]) -> bool:
        """Are they legal as the lists of one call?"""
        return self._states_fit(recordings) and self._is_ordered(recordings)

    def _states_fit(self, recordings: list[Recording]) -> bool:
        now: dict[Buffer, int] = {}
        for recording in recordings:
            for buffer, track in recording.tracks.items():
                state = now.get(buffer, COMMON)
                if state not in (COMMON, track.entry):
                    return False
                now[buffer] = track.state
        return True

    def _is_ordered(self, recordings: list[Recording]) -> bool:
        steps: list[tuple[Step, list[Touch]]] = []
        for step, _ in (each for recording in recordings for each in recording.steps):
            touches = step.touches() if isinstance(step, Command) else []
            if isinstance(step, Dispatch) and not step.is_apart(self.memory):
                return False
            if isinstance(step, Copy) and not _is_apart(step, self.memory):
                return False
            if isinstance(step, Set) and not _is_once(step.target.where):
                return False
            if clash(steps, touches, self.memory) is not None:
                return False
            steps.append((step, touches))
        return needs([step for step, _ in steps if isinstance(step, Command)], self.memory) is not None

    def _barrier_list(self, queue: Queue, recordings: list[Recording]) -> Recording | None:
        """A list of its own that separates the last of the recordings from those before."""
        if not self._states_fit(recordings) or self.chance(2):
            return None
        made = self.begin(queue.kind)
        self.pinned.add(made)
        self._alias(made, None, None)
        if queue.kind is not COPY:
            self._barrier(made, d3d12.ResourceBarrier.uav(None), Barrier("UAV"))
        self.close(made)
        if any(each.dead for each in recordings) or not self._fit([*recordings[:-1], made, recordings[-1]]):
            self.give_up(made)
            return None
        return made

    def _execute(self, queue: Queue, recordings: list[Recording]) -> None:
        if any(each.dead for each in recordings):
            recordings = [each for each in recordings if not each.dead]
        if not recordings:
            return
        commands = [command for each in recordings for command in each.commands]
        missing = needs(commands, self.memory)
        assert missing is not None
        if len(missing):
            self._define(queue, missing, commands)
            assert not any(each.dead for each in recordings)
            missing = needs(commands, self.memory)
            assert missing is not None and not len(missing)
        touches = [each for command in commands for each in command.touches()]
        views = [view for command in commands for view in _tensors(command)]
        tiled = dict.fromkeys(view.buffer for view in views if len(view.buffer.tiles))
        touches += [each for buffer in tiled for each in touch(Kind.QUEUE, None, buffer.tiles)]
        things = {thing for each in recordings for thing in (*each.things, each, each.allocator)}
        lists = [each.list.api for each in recordings]
        self.hand_over(queue, touches, things, lambda: queue.api.execute_command_lists(lists))
        for command in commands:
            command.run(self.memory)
        for each in recordings:
            for operator in each.makes:
                operator.initialized = True

    def _define(self, queue: Queue, missing: Index, commands: list[Command]) -> None:
        """Writes bytes that are about to be read."""
        recording = None
        buffers = list(dict.fromkeys(view.buffer for command in commands for view in _tensors(command)))
        for buffer in sorted(buffers, key=lambda each: each.kind is HeapType.DEFAULT):
            marks = self.memory.marks
            marks[missing] = True
            there = np.flatnonzero((buffer.where >= 0) & marks[np.maximum(buffer.where, 0)])
            marks[missing] = False
            for first, last in _runs(there):
                data = self.random.randbytes(last - first)
                if buffer.kind is HeapType.UPLOAD:
                    self.host_write(buffer, first, data)
                else:
                    recording = recording or self.begin(queue.kind)
                    self.copy(recording, View(buffer, first, last - first), self.stage(data))
            if len(there) and buffer.kind is not HeapType.READBACK:
                missing = np.setdiff1d(missing, buffer.where[there])
        if recording is not None:
            self.close(recording)
            assert self._fit([recording])
            self._execute(queue, [recording])

    # --- the host ---

    def stage(self, data: bytes) -> View:
        """Somewhere in an upload buffer."""
        buffer = self.draw(
            [each for each in self.buffers if each.kind is HeapType.UPLOAD and each.width >= len(data)]
        )
        offset = self.random.randint(0, buffer.width - len(data))
        self.host_write(buffer, offset, data)
        return View(buffer, offset, len(data))

    def host_write(self, buffer: Buffer, offset: int, data: bytes) -> None:
        """The CPU writes to a buffer, once nobody needs what is there."""
        where = buffer.where[offset : offset + len(data)]
        self.wait_for_touches(touch(Kind.UAV, None, where, writes=True))
        if buffer.mapped is not None:
            self._store(buffer, buffer.mapped, offset, data, reads=buffer.reads)
        else:
            reads = self.random.choice([None, NOTHING, Range(offset, offset + 1)])
            if reads is None or reads.begin < reads.end:
                self.wait_for_touches(touch(Kind.UAV, None, buffer.where))
            memory = buffer.api.map(0, reads)
            end = offset + len(data)
            self._store(buffer, memory, offset, data, reads=reads is None)
            buffer.api.unmap(0, self.random.choice([None, Range(offset, end), Range(0, buffer.width)]))
        self.memory.write(where, np.frombuffer(data, np.uint8))
        self._doubt(buffer)

    def _store(self, buffer: Buffer, memory: Any, offset: int, data: bytes, *, reads: bool) -> None:
        size = len(data)
        dtypes = [each for each in ("u1", "<u2", "<f4", "<u8") if size % np.dtype(each).itemsize == 0]
        dtype = np.dtype(self.draw(dtypes))
        way = self.random.randrange(5)
        if way == 0:
            memory[offset : offset + size] = data
        elif way == 1:
            memory.memory[offset : offset + size] = data
        elif way == 2:
            np.asarray(memory)[offset : offset + size] = np.frombuffer(data, np.uint8)
        elif way == 3:
            memory.view(dtype, offset, size // dtype.itemsize)[:] = np.frombuffer(data, dtype)
        elif offset % dtype.itemsize:
            memory.view(np.uint8)[offset : offset + size] = np.frombuffer(data, np.uint8)
        else:
            array = memory.view(dtype)
            if buffer.mapped is not None and self.chance(2):
                buffer.views.append(array)
            first = offset // dtype.itemsize
            array[first : first + size // dtype.itemsize] = np.frombuffer(data, dtype)
        if reads and self.chance(2):
            assert bytes(memory[offset : offset + size]) == data

    def _doubt(self, buffer: Buffer) -> None:
        """A single word that nobody wrote, between others, may hold anything while the buffer is mapped."""
        whole = buffer.width // 4 * 4
        where = buffer.where[:whole].reshape(-1, 4)
        touched = self.memory.defined[where].any(1)
        single = ~touched & np.append(touched[1:], False) & np.append(False, touched[:-1])
        self.memory.known[where[single]] = False

    def host_read(self, buffer: Buffer) -> None:
        """The CPU reads what the GPU has written, and finds what it must be."""
        self.wait_for_touches(touch(Kind.UAV, None, buffer.where))
        begin, end = sorted((self.random.randint(0, buffer.width), self.random.randint(0, buffer.width)))
        if begin == end:
            begin, end = 0, buffer.width
        memory = buffer.api.map(0, self.random.choice([None, Range(begin, end)]))
        by_array = self.chance(2)
        found = memory.view(np.uint8, begin, end - begin).tobytes() if by_array else bytes(memory[begin:end])
        buffer.api.unmap(0, NOTHING)
        self.compare(buffer.where[begin:end], found, f"{buffer.api}, bytes from {begin} on")

    def compare(self, where: Index, found: bytes, what: str) -> None:
        known = self.memory.is_known(where)
        got, expected = np.frombuffer(found, np.uint8), self.memory.read(where)
        wrong = np.flatnonzero(known & (got != expected))
        assert not len(wrong), (
            f"{what}: bytes {_runs(wrong)} are {got[wrong][:32].tolist()} instead of "
            f"{expected[wrong][:32].tolist()}"
        )

    # --- the end of things ---

    def release(self, thing: Any, *, tell: bool = True) -> None:
        """Releases an object that nobody needs any more, or only lets go of it."""
        for each in list(self.recordings):
            if thing in each.things or thing in (each.allocator, each.list):
                self.give_up(each)
        self.wait_until_idle(thing)
        for target in self.lists:
            if target.recording is not None and (thing in target.recording.things or thing is target):
                self.wait_until_idle(target.recording)
        thing.released = True
        if tell:
            thing.api.release()
        thing.api = None

    def release_buffer(self, buffer: Buffer) -> None:
        """With or without Unmap, if it is mapped."""
        tell = self.chance(2)
        if buffer.mapped is not None and (not tell or self.chance(2)):
            buffer.api.unmap(0, None)
            buffer.mapped = None
        self.buffers.remove(buffer)
        self.release(buffer, tell=tell)
        buffer.mapped = None

    def is_recording(self, thing: Any) -> bool:
        """Is it a list or an allocator that is at work?"""
        return any(each.is_open and thing in (each.list, each.allocator) for each in self.recordings)

    def remove(self, thing: Any) -> None:
        for row in (self.operators, self.heaps, self.queries, self.lists, self.allocators):
            if thing in row:
                row.remove(thing)  # type: ignore[attr-defined]

    def is_used(self, heap: Heap) -> bool:
        """Does a buffer stand on it?"""
        return any(each.heap is heap or heap in each.tiled_by for each in self.buffers)

    def finish(self) -> None:
        """Reads everything back and releases everything."""
        for recording in list(self.recordings):
            self.give_up(recording)
        targets = [each for each in self.buffers if each.kind is HeapType.READBACK]
        for buffer in self.buffers:
            if buffer.kind is not HeapType.READBACK:
                self._read_back(buffer, self.draw(targets))
        for queue in self.queues:
            self.wait_for(queue, queue.number)
        for buffer in list(self.buffers):
            self.release_buffer(buffer)
        rows = self.heaps, self.others, self.operators, self.queries, self.lists, self.allocators
        for thing in (each for row in (*rows, self.descriptors) for each in row):
            self.release(thing)
        for queue in self.queues:
            queue.api.release()
            queue.fence.release()
        for each in (*self.tables, self.recorder, self.host_fence, self.dml):
            each.release()
        self.device.checks.end()
        self.device.release()

    def _read_back(self, buffer: Buffer, target: Buffer) -> None:
        for start in range(0, min(buffer.width, 2 * MAX_WIDTH), target.width):
            size = min(target.width, buffer.width - start)
            queue = self.draw(self.queues)
            recording = self.begin(queue.kind)
            self.copy(recording, View(target, 0, size), View(buffer, start, size))
            self.execute(queue, [recording])
            self.host_read(target)


def _is_open(target: List) -> bool:
    return target.recording is not None and target.recording.is_open


def _is_gone(recording: Recording) -> bool:
    """Its list does not hold it any more."""
    return recording.list.recording is not recording or recording.list.released


def _is_transition(barrier: Any) -> bool:
    return bool(barrier.type == d3d12.ResourceBarrierType.TRANSITION)


def _binding(view: View | None) -> Any:
    return None if view is None else dml.BufferBinding(view.buffer.api, view.offset, view.size)


def _real(where: Index) -> Index:
    return where[where >= 0]


def _is_once(where: Index) -> bool:
    """Does no byte stand there twice?"""
    real = _real(where)
    return len(np.unique(real)) == len(real)


def _is_apart(copy: Copy, memory: Memory) -> bool:
    target, source = copy.target.where, copy.source.where
    return _is_once(target) and not memory.meet(_real(target), _real(source))


def _tensors(command: Command) -> list[View]:
    """The views that a command names."""
    if isinstance(command, Copy):
        return [command.target, command.source]
    if isinstance(command, Set):
        return [command.target]
    if isinstance(command, Dispatch):
        found = [each.view for each in (*command.inputs, *command.outputs)]
        return found if command.temporary is None else [*found, command.temporary]
    return []


def _uses(command: Command) -> dict[Buffer, Kind]:
    """The buffers that it names, and how it uses them."""
    if isinstance(command, Copy):
        return {command.target.buffer: Kind.COPY_DEST, command.source.buffer: Kind.COPY_SOURCE}
    if isinstance(command, Set):
        return {command.target.buffer: command.kind}
    buffers = dict.fromkeys((view.buffer for view in _tensors(command)), Kind.UAV)
    if isinstance(command, Dispatch):
        opaque = (buffer for buffer, _ in (*command.reads, *command.writes) if buffer is not None)
        buffers |= dict.fromkeys(opaque, Kind.UAV)
    return buffers


def _runs(numbers: Index) -> list[tuple[int, int]]:
    """First and past-the-last of each row of consecutive numbers."""
    if not len(numbers):
        return []
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    rows = np.split(numbers, cuts)
    return [(int(row[0]), int(row[-1]) + 1) for row in rows]
