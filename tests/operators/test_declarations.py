"""Every declaration against the facts of the header and the documents (facts.json).

facts.json lists all operators of DirectML.h: number, level that introduced it, in-place, fields in C order
(name, type, kind, optional, the field that counts it); for declared operators also the ranks and data types
per feature level, as the operator's page has them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dmlemu.dml import FeatureLevel, OperatorType, ReduceFunction
from dmlemu.dml.describe import describe
from dmlemu.dml.operators.base import (
    Allowed,
    FieldKind,
    OperatorDesc,
    c_layout,
    camel,
    find_operator,
    operator_fields,
    registry,
)
from dmlemu.dml.operators.reduce import SUPPORT_BY_FUNCTION

FACTS: dict[str, Any] = json.loads((Path(__file__).parent / "facts.json").read_text())
DECLARED = sorted(registry().values(), key=lambda desc: desc.TYPE)

# Where sources contradict each other, and we accept what either accepts (operator: the level added).
WIDER_THAN_THE_PAGE = {
    # The feature level history has the integer types from 2_1 on, the page from 5_1 on.
    "ACTIVATION_SHRINK": {"2_1": "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"},
}
# The page says nothing, the schema of DxDispatch allows it.
IN_PLACE_UNSURE = {"ACTIVATION_GELU": True}

each_operator = pytest.mark.parametrize("desc", DECLARED, ids=lambda desc: desc.TYPE.name)


def test_every_operator_type_has_its_number() -> None:
    numbers = {member.name: member.value for member in OperatorType if member.name != "INVALID"}

    assert numbers == {name: facts["value"] for name, facts in FACTS.items()}


@each_operator
def test_fields_are_those_of_the_struct_in_order(desc: type[OperatorDesc]) -> None:
    expected = [(name, c_type) for name, c_type, *_ in FACTS[desc.TYPE.name]["fields"]]

    assert list(c_layout(desc)) == expected


@each_operator
def test_kinds_optional_flags_and_counts(desc: type[OperatorDesc]) -> None:
    kinds = {"input_tensor": FieldKind.INPUT_TENSOR, "output_tensor": FieldKind.OUTPUT_TENSOR}
    facts = {name: rest for name, _, *rest in FACTS[desc.TYPE.name]["fields"]}
    for item in operator_fields(desc):
        kind, optional, count = facts[item.c_name]

        assert item.optional == optional, item.c_name
        assert item.count == (count or ""), item.c_name
        assert item.is_tensor == (kind in kinds) and (not item.is_tensor or item.kind is kinds[kind])
        assert camel(item.name) == item.c_name


@each_operator
def test_level_and_in_place(desc: type[OperatorDesc]) -> None:
    facts = FACTS[desc.TYPE.name]

    assert desc.INTRODUCED is FeatureLevel[f"LEVEL_{facts['introduced']}"]
    assert desc.IN_PLACE is IN_PLACE_UNSURE.get(desc.TYPE.name, facts["in_place"])


@each_operator
def test_ranks_and_types_at_every_level(desc: type[OperatorDesc]) -> None:
    wider = WIDER_THAN_THE_PAGE.get(desc.TYPE.name, {})
    for level in (level for level in FeatureLevel if level >= desc.INTRODUCED):
        facts = at_level(FACTS[desc.TYPE.name]["tables"], level)
        types = at_level(wider, level) if wider and level >= FeatureLevel.LEVEL_2_1 else None
        if types is not None:
            facts = {name: [low, high, types] for name, (low, high, _) in facts.items()}

        assert readable(at_level(by_name(desc.SUPPORT), level)) == ordered(facts), level


@pytest.mark.parametrize("function", ReduceFunction, ids=lambda function: function.name)
def test_reduce_has_a_table_per_function(function: ReduceFunction) -> None:
    expected = FACTS["REDUCE"]["tables_by_function"][function.name]
    for level in FeatureLevel:
        table = at_level(by_name(SUPPORT_BY_FUNCTION[function]), level)

        assert readable(table) == ordered(at_level(expected, level)), level


def test_operators_are_found_by_name() -> None:
    for desc in DECLARED:
        assert find_operator(desc.TYPE.name) is desc
        assert find_operator(f"DML_OPERATOR_{desc.TYPE.name}") is desc


def test_operators_that_are_not_emulated_say_so() -> None:
    missing = set(FACTS) - {desc.TYPE.name for desc in DECLARED}
    for name in missing:
        with pytest.raises(NotImplementedError, match=f"DML_OPERATOR_{name} is not emulated"):
            find_operator(name)


def test_unknown_operators_are_refused_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"no operator named 'DML_OPERATOR_GEM' \(did you mean GEMM"):
        find_operator("DML_OPERATOR_GEM")
    with pytest.raises(ValueError, match="no operator named 'INVALID'"):
        find_operator("INVALID")


@each_operator
def test_the_page_names_everything(desc: type[OperatorDesc]) -> None:
    page = describe(desc)

    for name, *_ in FACTS[desc.TYPE.name]["fields"]:
        assert f"| `{name}` |" in page
    for level in FACTS[desc.TYPE.name]["tables"]:
        if desc.TYPE.name not in WIDER_THAN_THE_PAGE:
            assert f"| {level} |" in page
    assert (desc.__doc__ or "").split("\n")[0] in page
    assert "def reference" in page or "def function" in page


def by_name(support: Any) -> dict[str, Any]:
    return {level.name.removeprefix("LEVEL_"): table for level, table in support.items()}


def at_level(tables: dict[str, Any], level: FeatureLevel) -> Any:
    """The table of the highest level not above ``level``, else the lowest."""
    levels = {FeatureLevel[f"LEVEL_{name}"]: table for name, table in tables.items()}
    below = [known for known in levels if known <= level]
    return levels[max(below) if below else min(levels)]


def readable(table: dict[str, Allowed]) -> dict[str, Any]:
    return {
        camel(name): [allowed.min_rank, allowed.max_rank, sorted(kind.name for kind in allowed.data_types)]
        for name, allowed in table.items()
    }


def ordered(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: [low, high, sorted(types.split())] for name, (low, high, types) in facts.items()}
