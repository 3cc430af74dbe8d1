"""CONVOLUTION."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from activations import ACTIVATIONS, activation
from examples import accepted, example, refused, tensor, unusual
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import Array, dtype_of, filled, tensors, values

from dmlemu import dml, evaluate
from dmlemu.dml import ConvolutionDirection, ConvolutionMode, FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.operators.families.conversion import float64

O = OperatorType.CONVOLUTION  # noqa: E741
FORWARD, BACKWARD = ConvolutionDirection.FORWARD, ConvolutionDirection.BACKWARD
CROSS_CORRELATION, CONVOLUTION = ConvolutionMode.CROSS_CORRELATION, ConvolutionMode.CONVOLUTION


def convolve(x: Any, w: Any, bias: Any = None, data_type: T = T.FLOAT32, **more: Any) -> Array:
    """By default forward CROSS_CORRELATION with strides of 1; output sizes follow from the formulas."""
    inputs = {"input_tensor": np.array(x), "filter_tensor": np.array(w)}
    spatial = inputs["input_tensor"].ndim - 2
    given: dict[str, Any] = {
        "mode": CROSS_CORRELATION,
        "direction": FORWARD,
        "strides": [1] * spatial,
        "dilations": [1] * spatial,
        "start_padding": [0] * spatial,
        "end_padding": [0] * spatial,
        "output_padding": [0] * spatial,
        "group_count": 1,
        **more,
    }
    if bias is not None:
        inputs["bias_tensor"] = np.array(bias).reshape(1, -1, *[1] * spatial)
    (n, _, *size), (first, second, *window) = (
        inputs[name].shape for name in ("input_tensor", "filter_tensor")
    )
    backward = given["direction"] is BACKWARD
    sizes = [n, second * given["group_count"] if backward else first]
    for i in range(spatial):
        padding = given["start_padding"][i] + given["end_padding"][i]
        span, stride = (window[i] - 1) * given["dilations"][i] + 1, given["strides"][i]
        sizes.append(
            (size[i] - 1) * stride + span - padding + given["output_padding"][i]
            if backward
            else (size[i] + padding - span) // stride + 1
        )
    inputs = {name: array.astype(dtype_of(data_type)) for name, array in inputs.items()}
    descs = {name: tensor(data_type, *array.shape) for name, array in inputs.items()}
    op = dml.ConvolutionOperatorDesc(**descs, output_tensor=tensor(data_type, *sizes), **given)
    return compare(op, inputs)["output_tensor"]


X = np.arange(1, 10).reshape(1, 1, 3, 3)
SMALL = np.arange(1, 5).reshape(1, 1, 2, 2)
W = np.array([1, 10, 100, 1000]).reshape(1, 1, 2, 2)


def test_forward() -> None:
    assert convolve(X, W)[0, 0].tolist() == [[5421, 6532], [8754, 9865]]
    assert convolve(X, W, mode=CONVOLUTION)[0, 0].tolist() == [[1245, 2356], [4578, 5689]]


def test_backward() -> None:
    correlated = convolve(SMALL, W, direction=BACKWARD)
    assert correlated[0, 0].tolist() == [[1, 12, 20], [103, 1234, 2040], [300, 3400, 4000]]
    convolved = convolve(SMALL, W, direction=BACKWARD, mode=CONVOLUTION)
    assert convolved[0, 0].tolist() == [[1000, 2100, 200], [3010, 4321, 402], [30, 43, 4]]


def test_output_padding_adds_elements_at_the_end() -> None:
    more = {"strides": [2, 2], "start_padding": [1, 1], "output_padding": [1, 1]}
    found = convolve(SMALL, W, [0.5], direction=BACKWARD, **more)

    expected = [[1000, 200, 2000, 0], [30, 4, 40, 0], [3000, 400, 4000, 0], [0, 0, 0, 0]]
    assert (found[0, 0] - 0.5).tolist() == expected


def test_output_padding_uncovers_sums_that_end_padding_cut_off() -> None:
    whole = convolve(SMALL, W, direction=BACKWARD)
    found = convolve(SMALL, W, direction=BACKWARD, end_padding=[1, 1], output_padding=[1, 1])

    assert found.tolist() == whole.tolist()


def test_groups_and_bias() -> None:
    x = np.array([1, 2, 3, 4]).reshape(1, 4, 1)
    w = np.array([[1, 10], [2, 20], [3, 30], [4, 40]]).reshape(4, 2, 1)

    assert convolve(x, w, [1, 2, 3, 4], group_count=2).ravel().tolist() == [22, 44, 132, 176]
    assert convolve(x, w, [0, 0, 0, 0], group_count=2, direction=BACKWARD).ravel().tolist() == [
        5,
        50,
        25,
        250,
    ]


def test_three_spatial_dimensions() -> None:
    x = np.arange(8).reshape(1, 1, 2, 2, 2)
    w = np.arange(1, 9).reshape(1, 1, 2, 2, 2)

    assert convolve(x, w).ravel().tolist() == [168]
    assert convolve([[[[[1]]]]], w, direction=BACKWARD).tolist() == w.tolist()


def test_padding_counts_as_0_which_is_multiplied() -> None:
    infinite = np.array([np.inf, 1, 1]).reshape(1, 1, 3)
    ones = np.ones((1, 1, 2))

    found = convolve(ones, infinite, start_padding=[1], end_padding=[1])
    assert found.ravel().tolist() == pytest.approx([np.nan, np.inf], nan_ok=True)
    assert convolve(ones, infinite, direction=BACKWARD).ravel().tolist() == [np.inf, np.inf, 2, 1]


@pytest.mark.parametrize("positions", [1, 2, 3])
def test_few_positions_of_windows_that_are_apart(positions: int) -> None:
    random = np.random.default_rng(positions)
    x = random.integers(-9, 9, (2, 5, 2 * positions, 3 * positions))
    w, bias = random.integers(-9, 9, (16, 5, 3, 3)), random.integers(-9, 9, 16)

    y = convolve(x, w, bias, strides=[2, 3], end_padding=[1, 0])

    assert y.shape == (2, 16, positions, positions)


def test_windows_that_span_most_of_the_padding() -> None:
    far = 2**32 - 1
    more = {"strides": [2, 2], "dilations": [far] * 2, "start_padding": [far] * 2}
    w = np.arange(96).reshape(12, 2, 2, 2)

    y = convolve(np.ones((1, 2, 1, 1)), w, **more)

    assert y.tolist() == w[:, :, 1, 1].sum(1).reshape(1, 12, 1, 1).tolist()


def test_float16_is_accumulated_in_more_bits() -> None:
    ones = np.ones((1, 4096, 1))
    assert convolve(ones, ones, [1024], data_type=T.FLOAT16).tolist() == [[[5120]]]
    shift = dml.ActivationLinearOperatorDesc(alpha=1.0, beta=-4096.0)
    assert convolve(ones, ones, [1], T.FLOAT16, fused_activation=shift).tolist() == [[[1]]]


def test_a_result_is_never_minus_0() -> None:
    tiny = np.full((1, 1, 1), 1e-30)
    for direction in ConvolutionDirection:
        assert not np.signbit(convolve(tiny, -tiny, direction=direction))
        assert not np.signbit(convolve(tiny, -tiny, [-0.0], direction=direction))


@st.composite
def convolutions(draw: st.DrawFn, most: int = 6, depthwise: bool = False) -> dml.ConvolutionOperatorDesc:
    """Any one, in any layout; ``depthwise``: groups of one channel."""
    data_type = draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    spatial = draw(st.integers(1, 3))
    direction, mode = draw(st.sampled_from(ConvolutionDirection)), draw(st.sampled_from(ConvolutionMode))
    groups = draw(st.sampled_from([2, 8, 17, 40, 110] if depthwise else [1, 1, 2, 3]))
    few = st.sampled_from([1, 2, 3, 5, most])
    channels, filters, batch = draw(few), draw(few | st.sampled_from([13, 16, 32])), draw(st.integers(1, 2))
    if depthwise:
        channels, filters = 1, draw(st.sampled_from([1, 1, 2]))
    source, target, window = [], [], []
    numbers: dict[str, list[int]] = {
        name: [] for name in ("strides", "dilations", "start_padding", "end_padding", "output_padding")
    }
    any_size = draw(st.booleans())
    for _ in range(spatial):
        taps, stride, dilation = (draw(st.integers(1, 3)) for _ in range(3))
        span = (taps - 1) * dilation + 1
        start, end = draw(st.integers(0, span)), draw(st.integers(0, span))
        if (
            any_size
        ):  # smaller and larger than the formula's; windows larger than the input, or wholly outside
            size, extra = draw(st.integers(1, 2 * most)), draw(st.integers(0, 1))
            start, positions = start + draw(st.sampled_from([0, 0, 9])), draw(st.integers(1, 2 * most))
        elif direction is FORWARD:
            size = draw(st.integers(1, 3 * most)) + max(0, span - start - end)
            positions, extra = (size + start + end - span) // stride + 1, 0
        else:
            size = draw(st.integers(1, 8)) + start + end
            extra = draw(st.integers(0, stride))
            positions = (size - 1) * stride + span - start - end + extra
        for name, number in zip(numbers, (stride, dilation, start, end, extra), strict=True):
            numbers[name].append(number)
        source.append(size)
        target.append(positions)
        window.append(taps)
    out = groups * filters
    sides = [out, channels] if direction is FORWARD else [groups * channels, filters]
    bias = draw(st.none() | tensors(data_type, [1, out, *[1] * spatial]))
    return dml.ConvolutionOperatorDesc(
        input_tensor=draw(tensors(data_type, [batch, groups * channels, *source])),
        filter_tensor=draw(tensors(data_type, [*sides, *window])),
        bias_tensor=bias,
        output_tensor=draw(tensors(data_type, [batch, out, *target], output=True)),
        mode=mode,
        direction=direction,
        **numbers,
        group_count=groups,
        fused_activation=draw(st.none() | st.sampled_from(ACTIVATIONS).flatmap(activation)),
    )


@pytest.mark.parametrize("depthwise", [False, True])
@given(st.data())
def test_any_layout(data: st.DataObject, depthwise: bool) -> None:
    op = data.draw(convolutions(depthwise=depthwise))
    descs = {name: getattr(op, name) for name in ("input_tensor", "filter_tensor", "bias_tensor")}
    # Activations jump at some values: before them only exact products.
    kinds = ["small"] if op.fused_activation else ["small", "moderate"]
    inputs = {name: filled(each, data.draw(values(*kinds)))[1] for name, each in descs.items() if each}
    compare(
        op, inputs, scale=None if op.fused_activation else magnitude(op, inputs), offset=data.draw(offsets)
    )


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (0, 1, 3, 2)])
@pytest.mark.parametrize(
    ("shape", "filters", "window", "more"),
    [
        ((2, 5, 13, 13), 16, (3, 3), {"start_padding": [1, 1], "end_padding": [1, 1]}),
        ((1, 70, 6, 9), 48, (3, 2), {"start_padding": [0, 1], "dilations": [1, 2]}),
        ((1, 6, 14, 15), 64, (3, 3), {"strides": [2, 2], "group_count": 2}),
        ((1, 300, 7, 7), 112, (1, 1), {}),
        ((2, 300, 14, 14), 80, (1, 1), {}),
        ((1, 32, 20, 20), 48, (1, 1), {"strides": [2, 2]}),
        ((1, 20, 3, 3), 16, (3, 3), {}),
    ],
)
def test_filters_that_are_packed_once_give_the_same_bits(
    shape: tuple[int, ...],
    filters: int,
    window: tuple[int, ...],
    more: dict[str, Any],
    order: tuple[int, ...],
) -> None:
    """Other orders of the axes of input and output; filters OWNED_BY_DML in blocks of 16."""

    def strided(sizes: list[int]) -> dml.BufferTensorDesc:
        strides, step = [0] * 4, 1
        for axis in reversed(order):
            strides[axis], step = step, step * sizes[axis]
        return dml.BufferTensorDesc(T.FLOAT32, sizes, strides)

    numbers = {"strides": [1, 1], "dilations": [1, 1], "start_padding": [0, 0], "end_padding": [0, 0]}
    numbers, groups = {**numbers, **more}, more.get("group_count", 1)
    numbers.pop("group_count", None)
    out = [
        (shape[2 + i] + numbers["start_padding"][i] + numbers["end_padding"][i]
         - (window[i] - 1) * numbers["dilations"][i] - 1) // numbers["strides"][i] + 1
        for i in range(2)
    ]  # fmt: skip
    random = np.random.default_rng(1)
    w = random.normal(0, 1, (filters, shape[1] // groups, *window)).astype(np.float32)
    bias = random.normal(0, 1, (1, filters, 1, 1)).astype(np.float32)
    inputs = {
        "input_tensor": random.normal(0, 1, shape).astype(np.float32),
        "filter_tensor": w,
        "bias_tensor": bias,
    }
    found = []
    for flags in (dml.TensorFlags.OWNED_BY_DML, dml.TensorFlags.NONE):
        op = dml.ConvolutionOperatorDesc(
            input_tensor=strided(list(shape)),
            filter_tensor=dml.BufferTensorDesc(T.FLOAT32, list(w.shape), flags=flags),
            bias_tensor=tensor(T.FLOAT32, *bias.shape),
            output_tensor=strided([shape[0], filters, *out]),
            mode=CROSS_CORRELATION,
            direction=FORWARD,
            **numbers,
            output_padding=[0, 0],
            group_count=groups,
        )
        found.append(evaluate(op, **inputs)["output_tensor"])
    assert np.array_equal(found[0].view(np.uint32), found[1].view(np.uint32))
    assert np.abs(found[0]).max() > 1


@pytest.mark.parametrize("data_type", [T.FLOAT32, T.FLOAT16])
@pytest.mark.parametrize(
    ("groups", "filter_sizes", "size", "stride", "dilation"),
    [
        (1, [20, 32, 4, 4], [8, 9], 2, 1),
        (2, [20, 16, 3, 2], [9, 7], 3, 1),
        (1, [300, 48, 3], [21], 1, 2),
        (1, [5, 16, 2, 3, 2], [4, 3, 5], 2, 2),
        (1, [70, 16, 4, 4], [1, 1], 1, 1),
        (3, [6, 3, 5], [40], 4, 1),
    ],
)
def test_backward_filters_owned_by_dml_give_the_same_bits(
    data_type: T, groups: int, filter_sizes: list[int], size: list[int], stride: int, dilation: int
) -> None:
    """They are kept in blocks of 16 filters, if these are a multiple of 16."""
    channels, filters, *window = filter_sizes
    spatial, random = len(size), np.random.default_rng(1)
    out = [(size[i] - 1) * stride + (window[i] - 1) * dilation for i in range(spatial)]
    inputs = {
        "input_tensor": random.normal(0, 1, (2, channels, *size)).astype(dtype_of(data_type)),
        "filter_tensor": random.normal(0, 1, filter_sizes).astype(dtype_of(data_type)),
    }
    found = []
    for flags in (dml.TensorFlags.OWNED_BY_DML, dml.TensorFlags.NONE):
        op = dml.ConvolutionOperatorDesc(
            input_tensor=tensor(data_type, 2, channels, *size),
            filter_tensor=dml.BufferTensorDesc(data_type, filter_sizes, flags=flags),
            output_tensor=tensor(data_type, 2, filters * groups, *out),
            mode=CROSS_CORRELATION,
            direction=BACKWARD,
            strides=[stride] * spatial,
            dilations=[dilation] * spatial,
            start_padding=[1] * spatial,
            end_padding=[0] * spatial,
            output_padding=[0] * spatial,
            group_count=groups,
            fused_activation=dml.ActivationReluOperatorDesc(),
        )
        found.append(evaluate(op, **inputs)["output_tensor"])
        assert np.allclose(found[-1], op.reference(inputs)["output_tensor"], rtol=1e-2, atol=1e-2)
    assert found[0].tobytes() == found[1].tobytes()
    assert np.abs(found[0]).max() > 1


def magnitude(op: Any, inputs: dict[str, Array]) -> Array:
    """What the rounding errors of the sums are proportional to."""
    absolute = {name: np.abs(np.nan_to_num(float64(x), posinf=0, neginf=0)) for name, x in inputs.items()}
    wide = {name: replace(getattr(op, name), data_type=T.FLOAT32) for name in (*inputs, "output_tensor")}
    return np.asarray(replace(op, **wide).reference(absolute)["output_tensor"], np.float64)


# --- rules ---


def test_a_backward_output_may_have_what_no_window_is_missing_for() -> None:
    """Those sizes whose forward convolution has the input's size, and OutputPadding more."""
    more = {"strides": [3], "dilations": [1], "start_padding": [1], "end_padding": [1], "group_count": 1}
    op = dml.ConvolutionOperatorDesc(
        input_tensor=tensor(T.FLOAT32, 1, 1, 4),
        filter_tensor=tensor(T.FLOAT32, 1, 1, 2),
        output_tensor=tensor(T.FLOAT32, 1, 1, 9),
        mode=CROSS_CORRELATION,
        direction=BACKWARD,
        output_padding=[0],
        **more,
    )
    for size in (9, 10, 11):
        accepted(replace(op, output_tensor=tensor(T.FLOAT32, 1, 1, size)))
    for size in (8, 12):
        other = replace(op, output_tensor=tensor(T.FLOAT32, 1, 1, size))
        unusual(other, "OP_WINDOW_COUNT", "OutputTensor.Sizes[2]", size, "9 to 11")
    accepted(replace(op, output_tensor=tensor(T.FLOAT32, 1, 1, 14), output_padding=[5]))


