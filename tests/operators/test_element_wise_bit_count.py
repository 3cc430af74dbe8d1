"""ELEMENT_WISE_BIT_COUNT."""

from __future__ import annotations

import numpy as np
import pytest
from examples import tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import ALL_TYPES, dtype_of, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType.ELEMENT_WISE_BIT_COUNT  # noqa: E741


@pytest.mark.parametrize(
    ("data_type", "number", "bits"),
    [
        (T.INT8, -1, 8),
        (T.INT8, -128, 1),
        (T.UINT8, 0b1011, 3),
        (T.INT16, -2, 15),
        (T.FLOAT16, -0.0, 1),
        (T.FLOAT32, -0.0, 1),
        (T.FLOAT32, 1.0, 7),
        (T.FLOAT64, 1.0, 10),
        (T.UINT32, 2**32 - 1, 32),
        (T.INT64, -1, 64),
        (T.UINT64, 0, 0),
    ],
)
@pytest.mark.parametrize("result", [T.UINT32, T.UINT8], ids=lambda kind: kind.name)
def test_the_type_gives_the_width(data_type: T, number: float, bits: int, result: T) -> None:
    op = dml.ElementWiseBitCountOperatorDesc(
        input_tensor=tensor(data_type, 1), output_tensor=tensor(result, 1)
    )

    found = compare(op, {"input_tensor": np.array([number], dtype_of(data_type))})

    assert found["output_tensor"].tolist() == [bits]


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    source_type, result = (
        data.draw(st.sampled_from(ALL_TYPES)),
        data.draw(st.sampled_from([T.UINT32, T.UINT8])),
    )
    sizes = data.draw(shapes())
    source = data.draw(tensors(source_type, sizes))
    op = dml.ElementWiseBitCountOperatorDesc(
        input_tensor=source, output_tensor=data.draw(tensors(result, sizes, output=True))
    )

    compare(
        op,
        {"input_tensor": filled(source, data.draw(values("bits", "extreme")))[1]},
        offset=data.draw(offsets),
    )
