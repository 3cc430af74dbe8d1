"""AVERAGE_POOLING and AVERAGE_POOLING1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import example, refused, tensor, unusual
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import Array, dtype_of, filled, tensors, values

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

NAN, INF = float("nan"), float("inf")
KINDS = [OperatorType.AVERAGE_POOLING, OperatorType.AVERAGE_POOLING1]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def pool(plane: Any, window: list[int], out: list[int] | None = None, **more: Any) -> Any:
    """The pooling of one plane; the output's sizes follow from the formula where they are not given."""
    x = np.array(plane, dtype_of(more.pop("data_type", T.FLOAT32)))[None, None]
    spatial = len(window)
    fields = {
        "strides": [1] * spatial,
        "start_padding": [0] * spatial,
        "end_padding": [0] * spatial,
        "dilations": [1] * spatial,
        "include_padding": False,
        **more,
    }
    if out is None:
        out = [
            (size + start + end - (places - 1) * dilation - 1) // stride + 1
            for size, places, stride, start, end, dilation in zip(
                x.shape[2:],
                window,
                *(fields[name] for name in ("strides", "start_padding", "end_padding", "dilations")),
                strict=True,
            )
        ]
    data_type = T.FLOAT16 if x.dtype == np.float16 else T.FLOAT32
    op = dml.AveragePooling1OperatorDesc(
        input_tensor=tensor(data_type, *x.shape),
        output_tensor=tensor(data_type, 1, 1, *out),
        window_size=window,
        **fields,
    )
    return compare(op, {"input_tensor": x})["output_tensor"][0, 0].tolist()


def test_the_mean_of_each_window() -> None:
    plane = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]

    assert pool(plane, [2, 2]) == [[3, 4], [6, 7]]
    assert pool(plane, [3, 3]) == [[5]]
    assert pool(plane, [1, 2], strides=[2, 1]) == [[1.5, 2.5], [7.5, 8.5]]
    assert pool(plane, [2, 2], dilations=[2, 2]) == [[5]]
    assert pool([plane, plane], [2, 1, 1])[0] == plane


def test_padding_is_counted_if_it_is_included() -> None:
    plane = [[8, 8], [8, 8]]
    around = {"start_padding": [1, 1], "end_padding": [1, 1], "strides": [2, 2]}

    assert pool(plane, [2, 2], **around) == [[8, 8], [8, 8]]
    assert pool(plane, [2, 2], include_padding=True, **around) == [[2, 2], [2, 2]]


def test_what_is_past_the_padding_is_not_counted() -> None:
    """ONNX's averagepool_2d_ceil: 4 x 4 with windows of 3 x 3 and strides of 2, sizes rounded up."""
    plane = np.arange(1, 17).reshape(4, 4)

    assert pool(plane, [3, 3], [2, 2], strides=[2, 2]) == [[6, 7.5], [12, 13.5]]
    assert pool(plane, [3, 3], [2, 2], strides=[2, 2], include_padding=True) == [[6, 7.5], [12, 13.5]]
    assert pool([[6, 6]], [1, 2], [1, 4], end_padding=[0, 1], include_padding=True) == [[6, 3, 0, 0]]


def test_a_window_in_the_padding_gives_zero() -> None:
    plane = [[NAN]]

    for include in (False, True):
        assert pool(plane, [1, 1], end_padding=[0, 2], strides=[1, 2], include_padding=include)[0][1] == 0
        assert pool(plane, [1, 1], [2, 2], include_padding=include)[1] == [0, 0]


def test_only_what_is_under_the_window_counts() -> None:
    found = pool([[NAN, 1, 3, INF]], [1, 2])

    assert np.isnan(found[0][0]) and found[0][1:] == [2, INF]


def test_float16_is_summed_in_float32() -> None:
    """As FLOAT16 the sum would stick at 2048, or be infinite."""
    assert pool(np.ones((64, 64)), [64, 64], data_type=T.FLOAT16) == [[1]]
    assert pool(np.full((2, 2), 60000), [2, 2], data_type=T.FLOAT16) == [[60000]]


def test_rows_longer_than_a_piece() -> None:
    line = np.arange(2000)

    assert pool([line], [1, 3], start_padding=[0, 1], end_padding=[0, 1]) == [[0.5, *range(1, 1999), 1998.5]]