def test_forward_ignores_output_padding() -> None:
    message = unusual(example(O, output_padding=[0, 1]), "OP_FIELD_IGNORED", "OutputPadding[1]", 1, 0)
    assert message.endswith("changes nothing, since only a backward convolution has OutputPadding.")

    inputs = np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3))
    assert sized(*inputs, [2, 2], output_padding=[0, 7]) == [[9, 9], [9, 9]]


# --- sizes that are not the formula's ---


def sized(x: Any, w: Any, sizes: list[int], **more: Any) -> Any:
    """A convolution to an output of these spatial sizes; of one image and filter, the output's plane."""
    op = replace(
        example(O, group_count=1, bias_tensor=None, fused_activation=None),
        input_tensor=tensor(T.FLOAT32, *np.shape(x)),
        filter_tensor=tensor(T.FLOAT32, *np.shape(w)),
        output_tensor=tensor(T.FLOAT32, np.shape(x)[0], np.shape(w)[0], *sizes),
        **{
            name: more.get(name, [int(name in ("strides", "dilations"))] * len(sizes))
            for name in ("strides", "dilations", "start_padding", "end_padding", "output_padding")
        },
    )
    inputs = {"input_tensor": np.float32(x), "filter_tensor": np.float32(w)}
    return compare(op, inputs)["output_tensor"][0, 0].tolist()


