"""CONVOLUTION_INTEGER."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import accepted, example, refused, tensor, unusual
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import Array, dtype_of, filled, tensors, values

import dmlemu
from dmlemu import dml
from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType.CONVOLUTION_INTEGER  # noqa: E741
BYTES = [T.INT8, T.UINT8]
LEVEL_2_1, LEVEL_3_1, LEVEL_4_0 = FeatureLevel.LEVEL_2_1, FeatureLevel.LEVEL_3_1, FeatureLevel.LEVEL_4_0


def convolve(x: Any, w: Any, kinds: tuple[T, T] = (T.UINT8, T.INT8), **more: Any) -> Array:
    """Any zero points are given as arrays; the output's sizes follow from the formula."""
    inputs = {
        "input_tensor": np.array(x, dtype_of(kinds[0])),
        "filter_tensor": np.array(w, dtype_of(kinds[1])),
    }
    for name, kind in (("input_zero_point_tensor", kinds[0]), ("filter_zero_point_tensor", kinds[1])):
        if name in more:
            inputs[name] = np.array(more.pop(name), dtype_of(kind))
    spatial = inputs["input_tensor"].ndim - 2
    given: dict[str, Any] = {
        "strides": [1] * spatial,
        "dilations": [1] * spatial,
        "start_padding": [0] * spatial,
        "end_padding": [0] * spatial,
        "group_count": 1,
        **more,
    }
    sizes = [inputs["input_tensor"].shape[0], inputs["filter_tensor"].shape[0]]
    for i in range(spatial):
        padded = inputs["input_tensor"].shape[2 + i] + given["start_padding"][i] + given["end_padding"][i]
        window = (inputs["filter_tensor"].shape[2 + i] - 1) * given["dilations"][i] + 1
        sizes.append((padded - window) // given["strides"][i] + 1)
    descs = {
        name: tensor(kinds[0] if name.startswith("input") else kinds[1], *array.shape)
        for name, array in inputs.items()
    }
    op = dml.ConvolutionIntegerOperatorDesc(**descs, output_tensor=tensor(T.INT32, *sizes), **given)
    return compare(op, inputs)["output_tensor"]


X = np.arange(1, 10).reshape(1, 1, 3, 3)
W = np.array([[1, 2], [3, 4]]).reshape(1, 1, 2, 2)


def test_cross_correlation_by_hand() -> None:
    """The filter is not flipped: 1*1 + 2*2 + 4*3 + 5*4 = 37."""
    assert convolve(X, W).ravel().tolist() == [37, 47, 67, 77]


@pytest.mark.parametrize("kinds", [(a, b) for a in BYTES for b in BYTES], ids=str)
def test_every_mix_of_types_at_its_limits(kinds: tuple[T, T]) -> None:
    limits = {T.INT8: (-128, 127), T.UINT8: (0, 255)}
    for a in limits[kinds[0]]:
        for b in limits[kinds[1]]:
            found = convolve(np.full((1, 3, 2, 2), a), np.full((1, 3, 2, 2), b), kinds)

            assert found.ravel().tolist() == [12 * a * b]


PAIRS = [  # of filters: the sum of two products with bytes just fits 16 bits, or just does not
    *((T.INT8, each) for each in ((64, 64), (-64, -64), (127, -128), (1, 127), (-128, 0))),
    *((T.INT8, each) for each in ((65, 64), (-65, -64), (127, 2), (-1, -128), (127, 127), (-128, -128))),
    *((T.UINT8, each) for each in ((128, 128), (255, 1), (129, 128), (2, 255), (255, 255))),
]


@pytest.mark.parametrize("last", [False, True], ids=["NCHW", "channels last"])
@pytest.mark.parametrize("count", [1, 3, 16, 50], ids=str)
@pytest.mark.parametrize(("kind", "pair"), PAIRS, ids=str)
def test_pairs_of_products_at_the_limit_of_16_bits(
    kind: T, pair: tuple[int, int], count: int, last: bool
) -> None:
    """One pair of one filter, which begins at an even channel; the others are small."""
    random = np.random.default_rng(abs(hash((pair, count))))
    channels = 8
    w = random.integers(0, 3, (count, channels, 2, 2)).astype(dtype_of(kind))
    at = random.integers(0, [count, channels // 2, 2, 2])
    w[at[0], 2 * at[1] : 2 * at[1] + 2, at[2], at[3]] = pair
    for x_kind in BYTES:
        limits = np.iinfo(dtype_of(x_kind))
        x = random.choice([limits.min, limits.max], (1, channels, 5, 9)).astype(dtype_of(x_kind))
        x[..., :4], x[..., 4:8] = limits.min, limits.max
        sizes = {"input_tensor": (x_kind, x.shape), "output_tensor": (T.INT32, (1, count, 4, 8))}
        op = dml.ConvolutionIntegerOperatorDesc(
            **{
                name: dml.BufferTensorDesc(of, list(n), channels_last(n) if last else None)
                for name, (of, n) in sizes.items()
            },
            filter_tensor=tensor(kind, *w.shape),
            strides=[1, 1],
            dilations=[1, 1],
            start_padding=[0, 0],
            end_padding=[0, 0],
            group_count=1,
        )
        compare(op, {"input_tensor": x, "filter_tensor": w})


def channels_last(sizes: tuple[int, ...]) -> list[int]:
    _, channels, height, width = sizes
    return [channels * height * width, 1, width * channels, channels]


def test_zero_points_are_subtracted_in_more_bits() -> None:
    found = convolve(
        np.full((1, 1, 1, 1), 255),
        np.full((2, 1, 1, 1), -128),
        input_zero_point_tensor=[[[[0]]]],
        filter_zero_point_tensor=[[[[127]], [[-128]]]],
    )

    assert found.ravel().tolist() == [255 * -255, 0]


def test_a_padded_position_adds_nothing() -> None:
    """It counts as the input's zero point, not as 0."""
    found = convolve(
        np.full((1, 1, 1, 1), 7),
        np.full((1, 1, 1, 3), 2),
        start_padding=[0, 1],
        end_padding=[0, 1],
        input_zero_point_tensor=[[[[5]]]],
    )

    assert found.ravel().tolist() == [(7 - 5) * 2]


def test_strides_dilations_and_uneven_padding() -> None:
    found = convolve(X, W, strides=[2, 1], dilations=[1, 2], start_padding=[1, 0], end_padding=[0, 2])

    rows = [[3 * 1 + 4 * 3, 3 * 2, 3 * 3], [1 * 4 + 2 * 6 + 3 * 7 + 4 * 9, 5 + 3 * 8, 6 + 3 * 9]]
    assert found.reshape(2, 3).tolist() == rows


def test_depthwise() -> None:
    x, w = np.arange(8).reshape(1, 4, 1, 2), np.array([1, 10, 100, -1]).reshape(4, 1, 1, 1)

    assert convolve(x, w, group_count=4).ravel().tolist() == [0, 1, 20, 30, 400, 500, -6, -7]


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("dilation", [19, 20, 21, 22, 28, 40])
def test_depthwise_with_taps_far_from_each_other(dilation: int, stride: int) -> None:
    """A few positions see more than a vector holds."""
    random = np.random.default_rng(dilation)
    x, w = random.integers(0, 256, (1, 2, 3, 300)), random.integers(-128, 128, (2, 1, 2, 4))

    convolve(x, w, group_count=2, dilations=[1, dilation], strides=[1, stride])


@pytest.mark.parametrize("strides", [[10, 0, 0, 1], [39, 0, 1, 1], [39, 10, 3, 1], [20, 0, 0, 2]], ids=str)
@pytest.mark.parametrize("window", [(1, 1), (3, 1), (3, 3)], ids=str)
def test_depthwise_where_rows_overlap(window: tuple[int, int], strides: list[int]) -> None:
    height, width = 30 - window[0] + 1, 10 - window[1] + 1
    op = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=dml.BufferTensorDesc(T.UINT8, [1, 2, 30, 10], strides),
        filter_tensor=tensor(T.INT8, 2, 1, *window),
        output_tensor=tensor(T.INT32, 1, 2, height, width),
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[0, 0],
        end_padding=[0, 0],
        group_count=2,
    )
    size = 1 + sum((count - 1) * stride for count, stride in zip([1, 2, 30, 10], strides, strict=True))
    memory = np.arange(1, 1 + size, dtype=np.uint8)
    x = np.lib.stride_tricks.as_strided(memory, (1, 2, 30, 10), strides)

    compare(op, {"input_tensor": x, "filter_tensor": np.ones((2, 1, *window), np.int8)})


@pytest.mark.parametrize("kinds", [(a, b) for a in BYTES for b in BYTES], ids=str)
@pytest.mark.parametrize(
    ("filters", "size", "window", "groups"),
    [
        (32, [9, 11], [3, 3], 1),
        (32, [2, 9], [2, 5], 2),
        (16, [13, 1], [4, 1], 1),
        (16, [12], [3], 1),
        (48, [7, 7], [1, 1], 3),
    ],
)
def test_filters_that_are_owned(
    kinds: tuple[T, T], filters: int, size: list[int], window: list[int], groups: int
) -> None:
    """Their sums are kept beside them; rows of taps that read only padding are left out of both."""
    random, limits = np.random.default_rng(filters), {T.INT8: (-128, 128), T.UINT8: (0, 256)}
    spatial, channels = len(size), 8
    shapes = {
        "input_tensor": (kinds[0], (2, channels * groups, *size)),
        "input_zero_point_tensor": (kinds[0], (1,) * (2 + spatial)),
        "filter_tensor": (kinds[1], (filters, channels, *window)),
        "filter_zero_point_tensor": (kinds[1], (1, filters, *[1] * spatial)[-2 - spatial :]),
    }
    inputs = {
        name: random.integers(*limits[kind], shape).astype(dtype_of(kind))
        for name, (kind, shape) in shapes.items()
    }
    out = [size[i] + 2 - window[i] + 1 for i in range(spatial)]
    for last in (False, True):
        for names in (inputs, [name for name in inputs if name != "filter_zero_point_tensor"]):
            descs = {name: tensor(shapes[name][0], *shapes[name][1]) for name in names}
            descs["filter_tensor"] = dml.BufferTensorDesc(
                *shapes["filter_tensor"], flags=dml.TensorFlags.OWNED_BY_DML
            )
            output = [2, filters, *out]
            strides = channels_last(tuple(output)) if last and spatial == 2 else None
            op = dml.ConvolutionIntegerOperatorDesc(
                **descs,
                output_tensor=dml.BufferTensorDesc(T.INT32, output, strides),
                strides=[1] * spatial,
                dilations=[1] * spatial,
                start_padding=[1] * spatial,
                end_padding=[1] * spatial,
                group_count=groups,
            )
            compare(op, {name: inputs[name] for name in names})


def test_groups_see_their_own_channels() -> None:
    x = np.array([1, 2, 3, 4]).reshape(1, 4, 1, 1)

    assert convolve(x, np.ones((6, 2, 1, 1)), group_count=2).ravel().tolist() == [3, 3, 3, 7, 7, 7]


def test_three_dimensions_have_one_spatial_dimension() -> None:
    x, w = np.array([1, 2, 3, 4]).reshape(1, 1, 4), np.array([1, 10]).reshape(1, 1, 2)

    assert convolve(x, w, strides=[2], input_zero_point_tensor=[1]).ravel().tolist() == [10, 32]


@pytest.mark.parametrize("sizes", [(2,), (1, 2), (2, 1), (1, 2, 1), (2, 1, 1), (1, 2, 1, 1)], ids=str)
def test_filter_zero_points_of_every_rank(sizes: tuple[int, ...]) -> None:
    """[1], channels, [1], [1]: every dimension but that of the channels may be left out (4_0)."""
    found = convolve(
        np.full((1, 1, 1, 1), 3), np.full((2, 1, 1, 1), 5), filter_zero_point_tensor=np.reshape([1, 4], sizes)
    )

    assert found.ravel().tolist() == [12, 3]


def test_sums_wrap_as_int32() -> None:
    """33027 products of 255 * 255 pass 2**31."""
    found = convolve(np.full((1, 33027, 1, 1), 255), np.full((1, 33027, 1, 1), 255), (T.UINT8, T.UINT8))

    assert found.ravel().tolist() == [33027 * 255 * 255 - 2**32]


def test_huge_paddings_do_not_overflow() -> None:
    """StartPadding + EndPadding + the input do not fit 32 bits; the window jumps over nearly all of it."""
    most = 2**32 - 1

    found = convolve(
        np.full((1, 1, 1, 1), 9),
        np.full((1, 1, 1, 1), 2),
        start_padding=[0, most],
        end_padding=[0, most],
        strides=[1, most],
    )

    assert found.ravel().tolist() == [0, 18, 0]


def test_a_huge_dilation_does_not_overflow() -> None:
    found = convolve(
        np.full((1, 1, 1, 1), 9),
        np.full((1, 1, 1, 3), 2),
        dilations=[1, 2**31],
        start_padding=[0, 2**31],
        end_padding=[0, 2**31],
    )

    assert found.ravel().tolist() == [18]


@given(st.data(), examples=100)
def test_any_layout(data: st.DataObject) -> None:
    spatial = data.draw(st.sampled_from([1, 2]))
    x_type, w_type = data.draw(st.sampled_from(BYTES)), data.draw(st.sampled_from(BYTES))
    small = st.integers(1, 3)
    groups, in_group, out_group = data.draw(st.sampled_from([1, 1, 2, 3])), data.draw(small), data.draw(small)

    def each(strategy: st.SearchStrategy[int]) -> list[int]:
        return [data.draw(strategy) for _ in range(spatial)]

    kernel, strides, dilations = each(small), each(small), each(small)
    start, end = each(st.integers(0, 3)), each(st.integers(0, 3))
    windows = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    image = [
        max(1, w - s - e) + extra
        for w, s, e, extra in zip(windows, start, end, each(st.integers(0, 5)), strict=True)
    ]
    result = [
        (n + s + e - w) // step + 1
        for n, s, e, w, step in zip(image, start, end, windows, strides, strict=True)
    ]
    if data.draw(st.booleans()):  # smaller and larger than the formula's
        image, result = each(st.integers(1, 9)), each(st.integers(1, 9))
        start = [number + data.draw(st.sampled_from([0, 0, 9])) for number in start]
    batch, channels = data.draw(small), groups * out_group
    sizes = {
        "input_tensor": (x_type, [batch, groups * in_group, *image]),
        "filter_tensor": (w_type, [channels, in_group, *kernel]),
    }
    rank = spatial + 2
    if data.draw(st.booleans()):
        sizes["input_zero_point_tensor"] = (x_type, [1] * rank)
    if data.draw(st.booleans()):
        per_channel = data.draw(st.sampled_from([1, channels]))
        sizes["filter_zero_point_tensor"] = (w_type, [1, per_channel] + [1] * spatial)
    descs = {name: data.draw(tensors(kind, shape)) for name, (kind, shape) in sizes.items()}
    op = dml.ConvolutionIntegerOperatorDesc(
        **descs,
        output_tensor=data.draw(tensors(T.INT32, [batch, channels, *result], output=True)),
        strides=strides,
        dilations=dilations,
        start_padding=start,
        end_padding=end,
        group_count=groups,
    )

    what = data.draw(values("bits", "extreme"))
    compare(op, {name: filled(desc, what)[1] for name, desc in descs.items()}, offset=data.draw(offsets))


LARGE = [
    # images, channels, filters, height and width, window, groups: several of what the kernel does at once
    (9, 16, 32, 40, 3, 1),  # images, each by a thread of its own
    (1, 64, 48, 100, 3, 1),  # strips of the input
    (1, 2052, 1200, 3, 1, 1),  # portions of the filters
    (1, 128, 64, 96, 1, 1),  # strips of the input where it lies
    (2, 80, 80, 70, 3, 80),
]


@pytest.mark.parametrize("last", [False, True], ids=["NCHW", "channels last"])
@pytest.mark.parametrize("case", LARGE, ids=str)
def test_large(case: tuple[int, ...], last: bool) -> None:
    """As matrices of exact floats; every load and store of such ones would take too long to test."""
    images, channels, filters, size, kernel, groups = case
    random, of_group, per_group = np.random.default_rng(1), channels // groups, filters // groups
    x = random.integers(0, 256, (images, channels, size, size), np.uint8)
    w = random.integers(-128, 128, (filters, of_group, kernel, kernel), np.int8)
    pad = kernel // 2

    def layout(kind: T, count: int) -> dml.BufferTensorDesc:
        strides = [count * size * size, 1, size * count, count] if last else None
        return dml.BufferTensorDesc(kind, [images, count, size, size], strides)

    op = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=layout(T.UINT8, channels),
        input_zero_point_tensor=tensor(T.UINT8, 1, 1, 1, 1),
        filter_tensor=tensor(T.INT8, *w.shape),
        output_tensor=layout(T.INT32, filters),
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[pad, pad],
        end_padding=[pad, pad],
        group_count=groups,
    )
    zero = np.full((1, 1, 1, 1), 100, np.uint8)

    found = dmlemu.evaluate(op, input_tensor=x, input_zero_point_tensor=zero, filter_tensor=w)[
        "output_tensor"
    ]

    padded = np.pad(x.astype(np.float64) - 100, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
    for group in range(groups):
        taken = windows[:, group * of_group : (group + 1) * of_group]
        wanted = slice(group * per_group, (group + 1) * per_group)
        expected = np.tensordot(taken, w[wanted].astype(np.float64), ([1, 4, 5], [1, 2, 3]))
        assert np.array_equal(found[:, wanted], expected.transpose(0, 3, 1, 2))


# --- rules ---


def test_three_dimensions_need_4_0() -> None:
    op = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=tensor(T.UINT8, 1, 1, 4),
        filter_tensor=tensor(T.UINT8, 1, 1, 2),
        output_tensor=tensor(T.INT32, 1, 1, 3),
        strides=[1],
        dilations=[1],
        start_padding=[0],
        end_padding=[0],
        group_count=1,
    )

    accepted(op, LEVEL_4_0)
    refused(op, "TENSOR_RANK", "InputTensor.DimensionCount", 3, 4, level=LEVEL_3_1)


def test_dimension_count_is_the_number_of_spatial_dimensions() -> None:
    arrays = {name: [1, 1, 1] for name in ("strides", "dilations", "start_padding", "end_padding")}
    op = example(O, **arrays)

    refused(op, "OP_FIELD_RANGE", "DimensionCount", 3, 2)


def test_filters_divide_into_groups() -> None:
    op = example(O, filter_tensor=tensor(T.INT8, 5, 2, 3, 2))

    refused(op, "OP_SHAPE", "FilterTensor.Sizes[0]", 5, "a multiple of 2")


@pytest.mark.parametrize(("dimension", "expected"), [(0, 1), (1, 6), (2, 4), (3, 10)])
def test_every_size_of_the_output(dimension: int, expected: int) -> None:
    sizes = [1, 6, 4, 10]
    sizes[dimension] += 1
    op = example(O, output_tensor=tensor(T.INT32, *sizes))

    field = f"OutputTensor.Sizes[{dimension}]"
    if dimension < 2:
        refused(op, "OP_SHAPE", field, expected + 1, expected)
    else:
        unusual(op, "OP_WINDOW_COUNT", field, expected + 1, expected)


def test_the_window_fits_the_padded_input() -> None:
    op = example(O, dilations=[1, 2**32 - 1])

    message = unusual(op, "OP_WINDOW_COUNT", "FilterTensor.Sizes[3]", 2**32, "at most 12")
    assert "Dilations[1] (4294967295)" in message


@pytest.mark.parametrize("last", [False, True], ids=["NCHW", "channels last"])
@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (9, 17), (30, 61)], ids=str)
@pytest.mark.parametrize(("channels", "groups"), [(3, 1), (32, 1), (20, 1), (64, 64), (64, 32)])
def test_outputs_of_other_sizes(channels: int, groups: int, sizes: tuple[int, int], last: bool) -> None:
    """Each of the kernel's ways; elements are left over, and windows extend past the end."""
    random = np.random.default_rng(channels)
    x = random.integers(0, 256, (2, channels, 23, 37)).astype(np.uint8)
    w = random.integers(-128, 128, (64, channels // groups, 3, 2)).astype(np.int8)
    zero = np.full((1, 1, 1, 1), 77, np.uint8)

    def layout(kind: T, *dims: int) -> dml.BufferTensorDesc:
        n, c, h, width = dims
        return dml.BufferTensorDesc(
            kind, [n, c, h, width], [c * h * width, 1, width * c, c] if last else None
        )

    for stride, padding in ((1, 0), (2, 3)):
        op = dml.ConvolutionIntegerOperatorDesc(
            input_tensor=layout(T.UINT8, *x.shape),
            input_zero_point_tensor=tensor(T.UINT8, 1, 1, 1, 1),
            filter_tensor=tensor(T.INT8, *w.shape),
            output_tensor=layout(T.INT32, 2, 64, *sizes),
            strides=[stride, 1],
            dilations=[1, stride],
            start_padding=[padding, padding],
            end_padding=[0, 0],
            group_count=groups,
        )
        inputs = {"input_tensor": x, "input_zero_point_tensor": zero, "filter_tensor": w}
        found = dmlemu.evaluate(op, **inputs)["output_tensor"]
        np.testing.assert_array_equal(found, op.reference(inputs)["output_tensor"])


def test_huge_paddings_ask_for_a_huge_output() -> None:
    op = example(O, start_padding=[1, 2**32 - 1], end_padding=[0, 2**32 - 1])

    unusual(op, "OP_WINDOW_COUNT", "OutputTensor.Sizes[3]", 10, 2 * (2**32 - 1) + 9 - 3 + 1)


def test_zero_points_share_a_rank() -> None:
    op = example(O, input_zero_point_tensor=tensor(T.UINT8, 1))

    refused(op, "TENSOR_RANK", "FilterZeroPointTensor.DimensionCount", 4, 1)
    accepted(example(O, input_zero_point_tensor=tensor(T.UINT8, 1), filter_zero_point_tensor=None))


@pytest.mark.parametrize(
    ("sizes", "dimension", "given", "expected"),
    [
        ((1, 4, 1, 1), 1, 4, 6),
        ((6, 1, 1, 1), 0, 6, 1),
        ((1, 6, 1, 2), 3, 2, 1),
        ((1, 1, 1, 6), 1, 1, 6),
    ],
)
def test_filter_zero_points_are_one_or_one_per_channel(
    sizes: tuple[int, ...], dimension: int, given: int, expected: int
) -> None:
    op = example(O, filter_zero_point_tensor=tensor(T.INT8, *sizes))

    refused(op, "OP_SHAPE", f"FilterZeroPointTensor.Sizes[{dimension}]", given, expected)


def test_zero_points_are_optional() -> None:
    accepted(example(O, input_zero_point_tensor=None, filter_zero_point_tensor=None), LEVEL_2_1)


@pytest.mark.long
@pytest.mark.parametrize("strides", [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], ids=str)
def test_a_window_that_is_too_large_to_be_packed(strides: list[int]) -> None:
    """2^24 taps and more, few elements; most taps are in the padding."""
    x = np.random.default_rng(3).integers(0, 256, (1, 2, 5, 7)).astype(np.uint8)
    line = np.random.default_rng(4).integers(-128, 128, 4200).astype(np.int8)
    filter_desc = dml.BufferTensorDesc(T.INT8, [2, 1, 4200, 4000], strides)
    w = np.lib.stride_tricks.as_strided(line, tuple(filter_desc.sizes), tuple(strides))
    op = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=tensor(T.UINT8, 1, 2, 5, 7),
        input_zero_point_tensor=tensor(T.UINT8, 1, 1, 1, 1),
        filter_tensor=filter_desc,
        filter_zero_point_tensor=tensor(T.INT8, 1, 2, 1, 1),
        output_tensor=tensor(T.INT32, 1, 2, 2, 3),
        strides=[2, 1],
        dilations=[1, 1],
        start_padding=[4195, 3990],
        end_padding=[2, 5],
        group_count=2,
    )
    zeros = np.uint8([[[[9]]]]), np.int8([[[[3]], [[-7]]]])

    found = dmlemu.evaluate(
        op,
        input_tensor=x,
        input_zero_point_tensor=zeros[0],
        filter_tensor=w,
        filter_zero_point_tensor=zeros[1],
    )

    a, b = x.astype(int) - 9, w[:, 0].astype(int) - zeros[1].reshape(2, 1, 1)
    padded = np.pad(a[0], ((0, 0), (4195, 2), (3990, 5)))
    expected = [
        [[(padded[c, y : y + 4200, z : z + 4000] * b[c]).sum() for z in range(3)] for y in (0, 2)]
        for c in range(2)
    ]
    np.testing.assert_array_equal(found["output_tensor"][0], expected)
