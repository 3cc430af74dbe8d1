"""Hazards where the gallery stops: exact on random programs, silent on right ones, quick on long ones."""

from __future__ import annotations

import pytest
from hazard_programs import (
    PAGE,
    Action,
    Machine,
    Program,
    hazards,
    legal,
    programs,
    repaired,
    useless_barriers,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.dmlemu(expect=["*"])  # wrong programs, and right ones that use what nobody wrote

random = settings(max_examples=60)


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


@random
@given(programs(queues=1))
@example(ACROSS_TILES)
@example(ACROSS_TILES_AND_MET)
@example(BEHIND_THE_LAST_ELEMENT)
@example(THE_LAST_ELEMENT)
@example(ANY_TO_ANY)
@example(UAV_BARRIER_FOR_A_COPY)
def test_one_queue_is_told_exactly(program: Program) -> None:
    check(program)


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