def test_an_output_may_have_fewer_positions() -> None:
    """The gradient of a filter of 2 x 2 whose convolution had a stride of 2 and left elements over."""
    x = np.arange(49).reshape(1, 1, 7, 7)
    w = np.ones((1, 1, 3, 3))

    corner = [sum(i + j for i in (0, 14, 28) for j in (0, 2, 4)) + 9 * shift for shift in (0, 1, 7, 8)]
    assert sized(x, w, [2, 2], dilations=[2, 2]) == [corner[:2], corner[2:]]


def test_an_output_may_have_more_positions() -> None:
    """What lies past the end counts as 0, as if EndPadding were larger."""
    x, w = np.arange(16).reshape(1, 1, 4, 4), np.ones((1, 1, 3, 3))

    larger = sized(x, w, [4, 4], start_padding=[1, 1])
    assert larger == sized(x, w, [4, 4], start_padding=[1, 1], end_padding=[1, 1])
    assert larger[3][3] == 10 + 11 + 14 + 15


def test_a_window_may_be_larger_than_the_padded_input() -> None:
    message = unusual(
        example(O, dilations=[1, 9], end_padding=[0, 0], output_tensor=tensor(T.FLOAT32, 1, 6, 4, 3)),
        "OP_WINDOW_COUNT",
        "FilterTensor.Sizes[3]",
        10,
        "at most 9",
    )
    assert "with Dilations[1] (9) spans 10 elements, but the padded input has 9" in message
    assert sized([[[[3]]]], [[[[2, 5]]]], [1, 1]) == [[6]]
    assert sized([[[[3]]]], [[[[2, 5]]]], [1, 3], start_padding=[0, 3]) == [[0, 0, 15]]


