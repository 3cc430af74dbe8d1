"""Maximum, norm and quantized poolings, and the gradients of poolings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import dtype_of, filled, tensors, values

from dmlemu import d3d12, dml, evaluate
from dmlemu.dml import BufferTensorDesc, OperatorType
from dmlemu.dml import TensorDataType as T

NAN, INF = float("nan"), float("inf")
INTEGERS = [T.UINT8, T.INT8, T.UINT16, T.INT16, T.UINT32, T.INT32, T.UINT64, T.INT64]


def window(
    sizes: list[int], places: list[int], strides: list[int] | None = None, **more: Any
) -> tuple[list[int], dict[str, Any]]:
    """The sizes of the pooling's output, by the formula, and the fields of the window."""
    spatial = len(places)
    fields = {
        "window_size": places,
        "strides": strides or [1] * spatial,
        "start_padding": [0] * spatial,
        "end_padding": [0] * spatial,
        "dilations": [1] * spatial,
        **more,
    }
    names = ("window_size", "strides", "start_padding", "end_padding", "dilations")
    out = [
        (size + start + end - (count - 1) * dilation - 1) // stride + 1
        for size, count, stride, start, end, dilation in zip(
            sizes, *(fields[name] for name in names), strict=True
        )
    ]
    return out, fields


def maxima(x: Any, places: list[int], out: list[int] | None = None, **more: Any) -> tuple[Any, Any]:
    """The maxima of a plane and their positions."""
    array = np.asarray(x)[None, None]
    sizes, fields = window(list(array.shape[2:]), places, **more)
    data_type = next(each for each in (T.FLOAT32, T.FLOAT16, *INTEGERS) if dtype_of(each) == array.dtype)
    op = dml.MaxPooling2OperatorDesc(
        input_tensor=tensor(data_type, *array.shape),
        output_tensor=tensor(data_type, 1, 1, *(out or sizes)),
        output_indices_tensor=tensor(T.UINT64, 1, 1, *(out or sizes)),
        **fields,
    )
    found = compare(op, {"input_tensor": array}, bits=True)
    return found["output_tensor"][0, 0].tolist(), found["output_indices_tensor"][0, 0].tolist()


# --- maxima ---


def test_the_maximum_of_each_window_and_where_it_is() -> None:
    plane = np.float32([[1, 2, 3], [2, 4, 2], [5, 6, 7]])

    assert maxima(plane, [2, 2]) == ([[4, 4], [6, 7]], [[4, 4], [7, 8]])
    assert maxima(plane, [2, 2], dilations=[2, 2]) == ([[7]], [[8]])
    assert maxima(plane, [3, 3]) == ([[7]], [[8]])


def test_positions_count_over_the_whole_input() -> None:
    x = np.zeros((2, 3, 8, 8), np.float32)
    for n, (batch, channel, y, z) in enumerate([(0, 0, 7, 1), (0, 1, 0, 3), (0, 2, 1, 0), (1, 2, 0, 1)]):
        x[batch, channel, y, z] = n + 1
    _, fields = window([8, 8], [8, 8])
    del fields["dilations"]
    op = dml.MaxPooling1OperatorDesc(
        input_tensor=BufferTensorDesc(T.FLOAT32, x.shape, [192, 1, 24, 3]),  # channels last
        output_tensor=tensor(T.FLOAT32, 2, 3, 1, 1),
        output_indices_tensor=tensor(T.UINT32, 2, 3, 1, 1),
        **fields,
    )

    found = compare(op, {"input_tensor": x})

    assert found["output_indices_tensor"].ravel().tolist() == [57, 67, 136, 192, 256, 321]


def test_of_equal_elements_the_first_is_the_maximum() -> None:
    largest, where = maxima(np.float32([[0.0, -0.0, 0.0], [-0.0, 0.0, -1]]), [2, 2])

    assert where == [[0, 1]] and np.signbit(largest).tolist() == [[False, True]]


def test_a_nan_is_skipped_unless_all_are() -> None:
    largest, where = maxima(np.float32([[NAN, NAN, -INF, NAN, 3, NAN]]), [1, 2])

    assert where == [[0, 2, 2, 4, 4]]
    assert np.isnan(largest[0][0]) and largest[0][1:] == [-INF, -INF, 3, 3]


