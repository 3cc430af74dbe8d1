"""SCATTER_ELEMENTS and SCATTER_ND."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from indexing import INDEX_TYPES, any_indices, any_tensor, fields_of_tuples, packed
from strategies import ALL_TYPES, Array, filled, shapes, tensors, values

import dmlemu
from dmlemu import dml
from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType  # noqa: E741


def elements(x: Array, indices: Array, updates: Array, axis: int) -> tuple[Any, dict[str, Array]]:
    op = dml.ScatterElementsOperatorDesc(
        input_tensor=packed(x),
        indices_tensor=packed(indices),
        updates_tensor=packed(updates),
        output_tensor=packed(x),
        axis=axis,
    )
    return op, {"input_tensor": x, "indices_tensor": indices, "updates_tensor": updates}


def scatter(x: Array, indices: Array, updates: Array, axis: int) -> object:
    """What the device gives for packed tensors."""
    return compare(*elements(x, indices, updates, axis))["output_tensor"].tolist()


def tuples(x: Array, indices: Array, updates: Array, *counts: int) -> tuple[Any, dict[str, Array]]:
    op = dml.ScatterNdOperatorDesc(
        input_tensor=packed(x),
        indices_tensor=packed(indices),
        updates_tensor=packed(updates),
        output_tensor=packed(x),
        input_dimension_count=counts[0],
        indices_dimension_count=counts[1],
    )
    return op, {"input_tensor": x, "indices_tensor": indices, "updates_tensor": updates}


def scatter_nd(x: Array, indices: Array, updates: Array, *counts: int) -> object:
    return compare(*tuples(x, indices, updates, *counts))["output_tensor"].tolist()


# --- SCATTER_ELEMENTS ---


def test_the_older_name() -> None:
    assert O.SCATTER is O.SCATTER_ELEMENTS
    assert dml.ScatterOperatorDesc is dml.ScatterElementsOperatorDesc


def test_along_the_first_axis() -> None:
    found = scatter(
        np.zeros((3, 3), np.float32),
        np.int32([[1, 0, 2], [0, 2, 1]]),
        np.float32([[1.0, 1.1, 1.2], [2.0, 2.1, 2.2]]),
        0,
    )

    assert found == np.float32([[2.0, 1.1, 0], [1.0, 0, 2.2], [0, 2.1, 1.2]]).tolist()


def test_along_the_last_axis_the_rest_is_copied() -> None:
    found = scatter(np.uint8([[1, 2, 3, 4, 5]]), np.uint64([[1, 3]]), np.uint8([[11, 21]]), 1)

    assert found == [[1, 11, 3, 21, 5]]


def test_indices_below_0_count_from_the_end() -> None:
    assert scatter(np.int16([1, 2, 3]), np.int64([-1, -3]), np.int16([30, 10]), 0) == [10, 2, 30]


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        (np.int32([3, -4, 2**31 - 1, -(2**31), 1]), [1, 50, 3]),
        (np.int64([2**32, -(2**32), 2**63 - 1, -(2**63), -1]), [1, 2, 50]),
        (np.uint32([3, 2**31, 2**32 - 1, 7, 0]), [50, 2, 3]),
        (np.uint64([2**32, 2**63, 2**64 - 1, 3, 2]), [1, 2, 50]),
    ],
    ids=["INT32", "INT64", "UINT32", "UINT64"],
)
@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
def test_an_index_outside_writes_nothing(indices: Array, expected: list[int]) -> None:
    """Compared at full width: a UINT64 of 2**32 is not 0."""
    x, updates = np.int32([1, 2, 3]), np.int32([10, 20, 30, 40, 50])

    assert scatter(x, indices, updates, 0) == expected
    assert scatter_nd(x.reshape(1, 3), indices.reshape(5, 1), updates.reshape(1, 5), 1, 2) == [expected]


def test_of_equal_updates_of_one_element_nothing_is_reported() -> None:
    assert scatter(np.float32([1, 2]), np.uint32([1, 1]), np.float32([7, 7]), 0) == [1, 7]


@pytest.mark.dmlemu(expect=["MEM_SCATTER_RACE"])
@pytest.mark.parametrize(("count", "lanes", "axis"), [(7, 1, 0), (1000, 3, 0), (5, 70_000, 0), (700, 600, 1)])
def test_the_last_update_remains(count: int, lanes: int, axis: int) -> None:
    """Whatever the number of threads; in many layouts the loops are nested differently."""
    generator = np.random.default_rng(count)
    shape = (count, lanes) if axis == 0 else (lanes, count)
    indices = generator.integers(0, 3, shape).astype(np.uint32)
    updates = np.arange(count * lanes, dtype=np.int32).reshape(shape)
    op, inputs = elements(np.zeros((3, lanes) if axis == 0 else (lanes, 3), np.int32), indices, updates, axis)
    expected = inputs["input_tensor"].copy()
    for i in range(count):
        at = np.index_exp[i, :] if axis == 0 else np.index_exp[:, i]
        other = np.arange(lanes)
        expected[(indices[at], other) if axis == 0 else (other, indices[at])] = updates[at]

    np.testing.assert_array_equal(dmlemu.evaluate(op, **inputs)["output_tensor"], expected)


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE", "MEM_SCATTER_RACE"])
@given(st.data(), examples=60)
def test_scatter_elements_any_layout(data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    axis = data.draw(st.integers(0, len(sizes) - 1))
    chosen = (*sizes[:axis], data.draw(st.integers(1, 6)), *sizes[axis + 1 :])
    data_type = data.draw(st.sampled_from(ALL_TYPES))
    op = dml.ScatterElementsOperatorDesc(
        input_tensor=any_tensor(data, sizes, data_type),
        indices_tensor=any_tensor(data, chosen, data.draw(st.sampled_from(INDEX_TYPES))),
        updates_tensor=any_tensor(data, chosen, data_type),
        output_tensor=data.draw(tensors(data_type, sizes, output=True)),
        axis=axis,
    )
    check_any_layout(data, op, {"indices_tensor": any_indices(data, op.indices_tensor, sizes[axis])})


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE", "MEM_SCATTER_RACE"])
@given(st.data(), examples=60)
def test_scatter_nd_any_layout(data: st.DataObject) -> None:
    fields, indices = fields_of_tuples(data, 0, "updates_tensor", output=False)
    source = fields["input_tensor"]
    output = data.draw(tensors(source.data_type, source.sizes, output=True))
    check_any_layout(data, dml.ScatterNdOperatorDesc(**fields, output_tensor=output), indices)


def check_any_layout(data: st.DataObject, op: Any, indices: dict[str, Array]) -> None:
    _, x = filled(op.input_tensor, data.draw(values("bits", "extreme")))
    _, updates = filled(op.updates_tensor, data.draw(values("bits", "extreme")))
    inputs = {"input_tensor": x, "updates_tensor": updates, **indices}
    compare(op, inputs, bits=True, offset=data.draw(offsets))


# --- SCATTER_ND ---


def test_tuples_of_all_dimensions_replace_elements() -> None:
    found = scatter_nd(np.zeros((2, 3), np.float32), np.int32([[0, 2], [-1, 0]]), np.float32([[5, 6]]), 2, 2)

    assert found == [[0, 0, 5], [6, 0, 0]]


def test_shorter_tuples_replace_blocks() -> None:
    found = scatter_nd(np.ones((3, 2), np.int8), np.uint32([[2], [0]]), np.int8([[5, 6], [7, 8]]), 2, 2)

    assert found == [[7, 8], [1, 1], [5, 6]]


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
def test_one_index_outside_drops_the_block() -> None:
    """5 is outside the first dimension and inside the second."""
    x = np.zeros((2, 6), np.int32)

    assert scatter_nd(x, np.int32([[5, 1], [1, 5], [0, -7]]), np.int32([[7, 8, 9]]), 2, 2) == [
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 8],
    ]


# --- the order of updates ---


@pytest.mark.dmlemu(expect=["MEM_SCATTER_RACE"])
def test_chaos_draws_the_order() -> None:
    """Each update remains under some seed; without a race the seed does not matter."""
    race = elements(np.float32([0]), np.uint32([0, 0, 0]), np.float32([1, 2, 3]), 0)
    right = elements(np.float32([0, 0, 0]), np.uint32([2, 0, 1]), np.float32([1, 2, 3]), 0)
    blocks = tuples(np.zeros((2, 2), np.int8), np.uint32([[1], [1]]), np.int8([[5, 6], [7, 8]]), 2, 2)

    def run(seed: int, op: Any, inputs: dict[str, Array]) -> Any:
        device = dml.create_device(
            dmlemu.d3d12.create_device(dmlemu.d3d12.Adapter(policy=dmlemu.chaos(seed)))
        )
        return dmlemu.evaluate(op, device=device, **inputs)["output_tensor"].tolist()

    seeds = range(12)
    assert {tuple(run(seed, *race)) for seed in seeds} == {(1.0,), (2.0,), (3.0,)}
    assert run(3, *race) == run(3, *race)
    assert all(run(seed, *right) == [2, 3, 1] for seed in seeds)
    assert {tuple(run(seed, *blocks)[1]) for seed in seeds} == {(5, 6), (7, 8)}


# --- rules (each is broken alone in test_rules.py) ---


def test_the_updates_have_the_sizes_of_the_indices() -> None:
    op = example(
        O.SCATTER_ELEMENTS,
        indices_tensor=tensor(T.UINT32, 1, 2, 3, 2),
        updates_tensor=tensor(T.FLOAT32, 1, 2, 3, 3),
    )

    refused(op, "OP_SHAPE", "UpdatesTensor.Sizes[3]", 3, 2)


def test_the_updates_have_the_sizes_of_blocks() -> None:
    op = example(O.SCATTER_ND, updates_tensor=tensor(T.FLOAT32, 1, 1, 1, 3))

    refused(op, "OP_SHAPE", "UpdatesTensor.Sizes[3]", 3, 2)


@pytest.mark.parametrize("operator", [O.SCATTER_ELEMENTS, O.SCATTER_ND])
def test_signed_indices_came_with_3_0(operator: OperatorType) -> None:
    sizes = example(operator).indices_tensor.sizes
    op = example(operator, indices_tensor=tensor(T.INT32, *sizes))

    accepted(op)
    refused(op, "TENSOR_DTYPE", "IndicesTensor.DataType", "INT32", "UINT32", level=FeatureLevel.LEVEL_2_1)