@each_kind
@given(st.data(), examples=250)
def test_in_any_layout(kind: OperatorType, data: st.DataObject) -> None:
    desc, x = data.draw(poolings(kind))

    compare(desc, {"input_tensor": x}, offset=data.draw(offsets))


@st.composite
def poolings(draw: st.DrawFn, kind: OperatorType) -> tuple[Any, Array]:
    """A desc with windows of any kind, and its input."""
    spatial, data_type = draw(st.integers(2, 3)), draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    numbers = st.integers(0, 3)
    dilated = kind is OperatorType.AVERAGE_POOLING1
    sizes, out = [draw(st.integers(1, 2)), draw(st.integers(1, 5))], []
    fields: dict[str, list[int]] = {"window_size": [], "strides": [], "start_padding": [], "end_padding": []}
    dilations = []
    for _ in range(spatial):
        window, stride, start, end = (draw(numbers) for _ in fields)
        window, stride = window + 1, stride + 1
        dilation = 1 + draw(numbers) if dilated else 1
        span = (window - 1) * dilation + 1
        size = max(1, span - start - end - draw(st.sampled_from([0, 0, 2]))) + draw(st.integers(0, 6))
        for name, number in zip(fields, (window, stride, start, end), strict=True):
            fields[name].append(number)
        dilations.append(dilation)
        sizes.append(size)
        out.append(
            max(1, (size + start + end - span) // stride + 1 + draw(st.sampled_from([0, 0, 0, 1, 3, -2])))
        )
    more: dict[str, Any] = {"dilations": dilations} if dilated else {}
    source = draw(tensors(data_type, sizes))
    desc = {
        OperatorType.AVERAGE_POOLING: dml.AveragePoolingOperatorDesc,
        OperatorType.AVERAGE_POOLING1: dml.AveragePooling1OperatorDesc,
    }[kind](
        input_tensor=source,
        output_tensor=draw(tensors(data_type, [*sizes[:2], *out], output=True)),
        include_padding=draw(st.booleans()),
        **fields,
        **more,
    )
    return desc, filled(source, draw(values("extreme", "small", "moderate")))[1]


# --- rules ---


@each_kind
def test_batch_and_channels_stay(kind: OperatorType) -> None:
    op = example(kind, output_tensor=tensor(T.FLOAT32, 1, 3, 3, 3))

    refused(op, "OP_SHAPE", "OutputTensor.Sizes[1]", 3, 2)


@each_kind
def test_the_window_fits_the_padded_input(kind: OperatorType) -> None:
    op = example(kind, window_size=[2, 9])

    message = unusual(op, "OP_WINDOW_COUNT", "WindowSize[1]", 9, "at most 6")
    assert "spans 9 elements, but the padded input has 6" in message


@each_kind
def test_the_output_has_all_windows(kind: OperatorType) -> None:
    """Along dimension 2 it may have one more if the number is rounded up: windows leave elements over."""
    field = "OutputTensor.Sizes[3]"
    for size in (2, 9):
        op = example(kind, output_tensor=tensor(T.FLOAT32, 1, 2, 2, size))
        unusual(op, "OP_WINDOW_COUNT", field, size, "3")


@each_kind
@pytest.mark.parametrize("name", ["strides", "window_size"])
def test_steps_and_windows_are_at_least_1(kind: OperatorType, name: str) -> None:
    field = {"strides": "Strides[1]", "window_size": "WindowSize[1]"}[name]

    refused(example(kind, **{name: [2, 0]}), "OP_FIELD_RANGE", field, 0, "1 or more")


def test_dilations_are_at_least_1() -> None:
    refused(example(KINDS[1], dilations=[1, 0]), "OP_FIELD_RANGE", "Dilations[1]", 0, "1 or more")


@each_kind
def test_a_number_for_each_spatial_dimension(kind: OperatorType) -> None:
    op = example(kind)
    fields = ["strides", "window_size", "start_padding", "end_padding"]
    longer = {name: [*getattr(op, name), 1] for name in [*fields, *["dilations"] * (kind is KINDS[1])]}

    refused(example(kind, **longer), "OP_FIELD_RANGE", "DimensionCount", 3, 2)
