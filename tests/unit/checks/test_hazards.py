"""Hazards where the gallery stops: exact on random programs, silent on right ones, quick on long ones."""

from __future__ import annotations

import importlib
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hazard_programs import (
    PAGE,
    Action,
    Machine,
    Program,
    closed_order,
    entries,
    hazards,
    legal,
    programs,
    repaired,
    useless_barriers,
)
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from dmlemu import Error, Strictness, chaos, d3d12, dml
from dmlemu.checks.hazards.check import Hazards
from dmlemu.d3d12 import Policy
from dmlemu.errors import Severity
from dmlemu.reporting import Response
from dmlemu.testing.stage import UAV, Stage, States, half_product, other_queue, tensor
from dmlemu_hw import reordering
from dmlemu_hw.packets import Opcode
from thorough import part_of

pytestmark = pytest.mark.dmlemu(expect=["*"])  # wrong programs, and right ones that use what nobody wrote

random = settings(max_examples=part_of(60))


def check(program: Program) -> None:
    """The device reports hazards if and only if there are any, and only such."""
    program = legal(program)
    expected = hazards(program)
    machine = Machine()
    reported = machine.execute(program)
    assert bool(reported) == bool(expected), (program, reported, expected)
    known = {(pair.id, frozenset((pair.first, pair.second))) for pair in expected}
    for id, first, second in reported:
        assert (id, frozenset((machine.recorded[first], machine.recorded[second]))) in known


def act(name: str, *arguments: object, queue: int = 0) -> Action:
    return Action(queue, name, arguments)


