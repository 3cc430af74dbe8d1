"""VALUE_SCALE_2D."""

from __future__ import annotations

import numpy as np
import pytest
from examples import example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import dtype_of, filled, tensors, values

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType  # noqa: E741


def test_one_scale_and_a_bias_per_channel() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)
    packed = tensor(T.FLOAT32, 1, 3, 2, 2)
    desc = dml.ValueScale2dOperatorDesc(
        input_tensor=packed, output_tensor=packed, scale=2, bias=[10, -1, 0.5]
    )
    y = compare(desc, {"input_tensor": x})["output_tensor"]

    assert y[0, 0].tolist() == [[10, 12], [14, 16]]
    assert y[0, 1].tolist() == [[7, 9], [11, 13]]
    assert y[0, 2].tolist() == [[16.5, 18.5], [20.5, 22.5]]


def test_float16_is_rounded_once() -> None:
    """2048 * 1.5 + 1.25 is 3073.25; FLOAT16 has only even numbers there."""
    packed = tensor(T.FLOAT16, 1, 1, 1, 1)
    desc = dml.ValueScale2dOperatorDesc(input_tensor=packed, output_tensor=packed, scale=1.5, bias=[1.25])
    x = np.full((1, 1, 1, 1), 2048, dtype_of(T.FLOAT16))

    assert compare(desc, {"input_tensor": x})["output_tensor"].item() == 3074


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    channels = data.draw(st.sampled_from([1, 3]))
    small = st.integers(1, 9)
    sizes = [data.draw(small), channels, data.draw(small), data.draw(small)]
    source = data.draw(tensors(data_type, sizes))
    number = st.sampled_from([0.0, 1.0, -0.5, 3.25, 0.1, 1e30])
    op = dml.ValueScale2dOperatorDesc(
        input_tensor=source,
        output_tensor=data.draw(tensors(data_type, sizes, output=True)),
        scale=data.draw(number),
        bias=data.draw(st.lists(number, min_size=channels, max_size=channels)),
    )
    _, x = filled(source, data.draw(values("extreme", "small")))

    compare(op, {"input_tensor": x}, offset=data.draw(offsets))


@pytest.mark.parametrize("count", [0, 2, 4])
def test_there_are_one_or_three_channels(count: int) -> None:
    packed = tensor(T.FLOAT32, 1, max(count, 1), 2, 2)
    op = example(O.VALUE_SCALE_2D, input_tensor=packed, output_tensor=packed, bias=[1.0] * count)

    refused(op, "OP_FIELD_RANGE", "ChannelCount", count, "1 or 3")


def test_there_is_a_bias_for_each_channel() -> None:
    op = example(O.VALUE_SCALE_2D, bias=[1.0])

    report = refused(op, "OP_SHAPE", "InputTensor.Sizes[1]", 3, 1)
    assert report.message.endswith("is not 1, which is ChannelCount.")
