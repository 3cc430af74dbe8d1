"""GATHER, GATHER_ND and GATHER_ND1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from examples import accepted, example, refused, tensor, unusual
from harness import compare, given, offsets
from hypothesis import strategies as st
from indexing import INDEX_TYPES, any_indices, any_tensor, fields_of_tuples, last, packed
from strategies import ALL_TYPES, Array, filled, tensors, values

from dmlemu import dml
from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType  # noqa: E741


def gather(x: Array, indices: Array, axis: int, dimensions: int, *sizes: int) -> object:
    """What the device gives for packed tensors."""
    op = dml.GatherOperatorDesc(
        input_tensor=packed(x),
        indices_tensor=packed(indices),
        output_tensor=dml.BufferTensorDesc(packed(x).data_type, sizes),
        axis=axis,
        index_dimensions=dimensions,
    )
    return compare(op, {"input_tensor": x, "indices_tensor": indices})["output_tensor"].tolist()


def gather_nd(x: Array, indices: Array, counts: tuple[int, int], *sizes: int, batch: int = 0) -> object:
    fields = {
        "input_tensor": packed(x),
        "indices_tensor": packed(indices),
        "output_tensor": dml.BufferTensorDesc(packed(x).data_type, sizes),
        "input_dimension_count": counts[0],
        "indices_dimension_count": counts[1],
    }
    inputs = {"input_tensor": x, "indices_tensor": indices}
    newer = dml.GatherNd1OperatorDesc(**fields, batch_dimension_count=batch)
    found: object = compare(newer, inputs)["output_tensor"].tolist()
    if batch == 0:
        older = compare(dml.GatherNdOperatorDesc(**fields), inputs)
        assert older["output_tensor"].tolist() == found
    return found


# --- GATHER ---


def test_two_dimensions_of_indices_replace_the_axis() -> None:
    """As the picture of ONNX Gather has it, with axis 0."""
    x = np.float32([[1.0, 1.2], [2.3, 3.4], [4.5, 5.7]]).reshape(1, 3, 2)

    found = gather(x, np.int32([[[0, 1], [1, 2]]]), 1, 2, 2, 2, 2)

    assert found == np.float32([[[1.0, 1.2], [2.3, 3.4]], [[2.3, 3.4], [4.5, 5.7]]]).tolist()


def test_without_dimensions_the_axis_disappears() -> None:
    x = np.int16([[1, 2, 3], [4, 5, 6]])

    assert gather(x, np.uint32([[2]]), 1, 0, 1, 2) == [[3, 6]]


def test_leading_ones_are_cropped() -> None:
    x = np.uint8([10, 11, 12]).reshape(1, 1, 3)

    assert gather(x, np.uint64([[[0, 2], [1, 1], [2, 0]]]), 2, 2, 1, 3, 2) == [[[10, 12], [11, 11], [12, 10]]]


def test_all_dimensions_of_the_indices_count() -> None:
    """IndexDimensions is DimensionCount: the page's range excludes it, its own example does not."""
    assert gather(np.float32([5, 6, 7]), np.uint32([2, 0]), 0, 1, 2) == [7, 5]