# Rare ones that random programs may miss.
ACROSS_TILES = [  # the tile before the boundary is page 2, so that page 0 ends beside nothing of it
    act("dispatch", "packed", "alone", 0, "tiles", PAGE - 16),
    act("dispatch", "packed", "other", 0, "whole", PAGE - 32),
]
ACROSS_TILES_AND_MET = [
    act("dispatch", "packed", "other", 0, "whole", PAGE - 16),
    act("uav", "whole"),
    act("dispatch", "packed", "other", 0, "whole", PAGE - 32),
    act("dispatch", "packed", "alone", 0, "tiles", PAGE - 16),
]
BEHIND_THE_LAST_ELEMENT = [  # at byte 37; the tensor has 40
    act("dispatch", "bytes", "alone", 0, "second", 0),
    act("copy", "other", 0, "whole", PAGE + 37, 3),
]
THE_LAST_ELEMENT = [BEHIND_THE_LAST_ELEMENT[0], act("copy", "other", 0, "whole", PAGE + 36, 3)]
READS_THE_SAME_BELOW_WHAT_IS_WRITTEN = [  # both read bytes 16 to 23, and the first writes from byte 32 on
    act("dispatch", "scatter", "other", 0, "other", 32),
    act("dispatch", "scatter", "other", 16, "alone", 0),
]
ANY_TO_ANY = [
    act("copy", "whole", PAGE, "alone", 0, 3),
    act("alias", None, None),
    act("copy", "other", 0, "second", 0, 3),
]
UAV_BARRIER_FOR_A_COPY = [
    act("dispatch", "packed", "alone", 0, "second", 0),
    act("uav", None),
    act("copy", "other", 0, "whole", PAGE, 3),
]
FIRST_AND_SECOND_BARRIER = [
    act("dispatch", "packed", "alone", 0, "other", 0),
    act("uav", "alone"),
    act("dispatch", "packed", "alone", 16, "other", 32),
    act("uav", None),
    act("dispatch", "packed", "other", 64, "alone", 16),
]
NAMED_AND_ORDERED_BY_A_TRANSITION_TOO = [
    act("dispatch", "packed", "alone", 0, "other", 0),
    act("uav", "other"),
    act("dispatch", "packed", "other", 0, "second", 0),
    act("uav", "second"),
    act("copy", "whole", 0, "other", 0, 3),
    act("dispatch", "packed", "second", 0, "other", 0),
]
NAMED_AND_ORDERED_BY_AN_ALIASING_BARRIER_TOO = [
    act("dispatch", "packed", "alone", 0, "second", 0),
    act("uav", "second"),
    act("dispatch", "packed", "second", 0, "other", 0),
    act("uav", "other"),
    act("alias", "second", "whole"),
    act("dispatch", "packed", "other", 0, "whole", 0),
]
THERE_AND_BACK_WITH_BOTH_NAMED = [
    act("dispatch", "packed", "alone", 0, "other", 0),
    act("uav", "alone"),
    act("uav", "other"),
    act("dispatch", "packed", "other", 0, "alone", 0),
]
THROUGH_THE_HOST = [
    act("copy", "alone", 0, "other", 0, 3),
    act("signal"),
    act("host wait", 0),
    act("dispatch", "packed", "alone", 0, "other", 32, queue=1),
]
SIGNALLED_BEFORE_THE_HOST_KNEW = [
    act("copy", "alone", 0, "other", 0, 3),
    act("signal"),
    act("signal", queue=1),
    act("host wait", 0),
    act("wait", 0),
    act("dispatch", "packed", "alone", 0, "other", 32, queue=1),
]
TURNS = [  # of one page, through three buffers
    act("dispatch", "packed", "alone", 0, "whole", PAGE),
    act("alias", "whole", "second"),
    act("dispatch", "packed", "alone", 64, "second", 0),
    act("alias", "second", "tiles"),
    act("dispatch", "packed", "tiles", PAGE, "other", 0),
    act("alias", "tiles", "whole"),
    act("dispatch", "packed", "alone", 128, "whole", PAGE),
]
PING_PONG = [
    act("dispatch", "packed", "alone", 0, "other", 16),
    act("uav", "other"),
    act("dispatch", "packed", "other", 0, "alone", 16),
    act("uav", "alone"),
    act("dispatch", "packed", "alone", 0, "other", 16),
    act("uav", "other"),
    act("dispatch", "packed", "other", 0, "alone", 16),
]
BY_WAY_OF_OTHERS = [  # the last one reads what the first one wrote, and no barrier names both
    act("dispatch", "packed", "whole", 0, "second", 0),
    act("uav", "second"),
    act("dispatch", "packed", "second", 0, "alone", 0),
    act("uav", "alone"),
    act("dispatch", "gather", "alone", 0, "other", 64),
    act("uav", "other"),
    act("dispatch", "packed", "tiles", PAGE, "other", 64),
]
COPIES_HAND_ON = [  # two copies to the same bytes keep their order, and the second one hands it on
    act("copy", "alone", 0, "whole", PAGE, 3),
    act("copy", "alone", 0, "other", 0, 3),
    act("alias", "other", "second"),
    act("copy", "second", 0, "other", 64, 3),
]
TWO_READERS = [  # of the same bytes; only the second one is waited for
    act("dispatch", "packed", "whole", 0, "alone", 0),
    act("dispatch", "packed", "whole", 0, "other", 0),
    act("uav", "other"),
    act("dispatch", "packed", "other", 0, "whole", 0),
    act("uav", "whole"),
]
CHAINS = {
    "turns": TURNS,
    "ping-pong": PING_PONG,
    "by way of others": BY_WAY_OF_OTHERS,
    "copies": COPIES_HAND_ON,
}


@pytest.mark.parametrize("program", CHAINS.values(), ids=CHAINS)
def test_a_chain_orders_its_ends_and_without_any_link_it_does_not(program: Program) -> None:
    assert not hazards(legal(program))
    check(program)
    for link in program:
        if link.name in ("alias", "uav"):
            broken = [each for each in program if each is not link]
            assert hazards(legal(broken))
            check(broken)


