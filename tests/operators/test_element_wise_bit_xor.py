"""ELEMENT_WISE_BIT_XOR."""

from __future__ import annotations

import numpy as np
from examples import tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import ALL_TYPES, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType.ELEMENT_WISE_BIT_XOR  # noqa: E741


def test_bits_of_floats() -> None:
    """1.0 ^ NaN with a payload: the bits, whatever number they are."""
    x = tensor(T.FLOAT32, 2)
    op = dml.ElementWiseBitXorOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
    a, b = np.array([0x3F800000, 0x7F812345], np.uint32), np.array([0x80000001, 0x00000001], np.uint32)

    found = compare(op, {"a_tensor": a.view(np.float32), "b_tensor": b.view(np.float32)}, bits=True)

    assert found["output_tensor"].view(np.uint32).tolist() == [0xBF800001, 0x7F812344]


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    data_type, sizes = data.draw(st.sampled_from(ALL_TYPES)), data.draw(shapes())
    a, b = data.draw(tensors(data_type, sizes)), data.draw(tensors(data_type, sizes))
    op = dml.ElementWiseBitXorOperatorDesc(
        a_tensor=a, b_tensor=b, output_tensor=data.draw(tensors(data_type, sizes, output=True))
    )

    inputs = {"a_tensor": filled(a, data.draw(values("bits", "extreme")))[1]}
    inputs["b_tensor"] = filled(b, data.draw(values("bits", "extreme")))[1]
    compare(op, inputs, bits=True, offset=data.draw(offsets))
