"""Values that dispatches compute: quantization, of 8 and of 4 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlemu import dml
from dmlemu.checks.values import Values
from dmlemu.dml import TensorDataType as T
from dmlemu.testing.stage import Stage, tensor


def report_of(values: list[float], data_type: T, scale: float, zero_point: int | None = None) -> str:
    """Quantizes ``values``; the message of the value checks, "" if they say nothing."""
    stage = Stage()
    stage.device.checks.add(Values)
    kinds = [tensor([1]), tensor([1], data_type=data_type)][: 1 if zero_point is None else 2]
    desc = dml.QuantizeOperatorDesc(
        input_tensor=tensor([len(values)]),
        quantization_type=dml.QuantizationType(len(kinds)),
        quantization_tensors=kinds,
        output_tensor=tensor([len(values)], data_type=data_type),
    )
    operator = stage.compile(desc, "quantize")
    stage.initialize(operator)
    inputs: list[Any] = [np.array(values, np.float32), np.array([scale], np.float32)]
    if zero_point is not None:
        inputs.append(np.array([zero_point & (15 if "4" in data_type.name else 255), 0, 0, 0], np.uint8))
    names = ("values", "scale", "zero point")
    buffers = [stage.upload(name, each) for name, each in zip(names, inputs, strict=False)]
    stage.dispatch(operator, buffers, [stage.buffer("codes")])
    stage.run()
    return "\n".join(stored.report.message for stored in stage.device.reports)


@pytest.mark.dmlemu(expect=["VAL_QUANT_SATURATE"])
@pytest.mark.parametrize(
    ("data_type", "zero_point", "values", "first"),
    [
        (T.UINT8, 100, [77, 79, -50], "(1) of OutputTensor a limit of UINT8 for 258; 33%"),
        (T.INT8, None, [1, 1, 64], "(2) of OutputTensor a limit of INT8 for 128; 33%"),
        (T.UINT4, None, [3, 4, -5], "(1) of OutputTensor a limit of UINT4 for 16; 67%"),
        (T.INT4, -2, [-3, -4, 4], "(1) of OutputTensor a limit of INT4 for -10; 33%"),
    ],
)
def test_saturated_elements(data_type: T, zero_point: int | None, values: list[float], first: str) -> None:
    """The scale is 1/2; without a zero point unsigned types have the middle of their range."""
    assert f"gives element {first} of the elements are beyond" in report_of(
        values, data_type, 0.5, zero_point
    )


@pytest.mark.parametrize(
    ("data_type", "zero_point", "values"),
    [
        (T.UINT8, 100, [77.5, 77.7, -50.2]),
        (T.INT4, -2, [-3.2, 4.7, 0]),
        (T.UINT4, 0, [-100, 7.7, -3]),  # a ReLU: the zero point is the lower limit
        (T.UINT4, None, [float("nan"), 3.7, -4.2]),
    ],
)
def test_what_is_within_the_limits(data_type: T, zero_point: int | None, values: list[float]) -> None:
    assert report_of(values, data_type, 0.5, zero_point) == ""