@pytest.mark.parametrize("strides", [None, [16 * 99, 1, 16 * 11, 16]])
@pytest.mark.parametrize("place", [T.UINT32, T.UINT64])
def test_nans_and_infinities_anywhere(strides: list[int] | None, place: T) -> None:
    x = np.random.default_rng(4).choice(np.float32([NAN, NAN, -INF, -INF, 0.0, -0.0, 1]), (2, 16, 9, 11))
    sizes, fields = window([9, 11], [2, 2], start_padding=[1, 0], end_padding=[2, 1])
    op = dml.MaxPooling2OperatorDesc(
        input_tensor=BufferTensorDesc(T.FLOAT32, x.shape, strides),
        output_tensor=tensor(T.FLOAT32, 2, 16, *sizes),
        output_indices_tensor=tensor(place, 2, 16, *sizes),
        **fields,
    )

    compare(op, {"input_tensor": x}, bits=True)


@pytest.mark.parametrize("data_type", [T.FLOAT32, T.FLOAT16, *INTEGERS])
def test_a_window_in_the_padding_gives_the_lowest_value(data_type: T) -> None:
    dtype = dtype_of(data_type)
    lowest = -INF if dtype.kind == "f" else np.iinfo(dtype).min

    largest, where = maxima(np.array([[5]], dtype), [1, 1], end_padding=[0, 2])

    assert largest == [[5, lowest, lowest]] and where == [[0, 0, 0]]


def test_rows_longer_than_a_piece_and_many_places() -> None:
    line = np.random.default_rng(1).permutation(3000).astype(np.float32)[None]

    for places, stride in ((3, 1), (3, 2), (100, 7)):
        largest, _ = maxima(line, [1, places], strides=[1, stride])
        expected = np.lib.stride_tricks.sliding_window_view(line[0], places)[::stride].max(-1)
        assert largest == [expected.tolist()]


@pytest.mark.parametrize("kind", ["MaxPooling", "MaxPooling1", "MaxPooling2"])
@given(st.data(), examples=100)
def test_maxima_in_any_layout(kind: str, data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT32, T.FLOAT16, *INTEGERS]))
    source, out, fields = data.draw(windows(data_type, dilated=kind == "MaxPooling2"))
    if kind != "MaxPooling":
        place = data.draw(st.sampled_from([T.UINT32, T.UINT64]))
        indices = data.draw(st.none() | tensors(place, out, output=True))
        fields["output_indices_tensor"] = indices
    op = getattr(dml, f"{kind}OperatorDesc")(
        input_tensor=source, output_tensor=data.draw(tensors(data_type, out, output=True)), **fields
    )
    x = filled(source, data.draw(values("extreme", "small", "moderate")))[1]

    compare(op, {"input_tensor": x}, offset=data.draw(offsets))