def test_indices_below_0_count_from_the_end() -> None:
    assert gather(np.float32([0, 1, 2, 3]), np.int64([-1, -4, 1]), 0, 1, 3) == [3, 0, 1]


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        (np.int32([-4, -3, 3, 2**31 - 1, -(2**31)]), [10, 10, 12, 12, 10]),
        (np.int64([2**32, -(2**32), -(2**63), 2**63 - 1, -1]), [12, 10, 10, 12, 12]),
        (np.uint32([3, 2**32 - 1, 2**31, 0, 2]), [12, 12, 12, 10, 12]),
        (np.uint64([2**32, 2**64 - 1, 2**63, 1, 2]), [12, 12, 12, 11, 12]),
    ],
    ids=["INT32", "INT64", "UINT32", "UINT64"],
)
@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
def test_an_index_outside_reads_the_nearest_element(indices: Array, expected: list[int]) -> None:
    """Compared at full width: a UINT64 of 2**32 is not 0."""
    assert gather(np.int16([10, 11, 12]), indices, 0, 1, 5) == expected
    assert gather_nd(np.int16([[10, 11, 12]]), indices.reshape(5, 1), (1, 2), 1, 5) == [expected]


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
@given(st.data(), examples=60)
def test_gather_any_layout(data: st.DataObject) -> None:
    size = st.integers(1, 5)
    table = tuple(data.draw(st.lists(size, min_size=1, max_size=4)))
    chosen = tuple(data.draw(st.lists(size, max_size=3)))
    axis = data.draw(st.integers(0, len(table) - 1))
    sizes = (*table[:axis], *chosen, *table[axis + 1 :])
    rank = data.draw(st.integers(max(1, len(table), len(chosen), len(sizes)), 8))
    data_type = data.draw(st.sampled_from(ALL_TYPES))
    indices = any_tensor(data, last(chosen, rank), data.draw(st.sampled_from(INDEX_TYPES)))
    op = dml.GatherOperatorDesc(
        input_tensor=any_tensor(data, last(table, rank), data_type),
        indices_tensor=indices,
        output_tensor=data.draw(tensors(data_type, last(sizes, rank), output=True)),
        axis=axis + rank - len(table),
        index_dimensions=len(chosen),
    )
    _, x = filled(op.input_tensor, data.draw(values("bits", "extreme")))
    inputs = {"input_tensor": x, "indices_tensor": any_indices(data, indices, table[axis])}
    compare(op, inputs, bits=True, offset=data.draw(offsets))


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
@given(st.data(), examples=60)
def test_gather_nd_any_layout(data: st.DataObject) -> None:
    batch = data.draw(st.integers(0, 2))
    fields, inputs = fields_of_tuples(data, batch, "output_tensor", output=True)
    op = (
        dml.GatherNd1OperatorDesc(**fields, batch_dimension_count=batch)
        if batch > 0
        else dml.GatherNdOperatorDesc(**fields)
    )
    _, x = filled(op.input_tensor, data.draw(values("bits", "extreme")))
    compare(op, {"input_tensor": x, **inputs}, bits=True, offset=data.draw(offsets))


# --- GATHER_ND ---


def test_tuples_of_all_dimensions_select_elements() -> None:
    x = np.int32([[0, 1], [2, 3]])

    assert gather_nd(x, np.int32([[0, 0], [1, 1], [-1, 0]]), (2, 2), 1, 3) == [[0, 3, 2]]


def test_shorter_tuples_select_blocks() -> None:
    x = np.float32([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])

    found = gather_nd(x, np.int64([[[0, 1]], [[1, 0]]]), (3, 3), 2, 1, 2)

    assert found == [[[2, 3]], [[4, 5]]]


def test_batches_are_independent() -> None:
    x = np.float32([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])

    assert gather_nd(x, np.uint32([[[1]], [[0]]]), (3, 3), 2, 1, 2, batch=1) == [[[2, 3]], [[4, 5]]]


def test_leading_dimensions_do_not_count() -> None:
    x = np.uint8([[[[0, 1], [2, 3]]]])

    assert gather_nd(x, np.uint32([[[[1], [0]]]]), (2, 2), 1, 1, 2, 2) == [[[[2, 3], [0, 1]]]]


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
def test_each_index_of_a_tuple_has_its_own_dimension() -> None:
    """5 is outside the first dimension and inside the second."""
    x = np.arange(12, dtype=np.int32).reshape(2, 6)

    assert gather_nd(x, np.int32([[1, 5], [5, 1], [-3, -7]]), (2, 2), 1, 3) == [[11, 7, 0]]


# --- rules (each is broken alone in test_rules.py) ---


def test_more_sizes_than_the_output_has_dimensions() -> None:
    op = example(
        O.GATHER,
        input_tensor=tensor(T.FLOAT32, 2, 1, 9, 2),
        output_tensor=tensor(T.FLOAT32, 1, 3, 5, 2),
    )

    refused(op, "OP_SHAPE", "InputTensor.Sizes[0]", 2, 1)


def test_leading_sizes_of_the_indices_divide_those_of_the_input() -> None:
    """Devices differ in what they make of others than 1."""
    one = example(O.GATHER, index_dimensions=1, output_tensor=tensor(T.FLOAT32, 1, 1, 5, 2))
    report = refused(one, "OP_SHAPE", "IndicesTensor.Sizes[2]", 3, "a divisor of 1")
    assert "InputTensor is divided before Axis into as many parts" in report.message

    three = replace(
        one,
        input_tensor=tensor(T.FLOAT32, 2, 3, 9, 2),
        output_tensor=tensor(T.FLOAT32, 2, 3, 5, 2),
    )
    message = unusual(three, "OP_INDEX_ROWS", "IndicesTensor.Sizes[2]", 3, 1)
    assert "devices read differently" in message
    four = replace(three, indices_tensor=tensor(T.UINT32, 1, 2, 2, 5))
    refused(four, "OP_SHAPE", "IndicesTensor.Sizes[2]", 2, "a divisor of 3")


