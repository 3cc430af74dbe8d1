"""ELEMENT_WISE_CLIP and ELEMENT_WISE_CLIP1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import SIGNED, UNSIGNED, Array, Values, dtype_of, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

TYPES = [T.FLOAT32, T.FLOAT16, *SIGNED, *UNSIGNED]
NAN, INF = float("nan"), float("inf")
both = pytest.mark.parametrize("operator", [OperatorType.ELEMENT_WISE_CLIP, OperatorType.ELEMENT_WISE_CLIP1])


def clip(data_type: T, numbers: list[float], low: float, high: float, **more: Any) -> Array:
    x = tensor(data_type, len(numbers))
    op = dml.ElementWiseClipOperatorDesc(input_tensor=x, output_tensor=x, min=low, max=high, **more)
    return compare(op, {"input_tensor": np.array(numbers, dtype_of(data_type))})["output_tensor"]


def clip1(data_type: T, numbers: list[float], low: float, high: float, **more: Any) -> Array:
    x = tensor(data_type, len(numbers))
    low_bits, high_bits = (dml.ScalarUnion.of(data_type, value) for value in (low, high))
    op = dml.ElementWiseClip1OperatorDesc(
        input_tensor=x, output_tensor=x, min_max_data_type=data_type, min=low_bits, max=high_bits, **more
    )
    return compare(op, {"input_tensor": np.array(numbers, dtype_of(data_type))})["output_tensor"]


def test_the_range_is_closed() -> None:
    numbers = [-3.0, -1.0, 0.5, 2.0, INF, -INF]

    assert clip(T.FLOAT32, numbers, -1, 2).tolist() == [-1, -1, 0.5, 2, 2, -1]
    assert clip1(T.FLOAT32, numbers, -1, 2).tolist() == [-1, -1, 0.5, 2, 2, -1]


def test_crossed_bounds_give_what_is_applied_last() -> None:
    assert clip(T.FLOAT32, [-9, 0, 9], 5, -5).tolist() == [-5, -5, -5]
    assert clip1(T.FLOAT32, [-9, 0, 9], 5, -5).tolist() == [5, 5, 5]
    assert clip(T.INT32, [-9, 0, 9], 5, -5).tolist() == [-5, -5, -5]
    assert clip1(T.INT32, [-9, 0, 9], 5, -5).tolist() == [5, 5, 5]


def test_a_number_wins_over_nan() -> None:
    assert clip(T.FLOAT32, [NAN], -1, 2).tolist() == [-1]
    assert clip1(T.FLOAT32, [NAN], -1, 2).tolist() == [2]
    assert clip(T.FLOAT16, [7, -7], NAN, 2).tolist() == [2, -7]


def test_float_bounds_become_the_type_of_the_tensor() -> None:
    assert clip(T.INT8, [-128, -3, 3, 127], -2.9, 2.9).tolist() == [-2, -2, 2, 2]
    assert clip(T.UINT8, [0, 3, 255], -1e9, 1e9).tolist() == [0, 3, 255]
    assert clip(T.INT64, [-(2**63), 2**63 - 1], -1e30, 1e30).tolist() == [-(2**63), 2**63 - 1]
    # 0.1 as FLOAT16 is 0.0999755859375.
    assert clip(T.FLOAT16, [1.0], 0, 0.1).tolist() == [0.0999755859375]


def test_scale_bias_comes_first() -> None:
    assert clip(T.FLOAT32, [1, 2, 3], 13, 15, scale_bias=dml.ScaleBias(2, 10)).tolist() == [13, 14, 15]
    assert clip1(T.INT16, [1, 2, 3], 13, 15, scale_bias=dml.ScaleBias(2, 10)).tolist() == [13, 14, 15]


def test_typed_bounds_are_exact() -> None:
    """A FLOAT could not hold these."""
    assert clip1(T.INT64, [0, 2**62 + 5], 0, 2**62 + 1).tolist() == [0, 2**62 + 1]
    assert clip1(T.UINT64, [0, 2**64 - 1], 3, 2**64 - 2).tolist() == [3, 2**64 - 2]


def test_bytes_past_the_value_are_ignored() -> None:
    """DML_SCALAR_UNION has 8 bytes; an INT8 uses the first."""
    x = tensor(T.INT8, 3)
    op = dml.ElementWiseClip1OperatorDesc(
        input_tensor=x,
        output_tensor=x,
        min_max_data_type=T.INT8,
        min=dml.ScalarUnion(b"\xfe" + b"\x99" * 7),
        max=dml.ScalarUnion(b"\x02" + b"\x77" * 7),
    )

    found = compare(op, {"input_tensor": np.int8([-9, 1, 9])})["output_tensor"]

    assert found.tolist() == [-2, 1, 2]


def test_a_signalling_nan_is_no_bound_either() -> None:
    x = tensor(T.FLOAT16, 2)
    signalling = dml.ScalarUnion(b"\x01\x7c" + b"\0" * 6)
    op = dml.ElementWiseClip1OperatorDesc(
        input_tensor=x, output_tensor=x, min_max_data_type=T.FLOAT16, min=signalling, max=signalling
    )

    assert compare(op, {"input_tensor": np.float16([-9, 9])})["output_tensor"].tolist() == [-9, 9]


@both
@given(st.data())
def test_any_layout(operator: OperatorType, data: st.DataObject) -> None:
    data_type, sizes = data.draw(st.sampled_from(TYPES)), data.draw(shapes())
    source = data.draw(tensors(data_type, sizes))
    more: dict[str, Any]
    if operator is OperatorType.ELEMENT_WISE_CLIP:
        numbers = st.sampled_from([0.0, -0.0, 1.0, -3.5, 100.0, -70000.0, 1e30, INF, -INF, NAN])
        more = {"min": data.draw(numbers), "max": data.draw(numbers)}
    else:
        bounds = data.draw(values("extreme", "small", "bits")).memory(T.UINT64, 2)
        more = {
            "min_max_data_type": data_type,
            "min": dml.ScalarUnion(bounds[:1].tobytes()),
            "max": dml.ScalarUnion(bounds[1:].tobytes()),
        }
    scale_bias = data.draw(st.none() | st.builds(dml.ScaleBias, st.just(0.5), st.sampled_from([0.0, 3.25])))
    op = example(
        operator,
        input_tensor=source,
        output_tensor=data.draw(tensors(data_type, sizes, output=True)),
        scale_bias=scale_bias,
        **more,
    )

    what: Values = data.draw(values())
    compare(op, {"input_tensor": filled(source, what)[1]}, offset=data.draw(offsets))


def test_the_bounds_have_the_tensors_type() -> None:
    op = example(OperatorType.ELEMENT_WISE_CLIP1, min_max_data_type=T.INT32)

    refused(op, "TENSOR_DTYPE", "MinMaxDataType", "INT32", "FLOAT32")
