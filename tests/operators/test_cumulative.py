"""CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import tensor
from harness import assert_parts_have_the_same_bits, compare, given, offsets
from hypothesis import strategies as st
from strategies import Array, dtype_of, filled, shapes, tensors, values

from dmlemu import dml, evaluate
from dmlemu.dml import AxisDirection
from dmlemu.dml import TensorDataType as T

NAN, INF = float("nan"), float("inf")
UP, DOWN = AxisDirection.INCREASING, AxisDirection.DECREASING
TYPES = [T.FLOAT32, T.FLOAT16, T.INT64, T.INT32, T.UINT64, T.UINT32]
SUM, PRODUCT = dml.CumulativeSummationOperatorDesc, dml.CumulativeProductOperatorDesc
each_kind = pytest.mark.parametrize("kind", [SUM, PRODUCT], ids=lambda kind: kind.TYPE.name)


def exclusive(kind: Any, value: bool) -> dict[str, bool]:
    return {"has_exclusive_sum" if kind is SUM else "has_exclusive_product": value}


def run(
    kind: Any,
    numbers: Any,
    direction: AxisDirection = UP,
    without: bool = False,
    axis: int = -1,
    data_type: T = T.FLOAT32,
) -> Any:
    x = np.array(numbers, dtype_of(data_type))
    packed = tensor(data_type, *x.shape)
    desc = kind(
        input_tensor=packed,
        output_tensor=packed,
        axis=axis % x.ndim,
        axis_direction=direction,
        **exclusive(kind, without),
    )
    return compare(desc, {"input_tensor": x})["output_tensor"].tolist()


def test_both_directions_with_and_without_the_element() -> None:
    x = [1, 2, 3, 4, 5]

    assert run(SUM, x) == [1, 3, 6, 10, 15]
    assert run(SUM, x, UP, True) == [0, 1, 3, 6, 10]
    assert run(SUM, x, DOWN) == [15, 14, 12, 9, 5]
    assert run(SUM, x, DOWN, True) == [14, 12, 9, 5, 0]
    assert run(PRODUCT, x) == [1, 2, 6, 24, 120]
    assert run(PRODUCT, x, UP, True) == [1, 1, 2, 6, 24]
    assert run(PRODUCT, x, DOWN) == [120, 120, 60, 20, 5]
    assert run(PRODUCT, x, DOWN, True) == [120, 60, 20, 5, 1]


def test_lines_are_independent() -> None:
    x = [[1, 2], [3, NAN], [5, 6]]

    assert run(SUM, [[1, 2], [3, 4], [5, 6]], axis=0) == [[1, 2], [4, 6], [9, 12]]
    np.testing.assert_array_equal(run(SUM, x, axis=0), [[1, 2], [4, NAN], [9, NAN]])
    np.testing.assert_array_equal(run(SUM, x, DOWN, axis=0), [[9, NAN], [8, NAN], [5, 6]])


def test_integers_wrap() -> None:
    assert run(SUM, [2**31 - 1, 1, 1], data_type=T.INT32) == [2**31 - 1, -(2**31), -(2**31) + 1]
    assert run(PRODUCT, [2**16, 2**16, 3], data_type=T.UINT32) == [2**16, 0, 0]
    assert run(PRODUCT, [-3, 2**62, 4], data_type=T.INT64) == [-3, 2**62, 0]


def test_float16_is_accumulated_in_more_bits() -> None:
    """As FLOAT16 the sum would stick at 2048."""
    assert run(SUM, [1] * 4096, data_type=T.FLOAT16)[-1] == 4096
    assert run(SUM, [60000, 60000, -60000], data_type=T.FLOAT16) == [60000, INF, 60000]


def test_a_million_floats_are_added_to_2_ulp() -> None:
    x = np.random.default_rng(3).normal(0, 1, 10**6).astype(np.float32)
    packed = tensor(T.FLOAT32, 10**6)
    desc = SUM(input_tensor=packed, output_tensor=packed, axis=0, axis_direction=UP, has_exclusive_sum=False)
    got = compare(desc, {"input_tensor": x})["output_tensor"]

    exact = np.cumsum(x.astype(np.longdouble))
    assert (np.abs(got - exact) <= 2 * np.spacing(np.abs(got))).all()


@each_kind
@given(st.data())
def test_any_layout(kind: Any, data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from(TYPES))
    sizes = data.draw(shapes())
    source = data.draw(tensors(data_type, sizes))
    op = kind(
        input_tensor=source,
        output_tensor=data.draw(tensors(data_type, sizes, output=True)),
        axis=data.draw(st.integers(0, len(sizes) - 1)),
        axis_direction=data.draw(st.sampled_from(AxisDirection)),
        **exclusive(kind, data.draw(st.booleans())),
    )
    _, x = filled(source, data.draw(values("extreme", "small")))

    compare(op, {"input_tensor": x}, offset=data.draw(offsets))


def cumulative(kind: Any, x: Array, axis: int) -> Any:
    return (np.cumsum if kind is SUM else np.cumprod)(x, axis)


@each_kind
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_many_lines(kind: Any, axis: int) -> None:
    """More than one block of lines, on more than one thread."""
    x = np.random.default_rng(4).integers(0, 9, (70, 90, 80)).astype(np.int32)

    assert run(kind, x, axis=axis, data_type=T.INT32) == cumulative(kind, x, axis).astype(np.int32).tolist()


@each_kind
@pytest.mark.parametrize("direction", AxisDirection)
@pytest.mark.parametrize("without", [False, True])
def test_contiguous_lines_give_the_bits_of_others(kind: Any, direction: AxisDirection, without: bool) -> None:
    """Contiguous lines are scanned several at a time; a line by itself and lines across memory are not."""
    x = np.random.default_rng(5).normal(1, 0.1, (70, 150)).astype(np.float32)
    x[3, 70], x[66, 140], x[9, 5] = NAN, INF, -0.0

    got = run(kind, x, direction, without)
    np.testing.assert_array_equal(got, np.transpose(run(kind, x.T, direction, without, axis=0)))
    for line in (0, 3, 66, 69):
        np.testing.assert_array_equal(got[line], run(kind, x[line], direction, without))


@each_kind
@pytest.mark.parametrize(
    "direction",
    [AxisDirection.INCREASING, pytest.param(AxisDirection.DECREASING, marks=pytest.mark.long)],
)
def test_outputs_past_the_caches(kind: Any, direction: AxisDirection) -> None:
    x = np.random.default_rng(8).normal(1, 0.01, (45_000, 101)).astype(np.float32)

    def result(x: Array, axis: int) -> Array:
        packed = tensor(T.FLOAT32, *x.shape)
        desc = kind(
            input_tensor=packed,
            output_tensor=packed,
            axis=axis,
            axis_direction=direction,
            **exclusive(kind, False),
        )
        return evaluate(desc, input_tensor=x)["output_tensor"]

    assert_parts_have_the_same_bits(result, x)