def test_rows_of_indices_belong_to_parts_of_the_input() -> None:
    """As TensorFlow's plugin gathers with batches; and one index for each element before Axis."""
    x = np.float32([1, 2, 3, 4]).reshape(2, 1, 2, 1)
    rows = np.uint32([[0, 1, 1, 0], [1, 1, 0, 1]]).reshape(1, 1, 2, 4)
    assert np.ravel(gather(x, rows, 2, 1, 2, 1, 4, 1)).tolist() == [1, 2, 2, 1, 4, 4, 3, 4]

    x, each = np.int16([[1, 2], [3, 4], [5, 6]]).reshape(1, 1, 3, 2), np.int32([[[[1, 0, -1]]]])
    assert np.ravel(gather(x, each, 3, 0, 1, 1, 1, 3)).tolist() == [2, 3, 6]


def test_a_row_of_indices_may_begin_inside_a_dimension() -> None:
    """Three rows for 2 x 3: the second has the end of one line and the beginning of the next."""
    x = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
    rows = np.uint64([0, 1, 0]).reshape(1, 3, 1)

    assert gather(x, rows, 2, 1, 2, 3, 1) == [[[0], [2], [5]], [[7], [8], [10]]]


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
@given(st.data(), examples=100)
def test_rows_of_indices_in_any_layout(data: st.DataObject) -> None:
    size = st.integers(1, 4)
    table = tuple(data.draw(st.lists(size, min_size=1, max_size=4)))
    own = tuple(data.draw(st.lists(size, max_size=2)))
    axis = data.draw(st.integers(0, len(table) - 1))
    before = int(np.prod(table[:axis], dtype=int))
    rows = data.draw(st.sampled_from([each for each in range(1, before + 1) if before % each == 0]))
    split = data.draw(st.sampled_from([each for each in range(1, rows + 1) if rows % each == 0]))
    chosen = (split, rows // split, *own)
    sizes = (*table[:axis], *own, *table[axis + 1 :])
    rank = data.draw(st.integers(max(len(table), len(chosen), len(sizes)), 8))
    data_type = data.draw(st.sampled_from(ALL_TYPES))
    indices = any_tensor(data, last(chosen, rank), data.draw(st.sampled_from(INDEX_TYPES)))
    op = dml.GatherOperatorDesc(
        input_tensor=any_tensor(data, last(table, rank), data_type),
        indices_tensor=indices,
        output_tensor=data.draw(tensors(data_type, last(sizes, rank), output=True)),
        axis=axis + rank - len(table),
        index_dimensions=len(own),
    )
    _, x = filled(op.input_tensor, data.draw(values("bits", "extreme")))
    inputs = {"input_tensor": x, "indices_tensor": any_indices(data, indices, table[axis])}
    compare(op, inputs, bits=True, offset=data.draw(offsets))


def test_index_dimensions_are_dimensions() -> None:
    refused(example(O.GATHER, index_dimensions=5), "OP_FIELD_RANGE", "IndexDimensions", 5, "0 to 4")


def test_a_tuple_is_no_longer_than_the_input_has_dimensions() -> None:
    op = example(
        O.GATHER_ND,
        indices_tensor=tensor(T.UINT32, 1, 1, 3, 4),
        output_tensor=tensor(T.FLOAT32, 1, 1, 1, 3),
        indices_dimension_count=2,
    )

    refused(op, "OP_SHAPE", "IndicesTensor.Sizes[3]", 4, "1 to 3")


def test_batches_have_the_sizes_of_the_input() -> None:
    op = example(O.GATHER_ND1, indices_tensor=tensor(T.UINT32, 1, 2, 5, 1))

    refused(op, "OP_SHAPE", "IndicesTensor.Sizes[1]", 2, 3)


@pytest.mark.parametrize("operator", [O.GATHER, O.GATHER_ND])
def test_signed_indices_came_with_3_0(operator: OperatorType) -> None:
    sizes = example(operator).indices_tensor.sizes
    op = example(operator, indices_tensor=tensor(T.INT32, *sizes))

    accepted(op)
    refused(op, "TENSOR_DTYPE", "IndicesTensor.DataType", "INT32", "UINT32", level=FeatureLevel.LEVEL_2_1)
