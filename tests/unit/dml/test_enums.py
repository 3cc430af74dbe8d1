"""The enums have the numbers of DirectML.h."""

from __future__ import annotations

import json
from enum import Flag
from pathlib import Path

import pytest

from dmlemu import dml
from dmlemu.dml import enums

FACTS = json.loads((Path(__file__).parents[3] / "runtime" / "spec" / "operators.json").read_text())


def test_operator_types_are_the_177_of_the_header() -> None:
    assert [member.value for member in dml.OperatorType] == list(range(178))
    for facts in FACTS.values():
        assert dml.OperatorType[facts["operator_type"].removeprefix("DML_OPERATOR_")] == facts["value"]
    assert dml.OperatorType.INVALID == 0
    assert dml.OperatorType.ELEMENT_WISE_IDENTITY == 1
    assert dml.OperatorType.UNFOLD == 177
    assert dml.OperatorType.SCATTER is dml.OperatorType.SCATTER_ELEMENTS


@pytest.mark.parametrize(
    ("member", "number"),
    [
        (dml.TensorDataType.INT8, 8),
        (dml.TensorDataType.INT4, 13),
        (dml.ReduceFunction.SUM_SQUARE, 11),
        (dml.PaddingMode.WRAP, 4),
        (dml.MultiheadAttentionMaskType.BOOLEAN, 4),
        (dml.RecurrentNetworkDirection.BIDIRECTIONAL, 2),
        (dml.RoundingMode.TOWARD_INFINITY, 2),
        (dml.ExecutionFlags.DESCRIPTORS_VOLATILE, 4),
        (dml.BindingType.BUFFER_ARRAY, 2),
        (dml.GraphEdgeType.INTERMEDIATE, 3),
        (dml.QuantizationType.SCALE_ZERO_POINT, 2),
    ],
)
def test_numbers(member: int, number: int) -> None:
    assert member == number


@pytest.mark.parametrize("level", dml.FeatureLevel)
def test_feature_levels_are_their_names(level: dml.FeatureLevel) -> None:
    major, minor = level.name.removeprefix("LEVEL_").split("_")
    assert level == int(major) << 12 | int(minor) << 8


def test_other_enums_count_from_zero() -> None:
    counted = [
        getattr(enums, name)
        for name in enums.__all__
        if name != "FeatureLevel" and not issubclass(getattr(enums, name), Flag)
    ]
    assert len(counted) == 21
    for enum in counted:
        assert [member.value for member in enum] == list(range(len(enum))), enum


def test_operator_descs_are_found_by_name() -> None:
    assert dml.ElementWiseAdd1OperatorDesc.TYPE is dml.OperatorType.ELEMENT_WISE_ADD1
    assert dml.ActivationReluOperatorDesc.TYPE is dml.OperatorType.ACTIVATION_RELU
    for missing in ("NoSuchOperatorDesc", "no_such_thing"):
        with pytest.raises(AttributeError, match=missing):
            getattr(dml, missing)
