"""One small legal desc per operator, and the check that a change to it is refused for one reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dmlemu import dml
from dmlemu.dml import BufferTensorDesc, FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.dml.operators import declared
from dmlemu.dml.operators.definition import definition_class, emulated
from dmlemu.dml.operators.desc_checks import check_operator
from dmlemu.dml.operators.schema import OperatorDesc
from dmlemu.errors import Error, HResult, Report

NEWEST = max(FeatureLevel)


def tensor(data_type: T, *sizes: int, strides: Sequence[int] | None = None) -> BufferTensorDesc:
    return BufferTensorDesc(data_type, sizes, strides)


FLOAT = tensor(T.FLOAT32, 1, 2, 3, 4)
_ARGUMENT = {
    "input_tensor": FLOAT,
    "output_tensor": tensor(T.UINT32, 1, 2, 1, 1),
    "axes": [2, 3],
    "axis_direction": dml.AxisDirection.INCREASING,
}
_POOLING = {
    "input_tensor": tensor(T.FLOAT32, 1, 2, 3, 4),
    "output_tensor": tensor(T.FLOAT32, 1, 2, 2, 3),
    "strides": [1, 2],
    "window_size": [2, 2],
    "start_padding": [0, 1],
    "end_padding": [0, 1],
}

# Legal at every feature level from the one that introduced the operator on.  Of families, the definition's.
_OWN: dict[OperatorType, OperatorDesc] = {
    desc.TYPE: desc
    for desc in (
        dml.ArgmaxOperatorDesc(**_ARGUMENT),
        dml.ArgminOperatorDesc(**_ARGUMENT),
        dml.AveragePoolingOperatorDesc(**_POOLING, include_padding=True),
        dml.AveragePooling1OperatorDesc(**_POOLING, dilations=[2, 1], include_padding=False),
        dml.CastOperatorDesc(input_tensor=FLOAT, output_tensor=tensor(T.UINT8, 1, 2, 3, 4)),
        dml.ConvolutionIntegerOperatorDesc(
            input_tensor=tensor(T.UINT8, 1, 4, 8, 9),
            input_zero_point_tensor=tensor(T.UINT8, 1, 1, 1, 1),
            filter_tensor=tensor(T.INT8, 6, 2, 3, 2),
            filter_zero_point_tensor=tensor(T.INT8, 1, 6, 1, 1),
            output_tensor=tensor(T.INT32, 1, 6, 4, 10),
            strides=[2, 1],
            dilations=[1, 2],
            start_padding=[1, 0],
            end_padding=[0, 3],
            group_count=2,
        ),
        dml.GemmOperatorDesc(
            a_tensor=tensor(T.FLOAT32, 2, 3, 4, 5),
            b_tensor=tensor(T.FLOAT32, 2, 3, 6, 5),
            c_tensor=tensor(T.FLOAT32, 2, 3, 4, 6, strides=[0, 0, 0, 1]),
            output_tensor=tensor(T.FLOAT32, 2, 3, 4, 6),
            trans_a=dml.MatrixTransform.NONE,
            trans_b=dml.MatrixTransform.TRANSPOSE,
            alpha=0.5,
            beta=2.0,
            fused_activation=dml.ActivationTanhOperatorDesc(),
        ),
        dml.NonzeroCoordinatesOperatorDesc(
            input_tensor=tensor(T.FLOAT32, 1, 3, 2, 4),
            output_count_tensor=tensor(T.UINT32, 1, 1, 1, 1),
            output_coordinates_tensor=tensor(T.UINT32, 1, 1, 24, 4),
        ),
        dml.ReduceOperatorDesc(
            function=dml.ReduceFunction.SUM,
            input_tensor=FLOAT,
            output_tensor=tensor(T.FLOAT32, 1, 2, 1, 4),
            axes=[2],
        ),
    )
}

EXAMPLES: dict[OperatorType, OperatorDesc] = {
    operator: _OWN.get(operator) or declared()[operator](**definition_class(operator).example())  # type: ignore
    for operator in sorted(emulated())
}


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
