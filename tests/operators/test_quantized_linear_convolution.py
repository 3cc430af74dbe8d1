"""QUANTIZED_LINEAR_CONVOLUTION."""

from __future__ import annotations

from typing import Any

import numpy as np
from examples import accepted, example, refused, tensor
from harness import compare, given
from hypothesis import strategies as st
from strategies import Array, filled, values

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.testing import operator_descs

O = OperatorType.QUANTIZED_LINEAR_CONVOLUTION  # noqa: E741


def convolve(x: Any, w: Any, *, scales: Any, zeros: Any = (0, 0, 0), bias: Any = None) -> Array:
    """Of one spatial dimension: UINT8 by INT8 to UINT8; scales and zero points of input, filter, output."""
    inputs = {"input_tensor": np.uint8([[x]]), "filter_tensor": np.int8(w)[:, None, :]}
    kinds = {"input": T.UINT8, "filter": T.INT8, "output": T.UINT8}
    for name, scale, zero in zip(kinds, scales, zeros, strict=True):
        inputs[f"{name}_scale_tensor"] = np.float32(scale).reshape(1, -1, 1)
        inputs[f"{name}_zero_point_tensor"] = np.array(zero, "u1").view("i1" if name == "filter" else "u1")
        inputs[f"{name}_zero_point_tensor"] = inputs[f"{name}_zero_point_tensor"].reshape(1, 1, 1)
    if bias is not None:
        inputs["bias_tensor"] = np.int32(bias).reshape(1, -1, 1)
    types = {"u1": T.UINT8, "i1": T.INT8, "f4": T.FLOAT32, "i4": T.INT32}
    descs = {name: tensor(types[array.dtype.str[1:]], *array.shape) for name, array in inputs.items()}
    op = dml.QuantizedLinearConvolutionOperatorDesc(
        **descs,
        output_tensor=tensor(T.UINT8, 1, len(w), len(x) - len(w[0]) + 3),
        strides=[1],
        dilations=[1],
        start_padding=[1],
        end_padding=[1],
        group_count=1,
    )
    return compare(op, inputs)["output_tensor"][0]


def test_sums_are_scaled_rounded_and_saturated() -> None:
    """The sums of the first filter are 1, 3, 5, 3; those of the second are 10, 30, 50, 30."""
    found = convolve([1, 2, 3], [[1, 1], [10, 10]], scales=[0.5, [1, 10], 1])
    assert found.tolist() == [[0, 2, 2, 2], [50, 150, 250, 150]]
    found = convolve([1, 2, 3], [[1, 1], [10, 10]], scales=[1, 1, 0.2], zeros=[0, 0, 7])
    assert found.tolist() == [[12, 22, 32, 22], [57, 157, 255, 157]]


def test_padding_counts_as_the_zero_point() -> None:
    found = convolve([5, 6], [[1, 1]], scales=[1, 1, 1], zeros=[5, 0, 0])
    assert found.tolist() == [[0, 1, 1]]


def test_the_bias_has_the_scale_of_the_sum() -> None:
    found = convolve([1, 2], [[1, 1]], scales=[0.5, 0.5, 0.25], bias=[100])
    assert found.tolist() == [[101, 103, 102]]


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    op: Any = data.draw(operator_descs(O))
    inputs = {}
    for name in (each for each in vars(op) if each.endswith("_tensor") and each != "output_tensor"):
        desc = getattr(op, name)
        if desc is not None:
            kinds = ["small", "moderate"] if "scale" in name else []
            inputs[name] = filled(desc, data.draw(values(*kinds)))[1]
    compare(op, inputs)


def test_parameters_of_the_filter_are_one_or_per_channel() -> None:
    accepted(example(O, filter_scale_tensor=tensor(T.FLOAT32, 1, 1, 1, 1)))
    op = example(O, filter_scale_tensor=tensor(T.FLOAT32, 1, 5, 1, 1))
    refused(op, "OP_SHAPE", "FilterScaleTensor.Sizes[1]", 5, 6)
