"""Tensors with more elements than kernels take at once: pieces of rows, blocks and threads meet here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import example, tensor
from harness import compare
from strategies import Values, filled

import dmlemu
from dmlemu import dml
from dmlemu.dml import BufferTensorDesc, MatrixTransform, OperatorType, ReduceFunction
from dmlemu.dml import TensorDataType as T

O = OperatorType  # noqa: E741
SIZES = [3, 173, 517]


def permuted(data_type: T, sizes: list[int] = SIZES) -> BufferTensorDesc:
    """The first dimension is the fastest, and rows have gaps."""
    strides, step = [], 1
    for size in sizes:
        strides.append(step)
        step = step * size + 1
    return BufferTensorDesc(data_type, sizes, strides)


def packed(data_type: T, sizes: list[int] = SIZES) -> BufferTensorDesc:
    return BufferTensorDesc(data_type, sizes)


layouts = pytest.mark.parametrize("source", [packed, permuted])


@layouts
@pytest.mark.parametrize("target", [packed, permuted])
def test_element_wise(source: Any, target: Any) -> None:
    for op, what in (
        (O.ELEMENT_WISE_IDENTITY, "extreme"),
        (O.ELEMENT_WISE_CLIP, "extreme"),
        (O.ACTIVATION_TANH, "small"),
    ):
        desc = example(op, input_tensor=source(T.FLOAT32), output_tensor=target(T.FLOAT32))
        compare(desc, {"input_tensor": filled(desc.input_tensor, Values(what, 1))[1]})
    for op in (O.CAST, O.ELEMENT_WISE_BIT_COUNT):
        desc = example(op, input_tensor=source(T.INT16), output_tensor=target(T.UINT8))
        compare(desc, {"input_tensor": filled(desc.input_tensor, Values("bits", 2))[1]})
    a, b = source(T.INT32), packed(T.INT32)
    for op in (O.ELEMENT_WISE_ADD, O.ELEMENT_WISE_BIT_XOR):
        desc = example(op, a_tensor=a, b_tensor=b, output_tensor=target(T.INT32))
        inputs = {"a_tensor": filled(a, Values("bits", 3))[1], "b_tensor": filled(b, Values("bits", 4))[1]}
        compare(desc, inputs)


@layouts
@pytest.mark.parametrize(
    "axes",
    [
        [0],
        [1],
        [0, 2],
        *(pytest.param(each, marks=pytest.mark.long) for each in ([2], [1, 2], [0, 1, 2], [])),
    ],
    ids=str,
)
def test_reduce(source: Any, axes: list[int]) -> None:
    sizes = [300, 12, 301]
    kept = [1 if d in axes else size for d, size in enumerate(sizes)]
    for function in (ReduceFunction.SUM, ReduceFunction.MAX, ReduceFunction.ARGMIN, ReduceFunction.L1):
        for data_type in (T.INT32, T.FLOAT32):
            result = T.UINT32 if function is ReduceFunction.ARGMIN else data_type
            desc = example(
                O.REDUCE,
                function=function,
                input_tensor=source(data_type, sizes),
                output_tensor=packed(result, kept),
                axes=axes,
            )
            x = filled(desc.input_tensor, Values("small", 7))[1]
            compare(desc, {"input_tensor": x})


@layouts
@pytest.mark.parametrize("kind", ["sparse", "small"])
def test_nonzero_coordinates(source: Any, kind: str) -> None:
    desc = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=source(T.FLOAT16),
        output_count_tensor=tensor(T.UINT32, 1),
        output_coordinates_tensor=permuted(T.UINT32, [3 * 173 * 517, 3]),
    )

    compare(desc, {"input_tensor": filled(desc.input_tensor, Values(kind, 3))[1]})


@layouts
@pytest.mark.parametrize("transform", MatrixTransform, ids=lambda transform: transform.name)
def test_gemm(source: Any, transform: MatrixTransform) -> None:
    """More than one block of rows, of columns, and an odd depth."""
    m, n, k = 130, 270, 65
    a, b = ([2, k, m], [2, n, k]) if transform else ([2, m, k], [2, k, n])
    desc = example(
        O.GEMM,
        a_tensor=source(T.FLOAT32, a),
        b_tensor=source(T.FLOAT32, b),
        c_tensor=BufferTensorDesc(T.FLOAT32, [2, m, n], [0, 0, 1]),
        output_tensor=source(T.FLOAT32, [2, m, n]),
        trans_a=transform,
        trans_b=transform,
        fused_activation=None,
    )

    inputs = {
        name: filled(getattr(desc, name), Values("small", seed))[1]
        for seed, name in enumerate(("a_tensor", "b_tensor", "c_tensor"))
    }
    compare(desc, inputs)


@layouts
def test_convolution_integer(source: Any) -> None:
    desc = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=source(T.UINT8, [2, 32, 19, 21]),
        input_zero_point_tensor=tensor(T.UINT8, 1, 1, 1, 1),
        filter_tensor=source(T.INT8, [24, 16, 3, 3]),
        filter_zero_point_tensor=source(T.INT8, [1, 24, 1, 1]),
        output_tensor=source(T.INT32, [2, 24, 19, 21]),
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
        group_count=2,
    )

    names = ("input_tensor", "input_zero_point_tensor", "filter_tensor", "filter_zero_point_tensor")
    inputs = {name: filled(getattr(desc, name), Values("bits", seed))[1] for seed, name in enumerate(names)}
    found = compare(desc, inputs)
    assert np.abs(found["output_tensor"]).max() > 2**20


@pytest.mark.parametrize(("data_type", "bits"), [(T.FLOAT16, np.uint16), (T.FLOAT32, np.uint32)])
def test_of_two_nans_the_sum_is_the_one_nan(data_type: T, bits: Any) -> None:
    """At every place of a row, on every path: vectors, their tails, pieces, threads."""
    nans = {np.uint16: (0x7E12, 0xFE34), np.uint32: (0x7FC00012, 0xFFC00034)}[bits]
    one = {np.uint16: 0x7E00, np.uint32: 0x7FC00000}[bits]
    for count in (1, 7, 1003, 3_000_001):
        desc = BufferTensorDesc(data_type, [count])
        add = dml.ElementWiseAddOperatorDesc(a_tensor=desc, b_tensor=desc, output_tensor=desc)
        a, b = (np.full(count, each, bits).view(f"f{np.dtype(bits).itemsize}") for each in nans)
        found = dmlemu.evaluate(add, a_tensor=a, b_tensor=b)["output_tensor"].view(bits)
        assert (found == one).all()


@pytest.mark.parametrize("count", [1, 7, 1003, 3_000_001])
def test_a_signalling_nan_comes_out_quiet(count: int) -> None:
    cast = dml.CastOperatorDesc(
        input_tensor=BufferTensorDesc(T.FLOAT16, [count]), output_tensor=BufferTensorDesc(T.FLOAT32, [count])
    )
    halves = np.full(count, 0x7C01, np.uint16).view(np.float16)
    found = dmlemu.evaluate(cast, input_tensor=halves)["output_tensor"].view(np.uint32)
    assert (found == 0x7FC02000).all()


def _moved() -> list[tuple[OperatorType, dict[str, Any]]]:
    """Data movement whose packed output bypasses the caches, in rows that are not whole cache lines."""
    sizes, framed = [3, 41, 331, 431], [3, 41, 334, 436]
    x = BufferTensorDesc(T.UINT8, sizes)
    pads = {"start_padding": [0, 0, 1, 2], "end_padding": [0, 0, 2, 3], "padding_value": 7}
    pads |= {"input_tensor": x, "output_tensor": BufferTensorDesc(T.UINT8, framed)}
    small, columns = BufferTensorDesc(T.UINT8, [2, 5, 331, 431]), BufferTensorDesc(T.UINT8, [3, 41, 331, 100])
    doubled, halves = BufferTensorDesc(T.FLOAT16, [1, 2, 2222, 2062]), [1, 2, 1111, 1031]
    square = BufferTensorDesc(T.UINT8, [2, 3001, 2901])
    pad, upsample = dml.PaddingMode, dml.InterpolationMode.NEAREST_NEIGHBOR
    modes = (pad.CONSTANT, pad.EDGE, pad.REFLECTION, pad.SYMMETRIC)
    return [
        *((O.PADDING, pads | {"padding_mode": mode}) for mode in modes),
        (
            O.TILE,
            {
                "input_tensor": small,
                "output_tensor": BufferTensorDesc(T.UINT8, [2, 10, 662, 1293]),
                "repeats": [1, 2, 2, 3],
            },
        ),
        (
            O.JOIN,
            {
                "input_tensors": [x, columns],
                "output_tensor": BufferTensorDesc(T.UINT8, [3, 41, 331, 531]),
                "axis": 3,
            },
        ),
        (
            O.SPLIT,
            {
                "input_tensor": BufferTensorDesc(T.UINT8, [3, 41, 331, 531]),
                "output_tensors": [x, columns],
                "axis": 3,
            },
        ),
        (
            O.DIAGONAL_MATRIX1,
            {
                "input_tensor": square,
                "output_tensor": square,
                "value_data_type": T.UINT8,
                "value": dml.ScalarUnion.of(T.UINT8, 9),
                "diagonal_fill_begin": -1500,
                "diagonal_fill_end": 300,
            },
        ),
        (
            O.UPSAMPLE_2D,
            {
                "input_tensor": BufferTensorDesc(T.FLOAT16, halves),
                "output_tensor": doubled,
                "scale_size": dml.Size2D(2, 2),
                "interpolation_mode": upsample,
            },
        ),
        (
            O.UNFOLD,
            {
                "input_tensor": BufferTensorDesc(T.FLOAT16, [1, 2, 701, 703]),
                "output_tensor": BufferTensorDesc(T.FLOAT16, [1, 18, 701 * 703]),
                "window_sizes": [3, 3],
                "strides": [1, 1],
                "dilations": [1, 1],
                "start_padding": [1, 1],
                "end_padding": [1, 1],
            },
        ),
    ]


@pytest.mark.parametrize(
    "op, fields",
    [
        pytest.param(*each, marks=() if number < 3 else pytest.mark.long)
        for number, each in enumerate(_moved())
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_streamed_movement(op: OperatorType, fields: dict[str, Any]) -> None:
    desc = example(op, **fields)
    if op is O.JOIN:
        inputs: dict[str, Any] = {
            "input_tensors": [filled(each, Values("bits", 5))[1] for each in desc.input_tensors]
        }
    else:
        inputs = {"input_tensor": filled(desc.input_tensor, Values("bits", 6))[1]}
    compare(desc, inputs)


def test_streamed_reversal() -> None:
    """Rows of 517 elements are no whole cache lines."""
    x, lengths = BufferTensorDesc(T.FLOAT32, [4, 2050, 517]), np.uint32([0, 1, 1203, 2050])
    desc = dml.ReverseSubsequencesOperatorDesc(
        input_tensor=x,
        sequence_lengths_tensor=BufferTensorDesc(T.UINT32, [4, 1, 517], [1, 0, 0]),
        output_tensor=x,
        axis=1,
    )
    inputs = {"input_tensor": filled(x, Values("bits", 7))[1]}
    inputs["sequence_lengths_tensor"] = np.broadcast_to(lengths.reshape(4, 1, 1), (4, 1, 517))
    compare(desc, inputs)


def test_streamed_gather() -> None:
    table, rows = BufferTensorDesc(T.FLOAT32, [300, 257]), BufferTensorDesc(T.FLOAT32, [17000, 257])
    desc = dml.GatherOperatorDesc(
        input_tensor=table,
        indices_tensor=BufferTensorDesc(T.INT32, [1, 17000]),
        output_tensor=rows,
        axis=0,
        index_dimensions=1,
    )
    inputs = {
        "input_tensor": filled(table, Values("bits", 10))[1],
        "indices_tensor": np.random.default_rng(10).integers(-300, 300, (1, 17000), np.int32),
    }
    compare(desc, inputs)


def test_streamed_scatter() -> None:
    table, rows = BufferTensorDesc(T.FLOAT32, [8200, 517]), BufferTensorDesc(T.FLOAT32, [300, 517])
    desc = dml.ScatterNdOperatorDesc(
        input_tensor=table,
        indices_tensor=BufferTensorDesc(T.INT64, [300, 1]),
        updates_tensor=rows,
        output_tensor=table,
        input_dimension_count=2,
        indices_dimension_count=2,
    )
    inputs = {
        "input_tensor": filled(table, Values("bits", 8))[1],
        "indices_tensor": np.random.default_rng(9).permutation(8200)[:300].reshape(300, 1),
        "updates_tensor": filled(rows, Values("bits", 9))[1],
    }
    compare(desc, inputs)
