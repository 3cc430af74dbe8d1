"""ONE_HOT."""

from __future__ import annotations

import numpy as np
import pytest
from examples import accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from indexing import INDEX_TYPES, any_indices, any_tensor, packed
from strategies import ALL_TYPES, Array, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType  # noqa: E741


def one_hot(indices: Array, off_on: Array, axis: int, size: int) -> object:
    """What the device gives for packed tensors."""
    sizes = [size if d == axis else each for d, each in enumerate(indices.shape)]
    op = dml.OneHotOperatorDesc(
        indices_tensor=packed(indices),
        values_tensor=packed(off_on),
        output_tensor=dml.BufferTensorDesc(packed(off_on).data_type, sizes),
        axis=axis,
    )
    return compare(op, {"indices_tensor": indices, "values_tensor": off_on})["output_tensor"].tolist()


def test_along_the_last_axis() -> None:
    assert one_hot(np.uint32([[1], [0]]), np.int16([[3, 8]]), 1, 3) == [[3, 8, 3], [8, 3, 3]]


def test_along_the_first_axis() -> None:
    assert one_hot(np.uint64([[1, 0]]), np.float32([[0, 1]]), 0, 2) == [[0, 1], [1, 0]]


def test_the_values_are_the_first_two_of_the_last_dimension_above_1() -> None:
    """The others are not read."""
    off_on = np.uint8([[[1], [2], [3]], [[4], [5], [6]]])

    assert one_hot(np.int32([[[0]]]), off_on, 2, 2) == [[[2, 1]]]


@pytest.mark.parametrize(
    "indices",
    [
        np.int32([[3], [-4], [2**31 - 1], [-(2**31)]]),
        np.int64([[2**32], [-(2**32)], [2**63 - 1], [-(2**63)]]),
        np.uint32([[3], [2**32 - 1], [2**31], [4]]),
        np.uint64([[2**32], [2**64 - 1], [2**63], [3]]),
    ],
    ids=["INT32", "INT64", "UINT32", "UINT64"],
)
def test_an_index_outside_is_ignored(indices: Array) -> None:
    """Legal, so that nothing is reported; compared at full width: a UINT64 of 2**32 is not 0."""
    assert one_hot(indices, np.float32([[5, 6]]), 1, 3) == [[5, 5, 5]] * 4


def test_indices_below_0_count_from_the_end() -> None:
    assert one_hot(np.int64([-1]), np.float16([0, 1]), 0, 3) == [0, 0, 1]


def test_nans_keep_their_bits() -> None:
    nans = np.array([0x7F800001, 0xFFC00005], np.uint32).view(np.float32)
    op = example(
        O.ONE_HOT, indices_tensor=tensor(T.UINT32, 1, 1, 1, 1), output_tensor=tensor(T.FLOAT32, 1, 1, 1, 2)
    )

    inputs = {"indices_tensor": np.uint32([[[[1]]]]), "values_tensor": nans.reshape(1, 1, 1, 2)}
    compare(op, inputs, bits=True)


@given(st.data(), examples=60)
def test_any_layout(data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    axis = data.draw(st.integers(0, len(sizes) - 1))
    single = (*sizes[:axis], 1, *sizes[axis + 1 :])
    two = tuple(data.draw(st.lists(st.integers(1, 3), min_size=len(sizes), max_size=len(sizes))))
    if max(two) == 1:
        two = (*two[:-1], 2)
    data_type = data.draw(st.sampled_from(ALL_TYPES))
    op = dml.OneHotOperatorDesc(
        indices_tensor=any_tensor(data, single, data.draw(st.sampled_from(INDEX_TYPES))),
        values_tensor=any_tensor(data, two, data_type),
        output_tensor=data.draw(tensors(data_type, sizes, output=True)),
        axis=axis,
    )
    _, off_on = filled(op.values_tensor, data.draw(values("bits", "extreme")))
    indices = any_indices(data, op.indices_tensor, sizes[axis])
    inputs = {"values_tensor": off_on, "indices_tensor": indices}
    compare(op, inputs, bits=True, offset=data.draw(offsets))


# --- rules (each is broken alone in test_rules.py) ---


def test_two_values() -> None:
    op = example(O.ONE_HOT, values_tensor=tensor(T.FLOAT32, 1, 1, 1, 1))

    refused(op, "OP_SHAPE", "ValuesTensor.Sizes[3]", 1, "2 or more")
    accepted(example(O.ONE_HOT, values_tensor=tensor(T.FLOAT32, 1, 2, 1, 1)))


def test_one_index_for_each_sequence() -> None:
    refused(
        example(O.ONE_HOT, indices_tensor=tensor(T.UINT32, 1, 2, 3, 9)),
        "OP_SHAPE",
        "IndicesTensor.Sizes[3]",
        9,
        1,
    )


def test_signed_indices_came_with_3_0() -> None:
    op = example(O.ONE_HOT, indices_tensor=tensor(T.INT32, 1, 2, 3, 1))

    accepted(op)
    refused(op, "TENSOR_DTYPE", "IndicesTensor.DataType", "INT32", "UINT32", level=FeatureLevel.LEVEL_2_1)
