"""TOP_K and TOP_K1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import SIGNED, UNSIGNED, Array, dtype_of, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import AxisDirection, OperatorType
from dmlemu.dml import TensorDataType as T

NAN, INF = float("nan"), float("inf")
UP, DOWN = AxisDirection.INCREASING, AxisDirection.DECREASING
TYPES = [T.FLOAT32, T.FLOAT16, *SIGNED, *UNSIGNED]
each_kind = pytest.mark.parametrize(
    "kind", [OperatorType.TOP_K, OperatorType.TOP_K1], ids=lambda kind: kind.name
)


def desc_of(x: Array, k: int, direction: AxisDirection, axis: int, data_type: T, index: T = T.UINT32) -> Any:
    sizes = list(x.shape)
    sizes[axis] = k
    return dml.TopK1OperatorDesc(
        input_tensor=tensor(data_type, *x.shape),
        output_value_tensor=tensor(data_type, *sizes),
        output_index_tensor=tensor(index, *sizes),
        axis=axis % x.ndim,
        k=k,
        axis_direction=direction,
    )


def top(
    numbers: Any, k: int, direction: AxisDirection = DOWN, axis: int = -1, data_type: T = T.FLOAT32
) -> tuple[Any, Any]:
    x = np.array(numbers, dtype_of(data_type))
    found = compare(desc_of(x, k, direction, axis, data_type), {"input_tensor": x}, bits=True)
    return found["output_value_tensor"].tolist(), found["output_index_tensor"].tolist()


def test_the_largest_and_the_smallest() -> None:
    x = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]

    assert top(x, 3) == ([[3, 2, 1], [7, 6, 5], [11, 10, 9]], [[3, 2, 1]] * 3)
    assert top(x, 2, UP) == ([[0, 1], [4, 5], [8, 9]], [[0, 1]] * 3)
    assert top(x, 1, axis=0) == ([[8, 9, 10, 11]], [[2] * 4])


def test_equal_elements_are_in_order_of_index() -> None:
    x = [1, 3, 2, 3, 1, 3, 2]

    assert top(x, 4) == ([3, 3, 3, 2], [1, 3, 5, 2])
    assert top(x, 3, UP) == ([1, 1, 2], [0, 4, 2])
    assert top([7] * 5, 5) == ([7] * 5, [0, 1, 2, 3, 4])
    assert top([0.0, -0.0, 0.0], 3)[1] == top([0.0, -0.0, 0.0], 3, UP)[1] == [0, 1, 2]


def test_nans_come_last_in_both_directions() -> None:
    x = [NAN, -INF, INF, NAN, 0]

    assert top(x, 3) == ([INF, 0, -INF], [2, 4, 1])
    assert top(x, 3, UP) == ([-INF, 0, INF], [1, 4, 2])
    assert top(x, 5)[1] == [2, 4, 1, 0, 3]
    assert top(x, 5, UP)[1] == [1, 4, 2, 0, 3]


def test_integers_are_compared_exactly() -> None:
    assert top([2**63, 2**63 + 1, 2**63 - 1], 3, data_type=T.UINT64)[1] == [1, 0, 2]
    assert top([2**53, 2**53 + 1, -(2**63)], 3, data_type=T.INT64)[1] == [1, 0, 2]
    assert top([-128, 127, -1, 0], 4, UP, data_type=T.INT8) == ([-128, -1, 0, 127], [0, 2, 3, 1])
    assert top([0, 255, 128], 3, data_type=T.UINT8) == ([255, 128, 0], [1, 2, 0])


def test_indices_may_have_64_bits() -> None:
    x = np.float32([3, 1, 2])
    found = compare(desc_of(x, 2, DOWN, 0, T.FLOAT32, T.UINT64), {"input_tensor": x})

    assert found["output_index_tensor"].tolist() == [0, 2]


@pytest.mark.parametrize("order", ["random", "rising", "falling", "few values"])
@pytest.mark.parametrize("axis", [0, 1])
def test_long_lines(order: str, axis: int) -> None:
    """More candidates than the buffer holds; the best K are chosen repeatedly."""
    x = np.random.default_rng(5).normal(0, 1, (3, 3000)).astype(np.float32)
    x = {"random": x, "rising": np.sort(x), "falling": -np.sort(-x), "few values": np.round(x)}[order]
    x = np.ascontiguousarray(x if axis == 1 else np.tile(x, (7, 1)).T)

    for k in (1, 5, 300, 2900, 3000):
        for direction in (UP, DOWN):
            top(x, k, direction, axis)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.uint8])
def test_few_of_short_lines(dtype: Any) -> None:
    """Candidates are kept in whole vectors, whatever K is."""
    x = np.random.default_rng(6).integers(0, 60, (4, 100)).astype(dtype)
    if x.dtype.kind == "f":
        x[1:3, ::3] = np.nan
        x[2, 5:95] = np.nan
    kind = T[np.dtype(dtype).name.upper()]

    for k in (1, 7, 8, 9, 31, 32, 33):
        for direction in (UP, DOWN):
            top(x, k, direction, 1, kind)


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from(TYPES))
    sizes = data.draw(shapes())
    axis = data.draw(st.integers(0, len(sizes) - 1))
    k = data.draw(st.integers(1, sizes[axis]))
    out = [k if d == axis else size for d, size in enumerate(sizes)]
    source = data.draw(tensors(data_type, sizes))
    op = dml.TopK1OperatorDesc(
        input_tensor=source,
        output_value_tensor=data.draw(tensors(data_type, out, output=True)),
        output_index_tensor=data.draw(
            tensors(data.draw(st.sampled_from([T.UINT32, T.UINT64])), out, output=True)
        ),
        axis=axis,
        k=k,
        axis_direction=data.draw(st.sampled_from(AxisDirection)),
    )
    _, x = filled(source, data.draw(values("extreme", "small", "bits")))

    compare(op, {"input_tensor": x}, bits=True, offset=data.draw(offsets))


@each_kind
def test_k_is_at_most_the_size(kind: OperatorType) -> None:
    out, index = tensor(T.FLOAT32, 1, 2, 3, 5), tensor(T.UINT32, 1, 2, 3, 5)
    accepted(example(kind, output_value_tensor=out, output_index_tensor=index, k=5))

    report = refused(example(kind, k=6), "OP_FIELD_RANGE", "K", 6, "1 to 5")
    assert report.message == "K (6) is not in the range 1 to InputTensor.Sizes[3] (5)."
    refused(example(kind, k=0), "OP_FIELD_RANGE", "K", 0, "1 to 5")


@each_kind
def test_the_outputs_have_k_elements_along_the_axis(kind: OperatorType) -> None:
    report = refused(example(kind, k=3), "OP_SHAPE", "OutputValueTensor.Sizes[3]", 2, 3)

    assert report.message.endswith("is not 3, which is K.")
