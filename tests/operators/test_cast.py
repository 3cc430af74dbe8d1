"""CAST."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import ALL_TYPES, Values, dtype_of, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType.CAST  # noqa: E741
NAN, INF = float("nan"), float("inf")


def cast(source: T, numbers: list[Any], target: T) -> list[Any]:
    op = dml.CastOperatorDesc(
        input_tensor=tensor(source, len(numbers)), output_tensor=tensor(target, len(numbers))
    )
    found: list[Any] = compare(op, {"input_tensor": np.array(numbers, dtype_of(source))})[
        "output_tensor"
    ].tolist()
    return found


def test_float_to_integer_drops_the_fraction() -> None:
    assert cast(T.FLOAT32, [2.9, -2.9, 0.5, -0.5], T.INT32) == [2, -2, 0, 0]
    assert cast(T.FLOAT16, [2.5, -2.5], T.INT8) == [2, -2]


def test_float_to_integer_stops_at_the_limits() -> None:
    assert cast(T.FLOAT32, [300, -1, -INF, INF], T.UINT8) == [255, 0, 0, 255]
    assert cast(T.FLOAT32, [1e30, -1e30], T.INT64) == [2**63 - 1, -(2**63)]
    assert cast(T.FLOAT64, [1e30, 2.0**64, -0.9], T.UINT64) == [2**64 - 1, 2**64 - 1, 0]
    assert cast(T.FLOAT16, [-INF, INF], T.INT64) == [-(2**63), 2**63 - 1]


def test_nan_to_integer_is_0() -> None:
    assert cast(T.FLOAT32, [NAN, -NAN], T.INT16) == [0, 0]


def test_integer_to_narrower_integer_keeps_the_low_bits() -> None:
    assert cast(T.INT32, [258, -1, 128], T.UINT8) == [2, 255, 128]
    assert cast(T.UINT16, [0xFFFF, 0x180], T.INT8) == [-1, -128]
    assert cast(T.INT8, [-1], T.UINT64) == [2**64 - 1]


def test_float_to_narrower_float_rounds_to_even() -> None:
    assert cast(T.FLOAT32, [2049, 2051, 65519.9, 65520, 1e-9], T.FLOAT16) == [2048, 2052, 65504, INF, 0]
    # By way of FLOAT32 this one would round twice, up to 1.0009765625.
    assert cast(T.FLOAT64, [1 + 2**-11 - 2**-40], T.FLOAT16) == [1.0]
    assert np.isnan(cast(T.FLOAT32, [NAN], T.FLOAT16)).all()


def test_integer_to_float_rounds_to_even() -> None:
    assert cast(T.INT32, [2**24 + 1, 2**24 + 3], T.FLOAT32) == [2**24, 2**24 + 4]
    assert cast(T.UINT64, [2**64 - 1], T.FLOAT64) == [2.0**64]
    assert cast(T.INT32, [65520, -65519], T.FLOAT16) == [INF, -65504]


@pytest.mark.parametrize("source", ALL_TYPES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("target", ALL_TYPES, ids=lambda kind: kind.name)
def test_every_type_to_every_type(source: T, target: T) -> None:
    sizes = [3, 50]
    x = tensor(source, *sizes)
    op = dml.CastOperatorDesc(input_tensor=x, output_tensor=tensor(target, *sizes))

    for kind in ("extreme", "bits"):
        compare(op, {"input_tensor": filled(x, Values(kind, 1))[1]}, bits=source is target)


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    source_type, target_type = data.draw(st.sampled_from(ALL_TYPES)), data.draw(st.sampled_from(ALL_TYPES))
    sizes = data.draw(shapes())
    source = data.draw(tensors(source_type, sizes))
    op = dml.CastOperatorDesc(
        input_tensor=source, output_tensor=data.draw(tensors(target_type, sizes, output=True))
    )

    compare(
        op,
        {"input_tensor": filled(source, data.draw(values()))[1]},
        bits=source_type is target_type,
        offset=data.draw(offsets),
    )
