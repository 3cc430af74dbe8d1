"""NONZERO_COORDINATES."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from examples import accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import Values, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.operators.nonzero_coordinates import effective_rank

O = OperatorType.NONZERO_COORDINATES  # noqa: E741
TYPES = [T.FLOAT32, T.FLOAT16, T.INT32, T.INT16, T.INT8, T.UINT32, T.UINT16, T.UINT8]
LEVEL_3_0 = FeatureLevel.LEVEL_3_0


def desc(*sizes: int, columns: int | None = None) -> dml.NonzeroCoordinatesOperatorDesc:
    """Sizes of the input, with the count and the coordinates that DirectMLX would make."""
    return dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=tensor(T.INT8, *sizes),
        output_count_tensor=tensor(T.UINT32, 1),
        output_coordinates_tensor=tensor(T.UINT32, prod(sizes), columns or len(sizes)),
    )


@pytest.mark.parametrize(
    ("sizes", "rank"), [((1, 1, 1, 1), 0), ((1,), 0), ((1, 1, 2, 4), 2), ((1, 2, 1, 1), 3), ((5, 1), 2)]
)
def test_effective_rank(sizes: tuple[int, ...], rank: int) -> None:
    assert effective_rank(tensor(T.INT8, *sizes)) == rank


def test_extra_leading_columns_are_zero() -> None:
    """Sizes {1,1,2,4} have effective rank 2; with N = 3 each row starts with a 0."""
    x = np.array([[0, 1, 0, 2], [3, 0, 0, 0]], np.int8).reshape(1, 1, 2, 4)

    found = compare(desc(1, 1, 2, 4, columns=3), {"input_tensor": x})

    assert found["output_count_tensor"].tolist() == [3]
    assert found["output_coordinates_tensor"][:3].tolist() == [[0, 0, 1], [0, 0, 3], [0, 1, 0]]


@pytest.mark.parametrize("value", [0, 7])
def test_a_single_element_has_effective_rank_0(value: int) -> None:
    """{1,1,1,1}: N may be 1 (the least size there is) to 4, and every coordinate is 0."""
    for columns in (1, 4):
        found = compare(desc(1, 1, 1, 1, columns=columns), {"input_tensor": np.int8([[[[value]]]])})

        assert found["output_count_tensor"].tolist() == [int(value != 0)]
        if value:
            assert found["output_coordinates_tensor"].tolist() == [[0] * columns]


@pytest.mark.parametrize("data_type", TYPES, ids=lambda kind: kind.name)
def test_zeros_and_what_is_not(data_type: T) -> None:
    """-0.0 is zero; NaN, denormals, infinities and limits are not."""
    numbers = Values("extreme", 3).memory(data_type, 64)
    op = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=tensor(data_type, 64),
        output_count_tensor=tensor(T.UINT32, 1),
        output_coordinates_tensor=tensor(T.UINT32, 64, 1),
    )

    found = compare(op, {"input_tensor": numbers})

    expected = [i for i, x in enumerate(numbers.tolist()) if x != 0]
    assert found["output_coordinates_tensor"].ravel()[: len(expected)].tolist() == expected


def test_order_is_logical_whatever_the_strides() -> None:
    """The second dimension is the slow one in memory; coordinates still ascend row by row."""
    op = example(O, input_tensor=tensor(T.UINT8, 1, 3, 2, 4, strides=[24, 1, 12, 3]))

    found = compare(op, {"input_tensor": np.ones((1, 3, 2, 4), np.uint8)})

    rows = found["output_coordinates_tensor"].reshape(24, 4).tolist()
    assert rows == sorted(rows) and len(set(map(tuple, rows))) == 24


def test_rows_past_the_count_are_poisoned() -> None:
    found = compare(desc(4), {"input_tensor": np.int8([0, 5, 0, 6])})

    assert found["output_coordinates_tensor"].ravel().tolist() == [1, 3, 0xCBCBCBCB, 0xCBCBCBCB]


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from(TYPES))
    source = data.draw(shapes().flatmap(lambda sizes: tensors(data_type, sizes)))
    elements, rank = source.element_count, source.rank
    columns = data.draw(st.integers(max(effective_rank(source), 1), rank))
    ones = st.lists(st.just(1), max_size=6)
    op = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=source,
        output_count_tensor=data.draw(tensors(T.UINT32, [1, *data.draw(ones)], output=True)),
        output_coordinates_tensor=data.draw(
            tensors(T.UINT32, [*data.draw(ones), elements, columns], output=True)
        ),
    )

    _, x = filled(source, data.draw(values("sparse", "extreme", "bits")))
    compare(op, {"input_tensor": x}, offset=data.draw(offsets))


# --- rules ---


def test_below_4_0_all_tensors_have_one_rank() -> None:
    op = example(O, output_count_tensor=tensor(T.UINT32, 1, 1, 1, 1, 1))

    accepted(op)
    refused(op, "TENSOR_RANK", "OutputCountTensor.DimensionCount", 5, 4, level=LEVEL_3_0)

    op = example(O, output_coordinates_tensor=tensor(T.UINT32, 1, 1, 1, 24, 4))
    accepted(op)
    refused(op, "TENSOR_RANK", "OutputCoordinatesTensor.DimensionCount", 5, 4, level=LEVEL_3_0)


def test_the_count_is_one_element() -> None:
    op = example(O, output_count_tensor=tensor(T.UINT32, 1, 2, 1, 1))

    refused(op, "OP_SHAPE", "OutputCountTensor.Sizes[1]", 2, 1)


def test_leading_dimensions_of_the_coordinates_are_1() -> None:
    op = example(O, output_coordinates_tensor=tensor(T.UINT32, 2, 1, 24, 4))

    refused(op, "OP_SHAPE", "OutputCoordinatesTensor.Sizes[0]", 2, 1)
