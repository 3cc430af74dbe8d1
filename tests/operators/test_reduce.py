"""REDUCE, ARGMAX and ARGMIN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from examples import accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import SIGNED, UNSIGNED, Array, dtype_of, filled, shapes, tensors, values

from dmlemu import dml, evaluate
from dmlemu.dml import AxisDirection, BufferTensorDesc, FeatureLevel, OperatorType, ReduceFunction
from dmlemu.dml import TensorDataType as T

NAN, INF = float("nan"), float("inf")
F = ReduceFunction
NEWEST = max(FeatureLevel)
INDEX_TYPES = [T.UINT32, T.INT32, T.UINT64, T.INT64]
each_function = pytest.mark.parametrize("function", F, ids=lambda function: function.name)
each_reduction = pytest.mark.parametrize(
    "operator", [OperatorType.REDUCE, OperatorType.ARGMAX, OperatorType.ARGMIN], ids=lambda kind: kind.name
)


def reduce(function: F, numbers: Any, axes: list[int], data_type: T = T.FLOAT32) -> Array:
    x = np.array(numbers, dtype_of(data_type))
    sizes = [1 if d in axes else size for d, size in enumerate(x.shape)]
    index = function in (F.ARGMAX, F.ARGMIN)
    op = dml.ReduceOperatorDesc(
        function=function,
        input_tensor=tensor(data_type, *x.shape),
        output_tensor=tensor(T.UINT32 if index else data_type, *sizes),
        axes=axes,
    )
    return compare(op, {"input_tensor": x})["output_tensor"]


def arg(kind: Any, numbers: Any, axes: list[int], direction: AxisDirection, result: T = T.INT32) -> Array:
    x = np.array(numbers, np.float32)
    sizes = [1 if d in axes else size for d, size in enumerate(x.shape)]
    op = kind(
        input_tensor=tensor(T.FLOAT32, *x.shape),
        output_tensor=tensor(result, *sizes),
        axes=axes,
        axis_direction=direction,
    )
    return compare(op, {"input_tensor": x})["output_tensor"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (F.ARGMAX, 3),
        (F.ARGMIN, 1),
        (F.AVERAGE, 1),
        (F.L1, 10),
        (F.L2, 30**0.5),
        (F.LOG_SUM, np.log(4)),
        (F.LOG_SUM_EXP, np.log(np.exp(-1) + np.exp(-2) + np.exp(3) + np.exp(4))),
        (F.MAX, 4),
        (F.MIN, -2),
        (F.MULTIPLY, 24),
        (F.SUM, 4),
        (F.SUM_SQUARE, 30),
    ],
)
def test_what_each_function_computes(function: F, expected: float) -> None:
    assert np.isclose(reduce(function, [-1, -2, 3, 4], [0]).item(), expected, rtol=1e-6)


def test_ranks_stay_and_kept_axes_keep_their_sizes() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    assert reduce(F.SUM, x, [1]).tolist() == x.sum(1, keepdims=True).tolist()
    assert reduce(F.SUM, x, [2, 0]).tolist() == x.sum((0, 2), keepdims=True).tolist()
    assert reduce(F.SUM, x, [0, 1, 2]).tolist() == [[[276]]]


def test_no_axes_reduce_each_element_by_itself() -> None:
    assert reduce(F.SUM_SQUARE, [[1, -2], [3, 4]], []).tolist() == [[1, 4], [9, 16]]
    assert reduce(F.ARGMAX, [1, 7, 3], []).tolist() == [0, 0, 0]


def test_integers_wrap() -> None:
    assert reduce(F.SUM, [2**31 - 1, 1], [0], T.INT32).tolist() == [-(2**31)]
    assert reduce(F.SUM, [2**32 - 1, 3], [0], T.UINT32).tolist() == [2]
    assert reduce(F.MULTIPLY, [2**33, 2**31], [0], T.INT64).tolist() == [0]
    assert reduce(F.SUM_SQUARE, [2**16], [0], T.INT32).tolist() == [0]
    assert reduce(F.L1, [-(2**31)], [0], T.INT32).tolist() == [-(2**31)]


def test_log_sum_exp_does_not_overflow() -> None:
    assert reduce(F.LOG_SUM_EXP, [1000, 1000], [0]).tolist() == [np.float32(1000 + np.log(2))]
    assert reduce(F.LOG_SUM_EXP, [-INF, -INF], [0]).tolist() == [-INF]
    assert reduce(F.LOG_SUM_EXP, [INF, 1], [0]).tolist() == [INF]


def test_float16_is_accumulated_in_more_bits() -> None:
    """As FLOAT16 the sum would stick at 2048, the squares would be infinite."""
    assert reduce(F.SUM, [1] * 4096, [0], T.FLOAT16).tolist() == [4096]
    assert reduce(F.L2, [300, 400], [0], T.FLOAT16).tolist() == [500]


@pytest.mark.parametrize(
    "function",
    [F.SUM, F.L2, *(pytest.param(each, marks=pytest.mark.long) for each in (F.L1, F.SUM_SQUARE, F.AVERAGE))],
    ids=lambda each: each.name,
)
@pytest.mark.parametrize(
    ("sizes", "strides", "axes"),
    [
        ([10**6], [1], [0]),
        ([10**6, 3], [3, 1], [0]),
        pytest.param([1000, 1000], [1, 1000], [0, 1], marks=pytest.mark.long),
        ([100, 2, 10_000], [20_001, 1, 2], [0, 2]),
        ([17, 10**5], [1, 17], [1]),
        pytest.param([17, 10**6], [1, 17], [1], marks=pytest.mark.long),
    ],
)
def test_a_million_floats_are_added_to_2_ulp(
    function: F, sizes: list[int], strides: list[int], axes: list[int]
) -> None:
    """On as many threads as the machine has; same_bits.py has the same sums on one and on three."""
    source = BufferTensorDesc(T.FLOAT32, sizes, strides)
    small = [1 if d in axes else size for d, size in enumerate(sizes)]
    op = dml.ReduceOperatorDesc(
        function=function, input_tensor=source, output_tensor=tensor(T.FLOAT32, *small), axes=axes
    )
    random = np.random.default_rng(7)
    x = (random.normal(0.01, 1, sizes) * 10 ** random.uniform(-4, 4, sizes)).astype(np.float32)

    found = evaluate(op, input_tensor=x)["output_tensor"].ravel()

    lines = np.moveaxis(x, axes, range(-len(axes), 0)).reshape(found.size, -1)
    for got, line in zip(found, lines.astype(np.float64), strict=True):
        exact = exact_sum(function, line)
        assert abs(float(got) - exact) <= 2 * np.spacing(np.float32(abs(exact)))


@pytest.mark.parametrize("data_type", [T.FLOAT32, T.FLOAT16, T.INT32], ids=lambda each: each.name)
@pytest.mark.parametrize("length", [1, 15, 16, 31, 32, 40, 63, 64, 65, 129, 1000])
def test_all_layouts_give_the_same_bits(length: int, data_type: T) -> None:
    """Short contiguous lines are transposed if there are many; others are added along, or across them."""
    random = np.random.default_rng(length)
    x = (random.normal(0.01, 1, (200, length)) * 10 ** random.uniform(-3, 3, (200, length))).astype(
        dtype_of(data_type)
    )
    layouts = [(length, 1), (1, 200), (length + 3, 1), (2 * length, 2), (1, 201)]
    for function in (F.SUM, F.L2, F.MULTIPLY) if data_type is not T.INT32 else (F.SUM, F.MULTIPLY, F.MIN):
        found = set()
        for count in (200, 5):  # of lines: few are not transposed
            for strides in layouts:
                op = dml.ReduceOperatorDesc(
                    function=function,
                    input_tensor=BufferTensorDesc(data_type, [count, length], strides),
                    output_tensor=tensor(data_type, count, 1),
                    axes=[1],
                )
                with np.errstate(all="ignore"):
                    result = evaluate(op, input_tensor=x[:count])["output_tensor"]
                found.add(result[:5].tobytes())
                if function is F.SUM and data_type is T.FLOAT32:
                    exact = [math.fsum(line) for line in x[:count].astype(np.float64)]
                    assert result.ravel().tolist() == np.float32(exact).tolist()
        assert len(found) == 1, function


@pytest.mark.parametrize("function", [F.MAX, F.MIN], ids=lambda each: each.name)
@pytest.mark.parametrize("length", [2, 31, 64, 150, 1025])
def test_the_largest_is_the_same_in_all_layouts(length: int, function: F) -> None:
    """FLOAT32s are compared as floats only where that decides: 0 is above -0, and NaNs are ignored."""
    random = np.random.default_rng(length)
    x = random.normal(0, 1, (200, length)).astype(np.float32)
    x[random.random(x.shape) < 0.2] = NAN
    sign = 1 if function is F.MAX else -1
    x[3], x[40], x[70], x[199] = NAN, -INF * sign, -0.0 * sign, -abs(x[199]) * sign
    x[70, length // 2] = 0.0 * sign
    x[199, -1] = -0.0 * sign
    x[5, 1] = INF
    expected = reduce_fmax(x * np.float32(sign)) * np.float32(sign)

    for count in (200, 75, 5):
        for strides in [(length, 1), (1, 200), (length + 3, 1), (1, 201), (1, 500)]:
            op = dml.ReduceOperatorDesc(
                function=function,
                input_tensor=BufferTensorDesc(T.FLOAT32, [count, length], strides),
                output_tensor=tensor(T.FLOAT32, count, 1),
                axes=[1],
            )
            found = evaluate(op, input_tensor=x[:count])["output_tensor"].ravel()
            assert found.tolist() == pytest.approx(expected[:count].tolist(), rel=0, abs=0, nan_ok=True)
            assert (
                np.signbit(found[~np.isnan(found)]).tolist()
                == np.signbit(expected[:count][~np.isnan(found)]).tolist()
            )


def reduce_fmax(x: Array) -> Array:
    """The largest number of each row: 0 is larger than -0."""
    largest = np.fmax.reduce(x, 1)
    has_zero = ((x == 0) & ~np.signbit(x)).any(1)
    return np.where(largest == 0, np.where(has_zero, 0.0, -0.0), largest).astype(np.float32)


def exact_sum(function: F, line: Array) -> float:
    """Correctly rounded: squares of FLOAT32s are exact as FLOAT64s."""
    if function in (F.L2, F.SUM_SQUARE):
        total = math.fsum(line * line)
        return math.sqrt(total) if function is F.L2 else total
    total = math.fsum(abs(line) if function is F.L1 else line)
    return total / line.size if function is F.AVERAGE else total


@pytest.mark.parametrize("function", [F.SUM, F.MULTIPLY, F.MAX, F.MIN, F.ARGMAX, F.ARGMIN])
def test_wide_rows_give_the_bits_of_contiguous_lines(function: F) -> None:
    """Several blocks of lines across memory, the last one narrow, beside lines that are contiguous."""
    x = np.random.default_rng(8).normal(1, 0.1, (300, 2148)).astype(np.float32)
    x[7, 1100], x[8, 2100], x[:, 5], x[:, 1030] = np.nan, np.inf, -0.0, np.nan

    across = reduce(function, x, [0]).ravel()
    along = reduce(function, np.ascontiguousarray(x.T), [1]).ravel()
    assert across.view(np.uint32).tolist() == along.view(np.uint32).tolist()


def test_nan_never_beats_a_number() -> None:
    assert reduce(F.MAX, [NAN, -5, NAN], [0]).tolist() == [-5]
    assert reduce(F.MIN, [3, NAN], [0]).tolist() == [3]
    assert np.isnan(reduce(F.MAX, [NAN, NAN], [0])).all()
    assert np.isnan(reduce(F.SUM, [NAN, 1], [0])).all()
    assert reduce(F.ARGMAX, [NAN, 1, 2], [0]).tolist() == [2]
    assert reduce(F.ARGMIN, [NAN, NAN], [0]).tolist() == [0]


def test_places_in_long_lines() -> None:
    """Lines of more than one segment, whose places are combined."""
    x = np.zeros((200_000, 3), np.float32)
    x[[70_000, 150_000], 0] = 5
    x[:, 1] = -1
    x[199_999, 1] = NAN
    x[131_072, 2] = INF

    assert reduce(F.ARGMAX, x, [0]).tolist() == [[70_000, 0, 131_072]]
    last = arg(dml.ArgmaxOperatorDesc, x, [0], AxisDirection.DECREASING)
    assert last.tolist() == [[150_000, 199_998, 131_072]]


@pytest.mark.parametrize("length", [64, 100, 1025])
@pytest.mark.parametrize(
    ("numbers", "least", "largest"),
    [
        ([NAN, -INF], -INF, -INF),
        ([NAN, INF], INF, INF),
        ([INF, -INF], -INF, INF),
        ([0.0, -0.0], -0.0, 0.0),
        ([-0.0, -1], -1, -0.0),
        ([1, 0.0], 0.0, 1),
        ([NAN, -3], -3, -3),
    ],
)
def test_long_contiguous_lines(length: int, numbers: list[float], least: float, largest: float) -> None:
    """These are compared as floats, with the same results for zeros, infinities and NaNs."""
    line = np.resize(np.array(numbers, np.float32), length)

    for function, expected in ((F.MIN, least), (F.MAX, largest)):
        assert reduce(function, line, [0]).tobytes() == np.float32(expected).tobytes()
    for kind, expected in ((dml.ArgminOperatorDesc, least), (dml.ArgmaxOperatorDesc, largest)):
        places = np.flatnonzero(line == expected)
        assert arg(kind, line, [0], AxisDirection.INCREASING) == places[0]
        assert arg(kind, line, [0], AxisDirection.DECREASING) == places[-1]


@pytest.mark.parametrize("kind", [dml.ArgmaxOperatorDesc, dml.ArgminOperatorDesc])
@pytest.mark.parametrize("direction", AxisDirection)
@pytest.mark.parametrize("length", [2, 31, 64, 100, 129, 1024, 1025])
def test_places_are_the_same_in_all_layouts(kind: Any, direction: AxisDirection, length: int) -> None:
    """Of FLOAT32s compared as floats, of which zeros are equal and NaNs lose."""
    random = np.random.default_rng(length)
    x = random.integers(-3, 3, (300, length)).astype(np.float32)
    x[random.random(x.shape) < 0.2] = NAN
    sign = np.float32(1 if kind is dml.ArgmaxOperatorDesc else -1)
    x[3], x[40], x[70], x[77, 1] = NAN, -INF * sign, -0.0, INF * sign
    x[70, length // 2] = 0.0
    best = np.fmax.reduce(x * sign, 1, keepdims=True)
    hit = x * sign == best
    last = length - 1 - np.argmax(hit[:, ::-1], 1)
    expected = np.argmax(hit, 1) if direction is AxisDirection.INCREASING else np.where(hit.any(1), last, 0)

    for count in (300, 75, 5):
        for strides in [(length, 1), (1, 300), (length + 3, 1), (1, 301)]:
            op = kind(
                input_tensor=BufferTensorDesc(T.FLOAT32, [count, length], strides),
                output_tensor=tensor(T.UINT32, count, 1),
                axes=[1],
                axis_direction=direction,
            )
            found = evaluate(op, input_tensor=x[:count])["output_tensor"].ravel()
            assert found.tolist() == expected[:count].tolist()


@pytest.mark.parametrize("length", [1, 2, 40, 64, 100, 1000, 5000])
def test_log_sum_exp_of_a_line_does_not_depend_on_others(length: int) -> None:
    """Exponentials are FLOAT32 where the logarithm is not near 0, and relative where one is not small."""
    random = np.random.default_rng(length)
    x = random.normal(0, 3, (90, length)).astype(np.float32)
    exact = np.logaddexp.reduce(x.astype(np.float64), 1, keepdims=True)
    x[::3] -= np.float32(exact[::3])  # results near 0
    x[1::9] += np.float32(random.choice([-60000, -100, 45, 300], (10, 1)))
    x[4, : length // 2], x[13, 0], x[22] = -INF, NAN, INF
    with np.errstate(all="ignore"):
        exact = np.logaddexp.reduce(x.astype(np.float64), 1, keepdims=True)

    def result(x: Array, axis: int) -> Array:
        sizes = [1 if d == axis else size for d, size in enumerate(x.shape)]
        op = dml.ReduceOperatorDesc(
            function=F.LOG_SUM_EXP,
            input_tensor=tensor(T.FLOAT32, *x.shape),
            output_tensor=tensor(T.FLOAT32, *sizes),
            axes=[axis],
        )
        return evaluate(op, input_tensor=x)["output_tensor"]

    got = result(x, 1)
    assert result(x.T.copy(), 0).tobytes() == got.tobytes()
    for line in range(0, 90, 7):
        assert result(x[line], 0).tobytes() == got[line].tobytes()
    number = np.isfinite(exact)
    error = np.abs(got[number] - exact[number])
    assert (
        error < 1.25 * np.spacing(np.abs(np.float32(exact[number]))) + 2.0**-40 * np.abs(x[:, :1][number])
    ).all()


def test_long_contiguous_lines_of_nan() -> None:
    line = np.full(1025, NAN, np.float32)

    assert np.isnan(reduce(F.MAX, line, [0])) and np.isnan(reduce(F.MIN, line, [0]))
    assert reduce(F.ARGMAX, line, [0]) == 0 and reduce(F.ARGMIN, line, [0]) == 0


def test_ties_of_reduce_take_the_first() -> None:
    assert reduce(F.ARGMAX, [1, 9, 9], [0]).tolist() == [1]
    assert reduce(F.ARGMIN, [0.0, -0.0, 5], [0]).tolist() == [0]


def test_axis_direction_breaks_ties() -> None:
    x = [[5, 9, 9], [0, 0, 9]]

    first, last = AxisDirection.INCREASING, AxisDirection.DECREASING
    assert arg(dml.ArgmaxOperatorDesc, x, [1], first).tolist() == [[1], [2]]
    assert arg(dml.ArgmaxOperatorDesc, x, [1], last).tolist() == [[2], [2]]
    assert arg(dml.ArgminOperatorDesc, x, [1], first).tolist() == [[0], [0]]
    assert arg(dml.ArgminOperatorDesc, x, [1], last).tolist() == [[0], [1]]
    assert arg(dml.ArgmaxOperatorDesc, [NAN, NAN], [0], last).tolist() == [0]


def test_several_axes_count_in_row_major_order() -> None:
    """Axes {0, 1} of a 3 x 3 tensor: row * 3 + column, whatever the order of Axes."""
    x = np.zeros((3, 3))
    x[2, 1] = 1

    for axes in ([0, 1], [1, 0]):
        assert arg(dml.ArgmaxOperatorDesc, x, axes, AxisDirection.INCREASING).tolist() == [[7]]


@pytest.mark.parametrize("result", INDEX_TYPES, ids=lambda kind: kind.name)
def test_indices_have_any_of_four_types(result: T) -> None:
    found = arg(dml.ArgminOperatorDesc, [4, 2, 1, 3], [0], AxisDirection.INCREASING, result)

    assert found.dtype == dtype_of(result) and found.tolist() == [2]


@each_function
@given(st.data(), examples=60)  # times twelve functions
def test_reduce_in_any_layout(function: F, data: st.DataObject) -> None:
    table = dml.ReduceOperatorDesc.allowed(example(OperatorType.REDUCE, function=function), NEWEST)
    data_type = data.draw(st.sampled_from(sorted(table["input_tensor"].data_types)))
    result = data_type
    if function in (F.ARGMAX, F.ARGMIN):
        result = data.draw(st.sampled_from(INDEX_TYPES))
    source, output, axes = data.draw(reductions(data_type, result))
    op = dml.ReduceOperatorDesc(function=function, input_tensor=source, output_tensor=output, axes=axes)

    _, x = filled(source, data.draw(values("extreme", "small")))
    if function is F.LOG_SUM:
        x = np.abs(x)  # without cancellation the logarithm is well defined
    compare(
        op,
        {"input_tensor": x},
        scale=magnitude(function, x, axes, op.output_tensor.sizes),
        offset=data.draw(offsets),
    )


@pytest.mark.parametrize("kind", [dml.ArgmaxOperatorDesc, dml.ArgminOperatorDesc])
@given(st.data())
def test_arg_in_any_layout(kind: Any, data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16, *SIGNED, *UNSIGNED]))
    source, output, axes = data.draw(reductions(data_type, data.draw(st.sampled_from(INDEX_TYPES))))
    direction = data.draw(st.sampled_from(AxisDirection))
    op = kind(input_tensor=source, output_tensor=output, axes=axes, axis_direction=direction)

    compare(
        op,
        {"input_tensor": filled(source, data.draw(values("small", "extreme")))[1]},
        offset=data.draw(offsets),
    )


@st.composite
def reductions(draw: st.DrawFn, data_type: T, result: T) -> Any:
    """An input, axes in any order, and the output that follows."""
    sizes = draw(shapes())
    axes = draw(st.lists(st.integers(0, len(sizes) - 1), unique=True))
    reduced = [1 if d in axes else size for d, size in enumerate(sizes)]
    return draw(tensors(data_type, sizes)), draw(tensors(result, reduced, output=True)), axes


def magnitude(function: F, x: Array, axes: list[int], sizes: Any) -> Array | None:
    """What rounding errors of a sum are proportional to; None where there is no sum of floats."""
    if x.dtype.kind != "f" or function not in (F.AVERAGE, F.LOG_SUM_EXP, F.SUM):
        return None
    with np.errstate(all="ignore"):
        total = np.abs(x.astype(np.float64)).sum(tuple(axes), keepdims=True)
    return np.where(np.isfinite(total), total + 1, 0).reshape(sizes)


# --- rules ---


@each_reduction
def test_axes_exist(operator: OperatorType) -> None:
    op = example(operator, axes=[2, 4])

    refused(op, "OP_FIELD_RANGE", "Axes[1]", 4, "0 to 3")


@each_reduction
def test_axes_stand_once(operator: OperatorType) -> None:
    op = example(operator, axes=[2, 3, 2])

    refused(op, "OP_FIELD_RANGE", "Axes[2]", [2, 3, 2], "each axis once")


@each_reduction
def test_reduced_dimensions_have_size_1(operator: OperatorType) -> None:
    data_type = T.FLOAT32 if operator is OperatorType.REDUCE else T.UINT32
    op = example(operator, output_tensor=tensor(data_type, 1, 2, 3, 1), axes=[2, 3])

    report = refused(op, "OP_SHAPE", "OutputTensor.Sizes[2]", 3, 1)
    assert report.message.endswith("is not 1, since dimension 2 is in Axes [2, 3].")


@each_reduction
def test_kept_dimensions_keep_their_size(operator: OperatorType) -> None:
    data_type = T.FLOAT32 if operator is OperatorType.REDUCE else T.UINT32
    op = example(operator, output_tensor=tensor(data_type, 1, 1, 1, 1), axes=[2, 3])

    report = refused(op, "OP_SHAPE", "OutputTensor.Sizes[1]", 1, 2)
    assert "since dimension 1 is not in Axes [2, 3]" in report.message


@each_function
def test_types_of_reduce_follow_the_function(function: F) -> None:
    """ARGMAX and ARGMIN give an index; all others the input's type."""
    op = example(OperatorType.REDUCE, function=function, output_tensor=tensor(T.FLOAT16, 1, 2, 1, 4))
    index = example(OperatorType.REDUCE, function=function, output_tensor=tensor(T.INT32, 1, 2, 1, 4))
    if function in (F.ARGMAX, F.ARGMIN):
        refused(op, "TENSOR_DTYPE", "OutputTensor.DataType", "FLOAT16", "UINT32, INT32, UINT64, INT64")
        accepted(index)
        refused(
            index, "TENSOR_DTYPE", "OutputTensor.DataType", "INT32", "UINT32", level=FeatureLevel.LEVEL_2_1
        )
    else:
        refused(op, "TENSOR_DTYPE", "OutputTensor.DataType", "FLOAT16", "FLOAT32")


@each_function
def test_each_function_has_its_own_types(function: F) -> None:
    """Every type that the table of the function lacks is refused, at every level."""
    for level in FeatureLevel:
        op = example(OperatorType.REDUCE, function=function)
        allowed = op.allowed(level)["input_tensor"].data_types
        for data_type in set(T) - {T.UNKNOWN} - allowed:
            changed = example(
                OperatorType.REDUCE, function=function, input_tensor=tensor(data_type, 1, 2, 3, 4)
            )
            expected = ", ".join(kind.name for kind in sorted(allowed))
            refused(changed, "TENSOR_DTYPE", "InputTensor.DataType", data_type.name, expected, level=level)
