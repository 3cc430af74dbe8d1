"""Every operator runs: its example by default, any legal desc by family or in the long tests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import hypothesis
import pytest
from examples import EXAMPLES, tensors_of
from harness import compare, given, offsets
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from dmlemu.dml import FeatureLevel, OperatorType, TensorDataType
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import emulated
from dmlemu.dml.declared.schema import tables, tables_of_members
from dmlemu.testing import operator_descs
from dmlemu.testing.conformance import small_inputs
from dmlemu.testing.strategies import KINDS
from operator_families import FEW_REPRESENTATIVES, each_operator

# What random indices report is expected.
pytestmark = pytest.mark.dmlemu(
    suppress=dict.fromkeys(["MEM_INDEX_VALUE", "MEM_SCATTER_RACE"], "the indices are random")
)


def test_examples_match_their_references() -> None:
    """All of them in one test: most of what a test takes is around it."""
    failures = []
    for operator, desc in EXAMPLES.items():
        try:
            compare(desc, small_inputs(desc, seed=1))
        except Exception as error:
            failures.append(f"{operator.name}: {error!r}")
    assert not failures, "\n".join(failures)


def levels(operator: OperatorType) -> list[FeatureLevel]:
    return [level for level in FeatureLevel if level >= declared()[operator].INTRODUCED]


def compare_any(operator: OperatorType, data: st.DataObject) -> None:
    level = data.draw(st.sampled_from(levels(operator)))
    desc = data.draw(operator_descs(operator, feature_level=level))

    compare(desc, small_inputs(desc, data.draw(st.integers(0, 100))), level=level)


@each_operator("operator")
@given(st.data(), examples=25)
def test_any_desc(operator: OperatorType, data: st.DataObject) -> None:
    compare_any(operator, data)


@pytest.mark.long
@pytest.mark.parametrize("operator", sorted(emulated()), ids=lambda operator: operator.name)
@given(st.data(), examples=200)
def test_many_descs(operator: OperatorType, data: st.DataObject) -> None:
    """Enough for most types, ranks and layouts of each table."""
    compare_any(operator, data)


# --- all that the tables allow ---


class Place(NamedTuple):
    """A tensor that an operator's table allows from this level on."""

    level: FeatureLevel
    field: str
    data_type: TensorDataType
    rank: int


def places(operator: OperatorType) -> list[Place]:
    cls = declared()[operator]
    supports = tables_of_members(cls).values() if cls.TABLES_BY else [tables(cls)]
    found = {
        Place(level, name, data_type, rank)
        for support in supports
        for level, table in support.items()
        for name, allowed in table.items()
        if name != "quantization_tensors"  # scales and zero points, which have types of their own
        for data_type in allowed.data_types
        for rank in range(allowed.min_rank, allowed.max_rank + 1)
    }
    return sorted(found)


def one_rank_each(places: Sequence[Place]) -> list[Place]:
    """Of each type of each field in each table one rank, and with the next type the next one."""
    of_types: dict[tuple[FeatureLevel, str, TensorDataType], list[Place]] = {}
    for place in places:
        of_types.setdefault(place[:3], []).append(place)
    return [ranks[number % len(ranks)] for number, ranks in enumerate(of_types.values())]


def compare_each(operator: OperatorType, places: Sequence[Place], examples: int) -> None:
    """No operator lacks a type.  The rules of some leave fewer ranks than their tables."""
    starts, seen, asked = sorted({place.level for place in places}), set[Place](), set[Place]()
    for place in places:
        end = min((level for level in starts if level > place.level), default=max(FeatureLevel) + 1)
        of_table = [each for each in levels(operator) if place.level <= each < end]
        if of_table and place not in seen:
            drawn = compared(operator, place, of_table, examples)
            if not drawn:  # more examples mean more tries to find one
                drawn = compared(operator, place, of_table, 30)
            seen |= {Place(place.level, *each) for each in drawn}
            asked.add(place)
    assert {each[:3] for each in asked} <= {each[:3] for each in seen}


def compared(
    operator: OperatorType, place: Place, of_table: Sequence[FeatureLevel], examples: int
) -> set[tuple[str, TensorDataType, int]]:
    """Compares descs that have such a tensor; returns the fields, types and ranks of all their tensors."""
    drawn = set()

    @settings(
        derandomize=True,
        deadline=None,
        max_examples=examples,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(data=st.data())
    def compare_one(data: st.DataObject) -> None:
        level, offset = data.draw(st.sampled_from(of_table)), data.draw(offsets)
        kinds = [kind for kind in KINDS if not offset or kind != "aligned"]
        given = {place.field: (place.data_type, place.rank)}
        desc = data.draw(operator_descs(operator, feature_level=level, kinds=kinds, tensors=given))
        compare(desc, small_inputs(desc, data.draw(st.integers(0, 100))), level=level, offset=offset)
        drawn.update((name, tensor.data_type, tensor.rank) for name, _, tensor in tensors_of(desc))

    with suppress(Unsatisfiable):
        compare_one()
    return drawn


@each_operator("operator", by_default=FEW_REPRESENTATIVES)
def test_each_type(operator: OperatorType) -> None:
    """Of the newest table."""
    every = places(operator)
    compare_each(
        operator, one_rank_each([each for each in every if each.level == every[-1].level]), examples=1
    )


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("operator", sorted(emulated()), ids=lambda operator: operator.name)
def test_each_type_at_each_level(operator: OperatorType) -> None:
    compare_each(operator, one_rank_each(places(operator)), examples=1)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("operator", sorted(emulated()), ids=lambda operator: operator.name)
def test_each_type_and_rank_at_each_level(operator: OperatorType) -> None:
    """The first example is the simplest one."""
    compare_each(operator, places(operator), examples=2)
