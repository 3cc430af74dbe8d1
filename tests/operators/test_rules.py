"""Every rule of every operator, broken alone: the desc is derived from the rule, the report is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from examples import EXAMPLES, accepted
from harness import given
from hypothesis import strategies as st

from dmlemu import Error, HResult
from dmlemu.dml import FeatureLevel, OperatorDesc, OperatorType
from dmlemu.dml.operators import declared
from dmlemu.dml.operators.definition import definition_class, emulated
from dmlemu.dml.operators.rules import Rule
from dmlemu.dml.operators.validation import check_operator
from dmlemu.testing import operator_descs
from dmlemu.testing.rule_solver import Broken, broken

OPERATORS = sorted(emulated())
each_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda kind: kind.name)

# What a wrong field is reported as, by its path.
IDS = {
    r"FusedActivation\.(Type|\w+Tensor)": "OP_FUSED_ACTIVATION",
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
    assert report.rule.endswith(f"DML_{case.desc.TYPE.name}_OPERATOR_DESC")
    assert caught.value.hresult is HResult.E_INVALIDARG


def levels(operator: OperatorType) -> Iterator[FeatureLevel]:
    return (level for level in FeatureLevel if level >= declared()[operator].INTRODUCED)


@each_operator
def test_each_rule_broken_alone_is_told(operator: OperatorType) -> None:
    """At every level; no rule is there that cannot be broken."""
    unbroken = rules_of(operator)
    for level in levels(operator):
        for case in broken(EXAMPLES[operator], level):
            assert_refused(case, level)
            unbroken = [rule for rule in unbroken if rule is not case.rule]

    assert not [type(rule).__name__ for rule in unbroken]


@each_operator
@given(st.data(), examples=15)
def test_rules_broken_in_any_desc_are_told(operator: OperatorType, data: st.DataObject) -> None:
    level = data.draw(st.sampled_from(list(levels(operator))))
    desc: OperatorDesc = data.draw(operator_descs(operator, feature_level=level, kinds=["packed"]))
    accepted(desc, level)

    for case in broken(desc, level):
        assert_refused(case, level)


@each_operator
def test_each_rule_has_one_sentence(operator: OperatorType) -> None:
    for rule in rules_of(operator):
        sentence = rule.sentence(declared()[operator])

        assert sentence.endswith(".") and ". " not in sentence
        assert "_tensor" not in sentence
