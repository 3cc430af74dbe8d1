"""One small legal desc per operator, and the check that a change to it is refused for one reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dmlemu import dml
from dmlemu.dml import BufferTensorDesc, FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.operators.desc_checks import check_operator
from dmlemu.dml.operators.schema import OperatorDesc
from dmlemu.errors import Error, HResult, Report

NEWEST = max(FeatureLevel)


def tensor(data_type: T, *sizes: int, strides: Sequence[int] | None = None) -> BufferTensorDesc:
    return BufferTensorDesc(data_type, sizes, strides)


FLOAT = tensor(T.FLOAT32, 1, 2, 3, 4)
UINTS = tensor(T.UINT32, 1, 2, 3, 4)
_UNARY = {"input_tensor": FLOAT, "output_tensor": FLOAT}
_BINARY = {"a_tensor": FLOAT, "b_tensor": FLOAT, "output_tensor": FLOAT}
_ARGUMENT = {
    "input_tensor": FLOAT,
    "output_tensor": tensor(T.UINT32, 1, 2, 1, 1),
    "axes": [2, 3],
    "axis_direction": dml.AxisDirection.INCREASING,
}

# Legal at every feature level from the one that introduced the operator on.
EXAMPLES: dict[OperatorType, OperatorDesc] = {
    desc.TYPE: desc
    for desc in (
        dml.ActivationCeluOperatorDesc(**_UNARY, alpha=1.0),
        dml.ActivationEluOperatorDesc(**_UNARY, alpha=1.0),
        dml.ActivationGeluOperatorDesc(**_UNARY),
        dml.ActivationHardSigmoidOperatorDesc(**_UNARY, alpha=0.2, beta=0.5),
        dml.ActivationIdentityOperatorDesc(**_UNARY),
        dml.ActivationLeakyReluOperatorDesc(**_UNARY, alpha=0.01),
        dml.ActivationLinearOperatorDesc(**_UNARY, alpha=3.0, beta=-1.0),
        dml.ActivationParametricSoftplusOperatorDesc(**_UNARY, alpha=2.0, beta=0.5),
        dml.ActivationReluOperatorDesc(**_UNARY),
        dml.ActivationScaledEluOperatorDesc(**_UNARY, alpha=1.6732632, gamma=1.0507011),
        dml.ActivationScaledTanhOperatorDesc(**_UNARY, alpha=1.0, beta=0.5),
        dml.ActivationShrinkOperatorDesc(**_UNARY, bias=0.25, threshold=0.5),
        dml.ActivationSigmoidOperatorDesc(**_UNARY),
        dml.ActivationSoftplusOperatorDesc(**_UNARY, steepness=1.0),
        dml.ActivationSoftsignOperatorDesc(**_UNARY),
        dml.ActivationTanhOperatorDesc(**_UNARY),
        dml.ActivationThresholdedReluOperatorDesc(**_UNARY, alpha=1.0),
        dml.ArgmaxOperatorDesc(**_ARGUMENT),
        dml.ArgminOperatorDesc(**_ARGUMENT),
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
        dml.ElementWiseAddOperatorDesc(**_BINARY),
        dml.ElementWiseAdd1OperatorDesc(**_BINARY, fused_activation=dml.ActivationReluOperatorDesc()),
        dml.ElementWiseBitCountOperatorDesc(input_tensor=UINTS, output_tensor=UINTS),
        dml.ElementWiseBitXorOperatorDesc(a_tensor=UINTS, b_tensor=UINTS, output_tensor=UINTS),
        dml.ElementWiseClipOperatorDesc(**_UNARY, min=-1.0, max=1.0),
        dml.ElementWiseClip1OperatorDesc(
            **_UNARY,
            min_max_data_type=T.FLOAT32,
            min=dml.ScalarUnion.of(T.FLOAT32, -1.0),
            max=dml.ScalarUnion.of(T.FLOAT32, 1.0),
        ),
        dml.ElementWiseIdentityOperatorDesc(**_UNARY, scale_bias=dml.ScaleBias(2.0, 10.0)),
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