@pytest.mark.parametrize("data_type", [T.FLOAT32, T.FLOAT16])
@pytest.mark.parametrize("channels", [1, 16, 48])
@pytest.mark.parametrize("sizes", [(2, 3), (9, 17), (40, 1), (30, 61)], ids=str)
def test_large_inputs_and_outputs_of_other_sizes(data_type: T, channels: int, sizes: tuple[int, int]) -> None:
    """Enough filters for tiles of products; with weights in blocks and without."""
    random = np.random.default_rng(7)
    groups = 1 if channels > 1 else 32
    x = random.integers(-4, 5, (1, groups * channels, 23, 37)).astype(dtype_of(data_type))
    w = random.integers(-4, 5, (32, channels, 3, 2)).astype(dtype_of(data_type))
    for flags in dml.TensorFlags:
        op = dml.ConvolutionOperatorDesc(
            input_tensor=tensor(data_type, *x.shape),
            filter_tensor=dml.BufferTensorDesc(data_type, w.shape, flags=flags),
            output_tensor=tensor(data_type, 1, 32, *sizes),
            mode=CROSS_CORRELATION,
            direction=FORWARD,
            strides=[1, 2],
            dilations=[2, 1],
            start_padding=[1, 2],
            end_padding=[0, 0],
            output_padding=[0, 0],
            group_count=groups,
        )
        found = evaluate(op, input_tensor=x, filter_tensor=w)["output_tensor"]
        expected = op.reference({"input_tensor": x, "filter_tensor": w})["output_tensor"]
        np.testing.assert_array_equal(found, expected)


