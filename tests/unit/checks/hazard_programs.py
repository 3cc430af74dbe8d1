"""Random programs on two queues, what a simple definition says of them, and what the device reports.

The definition is written for reading: sets of bytes, pairs of accesses, paths in a graph.  It shares nothing
with the checks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, product
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from dmlemu import Strictness, d3d12, dml
from dmlemu.errors import Severity
from dmlemu.reporting import Response
from dmlemu.testing.stage import FLOAT32, UAV, Stage, States, tensor

PAGE = 65536
UINT8 = dml.TensorDataType.UINT8

# Which pages of memory the tiles of each buffer stand on.  Pages 0 to 2 are those of one heap.
BUFFERS = {"whole": (0, 1), "second": (1,), "tiles": (2, 1, 0), "alone": (10,), "other": (11,)}


class Layout(NamedTuple):
    width: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def bytes(self) -> Iterator[int]:
        for index in product(*map(range, self.sizes)):
            start = sum(i * stride for i, stride in zip(index, self.strides, strict=True)) * self.width
            yield from range(start, start + self.width)

    @property
    def size(self) -> int:
        """TotalTensorSizeInBytes."""
        return -(-(max(self.bytes()) + 1) // 4) * 4


OPERATORS = {
    "packed": (Layout(4, (8,), (1,)), Layout(4, (8,), (1,))),
    "gather": (Layout(4, (3, 2), (6, 1)), Layout(4, (3, 2), (2, 1))),
    "scatter": (Layout(4, (3, 2), (2, 1)), Layout(4, (3, 2), (6, 1))),
    "bytes": (Layout(1, (3, 5), (11, 1)), Layout(1, (3, 5), (16, 1))),
}


@dataclass(frozen=True, eq=False)
class Action:
    """``name`` is a command, a barrier, or ``list``, ``call``, ``signal``, ``wait``, ``host wait``."""

    queue: int
    name: str
    arguments: tuple[Any, ...] = ()


Program = list[Action]


class Access(NamedTuple):
    buffer: str
    writes: bool
    is_uav: bool
    bytes: frozenset[tuple[int, int]]  # page and byte
    is_tail: bool = False  # behind the last element, where nobody relies on anything


def physical(buffer: str, places: Iterator[int]) -> frozenset[tuple[int, int]]:
    return frozenset((BUFFERS[buffer][place // PAGE], place % PAGE) for place in places)


@lru_cache(maxsize=4096)
def accesses(action: Action) -> list[Access]:
    if action.name == "dispatch":
        operator, source, start, target, to = action.arguments
        reads, writes = OPERATORS[operator]
        tail = range(max(writes.bytes()) + 1, writes.size)
        return [
            Access(source, False, True, physical(source, (start + byte for byte in reads.bytes()))),
            Access(target, True, True, physical(target, (to + byte for byte in writes.bytes()))),
            Access(target, True, True, physical(target, (to + byte for byte in tail)), is_tail=True),
        ]
    if action.name == "copy":
        target, to, source, start, count = action.arguments
        return [
            Access(source, False, False, physical(source, iter(range(start, start + count)))),
            Access(target, True, False, physical(target, iter(range(to, to + count)))),
        ]
    return []


def may_run(action: Action) -> bool:
    """What the API refuses: a command whose source and target meet, or that leaves a buffer."""
    operands: list[tuple[str, int, int]]
    if action.name == "dispatch":
        operator, source, start, target, to = action.arguments
        sizes = [layout.size for layout in OPERATORS[operator]]
        operands = [(source, start, sizes[0]), (target, to, sizes[1])]
    elif action.name == "copy":
        target, to, source, start, count = action.arguments
        operands = [(source, start, count), (target, to, count)]
    else:
        return True
    if any(start + size > PAGE * len(BUFFERS[buffer]) for buffer, start, size in operands):
        return False
    if action.name == "copy" and operands[0][0] == operands[1][0]:
        return False
    ranges = [physical(buffer, iter(range(start, start + size))) for buffer, start, size in operands]
    return not ranges[0] & ranges[1]


def legal(program: Program) -> Program:
    """With the transitions that states demand, and a call at the end; each list begins one."""
    states: list[dict[str, str]] = [{}, {}]
    made: Program = []
    for action in program:
        if action.name in ("call", "signal", "wait"):
            states[action.queue].clear()
        if not may_run(action):
            continue
        for access in accesses(action):
            use = "UNORDERED_ACCESS" if access.is_uav else "COPY_DEST" if access.writes else "COPY_SOURCE"
            before = states[action.queue].get(access.buffer, use)
            if before != use:
                made.append(Action(action.queue, "transition", (access.buffer, before, use)))
            states[action.queue][access.buffer] = use
        made.append(action)
    return made + [Action(queue, "call") for queue in range(2)]


# --- the definition ---


@dataclass
class Entry:
    """What a queue executes at a time: a call with its items, or a signal or a wait (value)."""

    queue: int
    name: str
    host: int  # which action of the program handed it over
    items: list[Action] = field(default_factory=list)
    value: int = 0


def entries(program: Program) -> tuple[list[list[Entry]], list[tuple[int, int, int]]]:
    """Of each queue; and the waits of the host: its action, queue, value."""
    made: list[list[Entry]] = [[], []]
    host: list[tuple[int, int, int]] = []
    items: list[list[Action]] = [[], []]
    values = [0, 0]
    for i, action in enumerate(program):
        queue = action.queue
        if action.name in ("call", "signal", "wait") and items[queue]:
            made[queue].append(Entry(queue, "call", i, items[queue]))
            items[queue] = []
        if action.name == "signal":
            values[queue] += 1
            made[queue].append(Entry(queue, "signal", i, value=values[queue]))
        elif action.name == "wait":
            value = max(0, values[1 - queue] - action.arguments[0])
            made[queue].append(Entry(queue, "wait", i, value=value))
        elif action.name == "host wait":
            host.append((i, queue, max(0, values[queue] - action.arguments[0])))
        elif action.name not in ("call", "list"):
            items[queue].append(action)
    return made, host


def happens_before(program: Program) -> set[tuple[int, int, int, int]]:
    """(queue, entry, other queue, entry): the first ends before the second begins."""
    queues, host = entries(program)
    after: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}

    def edge(before: tuple[Any, ...], then: tuple[Any, ...]) -> None:
        after.setdefault(before, set()).add(then)

    for i in range(len(program)):
        edge(("host", i), ("host", i + 1))
    for queue, row in enumerate(queues):
        for i, entry in enumerate(row):
            edge(("host", entry.host), ("queue", queue, i))
            edge(("queue", queue, i), ("queue", queue, i + 1))
            signals = [
                k for k, e in enumerate(queues[1 - queue]) if (e.name, e.value) == ("signal", entry.value)
            ]
            if entry.name == "wait" and signals:
                edge(("queue", 1 - queue, signals[0]), ("queue", queue, i))
    for at, queue, value in host:
        for k, entry in enumerate(queues[queue]):
            if (entry.name, entry.value) == ("signal", value):
                edge(("queue", queue, k), ("host", at))
    found = set()
    for queue, row in enumerate(queues):
        for i in range(len(row)):
            seen, todo = set(), [("queue", queue, i)]
            while todo:
                node: tuple[Any, ...] = todo.pop()
                for each in after.get(node, ()):
                    if each not in seen:
                        seen.add(each)
                        todo.append(each)
            found |= {(queue, i, node[1], node[2]) for node in seen if node[0] == "queue"}
    return found


def is_before(barrier: Action, access: Access) -> bool:
    """Does the barrier wait for a command with that access?"""
    if barrier.name == "uav":
        return access.is_uav and barrier.arguments[0] in (None, access.buffer)
    named = barrier.arguments[0] if barrier.name in ("transition", "alias") else ""
    return named is None or named == access.buffer


def is_behind(barrier: Action, access: Access) -> bool:
    """Does a command with that access wait for the barrier?"""
    if barrier.name == "alias":
        return barrier.arguments[1] in (None, access.buffer)
    return is_before(barrier, access)


def names(barrier: Action, a: Access, b: Access) -> bool:
    """Does the barrier alone order the two?"""
    if barrier.name in ("uav", "transition") and barrier.arguments[0] is not None and a.buffer != b.buffer:
        return False
    return is_before(barrier, a) and is_behind(barrier, b)


def closed_order(items: list[Action]) -> set[tuple[int, int]]:
    """Of the items of a call: the first command ends before the second begins."""
    found: set[tuple[int, int]] = set()
    for second, other in enumerate(items):
        for first in reversed(range(second)):
            touches = list(product(accesses(items[first]), accesses(other)))
            direct = any(conflict(a, b) and keep_order(a, b) for a, b in touches) or any(
                any(is_before(barrier, a) for a in accesses(items[first]))
                and any(is_behind(barrier, b) for b in accesses(other))
                for barrier in items[first + 1 : second]
            )
            if direct:
                found |= {(first, second)} | {(each, second) for each, then in found if then == first}
    return found


def way(items: list[Action], first: int, second: int) -> set[int] | None:
    """The barriers by which a command comes behind another one, each command as early as it can.

    None: some of the order is that of copies to the same bytes.
    """
    came: dict[int, set[int]] = {first: set()}
    opened: dict[int, set[int]] = {}
    for i in range(first + 1, second + 1):
        sources = [k for k in came if any(is_before(items[i], a) for a in accesses(items[k]))]
        if sources:
            opened[i] = came[min(sources)] | {i}
        through = [k for k in opened if any(is_behind(items[k], a) for a in accesses(items[i]))]
        if through:
            came[i] = opened[min(through)]
    return came.get(second)


def conflict(a: Access, b: Access) -> bool:
    return (a.writes or b.writes) and not (a.is_tail and b.is_tail) and bool(a.bytes & b.bytes)


def keep_order(a: Access, b: Access) -> bool:
    """Copies to the same bytes of one buffer."""
    return a.writes and b.writes and not a.is_uav and not b.is_uav and a.buffer == b.buffer


class Pair(NamedTuple):
    """Two commands that nothing orders, with accesses that conflict."""

    id: str
    first: Action
    second: Action
    is_uav: bool
    buffers: tuple[str, str]


def hazards(program: Program) -> set[Pair]:
    queues, _ = entries(program)
    ordered = happens_before(program)
    closed = {
        (q, i): closed_order(entry.items) for q, row in enumerate(queues) for i, entry in enumerate(row)
    }
    items = [
        (queue, i, k, item)
        for queue, row in enumerate(queues)
        for i, entry in enumerate(row)
        for k, item in enumerate(entry.items)
    ]
    found = set()
    for (*first, one), (*second, other) in combinations(items, 2):
        for a, b in product(accesses(one), accesses(other)):
            if not conflict(a, b):
                continue
            more = one, other, a.is_uav and b.is_uav, (a.buffer, b.buffer)
            if first[0] != second[0]:
                pairs = (first[0], first[1], second[0], second[1]), (second[0], second[1], first[0], first[1])
                if not ordered & set(pairs):
                    found.add(Pair("HAZARD_QUEUE", *more))
            elif (
                first[1] == second[1]
                and not keep_order(a, b)
                and (first[2], second[2]) not in closed[first[0], first[1]]
            ):
                id = "HAZARD_ALIAS"
                if a.buffer == b.buffer:
                    id = {(True, True): "HAZARD_WAW", (True, False): "HAZARD_RAW"}.get(
                        (a.writes, b.writes), "HAZARD_WAR"
                    )
                found.add(Pair(id, *more))
    return found


Kind = tuple[str, tuple[Any, ...]]  # of a barrier: its name and arguments


def useless_barriers(program: Program) -> set[Kind]:
    """Those by which no command comes behind one that it conflicts with.

    Nor are they the first that name the memory of such a pair.
    """
    queues, _ = entries(program)
    calls = [entry.items for row in queues for entry in row]
    useful = set()
    for items in calls:
        for (first, one), (second, other) in combinations(enumerate(items), 2):
            pairs = [
                (a, b)
                for a, b in product(accesses(one), accesses(other))
                if conflict(a, b) and not keep_order(a, b)
            ]
            for a, b in pairs:
                named = [each for each in items[first:second] if names(each, a, b)]
                useful |= {(each.name, each.arguments) for each in named[:1]}
            if pairs and (first, second) in closed_order(items):
                needed = way(items, first, second)
                for i in range(second) if needed is None else needed:
                    useful.add((items[i].name, items[i].arguments))
    barriers = (item for items in calls for item in items if item.name == "uav")
    return {(each.name, each.arguments) for each in barriers} - useful


# --- programs without hazards ---


def repaired(program: Program) -> tuple[Program, list[Action]]:
    """With a barrier, or a signal and a wait, wherever one is needed; and those."""
    added: list[Action] = []
    while found := hazards(legal(program)):
        pair = min(found, key=lambda pair: sorted(map(program.index, pair[1:3]), reverse=True))
        first, at = sorted(map(program.index, pair[1:3]))
        queue = program[at].queue
        if pair.id == "HAZARD_QUEUE":
            new = [Action(program[first].queue, "signal"), Action(queue, "wait", (0,))]
        elif pair.id == "HAZARD_ALIAS":
            new = [Action(queue, "alias", pair.buffers)]
        else:
            new = [Action(queue, "uav", pair.buffers[:1])]
        program = [*program[:at], *new, *program[at:]]
        added += new
    return program, added


# --- the device ---


class Reported(NamedTuple):
    id: str
    first: tuple[str, int]  # list and command
    second: tuple[str, int]


class Machine(Stage):
    """Runs programs; ``recorded`` tells which action a list's command is."""

    def __init__(self, strictness: Strictness = Strictness.STRICT, **adapter: Any) -> None:
        super().__init__(strictness, **adapter)
        self.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
        self.operators = {name: self._operator(*layouts) for name, layouts in OPERATORS.items()}
        for name, operator in self.operators.items():
            operator.set_name(name)
        self.initialize(*self.operators.values())
        self.buffers = self._buffers()
        self.run()  # the tiles are mapped then
        self.queues = [self.queue, self.device.create_command_queue(self.queue.get_desc())]
        self.fences = [self.device.create_fence() for _ in range(2)]
        heap = d3d12.DescriptorHeapDesc(
            d3d12.DescriptorHeapType.CBV_SRV_UAV, 512, d3d12.DescriptorHeapFlags.SHADER_VISIBLE
        )
        self.heap = self._descriptors = self.device.create_descriptor_heap(heap)
        self.descriptors_used = 0
        self.recorded: dict[tuple[str, int], Action] = {}
        self.submitted: list[list[list[bytes]]] = [[], []]  # by queue and call: the packets of the lists

    def _operator(self, source: Layout, target: Layout) -> Any:
        def desc(layout: Layout) -> dml.BufferTensorDesc:
            kind = UINT8 if layout.width == 1 else FLOAT32
            return tensor(layout.sizes, layout.strides, data_type=kind)

        return self.compile(
            dml.ElementWiseIdentityOperatorDesc(input_tensor=desc(source), output_tensor=desc(target)), ""
        )

    def _buffers(self) -> dict[str, Any]:
        heap = self.device.create_heap(d3d12.HeapDesc(3 * PAGE))
        made = {name: self.buffer(name, PAGE) for name in ("alone", "other")}
        for name, pages in BUFFERS.items():
            desc = d3d12.ResourceDesc.buffer(PAGE * len(pages), UAV)
            if name in ("whole", "second"):
                start = pages[0] * PAGE
                made[name] = self.device.create_placed_resource(heap, start, desc, States.COMMON)
            elif name == "tiles":
                made[name] = self.device.create_reserved_resource(desc, States.COMMON)
                starts = [d3d12.TiledResourceCoordinate(i) for i in range(len(pages))]
                self.queue.update_tile_mappings(made[name], starts, None, heap, None, pages)
            made[name].set_name(name)
        return made

    def execute(self, program: Program) -> list[Reported]:
        """What is reported of hazards."""
        lists: list[list[Any]] = [[], []]  # recorded and not executed
        items = [0, 0]
        values = [0, 0]
        for action in program:
            queue = action.queue
            if action.name in ("call", "signal", "wait") and items[queue]:
                for each in lists[queue]:
                    each.close()
                self.submitted[queue].append([each.recording.packets for each in lists[queue]])
                self.queues[queue].execute_command_lists(lists[queue])
                lists[queue], items[queue] = [], 0
            if action.name == "signal":
                values[queue] += 1
                self.queues[queue].signal(self.fences[queue], values[queue])
            elif action.name == "wait":
                value = max(0, values[1 - queue] - action.arguments[0])
                self.queues[queue].wait(self.fences[1 - queue], value)
            elif action.name == "host wait":
                self.fences[queue].wait(max(0, values[queue] - action.arguments[0]))
            elif action.name == "list":
                lists[queue].append(self._open())
            elif action.name != "call":
                if not lists[queue]:
                    lists[queue].append(self._open())
                self.list = lists[queue][-1]
                self._record(action)
                number = self.list.recording.commands[-1].number
                self.recorded[str(self.list), number] = action
                items[queue] += 1
        self._finish(values)
        return list(self._reported())

    def _open(self) -> Any:
        kind = d3d12.CommandListType.COMPUTE
        made = self.device.create_command_list(0, kind, self.device.create_command_allocator(kind))
        made.set_name(f"list {made.serial}")
        made.set_descriptor_heaps([self.heap])
        return made

    def _record(self, action: Action) -> None:
        Barrier = d3d12.ResourceBarrier
        named = [self.buffers.get(each) if isinstance(each, str) else each for each in action.arguments]
        if action.name == "dispatch":
            operator, source, start, target, to = action.arguments
            sizes = [layout.size for layout in OPERATORS[operator]]
            inputs = dml.BufferBinding(self.buffers[source], start, sizes[0])
            outputs = dml.BufferBinding(self.buffers[target], to, sizes[1])
            self.dispatch(self.operators[operator], [inputs], [outputs])
        elif action.name == "copy":
            self.list.copy_buffer_region(*named)
        elif action.name == "uav":
            self.list.resource_barrier(Barrier.uav(*named))
        elif action.name == "alias":
            self.list.resource_barrier(Barrier.aliasing(*named))
        else:
            buffer, before, after = action.arguments
            self.list.resource_barrier(
                Barrier.transition(self.buffers[buffer], States[before], States[after])
            )

    def _finish(self, values: list[int]) -> None:
        for queue, fence, value in zip(self.queues, self.fences, values, strict=True):
            queue.signal(fence, value + 1)
        for fence, value in zip(self.fences, values, strict=True):
            fence.wait(value + 1)

    def fill(self) -> None:
        """No two bytes of what the programs use hold the same for the same reason."""
        for i, (name, pages) in enumerate(BUFFERS.items()):
            size = PAGE * len(pages)
            upload = self.host_buffer(name, size)
            with upload.map(0, d3d12.Range(0, 0)) as memory:
                memory[:] = Random(i).randbytes(size)
            self.list.copy_resource(self.buffers[name], upload)
            self.run()

    def contents(self) -> list[bytes]:
        """Of all buffers."""
        found = []
        for name, pages in BUFFERS.items():
            readback = self.host_buffer(name, PAGE * len(pages), "READBACK")
            self.list = self._open()
            self.list.copy_resource(readback, self.buffers[name])
            self.list.close()
            self.fence_value += 1
            self.queue.execute_command_lists([self.list])
            self.queue.signal(self.fence, self.fence_value)
            self.fence.wait(self.fence_value)
            with readback.map() as memory:
                found.append(memory.view(np.uint8).tobytes())
        return found

    def useless(self) -> set[Kind]:
        """The barriers that are reported at the end."""
        self.device.checks.end()
        told = {
            stored.report.properties["barrier"]
            for stored in self.device.reports
            if stored.report.id == "BARRIER_USELESS"
        }
        actions = [each for each in self.recorded.values() if each.name == "uav"]
        return {(each.name, each.arguments) for each in actions if title(each) in told}

    def _reported(self) -> Iterator[Reported]:
        for stored in self.device.reports:
            report = stored.report
            if report.id.startswith("HAZARD"):
                more = report.properties
                place = report.operation.partition(", ")[2].rpartition(", ")[0]
                first = more["other_list"], int(more["other_command"])
                yield Reported(report.id, first, (place, int(more["command"])))