def test_chains_go_on_over_fences() -> None:
    onward = [act("signal"), act("wait", 0, queue=1)]
    there = [Action(1, each.name, each.arguments) for each in TURNS[4:]]
    check(TURNS[:4] + onward + there)
    assert not hazards(legal(TURNS[:4] + onward + there))
    check(TURNS[:2] + onward + there)
    check(TURNS[:4] + there)


@random
@given(programs(queues=1))
@example(TWO_READERS)
@example(BY_WAY_OF_OTHERS)
@example(ACROSS_TILES)
@example(ACROSS_TILES_AND_MET)
@example(BEHIND_THE_LAST_ELEMENT)
@example(THE_LAST_ELEMENT)
@example(ANY_TO_ANY)
@example(UAV_BARRIER_FOR_A_COPY)
@example(READS_THE_SAME_BELOW_WHAT_IS_WRITTEN)
def test_one_queue_is_told_exactly(program: Program) -> None:
    check(program)


# From here on UAV barriers on any resource, and on one, are known to be of use.
PROVEN = [
    act("dispatch", "packed", "alone", 0, "other", 0),
    act("uav", None),
    act("dispatch", "packed", "other", 0, "alone", 0),
    act("uav", "alone"),
    act("dispatch", "packed", "alone", 0, "second", 0),
    act("call"),
]
STEADY = [
    act("dispatch", "packed", "alone", 0, "other", 0),
    act("uav", None),
    act("dispatch", "packed", "other", 0, "second", 0),
]
TO_BE_COPIED = [*STEADY, act("copy", "alone", 0, "other", 0, 3)]
NO_BARRIER_BUT_ONE_BEFORE = [*STEADY, act("dispatch", "packed", "other", 0, "alone", 64)]
NO_BARRIER = [*STEADY, act("dispatch", "packed", "second", 0, "alone", 64)]
ANOTHER_BARRIER = [*STEADY, act("uav", "alone"), act("dispatch", "packed", "second", 0, "alone", 64)]
A_QUEUE_FOR_ITSELF = [*STEADY, act("call"), act("dispatch", "packed", "other", 0, "whole", 0, queue=1)]
ITS_LATEST_COUNTS = [
    *STEADY,
    act("call"),
    act("signal"),
    *map(replace, STEADY),
    act("call"),
    act("wait", 0, queue=1),
    act("dispatch", "packed", "alone", 64, "second", 0, queue=1),
]


def dispatches(program: Program) -> Program:
    """The same without copies, and barriers on any resource only."""
    rest = [each for each in program if each.name not in ("copy", "alias")]
    return [replace(each, arguments=(None,)) if each.name == "uav" else each for each in rest]


@random
@given(programs(queues=2, length=20).map(dispatches) | programs(queues=2))
@example(TO_BE_COPIED)
@example(NO_BARRIER_BUT_ONE_BEFORE)
@example(NO_BARRIER)
@example(ANOTHER_BARRIER)
@example(A_QUEUE_FOR_ITSELF)
@example(ITS_LATEST_COUNTS)
def test_behind_proven_barriers_all_is_told_exactly(program: Program) -> None:
    check([*PROVEN, *program])


@random
@given(programs(queues=2))
@example(THROUGH_THE_HOST)
@example(SIGNALLED_BEFORE_THE_HOST_KNEW)
def test_two_queues_are_told_exactly(program: Program) -> None:
    check(program)


@random
@given(programs(queues=2), st.data())
def test_a_program_with_all_it_needs_is_silent_and_without_one_of_it_is_not(
    program: Program, data: st.DataObject
) -> None:
    program, added = repaired(program)
    check(program)
    if added:
        check([action for action in program if action is not data.draw(st.sampled_from(added))])


@pytest.mark.parametrize(
    "program",
    [
        NAMED_AND_ORDERED_BY_A_TRANSITION_TOO,
        NAMED_AND_ORDERED_BY_AN_ALIASING_BARRIER_TOO,
        THERE_AND_BACK_WITH_BOTH_NAMED,
    ],
)
def test_a_barrier_that_the_documents_ask_for_is_not_useless(program: Program) -> None:
    machine = Machine()
    machine.execute(legal(program))
    assert machine.useless() == set()


