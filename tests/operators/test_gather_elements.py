"""GATHER_ELEMENTS."""

from __future__ import annotations

import numpy as np
import pytest
from examples import accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import ALL_TYPES, Array, dtype_of, elements, filled, logical, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType.GATHER_ELEMENTS  # noqa: E741
INDEX_TYPES = [T.INT64, T.INT32, T.UINT64, T.UINT32]


def gather(x: Array, indices: Array, axis: int) -> list[object]:
    """What the device gives for packed tensors."""
    types = {dtype_of(each): each for each in ALL_TYPES}
    op = dml.GatherElementsOperatorDesc(
        input_tensor=tensor(types[x.dtype], *x.shape),
        indices_tensor=tensor(types[indices.dtype], *indices.shape),
        output_tensor=tensor(types[x.dtype], *indices.shape),
        axis=axis,
    )
    found: list[object] = compare(op, {"input_tensor": x, "indices_tensor": indices})[
        "output_tensor"
    ].tolist()
    return found


# The examples of ONNX GatherElements, with the results that its page prints.


def test_along_the_last_axis() -> None:
    assert gather(np.float32([[1, 2], [3, 4]]), np.int32([[0, 0], [1, 0]]), 1) == [[1, 1], [4, 3]]


def test_along_the_first_axis_fewer_than_the_input_has() -> None:
    x = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]])

    assert gather(x, np.int32([[1, 2, 0], [2, 0, 0]]), 0) == [[4, 8, 3], [7, 2, 3]]


def test_indices_below_0_count_from_the_end() -> None:
    x = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]])

    assert gather(x, np.int32([[-1, -2, 0], [-2, 0, 0]]), 0) == [[7, 5, 3], [4, 2, 3]]


def test_more_indices_than_the_input_has_elements() -> None:
    assert gather(np.uint8([5, 6]), np.uint32([1, 1, 0, 1, 0]), 0) == [6, 6, 5, 6, 5]


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
    """Compared at full width: a UINT64 of 2**32 is not 0.  Also in rows of several vectors."""
    assert gather(np.int16([10, 11, 12]), indices, 0) == expected
    for dtype in (np.float32, np.uint64):
        x = np.array([10, 11, 12], dtype)
        assert gather(x, np.tile(indices, 5), 0) == expected * 5
        assert gather(x.reshape(3, 1).repeat(25, 1), np.tile(indices, 5).reshape(1, 25), 0) == [expected * 5]


@pytest.mark.parametrize("data_type", [T.UINT8, T.FLOAT16, T.FLOAT32, T.INT64], ids=lambda each: each.name)
@pytest.mark.parametrize("index_type", INDEX_TYPES, ids=lambda each: each.name)
@pytest.mark.parametrize(("axis", "sizes"), [(0, [211, 301]), (1, [5, 301]), (1, [2, 20000])])
def test_rows_of_many_elements(axis: int, sizes: list[int], index_type: T, data_type: T) -> None:
    """CPUs have instructions for several elements."""
    random = np.random.default_rng(1)
    x = random.integers(0, 256, sizes).astype(dtype_of(data_type))
    chosen = [min(sizes[0], 5), sizes[1]]
    indices = random.integers(0, x.shape[axis], chosen).astype(dtype_of(index_type))

    gather(x, indices, axis)


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
def test_a_row_with_an_index_outside() -> None:
    x = np.arange(10000, dtype=np.float32)
    indices = np.arange(9999, -1, -1, dtype=np.int32)
    indices[37] = 10000

    assert gather(x, indices, 0)[36:39] == [9963, 9999, 9961]


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    axis = data.draw(st.integers(0, len(sizes) - 1))
    chosen = [*sizes]
    chosen[axis] = data.draw(st.integers(1, 6))
    data_type = data.draw(st.sampled_from(ALL_TYPES))
    source = data.draw(tensors(data_type, sizes))
    indices = data.draw(tensors(data.draw(st.sampled_from(INDEX_TYPES)), chosen))
    op = dml.GatherElementsOperatorDesc(
        input_tensor=source,
        indices_tensor=indices,
        output_tensor=data.draw(tensors(data_type, chosen, output=True)),
        axis=axis,
    )
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    least = 0 if indices.dtype.kind == "u" else -sizes[axis]
    memory = generator.integers(least, sizes[axis], elements(indices)).astype(indices.dtype)

    _, x = filled(source, data.draw(values("bits", "extreme")))
    inputs = {"input_tensor": x, "indices_tensor": logical(memory, indices)}
    compare(op, inputs, bits=True, offset=data.draw(offsets))


# --- rules ---


def test_ranks_are_equal() -> None:
    refused(
        example(O, indices_tensor=tensor(T.UINT32, 1, 1, 2, 3, 5)),
        "TENSOR_RANK",
        "IndicesTensor.DimensionCount",
        5,
        4,
    )


def test_data_types_are_equal() -> None:
    op = example(O, output_tensor=tensor(T.INT32, 1, 2, 3, 5))

    refused(op, "TENSOR_DTYPE", "OutputTensor.DataType", "INT32", "FLOAT32")


def test_the_axis_is_one_of_the_input() -> None:
    refused(example(O, axis=4), "OP_FIELD_RANGE", "Axis", 4, "0 to 3")


def test_the_indices_have_the_sizes_of_the_input_but_on_the_axis() -> None:
    op = example(O, indices_tensor=tensor(T.UINT32, 1, 2, 2, 5), output_tensor=tensor(T.FLOAT32, 1, 2, 2, 5))

    refused(op, "OP_SHAPE", "IndicesTensor.Sizes[2]", 2, 3)
    accepted(
        example(O, indices_tensor=tensor(T.UINT32, 1, 2, 3, 9), output_tensor=tensor(T.FLOAT32, 1, 2, 3, 9))
    )


def test_the_output_has_the_sizes_of_the_indices() -> None:
    refused(
        example(O, output_tensor=tensor(T.FLOAT32, 1, 2, 3, 4)), "OP_SHAPE", "OutputTensor.Sizes[3]", 4, 5
    )


def test_signed_indices_came_with_3_0() -> None:
    op = example(O, indices_tensor=tensor(T.INT32, 1, 2, 3, 5))

    accepted(op)
    refused(op, "TENSOR_DTYPE", "IndicesTensor.DataType", "INT32", "UINT32", level=FeatureLevel.LEVEL_2_1)