def test_windows_reach_no_further_than_sizes_of_32_bits() -> None:
    most = 3 * (2**32 - 1)
    wide = example(O, dilations=[2**32 - 1, 1], filter_tensor=tensor(T.FLOAT32, 6, 2, 5, 2))
    refused(wide, "OP_FIELD_RANGE", "Dilations[0]", 2**32 - 1, f"at most {(most - 1) // 4}")
    far = example(O, strides=[1, 2**32 - 1])
    report = refused(far, "OP_FIELD_RANGE", "Strides[1]", 2**32 - 1, f"at most {(most - 3) // 9}")
    assert report.message.endswith(f"more than {most}.")
    accepted(example(O, strides=[1, (most - 3) // 9]))


def test_clip_is_fusable_from_6_0_on() -> None:
    op = example(O, fused_activation=dml.ElementWiseClipOperatorDesc(min=0.0, max=6.0))

    accepted(op, FeatureLevel.LEVEL_6_0)
    given, expected = "DML_OPERATOR_ELEMENT_WISE_CLIP", "feature level 6_0 or higher"
    refused(op, "OP_FUSED_ACTIVATION", "FusedActivation.Type", given, expected, level=FeatureLevel.LEVEL_5_2)


def test_backward_most_windows_may_be_cut_off() -> None:
    """An input as long as sizes allow, of one repeated element; only its last window reaches the output."""
    length = 2**32 - 1
    desc = dml.ConvolutionOperatorDesc(
        input_tensor=tensor(T.FLOAT32, 1, 1, 1, length, strides=[0, 0, 0, 0]),
        filter_tensor=tensor(T.FLOAT32, 1, 1, 1, 1),
        bias_tensor=None,
        output_tensor=tensor(T.FLOAT32, 1, 1, 1, 1),
        mode=CROSS_CORRELATION,
        direction=BACKWARD,
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[0, length - 1],
        end_padding=[0, 0],
        output_padding=[0, 0],
        group_count=1,
    )
    x = np.broadcast_to(np.float32(3), (1, 1, 1, length))

    y = evaluate(desc, input_tensor=x, filter_tensor=np.full((1, 1, 1, 1), 2, np.float32))

    assert y["output_tensor"].tolist() == [[[[6]]]]