@random
@given(programs(queues=1, length=16))
@example(FIRST_AND_SECOND_BARRIER)
def test_advice_on_barriers_is_right(program: Program) -> None:
    program = legal(program)
    machine = Machine()
    machine.execute(program)
    told = machine.useless()
    assert told >= useless_barriers(program)
    without = [action for action in program if (action.name, action.arguments) not in told]
    assert hazards(without) == hazards(program)


# What is ordered by barriers that name it, and what is by an accident only.
PING = act("dispatch", "packed", "alone", 0, "other", 0)
PONG = act("dispatch", "packed", "other", 0, "alone", 0)
ON_WHAT_WAS_READ = [PING, act("uav", "alone"), PONG]
ON_WHAT_WAS_WRITTEN = [PING, act("uav", "other"), PONG]  # and what was read before was read
ON_NULL = [PING, act("uav", None), PONG]
FROM_ANY_TO_ANY = [PING, act("alias", None, None), PONG]
IN_ANOTHER_CALL = [PING, act("call"), PONG]
BY_ANOTHER_COMMAND = [
    PING,
    act("uav", "alone"),
    act("dispatch", "packed", "whole", 0, "alone", 64),
    act("uav", None),
    act("dispatch", "packed", "other", 0, "second", 64),
]
BY_WAY_OF_WHAT_ANOTHER_READS = [
    PING,
    act("uav", "other"),
    act("dispatch", "packed", "other", 0, "second", 64),
    act("uav", "second"),
    act("dispatch", "packed", "second", 64, "other", 0),
]
BY_WAY_OF_AN_INPUT_THAT_IS_NOT_COMPUTED = [
    act("dispatch", "packed", "alone", 0, "other", 0),
    act("uav", "alone"),
    act("dispatch", "packed", "second", 0, "alone", 0),
    act("uav", "alone"),
    act("dispatch", "packed", "alone", 0, "other", 0),
]
READ_ONLY = [PING, act("uav", "other"), act("dispatch", "packed", "alone", 0, "second", 64)]


@pytest.mark.parametrize(
    ("program", "is_told"),
    [
        (ON_WHAT_WAS_READ, True),
        (ON_WHAT_WAS_WRITTEN, False),
        (ON_NULL, False),
        (FROM_ANY_TO_ANY, False),
        (IN_ANOTHER_CALL, False),
        (BY_ANOTHER_COMMAND, False),
        (BY_WAY_OF_WHAT_ANOTHER_READS, False),
        (BY_WAY_OF_AN_INPUT_THAT_IS_NOT_COMPUTED, True),
        (READ_ONLY, False),
    ],
)
def test_an_order_by_accident_is_told(program: Program, is_told: bool) -> None:
    machine = Machine()
    machine.execute(legal(program))
    ids = {each.report.id for each in machine.device.reports}
    assert ("BARRIER_ELSEWHERE" in ids) == is_told
    assert not any(each.startswith("HAZARD") for each in ids)


