"""One small legal desc per operator, and the check that a change to it is refused for one reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dmlemu.dml import BufferTensorDesc, FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.operators import declared
from dmlemu.dml.operators.definition import emulated, example_of
from dmlemu.dml.operators.desc_checks import check_operator
from dmlemu.dml.operators.schema import OperatorDesc
from dmlemu.errors import Error, HResult, Report

NEWEST = max(FeatureLevel)


def tensor(data_type: T, *sizes: int, strides: Sequence[int] | None = None) -> BufferTensorDesc:
    return BufferTensorDesc(data_type, sizes, strides)


EXAMPLES = {operator: example_of(declared()[operator]) for operator in sorted(emulated())}


def example(operator: OperatorType, **changes: Any) -> Any:
    """The example of an operator, changed."""
    return replace(EXAMPLES[operator], **changes)  # type: ignore[type-var]


def accepted(desc: OperatorDesc, level: FeatureLevel = NEWEST) -> None:
    check_operator(desc, level, "CreateOperator")


def refused(
    desc: OperatorDesc,
    id: str,
    field: str,
    given: object,
    expected: object,
    *,
    level: FeatureLevel = NEWEST,
) -> Report:
    """The desc is refused for this field, and the report says all that a report must."""
    with pytest.raises(Error) as caught:
        check_operator(desc, level, "CreateOperator")
    report = caught.value.report

    assert (report.id, report.field) == (id, field)
    assert (report.given, report.expected) == (str(given), str(expected))
    assert caught.value.hresult == HResult.E_INVALIDARG
    assert report.message.endswith(".")
    assert report.rule.endswith("_OPERATOR_DESC")
    assert report.operation == "CreateOperator"
    return report
