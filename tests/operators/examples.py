"""One small legal desc per operator, and the check that a change to it is refused for one reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dmlemu.dml import BufferTensorDesc, FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import definition_of, emulated, example_of, unmet
from dmlemu.dml.declared.desc_checks import check_operator
from dmlemu.dml.declared.schema import OperatorDesc
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.errors import Error, HResult, Report

NEWEST = max(FeatureLevel)


def tensor(data_type: T, *sizes: int, strides: Sequence[int] | None = None) -> BufferTensorDesc:
    return BufferTensorDesc(data_type, sizes, strides)


EXAMPLES = {operator: example_of(declared()[operator]) for operator in sorted(emulated())}


def example(operator: OperatorType, **changes: Any) -> Any:
    """The example of an operator, changed."""
    return replace(EXAMPLES[operator], **changes)  # type: ignore[type-var]


def tensors_of(desc: OperatorDesc) -> Iterator[tuple[str, str, BufferTensorDesc]]:
    """The name of each tensor field (``output_tensors``), the path of the tensor (``OutputTensors[1]``), and
    the tensor; absent ones are left out."""
    for field in tensor_fields(desc):
        if field.desc is not None:
            yield field.name, field.path, field.desc


def exchanged(desc: OperatorDesc, path: str, tensor: BufferTensorDesc) -> Any:
    """The desc with another tensor at the path."""
    for field in tensor_fields(desc):
        if field.path == path:
            given = getattr(desc, field.name)
            if field.index is not None:
                tensor = (*given[: field.index], tensor, *given[field.index + 1 :])  # type: ignore[assignment]
            return replace(desc, **{field.name: tensor})  # type: ignore[type-var]
    raise LookupError(path)


def unusual(desc: OperatorDesc, id: str, field: str, given: object, expected: object) -> str:
    """The desc is accepted, and differs from what is usual in this field alone; returns the message."""
    accepted(desc)
    (demand,) = unmet(definition_of(desc).USUAL, desc, NEWEST)
    assert (demand.check is not None and demand.check.id, demand.place.path(desc)) == (id, field)
    told = demand.value(desc) if demand.given is None else str(demand.given)
    assert (told, demand.expected or demand.allowed.expected) == (str(given), str(expected))
    return demand.message(desc)


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