def title(barrier: Action) -> str:
    [name] = barrier.arguments
    return f"UAV barrier on buffer '{name}'" if name else "UAV barrier on all resources"


# --- random programs ---


def _offset(draw: st.DrawFn, buffer: str) -> int:
    tiles = len(BUFFERS[buffer])
    base = draw(st.sampled_from([0] if tiles == 1 else [PAGE - 32, PAGE, 2 * PAGE - 32][: tiles + 1]))
    return base + 16 * draw(st.integers(0, 3))


@st.composite
def commands(draw: st.DrawFn, queue: int) -> Action:
    buffers = st.sampled_from([*sorted(BUFFERS), "tiles", "whole"])
    source, target = draw(buffers), draw(buffers)
    start, to = _offset(draw, source), _offset(draw, target)
    if draw(st.booleans()):
        return Action(
            queue, "dispatch", (draw(st.sampled_from(sorted(OPERATORS))), source, start, target, to)
        )
    start, to, count = (value + draw(st.integers(0, 5)) for value in (start, to, 1))
    return Action(queue, "copy", (target, to, source, start, count * 3))


@st.composite
def barriers(draw: st.DrawFn, queue: int) -> Action:
    names = st.sampled_from([None, None, *sorted(BUFFERS)])
    if draw(st.booleans()):
        return Action(queue, "uav", (draw(names),))
    return Action(queue, "alias", (draw(names), draw(names)))


@st.composite
def programs(draw: st.DrawFn, queues: int, length: int = 12) -> Program:
    """Anything that becomes :func:`legal`."""
    made: Program = []
    for _ in range(draw(st.integers(2, length))):
        queue = draw(st.integers(0, queues - 1))
        kind = draw(st.integers(0, 9 if queues == 1 else 15))
        if kind < 6:
            made.append(draw(commands(queue)))
        elif kind < 9:
            made.append(draw(barriers(queue)))
        elif kind == 9:
            made.append(Action(queue, draw(st.sampled_from(["list", "call"]))))
        elif kind == 10:
            made.append(Action(queue, "signal"))
        elif kind < 13:
            made.append(Action(queue, "wait", (draw(st.integers(0, 1)),)))
        else:
            made.append(Action(queue, "host wait", (draw(st.integers(0, 1)),)))
    return made
