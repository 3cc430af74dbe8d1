"""The operators that move data: SLICE, SPLIT, JOIN, PADDING, TILE, SPACE_TO_DEPTH and others."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

import numpy as np
import pytest
from harness import compare, given, in_array, offsets
from hypothesis import strategies as st
from strategies import Array, filled, values

import dmlemu
from dmlemu import dml
from dmlemu.dml import BufferTensorDesc, OperatorType, PaddingMode
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared.definition import definition_of
from dmlemu.dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from dmlemu.testing import operator_descs

O = OperatorType  # noqa: E741

MOVEMENT = [
    O.SLICE,
    O.SLICE1,
    O.SLICE_GRAD,
    O.SPLIT,
    O.JOIN,
    O.PADDING,
    O.PADDING1,
    O.TILE,
    O.SPACE_TO_DEPTH,
    O.SPACE_TO_DEPTH1,
    O.DEPTH_TO_SPACE,
    O.DEPTH_TO_SPACE1,
    O.UPSAMPLE_2D,
    O.REVERSE_SUBSEQUENCES,
    O.DIAGONAL_MATRIX,
    O.DIAGONAL_MATRIX1,
    O.FILL_VALUE_CONSTANT,
    O.FILL_VALUE_SEQUENCE,
    O.FOLD,
    O.UNFOLD,
]


def filled_inputs(data: st.DataObject, desc: OperatorDesc) -> dict[str, Any]:
    """Difficult values for every input."""
    found: dict[str, Any] = {}
    for item in operator_fields(type(desc)):
        tensors = getattr(desc, item.name)
        if item.kind is FieldKind.INPUT_TENSOR and tensors is not None:
            kinds = ["small", "extreme"] if item.name == "sequence_lengths_tensor" else ["extreme", "bits"]
            each = [
                filled(tensor, data.draw(values(*kinds)))[1]
                for tensor in (tensors if item.array else [tensors])
            ]
            found[item.name] = each if item.array else each[0]
    return found


@pytest.mark.long  # by default test_every_operator.py draws descs, with small numbers
@pytest.mark.parametrize("operator", MOVEMENT, ids=lambda each: each.name)
@given(st.data(), examples=20)
def test_any_layout(operator: OperatorType, data: st.DataObject) -> None:
    desc = data.draw(operator_descs(operator))
    inputs = filled_inputs(data, desc)

    compare(desc, inputs, bits=definition_of(desc).KEEPS_NANS, offset=data.draw(offsets_of(desc)))


def offsets_of(desc: OperatorDesc) -> st.SearchStrategy[int]:
    """Those that keep what its tensors guarantee."""
    fields = [(item, getattr(desc, item.name)) for item in operator_fields(type(desc)) if item.is_tensor]
    each = chain.from_iterable(tensors if item.array else [tensors] for item, tensors in fields)
    most = max(tensor.guaranteed_base_offset_alignment for tensor in each if tensor is not None)
    return offsets.map(lambda offset: offset if most <= 16 else offset // most * most)


def tensor(x: Array) -> BufferTensorDesc:
    types = {
        BufferTensorDesc(each, [1]).dtype: each for each in T if each not in (T.UNKNOWN, T.UINT4, T.INT4)
    }
    return BufferTensorDesc(types[x.dtype], x.shape)


def numbers(*sizes: int, dtype: Any = np.float32) -> Array:
    """1, 2, 3, ..."""
    return np.arange(1, np.prod(sizes) + 1).reshape(sizes).astype(dtype)


# --- slices ---


def sliced(x: Array, offsets: list[int], window: list[int], strides: list[int], sizes: list[int]) -> Any:
    desc = dml.Slice1OperatorDesc(
        input_tensor=tensor(x),
        output_tensor=BufferTensorDesc(tensor(x).data_type, sizes),
        input_window_offsets=offsets,
        input_window_sizes=window,
        input_window_strides=strides,
    )
    return compare(desc, {"input_tensor": x})["output_tensor"].tolist()


def test_a_negative_stride_starts_at_the_end_of_the_window() -> None:
    x = np.arange(10, dtype=np.float32)

    assert sliced(x, [2], [7], [-3], [3]) == [8, 5, 2]
    assert sliced(x, [2], [7], [3], [3]) == [2, 5, 8]


def test_the_output_may_end_before_the_window() -> None:
    assert sliced(np.arange(10, dtype=np.int64), [2], [7], [-3], [2]) == [8, 5]


def test_backwards_along_both_axes() -> None:
    assert sliced(numbers(3, 4), [0, 0], [3, 4], [-1, -1], [3, 4]) == numbers(3, 4)[::-1, ::-1].tolist()
    assert sliced(numbers(3, 4), [0, 1], [3, 3], [-2, -2], [2, 2]) == [[12, 10], [4, 2]]


@pytest.mark.parametrize("sizes", [(70, 1000), (1000, 70)], ids=str)
def test_a_large_tensor_backwards(sizes: tuple[int, int]) -> None:
    x = numbers(*sizes, dtype=np.uint16)

    assert sliced(x, [0, 0], [*sizes], [-1, -1], [*sizes]) == x[::-1, ::-1].tolist()


def test_the_stride_of_a_single_element_does_not_matter() -> None:
    x, most = numbers(2, 3), 2**32 - 1
    desc = dml.SliceOperatorDesc(
        # nor does the stride of a dimension of size 1
        input_tensor=BufferTensorDesc(T.FLOAT32, [1, 2, 3], [most, 3, 1]),
        output_tensor=BufferTensorDesc(T.FLOAT32, [1, 1, 3]),
        offsets=[0, 1, 0],
        sizes=[1, 1, 3],
        strides=[most, 2**31, 1],
    )

    assert compare(desc, {"input_tensor": x[np.newaxis]})["output_tensor"].tolist() == [[[4, 5, 6]]]
    assert sliced(x, [1, 0], [1, 3], [-(2**31), -1], [1, 3]) == [[6, 5, 4]]


def test_a_stride_that_needs_32_bits() -> None:
    desc = dml.SliceOperatorDesc(
        input_tensor=BufferTensorDesc(T.FLOAT32, [2**32 - 1], [0]),
        output_tensor=BufferTensorDesc(T.FLOAT32, [2]),
        offsets=[1],
        sizes=[2],
        strides=[2**32 - 3],
    )

    found = dmlemu.evaluate(desc, input_tensor=np.broadcast_to(np.float32(5), 2**32 - 1))
    assert found["output_tensor"].tolist() == [5, 5]


def test_the_gradient_of_a_slice_has_zeros_elsewhere() -> None:
    desc = dml.SliceGradOperatorDesc(
        input_gradient_tensor=BufferTensorDesc(T.FLOAT32, [2, 2]),
        output_gradient_tensor=BufferTensorDesc(T.FLOAT32, [4, 5]),
        input_window_offsets=[0, 1],
        input_window_sizes=[3, 4],
        input_window_strides=[2, -3],
    )
    found = compare(desc, {"input_gradient_tensor": np.float32([[1, 2], [3, 4]])})["output_gradient_tensor"]

    assert found.tolist() == [[0, 2, 0, 0, 1], [0] * 5, [0, 4, 0, 0, 3], [0] * 5]


# --- parts ---


def test_more_tensors_than_one_loop_has_operands() -> None:
    parts = [numbers(2, size) + 100 * size for size in range(1, 21)]
    whole = np.concatenate(parts, axis=1)
    split = dml.SplitOperatorDesc(
        input_tensor=tensor(whole), output_tensors=[tensor(each) for each in parts], axis=1
    )
    join = dml.JoinOperatorDesc(
        input_tensors=[tensor(each) for each in parts], output_tensor=tensor(whole), axis=1
    )

    found = in_array(compare(split, {"input_tensor": whole})["output_tensors"])
    assert [each.tolist() for each in found] == [each.tolist() for each in parts]
    assert compare(join, {"input_tensors": parts})["output_tensor"].tolist() == whole.tolist()


# --- padding ---


def padded(x: Array, mode: PaddingMode, start: list[int], end: list[int], value: float = 0) -> Any:
    sizes = [a + size + b for a, size, b in zip(start, x.shape, end, strict=True)]
    desc = dml.PaddingOperatorDesc(
        input_tensor=tensor(x),
        output_tensor=BufferTensorDesc(tensor(x).data_type, sizes),
        padding_mode=mode,
        padding_value=value,
        start_padding=start,
        end_padding=end,
    )
    return compare(desc, {"input_tensor": x})["output_tensor"].tolist()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (PaddingMode.CONSTANT, [7, 7, 7, 7, 1, 2, 3, 7, 7, 7, 7]),
        (PaddingMode.EDGE, [1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3]),
        (PaddingMode.REFLECTION, [1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3]),
        (PaddingMode.SYMMETRIC, [3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1]),
        (PaddingMode.WRAP, [3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1]),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
def test_padding_longer_than_the_input(mode: PaddingMode, expected: list[int]) -> None:
    assert padded(numbers(3), mode, [4], [4], 7) == expected
    assert padded(numbers(3, dtype=np.uint8).reshape(3, 1), mode, [4, 0], [4, 0], 7.9) == [
        [x] for x in expected
    ]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.uint64])
@pytest.mark.parametrize("mode", PaddingMode, ids=lambda each: each.name)
def test_short_rows_of_every_length(mode: PaddingMode, dtype: Any) -> None:
    """Copied by vectors of which the last two overlap, forwards and backwards."""
    for width in [*range(2, 18), 31, 33, 56, 70]:
        padded(numbers(2, 3, width, dtype=dtype), mode, [1, 0, 1], [0, 1, width - 1])


@pytest.mark.parametrize("columns", [14, 58, 600])
def test_rows_of_an_output_larger_than_the_caches(columns: int) -> None:
    x = numbers((17 << 18) // columns // 8, 8, columns)
    padded(x, PaddingMode.CONSTANT, [0, 1, 1], [0, 1, 2], 7)


@pytest.mark.parametrize("mode", [each for each in PaddingMode if each], ids=lambda each: each.name)
def test_padding_of_one_element_repeats_it(mode: PaddingMode) -> None:
    assert padded(np.int16([5]), mode, [2], [3]) == [5] * 6


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (np.int32, 10.6, 10),
        (np.uint8, -1.0, 0),
        (np.int8, 1e9, 127),
        (np.int64, np.nan, 0),
        (np.float16, 0.1, np.float16(0.1)),
    ],
)
def test_the_value_is_converted_as_by_cast(dtype: Any, value: float, expected: Any) -> None:
    assert padded(np.ones(1, dtype), PaddingMode.CONSTANT, [1], [0], value) == [expected, 1]


@pytest.mark.parametrize("rank", [1, 4, 8])
def test_tile_repeats_the_whole_tensor(rank: int) -> None:
    """Of eight dimensions the kernel cannot see a repetition as another axis."""
    x = numbers(*[2] * rank, dtype=np.uint16)
    desc = dml.TileOperatorDesc(
        input_tensor=tensor(x), output_tensor=BufferTensorDesc(T.UINT16, [6] * rank), repeats=[3] * rank
    )

    found = compare(desc, {"input_tensor": x})["output_tensor"]
    assert found.ravel()[:6].tolist() == [1, 2, 1, 2, 1, 2]


# --- blocks ---


def test_the_order_of_depth_and_space() -> None:
    space = numbers(1, 2, 2, 4, dtype=np.uint8)
    column_row = {"output_tensor": BufferTensorDesc(T.UINT8, [1, 8, 1, 2]), "block_size": 2}
    first = dml.SpaceToDepthOperatorDesc(input_tensor=tensor(space), **column_row)
    second = dml.SpaceToDepth1OperatorDesc(
        input_tensor=tensor(space), **column_row, order=dml.DepthSpaceOrder.COLUMN_ROW_DEPTH
    )

    found = [compare(each, {"input_tensor": space})["output_tensor"] for each in (first, second)]
    assert found[0][0, :, 0, 0].tolist() == [1, 9, 2, 10, 5, 13, 6, 14]
    assert found[1][0, :, 0, 0].tolist() == [1, 2, 5, 6, 9, 10, 13, 14]


def upsampled(x: Array, height: int, width: int) -> Array:
    sizes = [*x.shape[:-2], x.shape[-2] * height, x.shape[-1] * width]
    desc = dml.Upsample2dOperatorDesc(
        input_tensor=tensor(x),
        output_tensor=BufferTensorDesc(tensor(x).data_type, sizes),
        scale_size=dml.Size2D(width, height),
        interpolation_mode=dml.InterpolationMode.LINEAR,
    )
    found: Array = compare(desc, {"input_tensor": x})["output_tensor"]
    return found


def test_linear_upsampling_lies_between_the_centres() -> None:
    x = np.float32([10, 20, 30, 40]).reshape(1, 1, 1, 4)

    assert upsampled(x, 1, 2).ravel().tolist() == [10, 12.5, 17.5, 22.5, 27.5, 32.5, 37.5, 40]
    assert upsampled(x.reshape(1, 1, 4, 1), 2, 1).ravel().tolist() == [
        10,
        12.5,
        17.5,
        22.5,
        27.5,
        32.5,
        37.5,
        40,
    ]


def test_an_infinite_neighbour_of_weight_0_is_not_seen() -> None:
    x = np.float16([1, np.inf, 3]).reshape(1, 1, 1, 3)

    assert upsampled(x, 1, 3).ravel().tolist() == [1, 1, np.inf, np.inf, np.inf, np.inf, np.inf, 3, 3]


# --- sequences ---


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_lengths_above_the_size_reverse_everything(dtype: Any) -> None:
    x = numbers(5, 4)
    lengths = np.array([0, 1, 3, 4, np.iinfo(dtype).max], dtype).reshape(5, 1)
    desc = dml.ReverseSubsequencesOperatorDesc(
        input_tensor=tensor(x), sequence_lengths_tensor=tensor(lengths), output_tensor=tensor(x), axis=1
    )

    found = compare(desc, {"input_tensor": x, "sequence_lengths_tensor": lengths})["output_tensor"]
    assert found.tolist() == [
        [1, 2, 3, 4],
        [5, 6, 7, 8],
        [11, 10, 9, 12],
        [16, 15, 14, 13],
        [20, 19, 18, 17],
    ]


def sequence(data_type: T, count: int, start: float, delta: float) -> Array:
    desc = dml.FillValueSequenceOperatorDesc(
        output_tensor=BufferTensorDesc(data_type, [count]),
        value_data_type=data_type,
        value_start=dml.ScalarUnion.of(data_type, start),
        value_delta=dml.ScalarUnion.of(data_type, delta),
    )
    found: Array = compare(desc, {})["output_tensor"]
    return found


def test_integer_sequences_wrap() -> None:
    assert sequence(T.UINT8, 5, 4, 254).tolist() == [4, 2, 0, 254, 252]
    assert sequence(T.INT8, 3, 127, 1).tolist() == [127, -128, -127]
    assert sequence(T.INT64, 3, 2**62, 2**62).tolist() == [2**62, -(2**63), -(2**62)]


def test_float_sequences_do_not_add_up_errors() -> None:
    found = sequence(T.FLOAT32, 1_000_001, 0.0, 0.1)

    assert found[-1] == np.float32(1_000_000) * np.float32(0.1)


# --- matrices ---


def diagonals(begin: int, end: int, given: Array | None = None, size: tuple[int, int] = (3, 4)) -> Any:
    desc = dml.DiagonalMatrix1OperatorDesc(
        input_tensor=None if given is None else tensor(given),
        output_tensor=BufferTensorDesc(T.INT8, size),
        value_data_type=T.INT8,
        value=dml.ScalarUnion.of(T.INT8, 9),
        diagonal_fill_begin=begin,
        diagonal_fill_end=end,
    )
    return compare(desc, {} if given is None else {"input_tensor": given})["output_tensor"].tolist()


def test_diagonals_from_begin_to_end() -> None:
    x = numbers(3, 4, dtype=np.int8)

    assert diagonals(0, 2) == [[9, 9, 0, 0], [0, 9, 9, 0], [0, 0, 9, 9]]
    assert diagonals(-1, 0, x) == [[1, 2, 3, 4], [9, 6, 7, 8], [9, 9, 11, 12]]
    assert diagonals(2, 0, x) == [[1, 2, 9, 9], [9, 6, 7, 9], [9, 9, 11, 12]]
    assert diagonals(2, 2, x) == x.tolist()
    assert diagonals(-(2**31), 2**31 - 1, x) == [[9] * 4] * 3
    assert diagonals(2**31 - 1, -(2**31), x) == x.tolist()
    assert diagonals(4, 9, x) == x.tolist()


@pytest.mark.parametrize("offset", [-(2**31), -3, -1, 0, 2, 2**31 - 1])
def test_one_diagonal(offset: int) -> None:
    desc = dml.DiagonalMatrixOperatorDesc(
        output_tensor=BufferTensorDesc(T.INT32, [2, 3, 4]), offset=offset, value=10.6
    )

    found = compare(desc, {})["output_tensor"]
    assert found[1].tolist() == (10 * np.eye(3, 4, offset, dtype=np.int32)).tolist()


# --- windows ---


def folded(columns: Array, sizes: list[int], window: list[int], padding: int = 0, **changes: Any) -> Array:
    count = len(window)
    desc = dml.FoldOperatorDesc(
        **{
            "input_tensor": tensor(columns),
            "output_tensor": BufferTensorDesc(tensor(columns).data_type, sizes),
            "window_sizes": window,
            "strides": [1] * count,
            "dilations": [1] * count,
            "start_padding": [padding] * count,
            "end_padding": [padding] * count,
            **changes,
        }
    )
    found: Array = compare(desc, {"input_tensor": columns})["output_tensor"]
    return found


def test_folding_counts_the_windows_over_an_element() -> None:
    ones = np.ones((1, 4, 4), np.float32)

    assert folded(ones, [1, 1, 3, 3], [2, 2])[0, 0].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    assert folded(ones, [1, 1, 1, 1], [2, 2], padding=1).tolist() == [[[[4]]]]


def test_fold_sums_are_rounded_once() -> None:
    """2048 + 1 is 2048 in FLOAT16."""
    columns = np.float16([[0, 0, 2048], [0, 1, 0], [1, 0, 0]]).reshape(1, 3, 3)

    assert folded(columns, [1, 1, 5], [3]).tolist() == [[[0, 0, 2050, 0, 0]]]


@pytest.mark.parametrize("changes", [{}, {"strides": [3, 1]}, {"dilations": [5, 1]}])
def test_folding_to_planes_of_several_bands(changes: Any) -> None:
    """The kernel sums some rows of the plane at a time."""
    stride, dilation = (changes.get(name, [1])[0] for name in ("strides", "dilations"))
    blocks = (160 - 1 - 2 * dilation) // stride + 1
    columns = np.random.default_rng(1).random((2, 9, blocks * 70), np.float32)

    folded(columns, [2, 1, 160, 72], [3, 3], **changes)
    folded(columns[:, :3, :60].copy(), [2, 1, 62], [3])
    folded(np.ones((1, 3, 8998), np.float32), [1, 1, 9000], [3])


@pytest.mark.parametrize(
    ("blocks", "sizes", "window", "changes"),
    [
        ([40], [40], [5], {"start_padding": [2], "end_padding": [2]}),
        ([258], [260], [3], {}),  # a row of two pieces, of which one is short
        ([4, 20], [9, 44], [3, 7], {"strides": [2, 1], "dilations": [1, 4]}),
        ([2, 20], [7, 20], [2, 3], {"strides": [5, 1], "start_padding": [0, 1], "end_padding": [0, 1]}),
        ([2, 3, 20], [2, 4, 20], [1, 2, 2], {"start_padding": [0, 0, 1], "end_padding": [0, 0, 0]}),
    ],
)
def test_folding_to_rows_of_vectors(
    blocks: list[int], sizes: list[int], window: list[int], changes: Any
) -> None:
    columns = np.random.default_rng(2).normal(size=(2, 3 * math.prod(window), math.prod(blocks)))
    columns[0, ::2, 3:5] = [np.nan, -np.inf]
    columns[1, :, 7] = -0.0

    folded(columns.astype(np.float32), [2, 3, *sizes], window, **changes)


def test_what_falls_in_the_padding_is_dropped() -> None:
    assert folded(np.float32([2048, 1, 3]).reshape(1, 3, 1), [1, 1, 1], [3], padding=1).tolist() == [[[1]]]
