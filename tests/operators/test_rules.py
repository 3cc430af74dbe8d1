"""Every rule of every operator, broken alone: the desc is derived from the rule, the report is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import EXAMPLES, NEWEST, accepted, example, exchanged, tensor, tensors_of
from harness import given, in_array
from hypothesis import strategies as st

from dmlemu import Error, HResult
from dmlemu.dml import FeatureLevel, OperatorDesc, OperatorType
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import definition_class, definition_of, emulated, unmet
from dmlemu.dml.declared.desc_checks import check_operator
from dmlemu.dml.declared.rules import Rule
from dmlemu.dml.declared.schema import FieldKind, operator_fields
from dmlemu.dml.operators.families.gather import OneRank
from dmlemu.testing import operator_descs
from dmlemu.testing.rule_solver import Broken, broken
from operator_families import FEW_REPRESENTATIVES, each_operator

# What a wrong field is reported as, by its path.
IDS = {
    r"(FusedActivation|ActivationDescs\[\d\])\.(Type|\w+Tensor)": "OP_FUSED_ACTIVATION",
    r"\w+Tensor": "OP_OPTIONAL",
    r".*DataType": "TENSOR_DTYPE",
    r".*\.DimensionCount": "TENSOR_RANK",
    r".*\.Sizes\[\d\]": "OP_SHAPE OP_NO_BROADCAST",
    r".*": "OP_FIELD_RANGE",
}


def rules_of(operator: OperatorType) -> list[Rule]:
    definition = definition_class(operator)
    assert definition is not None
    return list(definition.RULES)


def assert_refused(case: Broken, level: FeatureLevel) -> None:
    """For this field and no other, in a report that says all that a report must."""
    ids = next(ids for pattern, ids in IDS.items() if re.fullmatch(pattern, case.path))
    with pytest.raises(Error) as caught:
        check_operator(case.desc, level, "CreateOperator")
    report = caught.value.report

    assert report.field == case.path and report.id in ids.split()
    assert report.message.startswith(f"{case.path} (") and report.message.endswith(".")
    assert report.given and report.expected and report.given != report.expected
    desc: Any = case.desc
    inner = re.match(r"FusedActivation\.|ActivationDescs\[(\d)\]\.", case.path)
    stated_by = desc
    if inner and not case.path.endswith(".Type"):
        stated_by = desc.activation_descs[int(inner[1])] if inner[1] else desc.fused_activation
    assert report.rule.endswith(f"DML_{stated_by.TYPE.name}_OPERATOR_DESC")
    assert caught.value.hresult is HResult.E_INVALIDARG


def levels(operator: OperatorType) -> Iterator[FeatureLevel]:
    return (level for level in FeatureLevel if level >= declared()[operator].INTRODUCED)


@pytest.mark.parametrize("operator", sorted(emulated()), ids=lambda kind: kind.name)
def test_each_rule_broken_alone_is_told_at_the_newest_level(operator: OperatorType) -> None:
    for case in broken(EXAMPLES[operator], NEWEST):
        assert_refused(case, NEWEST)


@each_operator("operator", by_default=FEW_REPRESENTATIVES)
def test_each_rule_broken_alone_is_told(operator: OperatorType) -> None:
    """At every level; no rule is there that cannot be broken."""
    unbroken = rules_of(operator)
    for level in levels(operator):
        for case in broken(EXAMPLES[operator], level):
            assert_refused(case, level)
            unbroken = [rule for rule in unbroken if rule is not case.rule]

    assert not [type(rule).__name__ for rule in unbroken]


@each_operator("operator", by_default=FEW_REPRESENTATIVES)
@given(st.data(), examples=15)
def test_rules_broken_in_any_desc_are_told(operator: OperatorType, data: st.DataObject) -> None:
    level = data.draw(st.sampled_from(list(levels(operator))))
    desc: OperatorDesc = data.draw(operator_descs(operator, feature_level=level, kinds=["packed"]))
    accepted(desc, level)

    for case in broken(desc, level):
        assert_refused(case, level)


@each_operator("operator")
def test_each_rule_has_one_sentence(operator: OperatorType) -> None:
    for rule in rules_of(operator):
        sentence = rule.sentence(declared()[operator])

        assert sentence.endswith(".") and ". " not in sentence
        assert "_tensor" not in sentence


@pytest.mark.dmlemu(expect=["OP_*"])
@each_operator("operator")
def test_sizes_that_no_rule_refuses_are_those_of_the_reference(operator: OperatorType) -> None:
    desc = EXAMPLES[operator]
    for _, path, found in tensors_of(desc):
        for i, size in enumerate(found.sizes):
            sizes = [*found.sizes[:i], size + 1, *found.sizes[i + 1 :]]
            changed = exchanged(desc, path, tensor(found.data_type, *sizes))
            try:
                accepted(changed)
            except Error:
                continue
            assert_reference_fits(changed)


def assert_reference_fits(desc: OperatorDesc) -> None:
    """It computes outputs of the declared sizes and types."""
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for item in operator_fields(type(desc)):
        if item.is_tensor:
            given = getattr(desc, item.name)
            is_input = item.kind is FieldKind.INPUT_TENSOR
            arrays = [np.ones(each.sizes, each.dtype) for each in (given if item.array else [given])]
            (inputs if is_input else outputs)[item.name] = arrays if item.array else arrays[0]
    for name, value in desc.reference(inputs).items():
        for found, declared_as in zip(in_array(value), in_array(outputs[name]), strict=True):
            assert (found.shape, found.dtype) == (declared_as.shape, declared_as.dtype), name


# --- no rule is missing: the constraints that the facts write as formulas, read without the rules ---

FACTS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "runtime/spec/operators.json").read_text())
EQUAL = re.compile(r"(?:\w+ == null or )?(\w+\.(DataType|DimensionCount|Sizes)(?: == \w+\.\2)+)")
AT_LEAST = re.compile(r"(\w+)(?:\[i\])? >= (\d+)")


def formulas(pattern: re.Pattern[str]) -> list[tuple[OperatorType, str]]:
    return [
        (operator, found[1] if pattern is EQUAL else constraint)
        for operator in sorted(emulated())
        for constraint in FACTS[f"DML_{operator.name}_OPERATOR_DESC"]["constraints"]
        if (found := pattern.fullmatch(constraint))
    ]


def python_name(operator: OperatorType, c_name: str) -> str:
    return next(item.name for item in operator_fields(declared()[operator]) if item.c_name == c_name)


@pytest.mark.parametrize(("operator", "formula"), formulas(EQUAL))
def test_what_the_facts_say_to_be_equal_is_compared(operator: OperatorType, formula: str) -> None:
    for side in formula.split(" == ")[1:]:
        c_name, _, what = side.partition(".")
        name = python_name(operator, c_name)
        given = getattr(EXAMPLES[operator], name)
        if given is None:
            pytest.skip(f"the example has no {c_name}")
        allowed = EXAMPLES[operator].allowed(NEWEST)[name]
        sizes, types = list(given.sizes), [given.data_type]
        if what == "Sizes":
            sizes[-1] += 1
        elif what == "DimensionCount":
            sizes = sizes[1:] if len(sizes) > allowed.min_rank else [1, *sizes]
        else:
            types = sorted(allowed.data_types - {given.data_type})
        for data_type in types:
            desc = example(operator, **{name: tensor(data_type, *sizes)})
            if what == "DimensionCount" and counts_from_the_last(desc, name):
                accepted(desc)
                assert ids_of_unusual(desc) == ["OP_DIMENSION_COUNT"]
                continue
            with pytest.raises(Error) as caught:
                accepted(desc)
            assert caught.value.report.id in IDS_OF[what]


def counts_from_the_last(desc: OperatorDesc, name: str) -> bool:
    """The tensor may have a DimensionCount of its own."""
    return any(isinstance(rule, OneRank) and name in rule.names for rule in definition_of(desc).USUAL)


def ids_of_unusual(desc: OperatorDesc) -> list[str]:
    return [demand.check.id for demand in unmet(definition_of(desc).USUAL, desc, NEWEST)]


@each_operator("operator")
def test_examples_are_usual(operator: OperatorType) -> None:
    assert ids_of_unusual(EXAMPLES[operator]) == []


IDS_OF = {"DataType": "TENSOR_DTYPE", "DimensionCount": "TENSOR_RANK", "Sizes": "OP_SHAPE OP_NO_BROADCAST"}


@pytest.mark.parametrize(("operator", "formula"), formulas(AT_LEAST))
def test_what_the_facts_bound_from_below_is_bounded(operator: OperatorType, formula: str) -> None:
    found = AT_LEAST.fullmatch(formula)
    assert found
    below = int(found[2]) - 1
    fields = {item.c_name: item.name for item in operator_fields(declared()[operator])}
    counted = {item.count: item.name for item in operator_fields(declared()[operator]) if item.count}
    name = fields.get(found[1]) or counted[found[1]]
    value = getattr(EXAMPLES[operator], name)
    wrong: Any = [*value[:-1], below] if isinstance(value, tuple) else below
    if found[1] in counted:
        wrong = value[:below]

    with pytest.raises(Error) as caught:
        accepted(example(operator, **{name: wrong}))
    assert caught.value.report.id == "OP_FIELD_RANGE"
    assert (caught.value.report.given, caught.value.report.expected) == (str(below), f"{below + 1} or more")