def test_orders_by_accident_have_a_limit(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring of buffers, each written anew once the next but one has been named often."""
    monkeypatch.setattr("dmlemu.checks.hazards.check._MOST_WALKED", 20)
    ring = [stage.filled(f"buffer {i}", 64) for i in range(8)]
    copy = stage.copy_operator("copy")
    for i in range(32):
        stage.dispatch(copy, [ring[i % 8]], [ring[(i + 1) % 8]])
        stage.barrier(ring[(i + 1) % 8])
    stage.run()
    [stored] = [each for each in stage.device.reports if each.id == "BARRIER_ELSEWHERE"]
    assert (stored.severity, stored.count) == (Severity.INFO, 1)
    assert "no longer checked for barriers on other resources" in stored.message


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_barrier_behind_an_initializer_is_not_useless(stage: Stage, names: bool, late: bool) -> None:
    """The program cannot know that it writes nothing."""
    row = tensor([16])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=row, output_tensor=row)
    copy, source, target = stage.compile(desc, "copy"), stage.filled("source", 64), stage.buffer("target", 64)
    weights, kept = stage.filled("weights", 64), stage.buffer("kept", 64)
    super(Stage, stage).initialize(copy)
    if late:
        stage.list.copy_resource(kept, weights)
    stage.barrier(*[target] * names)
    stage.dispatch(copy, [source], [target])
    stage.run()
    stage.device.checks.end()
    useless = [each for each in stage.device.reports if each.report.id == "BARRIER_USELESS"]
    assert bool(useless) == (names and late)  # the copy does not touch the buffer that is named


# --- chaos ---


def may_swap(lists: list[bytes], machine: Machine) -> set[tuple[int, int]]:
    """Pairs of commands, by their numbers among all items, that chaos lets run in either order."""
    units = list(reordering._units(lists, machine.device.context.gpu.memory))
    followers: dict[int, set[int]] = {}
    for before, after in sorted(reordering._constraints(units), reverse=True):
        followers.setdefault(before, set()).update({after}, followers.get(after, ()))
    items = [i for i, unit in enumerate(units) if unit.opcode not in reordering._REMARKS]
    commands = [(number, i) for number, i in enumerate(items) if units[i].opcode != Opcode.BARRIER]
    pairs = combinations(commands, 2)
    return {(a, b) for (a, i), (b, j) in pairs if j not in followers.get(i, ())}


@random
@given(programs(queues=2, length=16))
@example(TURNS)
@example(BY_WAY_OF_OTHERS)
@example(COPIES_HAND_ON)
def test_chaos_may_swap_just_what_nothing_orders(program: Program) -> None:
    program = legal(program)
    machine = Machine()
    machine.execute(program)
    for queue, row in enumerate(entries(program)[0]):
        calls = [entry.items for entry in row if entry.name == "call"]
        for items, lists in zip(calls, machine.submitted[queue], strict=True):
            commands = [i for i, item in enumerate(items) if item.name in ("dispatch", "copy")]
            free = set(combinations(commands, 2)) - closed_order(items)
            assert may_swap(lists, machine) == free, items


def result(program: Program, policy: object) -> list[bytes]:
    machine = Machine(Strictness.RUNTIME, policy=policy)
    machine.fill()
    machine.execute(program)
    return machine.contents()


def check_stable(program: Program, seeds: int) -> None:
    program = legal(repaired(program)[0])
    expected = result(program, Policy.LAZY)
    for seed in range(seeds):
        assert result(program, chaos(seed, {"order", "placement"})) == expected, (seed, program)


@settings(max_examples=20, phases=[Phase.explicit, Phase.generate])
@given(programs(queues=2))
@example(TURNS)
@example(PING_PONG)
def test_without_hazards_no_order_changes_the_result(program: Program) -> None:
    check_stable(program, seeds=3)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(max_examples=400, phases=[Phase.generate])
@given(programs(queues=2, length=20))
def test_without_hazards_no_order_changes_the_result_long(program: Program) -> None:
    check_stable(program, seeds=8)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(max_examples=2000)
@given(programs(queues=2, length=24))
def test_programs_are_told_exactly_long(program: Program) -> None:
    check(program)


@pytest.mark.parametrize(
    "program", [TURNS, PING_PONG[:5], BY_WAY_OF_OTHERS], ids=["turns", "ping-pong", "others"]
)
def test_without_a_link_some_order_changes_the_result(program: Program) -> None:
    for link in [each for each in program if each.name in ("alias", "uav")]:
        broken = legal([each for each in program if each is not link])
        expected = result(broken, Policy.LAZY)
        assert any(result(broken, chaos(seed, {"order"})) != expected for seed in range(30)), link


# --- whatever the GPU's turns are ---

GALLERY = Path(__file__).parents[2] / "checks" / "gallery"
PROGRAMS = sorted(
    path.stem for path in GALLERY.glob("*.py") if path.stem.startswith(("hazard_", "map_race_"))
)


@pytest.mark.parametrize(
    "policy",
    [
        Policy.LAZY,
        Policy.EAGER,
        chaos(0),
        *(pytest.param(chaos(seed), marks=pytest.mark.long) for seed in (1, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_turns_do_not_matter(name: str, policy: object) -> None:
    program = importlib.import_module(f"gallery.{name}")
    for fixed in (False, True):
        stage = Stage(policy=policy)
        stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
        program.run(stage, fixed)
        ids = {stored.report.id for stored in stage.device.reports}
        assert any(id.startswith(program.CHECK.partition("_")[0]) for id in ids) is not fixed, ids


@pytest.mark.parametrize("policy", [Policy.LAZY, *map(chaos, range(6))], ids=str)
def test_lists_of_one_call_are_named_in_their_order(policy: object) -> None:
    stage = Stage(policy=policy)
    stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
    source, shared, target = stage.filled("source"), stage.buffer("shared"), stage.buffer("target")
    stage.run()
    operator = stage.copy_operator("copy")
    stage.initialize(operator)
    stage.dispatch(operator, [source], [shared])
    stage.list.close()
    allocator = stage.device.create_command_allocator(d3d12.CommandListType.COMPUTE)
    second = stage.device.create_command_list(0, d3d12.CommandListType.COMPUTE, allocator)
    second.set_descriptor_heaps([stage.heap])
    table = stage.table(operator)
    table.bind_inputs([dml.BufferBinding(shared)])
    table.bind_outputs([dml.BufferBinding(target)])
    stage.recorder.record_dispatch(second, operator, table)
    second.close()
    stage.queue.execute_command_lists([stage.list, second])
    stage.queue.signal(stage.fence, 99)
    stage.fence.wait(99)
    assert hazards_of(stage) == ["HAZARD_RAW"]


# --- what stays silent ---


@pytest.fixture
def stage() -> Stage:
    return Stage()


def hazards_of(stage: Stage) -> list[str]:
    return [each.report.id for each in stage.device.reports if each.report.id.startswith("HAZARD")]


def test_queries_need_no_barriers(stage: Stage) -> None:
    heap = stage.device.create_query_heap(d3d12.QueryHeapDesc(count=2))
    target = stage.buffer("target")
    for i in range(2):
        stage.list.end_query(heap, d3d12.QueryType.TIMESTAMP, i)
    stage.list.resolve_query_data(heap, d3d12.QueryType.TIMESTAMP, 0, 2, target, 0)
    stage.list.resolve_query_data(heap, d3d12.QueryType.TIMESTAMP, 0, 1, target, 8)
    stage.run()


def test_a_write_marked_out_comes_after_everything(stage: Stage) -> None:
    modes = d3d12.WriteBufferImmediateMode
    heap = stage.device.create_heap(d3d12.HeapDesc(65536))
    made = [
        stage.device.create_placed_resource(heap, 0, d3d12.ResourceDesc.buffer(256), States.COMMON)
        for _ in range(2)
    ]
    source = stage.filled("source")
    stage.list.copy_resource(made[0], source)
    there = d3d12.WriteBufferImmediateParameter(made[1].get_gpu_virtual_address(), 1)
    stage.list.write_buffer_immediate([there], [modes.MARKER_OUT])
    stage.run()
    assert hazards_of(stage) == []
    stage.list.copy_resource(made[0], source)
    stage.list.write_buffer_immediate([there], [modes.MARKER_IN])
    with pytest.raises(Error, match="HAZARD_ALIAS"):
        stage.run()


def test_parts_of_one_dispatch_do_not_conflict(stage: Stage) -> None:
    layer = half_product(stage, "layer")  # two kernels, which share the temporary resource
    table = stage.table(layer)
    table.bind_inputs([dml.BufferBinding(stage.filled(name, 32)) for name in "ab"] + [None])
    table.bind_outputs([dml.BufferBinding(stage.buffer("c", 32))])
    needed = layer.get_binding_properties().temporary_resource_size
    table.bind_temporary_resource(dml.BufferBinding(stage.buffer("scratch", needed)))
    stage.recorder.record_dispatch(stage.list, layer, table)
    stage.run()


def test_a_split_transition_orders_at_its_end(stage: Stage) -> None:
    scale, result = stage.copy_operator("scale"), stage.filled("result")
    other, target = stage.filled("other"), stage.buffer("target")
    Barrier, Flags = d3d12.ResourceBarrier, d3d12.ResourceBarrierFlags
    states = States.UNORDERED_ACCESS, States.COPY_SOURCE
    stage.dispatch(scale, [other], [result])
    stage.list.resource_barrier(Barrier.transition(result, *states, flags=Flags.BEGIN_ONLY))
    stage.list.resource_barrier(Barrier.transition(result, *states, flags=Flags.END_ONLY))
    stage.list.copy_resource(target, result)
    stage.run()


def test_tiles_that_moved_are_other_memory(stage: Stage) -> None:
    copy, source = stage.copy_operator("copy"), stage.filled("source")
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * PAGE))
    desc = d3d12.ResourceDesc.buffer(PAGE, UAV)
    tiles = stage.device.create_reserved_resource(desc, States.COMMON)
    placed = stage.device.create_placed_resource(heap, 0, desc, States.COMMON)
    other = other_queue(stage, "COPY")
    target = stage.buffer("target")
    for tile in (0, 1):
        stage.queue.update_tile_mappings(tiles, None, None, heap, None, [tile])
        stage.dispatch(copy, [source], [tiles])
        stage.run()
    # Tile 0 of the heap is the copy queue's, and `tiles` stands on tile 1 by now.
    other.list.copy_buffer_region(target, 0, placed, 0, 64)
    stage.dispatch(copy, [source], [tiles])
    stage.submit()
    other.submit()
    other.wait()
    stage.wait()
    assert hazards_of(stage) == []


# --- what it costs ---


def patterns_kept(stage: Stage) -> int:
    check = next(each for each in stage.device.checks if isinstance(each, Hazards))
    return sum(
        len(window.patterns) for place in check._places._places.values() for window in place.own.values()
    )


def test_long_programs_keep_little(stage: Stage) -> None:
    copy, pool, result = stage.copy_operator("copy"), stage.filled("pool", 8192), stage.buffer("result")
    kept = []
    for i in range(600):
        part = dml.BufferBinding(pool, 16 * i % 8128, 64)
        stage.descriptors_used = 0
        stage.dispatch(copy, [part], [result])
        stage.run()
        kept.append(patterns_kept(stage))
    assert max(kept) <= 64


def test_freed_buffers_are_forgotten(stage: Stage) -> None:
    copy, source = stage.copy_operator("copy"), stage.filled("source")
    check = next(each for each in stage.device.checks if isinstance(each, Hazards))
    heap = stage.device.create_heap(d3d12.HeapDesc(PAGE))
    desc = d3d12.ResourceDesc.buffer(256, UAV)
    for _ in range(20):
        stage.descriptors_used = 0
        placed = stage.device.create_placed_resource(heap, 0, desc, States.COMMON)
        stage.dispatch(copy, [source], [placed])
        stage.run()
        del placed
    assert len(check._places._places) + len(check._places._retired) < 10
    assert sum(map(len, check._places._by_heap.values())) < 10


def test_a_released_buffer_s_memory_is_still_remembered(stage: Stage) -> None:
    """The GPU may not have executed what wrote through it."""
    copy, source, result = stage.copy_operator("copy"), stage.filled("source"), stage.buffer("result")
    heap = stage.device.create_heap(d3d12.HeapDesc(PAGE))
    desc = d3d12.ResourceDesc.buffer(256, UAV)
    first, second = (stage.device.create_placed_resource(heap, 0, desc, States.COMMON) for _ in range(2))
    other = other_queue(stage, "COPY")
    stage.dispatch(copy, [source], [first])
    stage.dispatch(copy, [source], [stage.buffer("target")])
    stage.submit()
    stage.device.context.gpu.drain()  # it has, and the program cannot know
    stage.device.reports.deny("OBJECT_*")
    first.release()
    other.list.copy_resource(result, second)
    other.submit()
    with pytest.raises(Error, match="HAZARD_QUEUE"):
        other.wait()


# --- what is named ---


def test_of_two_operands_the_one_with_the_lowest_byte_is_named(stage: Stage) -> None:
    stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
    copy, act = stage.copy_operator("copy"), stage.filled("act")
    layout = tensor([16])
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=layout, b_tensor=layout, output_tensor=layout)
    add, result = stage.compile(desc, "add"), stage.buffer("result")
    stage.initialize(add)
    for first, second in ((16, 0), (0, 16)):
        parts = [dml.BufferBinding(act, start, 64) for start in (first, second)]
        stage.dispatch(copy, [stage.filled("more")], [act])
        stage.dispatch(add, parts, [result])
        stage.run()
        reports = [each.report for each in stage.device.reports if each.report.id != "READ_MIXED"]
        assert (reports[-1].id, reports[-1].properties["bytes"]) == ("HAZARD_RAW", "0-63")


def test_of_many_conflicts_the_newest_is_named(stage: Stage) -> None:
    stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
    copy, more = stage.copy_operator("copy"), stage.filled("more")
    target, result = stage.filled("target", 4096), stage.filled("result", 4096)
    for i in range(20):
        stage.dispatch(
            copy, [dml.BufferBinding(target, 48 - i // 8 * 16, 64)], [dml.BufferBinding(result, 64 * i, 64)]
        )
    stage.dispatch(copy, [more], [target])
    stage.run()
    report = [each.report for each in stage.device.reports][-1]
    assert (report.id, report.properties["other_command"]) == ("HAZARD_WAR", "20")


# --- what is kept ---


def test_a_queue_that_has_rested_is_compared_again(stage: Stage) -> None:
    source, target = stage.filled("source", 64), stage.buffer("target", 64)
    first, *others = (other_queue(stage, "COPY") for _ in range(80))
    for each in (first, *others):
        each.list.copy_buffer_region(target, 0, source, 0, 64)
        each.submit()
        each.wait()
    check = next(each for each in stage.device.checks if isinstance(each, Hazards))
    assert len(check._timelines) < 70  # those that rest are forgotten
    first.list.copy_buffer_region(target, 0, source, 0, 64)
    first.submit()
    others[0].list.copy_buffer_region(target, 0, source, 0, 64)
    others[0].submit()
    with pytest.raises(Error, match="HAZARD_QUEUE"):
        others[0].wait()


def test_queues_that_are_gone_leave_nothing(stage: Stage) -> None:
    copy, source, target = stage.copy_operator("copy"), stage.filled("source"), stage.buffer("target")
    check = next(each for each in stage.device.checks if isinstance(each, Hazards))
    for _ in range(200):
        queue, fence = stage.device.create_command_queue(stage.queue.get_desc()), stage.device.create_fence()
        stage.descriptors_used = 0
        stage.dispatch(copy, [source], [target])
        stage.list.close()
        queue.execute_command_lists([stage.list])
        queue.signal(fence, 1)
        fence.wait(1)
        stage.wait()
        queue.release()
        fence.release()
    places = check._places._places.values()
    assert sum(len(place.windows) for place in places) < 100
    assert len(check._timelines) + len(check._clocks._queues) + len(check._clocks._fences) < 200
