"""ELEMENT_WISE_IDENTITY."""

from __future__ import annotations

import numpy as np
import pytest
from examples import example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import ALL_TYPES, Array, dtype_of, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType.ELEMENT_WISE_IDENTITY  # noqa: E741


def identity(data_type: T, numbers: list[float], scale_bias: dml.ScaleBias | None) -> Array:
    op = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor(data_type, len(numbers)),
        output_tensor=tensor(data_type, len(numbers)),
        scale_bias=scale_bias,
    )
    return compare(op, {"input_tensor": np.array(numbers, dtype_of(data_type))})["output_tensor"]


def test_scale_and_bias() -> None:
    assert identity(T.FLOAT32, [1, 2, 3], dml.ScaleBias(2, 10)).tolist() == [12, 14, 16]


def test_a_zeroed_scale_bias_is_no_default() -> None:
    assert identity(T.FLOAT32, [1, -2, 3], dml.ScaleBias(0, 0)).tolist() == [0, 0, 0]


def test_scaled_integers_lose_their_fraction_and_wrap() -> None:
    assert identity(T.INT8, [3, -3, 100, -100], dml.ScaleBias(1.5, 0)).tolist() == [
        4,
        -4,
        150 - 256,
        256 - 150,
    ]
    assert identity(T.UINT8, [3, 0, 255], dml.ScaleBias(1, -1)).tolist() == [2, 255, 254]
    assert identity(T.INT32, [-(2**31), 7], dml.ScaleBias(-1, 0)).tolist() == [-(2**31), -7]
    assert identity(T.UINT32, [2, 0], dml.ScaleBias(-1, 0)).tolist() == [2**32 - 2, 0]
    assert identity(T.UINT64, [2], dml.ScaleBias(-1, 0)).tolist() == [2**64 - 2]
    # 1.5 * 2**64 and its negative; FLOAT32 holds no bit of them below 2**41.
    assert identity(T.UINT64, [3], dml.ScaleBias(2.0**63, 0)).tolist() == [2**63]
    assert identity(T.INT64, [3], dml.ScaleBias(-(2.0**63), 0)).tolist() == [-(2**63)]
    assert identity(T.UINT8, [3], dml.ScaleBias(2.0**63, 0)).tolist() == [0]
    assert identity(T.INT16, [1, 0], dml.ScaleBias(np.inf, 0)).tolist() == [0, 0]
    # FLOAT32 holds 24 bits: the last one is lost on the way.
    assert identity(T.INT32, [2**24 + 1], dml.ScaleBias(1, 0)).tolist() == [2**24]


@pytest.mark.parametrize(
    "data_type", [T.INT8, T.UINT8, T.INT16, T.UINT16, T.INT32, T.UINT32, T.INT64, T.UINT64]
)
def test_minus_and_add_are_subtract(data_type: T) -> None:
    """What torch_directml records for a - b."""
    a, b = (np.array(numbers, dtype_of(data_type)) for numbers in ([9, 0, 100, 3], [2, 1, 99, 120]))
    with np.errstate(over="ignore"):
        assert (identity(data_type, b.tolist(), dml.ScaleBias(-1, 0)) + a).tolist() == (a - b).tolist()


def test_scaling_rounds_twice_in_float32() -> None:
    x, scale, bias = np.float32(1 + 2**-23), 1 + 2**-23, -1.0
    once = float(x) * scale + bias

    assert identity(T.FLOAT32, [x], dml.ScaleBias(scale, bias)).tolist() == [2**-22]
    assert once != 2**-22


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    data_type, sizes = data.draw(st.sampled_from(ALL_TYPES)), data.draw(shapes())
    source = data.draw(tensors(data_type, sizes))
    numbers = st.sampled_from([0.0, 1.0, -1.0, 0.3, 2.0, 1e30, -0.0])
    scaled = data.draw(st.none() | st.builds(dml.ScaleBias, numbers, numbers))
    op = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=source,
        output_tensor=data.draw(tensors(data_type, sizes, output=True)),
        scale_bias=scaled,
    )

    what = data.draw(values("extreme", "bits"))
    compare(op, {"input_tensor": filled(source, what)[1]}, bits=scaled is None, offset=data.draw(offsets))


@st.composite
def long_shapes(draw: st.DrawFn) -> list[int]:
    """Two axes that are longer than the tiles of the kernels, or nearly, among up to two others."""
    sizes = [draw(st.integers(15, 140)) for _ in range(2)]
    sizes += draw(st.lists(st.integers(1, 3), max_size=2))
    return draw(st.permutations(sizes))


@given(st.data(), examples=60)
def test_long_axes_in_any_order(data: st.DataObject) -> None:
    data_type, sizes = data.draw(st.sampled_from(ALL_TYPES)), data.draw(long_shapes())
    source = data.draw(tensors(data_type, sizes))
    op = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=source, output_tensor=data.draw(tensors(data_type, sizes, output=True))
    )

    contents = filled(source, data.draw(values("bits")))[1]
    compare(op, {"input_tensor": contents}, bits=True, offset=data.draw(offsets))


@pytest.mark.parametrize("data_type", [T.FLOAT16, T.FLOAT32, T.FLOAT64], ids=lambda kind: kind.name)
def test_nan_payloads_and_denormals_are_copied(data_type: T) -> None:
    unsigned = np.dtype(f"u{dtype_of(data_type).itemsize}")
    signalling = np.array(np.inf, dtype_of(data_type)).view(unsigned) | unsigned.type(1)
    bits = np.array([signalling, 1], unsigned)
    op = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor(data_type, 2), output_tensor=tensor(data_type, 2)
    )

    found = compare(op, {"input_tensor": bits.view(dtype_of(data_type))}, bits=True)

    assert found["output_tensor"].view(unsigned).tolist() == bits.tolist()


def test_broadcasting_needs_strides() -> None:
    op = example(O, input_tensor=tensor(T.FLOAT32, 1, 2, 1, 4))

    report = refused(op, "OP_NO_BROADCAST", "OutputTensor.Sizes[2]", 3, 1)
    assert "stride 0" in report.hint