@st.composite
def windows(draw: st.DrawFn, data_type: T, *, dilated: bool) -> tuple[Any, list[int], dict[str, Any]]:
    """An input, the sizes of the pooling's output, and the fields of the window."""
    numbers = st.integers(0, 3)
    sizes, out = [draw(st.integers(1, 2)), draw(st.sampled_from([1, 2, 5, 12]))], []
    names = ["window_size", "strides", "start_padding", "end_padding", *["dilations"] * dilated]
    fields: dict[str, list[int]] = {name: [] for name in names}
    for _ in range(draw(st.integers(2, 3))):
        places, stride, start, end = draw(numbers) + 1, draw(numbers) + 1, draw(numbers), draw(numbers)
        dilation = draw(numbers) + 1 if dilated else 1
        for name, number in zip(names, (places, stride, start, end, dilation), strict=False):
            fields[name].append(number)
        span = (places - 1) * dilation + 1
        size = max(1, span - start - end - draw(st.sampled_from([0, 0, 2]))) + draw(st.integers(0, 12))
        sizes.append(size)
        more = draw(st.sampled_from([0, 0, 0, 1, 3, -2]))
        out.append(max(1, (size + start + end - span) // stride + 1 + more))
    return draw(tensors(data_type, sizes)), [*sizes[:2], *out], fields


# --- norms ---


@pytest.mark.parametrize(("p", "expected"), [(1, 7), (2, 5), (3, (27 + 64) ** (1 / 3))])
def test_norms(p: int, expected: float) -> None:
    op = dml.LpPoolingOperatorDesc(
        input_tensor=tensor(T.FLOAT32, 1, 1, 1, 2),
        output_tensor=tensor(T.FLOAT32, 1, 1, 1, 1),
        strides=[1, 1],
        window_size=[1, 2],
        start_padding=[0, 0],
        end_padding=[0, 0],
        p=p,
    )

    found = compare(op, {"input_tensor": np.float32([[[[3, -4]]]])})["output_tensor"]

    assert found.ravel() == pytest.approx([expected], rel=1e-6)


@pytest.mark.parametrize("kind", ["LpPooling", "LpPooling1"])
@given(st.data(), examples=80)
def test_norms_in_any_layout(kind: str, data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    source, out, fields = data.draw(windows(data_type, dilated=kind == "LpPooling1"))
    op = getattr(dml, f"{kind}OperatorDesc")(
        input_tensor=source,
        output_tensor=data.draw(tensors(data_type, out, output=True)),
        p=data.draw(st.sampled_from([1, 2, 3, 5])),
        **fields,
    )
    x = filled(source, data.draw(values("small", "moderate")))[1]

    compare(op, {"input_tensor": x}, offset=data.draw(offsets))


def test_p_is_at_least_1() -> None:
    refused(example(OperatorType.LP_POOLING, p=0), "OP_FIELD_RANGE", "P", 0, "1 or more")


# --- quantized means ---


@given(st.data(), examples=100)
def test_quantized_means_in_any_layout(data: st.DataObject) -> None:
    small = st.sampled_from([T.UINT8, T.INT8])
    data_type, result_type = data.draw(small), data.draw(small)
    source, out, fields = data.draw(windows(data_type, dilated=True))
    inputs, descs = {"input_tensor": filled(source, data.draw(values("extreme", "small")))[1]}, {}
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    for side, zero_type in (("input", data_type), ("output", result_type)):
        sizes = [1, data.draw(st.sampled_from([1, out[1]])), *[1] * (len(out) - 2)]
        descs[f"{side}_scale_tensor"] = tensor(T.FLOAT32, *sizes)
        inputs[f"{side}_scale_tensor"] = random.uniform(0.1, 2, sizes).astype(np.float32)
        if data.draw(st.booleans()):
            descs[f"{side}_zero_point_tensor"] = tensor(zero_type, *sizes)
            points = random.integers(0, 256, sizes).astype(np.uint8)
            inputs[f"{side}_zero_point_tensor"] = points.view(dtype_of(zero_type))
    op = dml.QuantizedLinearAveragePoolingOperatorDesc(
        input_tensor=source,
        output_tensor=data.draw(tensors(result_type, out, output=True)),
        include_padding=data.draw(st.booleans()),
        **{"input_zero_point_tensor": None, "output_zero_point_tensor": None, **descs},
        **fields,
    )

    compare(op, inputs, offset=data.draw(offsets))


def test_a_quantized_mean_of_more_places_than_a_float32_counts() -> None:
    """2^24 + 8193 elements, all of them the zero point."""
    side = 4097
    desc = example(
        OperatorType.QUANTIZED_LINEAR_AVERAGE_POOLING,
        input_tensor=tensor(T.UINT8, 1, 1, side, side),
        **{
            f"input_{name}": tensor(t, 1)
            for name, t in (("scale_tensor", T.FLOAT32), ("zero_point_tensor", T.UINT8))
        },
        output_scale_tensor=tensor(T.FLOAT32, 1),
        output_zero_point_tensor=None,
        output_tensor=tensor(T.UINT8, 1, 1, 1, 1),
        strides=[1, 1],
        window_size=[side, side],
        start_padding=[0, 0],
        end_padding=[0, 0],
        dilations=[1, 1],
    )
    inputs = {
        "input_tensor": np.ones((1, 1, side, side), np.uint8),
        "input_scale_tensor": np.ones(1, np.float32),
        "input_zero_point_tensor": np.ones(1, np.uint8),
        "output_scale_tensor": np.array([2.0**-30], np.float32),
    }

    assert evaluate(desc, **inputs)["output_tensor"].tolist() == [[[[0]]]]


def test_padding_of_a_quantized_mean_counts_as_the_zero_point() -> None:
    _, fields = window([1, 2], [1, 2])
    one = tensor(T.FLOAT32, 1, 1, 1, 1)
    op = dml.QuantizedLinearAveragePoolingOperatorDesc(
        input_tensor=tensor(T.UINT8, 1, 1, 1, 2),
        input_scale_tensor=one,
        input_zero_point_tensor=tensor(T.UINT8, 1, 1, 1, 1),
        output_scale_tensor=one,
        output_zero_point_tensor=tensor(T.INT8, 1, 1, 1, 1),
        output_tensor=tensor(T.INT8, 1, 1, 1, 3),
        include_padding=True,
        **{**fields, "start_padding": [0, 1], "end_padding": [0, 1]},
    )
    found = compare(
        op,
        {
            "input_tensor": np.uint8([[[[104, 110]]]]),
            "input_scale_tensor": np.float32([[[[0.5]]]]),
            "input_zero_point_tensor": np.uint8([[[[100]]]]),
            "output_scale_tensor": np.float32([[[[0.5]]]]),
            "output_zero_point_tensor": np.int8([[[[-3]]]]),
        },
    )

    assert found["output_tensor"].ravel().tolist() == [2 - 3, 7 - 3, 5 - 3]


# --- gradients ---


def test_each_gradient_goes_to_the_first_maximum() -> None:
    """A board of equal elements; and windows of NaNs, whose first elements get it."""
    board = np.float32([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    gradient = np.float32([[11, 12, 13], [15, 16, 17], [19, 20, 21]])

    assert max_gradient(board, gradient) == [[11, 0, 25, 0], [0, 31, 0, 17], [19, 0, 41, 0], [0, 0, 0, 0]]
    assert max_gradient(board * np.float32(NAN), gradient) == [
        [11, 12, 13, 0],
        [15, 16, 17, 0],
        [19, 20, 21, 0],
        [0, 0, 0, 0],
    ]


def max_gradient(plane: Any, gradient: Any) -> Any:
    sizes = tensor(T.FLOAT32, 1, 1, *plane.shape)
    _, fields = window(list(plane.shape), [2, 2])
    op = dml.MaxPoolingGradOperatorDesc(
        input_tensor=sizes,
        input_gradient_tensor=tensor(T.FLOAT32, 1, 1, *gradient.shape),
        output_gradient_tensor=sizes,
        **fields,
    )
    inputs = {"input_tensor": plane[None, None], "input_gradient_tensor": gradient[None, None]}
    return compare(op, inputs)["output_gradient_tensor"][0, 0].tolist()


@given(st.data(), examples=100)
def test_gradients_in_any_layout(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    is_max = data.draw(st.booleans())
    source, out, fields = data.draw(windows(data_type, dilated=is_max))
    gradient = data.draw(tensors(data_type, out))
    tensors_of: dict[str, Any] = {
        "input_gradient_tensor": gradient,
        "output_gradient_tensor": data.draw(tensors(data_type, source.sizes, output=True)),
    }
    contents = data.draw(values("extreme", "small", "moderate"))
    inputs = {"input_gradient_tensor": filled(gradient, contents)[1]}
    if is_max:
        inputs["input_tensor"] = filled(source, data.draw(values("extreme", "small")))[1]
        op = dml.MaxPoolingGradOperatorDesc(input_tensor=source, **tensors_of, **fields)
    else:
        include = data.draw(st.booleans())
        op = dml.AveragePoolingGradOperatorDesc(include_padding=include, **tensors_of, **fields)

    compare(op, inputs, offset=data.draw(offsets))


@pytest.mark.parametrize("include_padding", [False, True])
@pytest.mark.parametrize("name", ["Average", "Max"])
def test_gradients_are_slopes_of_the_poolings(name: str, include_padding: bool) -> None:
    """Finite differences of the operators themselves; distinct elements, so that a step changes no winner."""
    out, fields = window([6, 7], [3, 2], [2, 1], start_padding=[1, 1], end_padding=[1, 0])
    if name == "Average":
        del fields["dilations"]
        fields["include_padding"] = include_padding
    x = np.random.default_rng(3).permutation(2 * 42).reshape(1, 2, 6, 7).astype(np.float32)
    weights = np.random.default_rng(4).integers(1, 9, (1, 2, *out)).astype(np.float32)
    of_x, of_y = tensor(T.FLOAT32, *x.shape), tensor(T.FLOAT32, *weights.shape)
    kind = {"Average": dml.AveragePoolingOperatorDesc, "Max": dml.MaxPooling2OperatorDesc}[name]
    indices = {} if name == "Average" else {"output_indices_tensor": None}
    pooling = kind(input_tensor=of_x, output_tensor=of_y, **indices, **fields)
    grad = getattr(dml, f"{name}PoolingGradOperatorDesc")(
        **({"input_tensor": of_x} if name == "Max" else {}),
        input_gradient_tensor=of_y,
        output_gradient_tensor=of_x,
        **fields,
    )
    inputs = {"input_gradient_tensor": weights, **({"input_tensor": x} if name == "Max" else {})}
    found = compare(grad, inputs)["output_gradient_tensor"]

    def total(array: Any) -> float:
        pooled = pooling.reference({"input_tensor": array})["output_tensor"]
        return float((pooled.astype(np.float64) * weights).sum())

    step = 0.25
    for at in np.ndindex(x.shape):
        more, less = x.copy(), x.copy()
        more[at] += step
        less[at] -= step
        assert (total(more) - total(less)) / (2 * step) == pytest.approx(found[at], abs=1e-4), at


# --- unpooling ---


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
@pytest.mark.parametrize("strides", [None, [16, 16, 1, 4]])
def test_elements_are_put_where_the_indices_say(strides: list[int] | None) -> None:
    op = dml.MaxUnpoolingOperatorDesc(
        input_tensor=tensor(T.FLOAT32, 1, 1, 2, 2),
        indices_tensor=tensor(T.UINT64, 1, 1, 2, 2),
        output_tensor=BufferTensorDesc(T.FLOAT32, [1, 1, 4, 4], strides),
    )
    inputs = {
        "input_tensor": np.float32([[[[1, 2], [3, 4]]]]),
        "indices_tensor": np.uint64([[[[5, 7], [13, 2**32]]]]),  # the last one is past the output
    }

    found = compare(op, inputs)["output_tensor"][0, 0]

    assert found.tolist() == [[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]]


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE", "MEM_SCATTER_RACE"])
@pytest.mark.parametrize("strides", [None, [16, 16, 1, 4]])
def test_reports_name_the_output_of_an_unpooling(strides: list[int] | None) -> None:
    """Also where the elements go through the temporary resource; indices count the flattened output."""
    device = dml.create_device(d3d12.create_device(d3d12.Adapter()))
    op = dml.MaxUnpoolingOperatorDesc(
        input_tensor=tensor(T.FLOAT32, 1, 1, 1, 3),
        indices_tensor=tensor(T.UINT32, 1, 1, 1, 3),
        output_tensor=BufferTensorDesc(T.FLOAT32, [1, 1, 4, 4], strides),
    )
    inputs = {"input_tensor": np.float32([[[[1, 2, 3]]]]), "indices_tensor": np.uint32([[[[5, 5, 16]]]])}

    evaluate(op, device=device, **inputs)

    outside, race = sorted(each.report.message for each in device.get_parent_device().reports)
    assert "but the flattened OutputTensor has 16 elements: its update is not written" in outside
    assert "in undefined order to element (5) of the flattened OutputTensor, from elements" in race


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE", "MEM_SCATTER_RACE"])
@given(st.data(), examples=80)
def test_unpooling_in_any_layout(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16, *INTEGERS]))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=4, max_size=4))
    out = data.draw(st.lists(st.integers(1, 5), min_size=4, max_size=4))
    place = data.draw(st.sampled_from([T.UINT32, T.UINT64]))
    source = data.draw(tensors(data_type, sizes))
    op = dml.MaxUnpoolingOperatorDesc(
        input_tensor=source,
        indices_tensor=tensor(place, *sizes),
        output_tensor=data.draw(tensors(data_type, out, output=True)),
    )
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    indices = random.integers(0, int(np.prod(out)) + 2, sizes).astype(dtype_of(place))
    x = filled(source, data.draw(values("extreme", "small")))[1]

    compare(op, {"input_tensor": x, "indices_tensor": indices}, bits=True, offset=data.draw(offsets))
