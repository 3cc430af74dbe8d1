"""A program of its own: runs operators of every kind on random bits and prints a digest of each result.

``test_same_bits.py`` runs it with different instructions, threads and kernels, and on a CPU without AVX: what
it prints must be the same.  ``--plain`` runs the plain kernels (the checked build) too and fails when the
tuned ones store anything else.  It imports nothing but the package: an emulated CPU is slow.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

import dmlemu
from dmlemu import dml
from dmlemu.dml import (
    BufferTensorDesc,
    ConvolutionDirection,
    ConvolutionMode,
    MatrixTransform,
    ReduceFunction,
)
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import definition_class, emulated
from dmlemu.dml.operators.families.element_wise import ElementWise
from dmlemu_hw.kernel_sanitizer import checked

Array = np.ndarray[Any, Any]

FLOATS = [T.FLOAT32, T.FLOAT16]
ALL = [
    *[T.FLOAT64, T.FLOAT32, T.FLOAT16],
    *[T.INT64, T.INT32, T.INT16, T.INT8],
    *[T.UINT64, T.UINT32, T.UINT16, T.UINT8],
]
SIZES = [[1, 2, 3, 37], [3, 5, 40, 2], [2, 2, 2, 2], [700]]
LARGE = [2, 3, 211, 251]  # pieces for three threads
NAN = float("nan")


def layout(data_type: T, sizes: Sequence[int], kind: int) -> BufferTensorDesc:
    """Packed, reversed, with gaps (an odd number of elements apart), or the same with rows that have gaps."""
    if kind % 4 == 0:
        return BufferTensorDesc(data_type, sizes)
    order = range(len(sizes)) if kind % 4 == 1 else range(len(sizes) - 1, -1, -1)
    strides, step = [0] * len(sizes), 3 if kind % 4 == 2 else 1
    for d in order:
        strides[d] = step
        step = step * sizes[d] + (kind % 4 == 3)
    return BufferTensorDesc(data_type, sizes, strides)


@dataclass(frozen=True)
class Contents:
    """Of an input: any bits.  Of floats a third is NaN (quiet and signalling, of either sign), infinite or
    about 1; ``mostly_numbers``: few are, else every sum would be NaN."""

    data_type: T
    sizes: Sequence[int]
    mostly_numbers: bool = False

    def array(self, random: np.random.Generator) -> Array:
        dtype, shape = BufferTensorDesc(self.data_type, [1]).dtype, tuple(self.sizes)
        unsigned = np.dtype(f"u{dtype.itemsize}")
        x = random.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(unsigned).reshape(shape)
        if dtype.kind == "f":
            infinity, one = (np.array(number, dtype).view(unsigned) for number in (np.inf, 1))
            fraction = ~infinity & (infinity - 1)
            what = random.integers(0, 12, shape)
            x = np.where(what == 0, x | infinity, x)  # NaN, mostly
            x = np.where(what == 1, infinity | (x & ~fraction), x)
            x = np.where(what > 8, (x & ~infinity) | one, x)
        x = np.ascontiguousarray(x.astype(unsigned)).view(dtype)
        if self.mostly_numbers:
            x = np.where(random.random(shape) < 1 / 40, x, random.normal(0, 1, shape).astype(dtype))
        return x


Cases = Iterator[tuple[str, Any, dict[str, Contents]]]


def each_unary() -> Iterator[tuple[str, type, dict[str, float]]]:
    yield "CELU", dml.ActivationCeluOperatorDesc, {"alpha": 0.75}
    yield "ELU", dml.ActivationEluOperatorDesc, {"alpha": 1.5}
    yield "GELU", dml.ActivationGeluOperatorDesc, {}
    yield "HARD_SIGMOID", dml.ActivationHardSigmoidOperatorDesc, {"alpha": 0.2, "beta": 0.5}
    yield "IDENTITY", dml.ActivationIdentityOperatorDesc, {}
    yield "LEAKY_RELU", dml.ActivationLeakyReluOperatorDesc, {"alpha": 0.01}
    yield "LINEAR", dml.ActivationLinearOperatorDesc, {"alpha": -3.0, "beta": -1.0}
    yield "LINEAR by NaN", dml.ActivationLinearOperatorDesc, {"alpha": NAN, "beta": NAN}
    yield "PARAMETRIC_SOFTPLUS", dml.ActivationParametricSoftplusOperatorDesc, {"alpha": 2.0, "beta": 0.5}
    yield "RELU", dml.ActivationReluOperatorDesc, {}
    yield "SCALED_ELU", dml.ActivationScaledEluOperatorDesc, {"alpha": 1.67, "gamma": 1.05}
    yield "SCALED_TANH", dml.ActivationScaledTanhOperatorDesc, {"alpha": -1.0, "beta": 0.5}
    yield "SHRINK", dml.ActivationShrinkOperatorDesc, {"bias": float("inf"), "threshold": 0.5}
    yield "SIGMOID", dml.ActivationSigmoidOperatorDesc, {}
    yield "SOFTPLUS", dml.ActivationSoftplusOperatorDesc, {"steepness": 1.5}
    yield "SOFTSIGN", dml.ActivationSoftsignOperatorDesc, {}
    yield "TANH", dml.ActivationTanhOperatorDesc, {}
    yield "THRESHOLDED_RELU", dml.ActivationThresholdedReluOperatorDesc, {"alpha": 1.0}
    yield "IDENTITY scaled", dml.ElementWiseIdentityOperatorDesc, {"scale_bias": dml.ScaleBias(2.0, -1.0)}
    yield "CLIP", dml.ElementWiseClipOperatorDesc, {"min": -1.0, "max": 1.0}
    yield "CLIP from NaN", dml.ElementWiseClipOperatorDesc, {"min": NAN, "max": 1.0}
    yield "CLIP by NaN", dml.ElementWiseClipOperatorDesc, {"min": NAN, "max": NAN}
    yield (
        "CLIP scaled",
        dml.ElementWiseClipOperatorDesc,
        {
            "min": -1.0,
            "max": NAN,
            "scale_bias": dml.ScaleBias(NAN, 0.0),
        },
    )


def element_wise() -> Cases:
    for i, (name, desc, fields) in enumerate(each_unary()):
        for data_type in FLOATS:
            for kind, sizes in enumerate(SIZES):
                x, y = layout(data_type, sizes, kind), layout(data_type, sizes, kind + i)
                op = desc(input_tensor=x, output_tensor=y, **fields)
                yield f"{name} {data_type.name} {kind}", op, {"input_tensor": Contents(data_type, sizes)}
    for i, data_type in enumerate(ALL):
        for kind, sizes in enumerate(SIZES[i % 2 :: 2]):
            x, y = layout(data_type, sizes, kind), layout(data_type, sizes, kind + 1)
            arrays = {"a_tensor": Contents(data_type, sizes), "b_tensor": Contents(data_type, sizes)}
            if data_type is not T.FLOAT64:
                op: Any = dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=y, output_tensor=x)
                yield f"ADD {data_type.name} {kind}", op, arrays
            op = dml.ElementWiseBitXorOperatorDesc(a_tensor=x, b_tensor=y, output_tensor=y)
            yield f"BIT_XOR {data_type.name} {kind}", op, arrays
            count = layout(T.UINT32, sizes, kind)
            op = dml.ElementWiseBitCountOperatorDesc(input_tensor=x, output_tensor=count)
            yield f"BIT_COUNT {data_type.name} {kind}", op, {"input_tensor": Contents(data_type, sizes)}
    for i, (name, desc, fields) in enumerate(each_unary()):
        if "CLIP" not in name and "scaled" not in name:
            sizes, data_type = SIZES[i % 4], FLOATS[i % 2]
            x, y = layout(data_type, sizes, i), layout(data_type, sizes, i + 1)
            op = dml.ElementWiseAdd1OperatorDesc(
                a_tensor=x, b_tensor=y, output_tensor=y, fused_activation=desc(**fields)
            )
            arrays = {"a_tensor": Contents(data_type, sizes), "b_tensor": Contents(data_type, sizes)}
            yield f"ADD1 {name}", op, arrays


def families() -> Cases:
    """The example of every element-wise operator: also of those that are not above."""
    for i, kind in enumerate(sorted(emulated())):
        definition = definition_class(kind)
        if definition is None or not issubclass(definition, ElementWise):
            continue
        op = declared()[kind](**definition.example())
        types = op.allowed(max(dml.FeatureLevel))[definition.INPUTS[0]].data_types
        if hasattr(op, "min_max_data_type"):
            types = frozenset({T.FLOAT32})
        for data_type in sorted(types & set(FLOATS) or types):
            sizes = SIZES[i % 4]
            given = dict.fromkeys(definition.INPUTS, data_type)
            if "condition_tensor" in given:
                given = {"condition_tensor": T.UINT8, "a_tensor": T.FLOAT16, "b_tensor": T.FLOAT16}
            fields = {name: layout(given[name], sizes, i + k) for k, name in enumerate(given)}
            results = op.allowed(max(dml.FeatureLevel))[definition.OUTPUT].data_types
            last = given[definition.INPUTS[-1]]
            fields[definition.OUTPUT] = layout(last if last in results else min(results), sizes, i + 2)
            op = replace(op, **fields)  # type: ignore[type-var]
            arrays = {name: Contents(given[name], sizes) for name in given}
            yield f"{kind.name} {data_type.name}", op, arrays


def casts() -> Cases:
    for i, source in enumerate(ALL):
        for j, target in enumerate(ALL):
            sizes = SIZES[(i + j) % 4]
            x, y = layout(source, sizes, i % 3), layout(target, sizes, j)
            op = dml.CastOperatorDesc(input_tensor=x, output_tensor=y)
            yield f"CAST {source.name} {target.name}", op, {"input_tensor": Contents(source, sizes)}


def reductions() -> Cases:
    places = (ReduceFunction.ARGMAX, ReduceFunction.ARGMIN)
    for function in ReduceFunction:
        for data_type in FLOATS:
            for k, (sizes, axes) in enumerate(
                [([3, 4, 50], [2]), ([3, 100, 40], [1]), ([2, 3, 4], [0, 1, 2]), ([9, 7], [])]
            ):
                small = [1 if d in axes else n for d, n in enumerate(sizes)]
                op = dml.ReduceOperatorDesc(
                    function=function,
                    input_tensor=layout(data_type, sizes, k + 1),
                    output_tensor=layout(T.UINT32 if function in places else data_type, small, k),
                    axes=axes,
                )
                x = Contents(data_type, sizes, mostly_numbers=k < 2)
                yield f"REDUCE {function.name} {data_type.name} {k}", op, {"input_tensor": x}


def large() -> Cases:
    """Enough for three threads, of which each gets a piece of its own kind."""
    for k, data_type in enumerate(FLOATS):
        x = layout(data_type, LARGE, 3 * k)
        arrays = {"a_tensor": Contents(data_type, LARGE), "b_tensor": Contents(data_type, LARGE)}
        op: Any = dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
        yield f"large ADD {data_type.name}", op, arrays
        op = dml.ActivationSoftsignOperatorDesc(input_tensor=x, output_tensor=x)
        yield f"large SOFTSIGN {data_type.name}", op, {"input_tensor": arrays["a_tensor"]}
    for function, rows in ((ReduceFunction.SUM, 530_000), (ReduceFunction.LOG_SUM_EXP, 70_000)):
        op = dml.ReduceOperatorDesc(
            function=function,
            input_tensor=BufferTensorDesc(T.FLOAT16, [rows, 3]),
            output_tensor=BufferTensorDesc(T.FLOAT16, [1, 3]),
            axes=[0],
        )
        yield f"large REDUCE {function.name}", op, {"input_tensor": Contents(T.FLOAT16, [rows, 3])}


def lines() -> Cases:
    """Softmax, scans and TOP_K, along and across lines; sums of a million elements."""
    axes_of = [([3, 4, 50], [2]), ([3, 100, 40], [1]), ([2, 3, 4], [0, 2]), ([40, 1000], [0])]
    softmax = dml.ActivationSoftmax1OperatorDesc, dml.ActivationLogSoftmax1OperatorDesc
    for k, (sizes, axes) in enumerate(axes_of):
        for data_type in (T.FLOAT32, T.FLOAT16):
            x, y = layout(data_type, sizes, k), layout(data_type, sizes, k + 1)
            array = {"input_tensor": Contents(data_type, sizes, mostly_numbers=True)}
            for kind in (*softmax, dml.ActivationHardmax1OperatorDesc):
                op: Any = kind(input_tensor=x, output_tensor=y, axes=axes)
                yield f"{kind.TYPE.name} {data_type.name} {k}", op, array
            fields: dict[str, Any] = {"axis": axes[-1], "axis_direction": dml.AxisDirection(k % 2)}
            op = dml.CumulativeSummationOperatorDesc(
                input_tensor=x, output_tensor=y, has_exclusive_sum=k == 1, **fields
            )
            yield f"CUMULATIVE_SUMMATION {data_type.name} {k}", op, array
            op = dml.CumulativeProductOperatorDesc(
                input_tensor=x, output_tensor=y, has_exclusive_product=k == 1, **fields
            )
            yield f"CUMULATIVE_PRODUCT {data_type.name} {k}", op, array
            small = [3 if d == axes[-1] else n for d, n in enumerate(sizes)]
            op = dml.TopK1OperatorDesc(
                input_tensor=x,
                output_value_tensor=layout(data_type, small, k),
                output_index_tensor=layout(T.UINT32, small, k),
                k=3,
                **fields,
            )
            yield f"TOP_K1 {data_type.name} {k}", op, array
    million = Contents(T.FLOAT32, [10**6, 2], mostly_numbers=True)
    for axes in ([0], [1, 0]):
        for function in (ReduceFunction.SUM, ReduceFunction.L2, ReduceFunction.ARGMAX):
            for strides in ([2, 1], [1, 10**6]):
                index = function is ReduceFunction.ARGMAX
                op = dml.ReduceOperatorDesc(
                    function=function,
                    input_tensor=BufferTensorDesc(T.FLOAT32, [10**6, 2], strides),
                    output_tensor=BufferTensorDesc(
                        T.UINT32 if index else T.FLOAT32, [1, 2 if axes == [0] else 1]
                    ),
                    axes=axes,
                )
                yield f"million {function.name} {axes} {strides}", op, {"input_tensor": million}


def products() -> Cases:
    shapes = [(1, 1, 1), (1, 70, 9), (7, 5, 3), (33, 20, 50), (8, 300, 48), (160, 200, 170)]
    for k, (m, depth, n) in enumerate(shapes):
        for data_type in FLOATS:
            for with_c in (False, True):
                trans_a, trans_b = MatrixTransform(k % 2), MatrixTransform(k // 2 % 2)
                a = [depth, m] if trans_a else [m, depth]
                b = [n, depth] if trans_b else [depth, n]
                arrays = {
                    "a_tensor": Contents(data_type, a, mostly_numbers=True),
                    "b_tensor": Contents(data_type, b, mostly_numbers=True),
                }
                if with_c:
                    arrays["c_tensor"] = Contents(data_type, [m, n])
                op = dml.GemmOperatorDesc(
                    a_tensor=layout(data_type, a, k),
                    b_tensor=layout(data_type, b, k // 2),
                    c_tensor=layout(data_type, [m, n], k) if with_c else None,
                    output_tensor=layout(data_type, [m, n], k // 3),
                    trans_a=trans_a,
                    trans_b=trans_b,
                    alpha=NAN if k == 2 else 0.5,
                    beta=2.0,
                    fused_activation=dml.ActivationTanhOperatorDesc() if k == 3 else None,
                )
                yield f"GEMM {data_type.name} {m}x{depth}x{n} {with_c}", op, arrays


def others() -> Cases:
    for k, sizes in enumerate(SIZES):
        rank, count = len(sizes), int(np.prod(sizes))
        for data_type in (T.FLOAT32, T.FLOAT16, T.INT8) if rank == 4 else ():
            op: Any = dml.NonzeroCoordinatesOperatorDesc(
                input_tensor=layout(data_type, sizes, k),
                output_count_tensor=BufferTensorDesc(T.UINT32, [1] * rank),
                output_coordinates_tensor=BufferTensorDesc(T.UINT32, [1] * (rank - 2) + [count, rank]),
            )
            yield (
                f"NONZERO_COORDINATES {data_type.name} {k}",
                op,
                {"input_tensor": Contents(data_type, sizes)},
            )
    shapes = [(3, 5, 1, 3), (8, 16, 1, 1), (16, 16, 16, 3), (4, 6, 2, 2)]
    for k, (channels, filters, groups, window) in enumerate(shapes):
        for data_type in (T.UINT8, T.INT8):
            sizes, filter_sizes = [2, channels, 13, 22], [filters, channels // groups, window, window]
            out = [2, filters, 13 - window + 1, 22 - window + 1]
            op = dml.ConvolutionIntegerOperatorDesc(
                input_tensor=layout(data_type, sizes, k),
                input_zero_point_tensor=BufferTensorDesc(data_type, [1, 1, 1, 1]),
                filter_tensor=layout(T.INT8, filter_sizes, k // 2),
                filter_zero_point_tensor=None,
                output_tensor=BufferTensorDesc(T.INT32, out),
                strides=[1, 1],
                dilations=[1, 1],
                start_padding=[0, 0],
                end_padding=[0, 0],
                group_count=groups,
            )
            arrays = {
                "input_tensor": Contents(data_type, sizes),
                "input_zero_point_tensor": Contents(data_type, [1, 1, 1, 1]),
                "filter_tensor": Contents(T.INT8, filter_sizes),
            }
            yield f"CONVOLUTION_INTEGER {data_type.name} {k}", op, arrays


def convolutions() -> Cases:
    """Input channels, filters, groups, window, size, stride, dilation; every second with channels last."""
    shapes = [
        (3, 5, 1, 3, [13, 22], 1, 1),
        (8, 16, 1, 1, [14, 14], 1, 1),
        (64, 50, 1, 3, [9, 70], 2, 1),
        (70, 40, 2, 3, [17, 6], 1, 2),
        (16, 16, 16, 3, [13, 53], 1, 1),
        (16, 16, 16, 3, [13, 53], 2, 1),
        (6, 12, 6, 5, [30, 31], 1, 2),
        (2, 3, 1, 2, [9], 1, 1),
        (16, 16, 16, 3, [13, 53], 2, 1),
        (4, 6, 2, 2, [5, 6, 7], 1, 1),
        (8, 16, 1, 3, [4, 4], 2, 1),
        (6, 8, 1, 2, [7, 9], 3, 1),
        (6, 8, 2, 3, [9, 8], 4, 2),
        (8, 8, 1, 5, [33], 2, 3),
        (4, 6, 1, 4, [7, 5, 6], 2, 1),
        (36, 20, 2, 3, [13, 10], 2, 1),
        (50, 6, 1, 8, [70], 5, 1),
    ]
    for k, (channels, filters, groups, window, sizes, stride, dilation) in enumerate(shapes):
        span, spatial = (window - 1) * dilation + 1, len(sizes)
        formula = [(size + 2 - span) // stride + 1 for size in sizes]
        for backward, last, data_type in product((False, True), (False, True), FLOATS):
            more = (0, -2, 5)[(k + backward + last) % 3]  # positions than the formula gives
            narrow = [max(1, size + more) for size in formula]
            filter_sizes = [filters, channels // groups, *[window] * spatial]
            wide_sizes, narrow_sizes = [2, channels, *sizes], [2, filters, *narrow]
            source, target = (narrow_sizes, wide_sizes) if backward else (wide_sizes, narrow_sizes)
            op = dml.ConvolutionOperatorDesc(
                input_tensor=channels_last(data_type, source) if last else layout(data_type, source, k),
                filter_tensor=layout(data_type, filter_sizes, k // 2),
                bias_tensor=BufferTensorDesc(data_type, [1, target[1], *[1] * spatial]) if k % 2 else None,
                output_tensor=channels_last(data_type, target) if last else layout(data_type, target, k // 4),
                mode=ConvolutionMode(k % 2),
                direction=ConvolutionDirection(int(backward)),
                strides=[stride] * spatial,
                dilations=[dilation] * spatial,
                start_padding=[1] * spatial,
                end_padding=[1] * spatial,
                output_padding=[0] * spatial,
                group_count=groups,
                fused_activation=dml.ActivationReluOperatorDesc() if k == 3 else None,
            )
            arrays = {
                "input_tensor": Contents(data_type, source, mostly_numbers=True),
                "filter_tensor": Contents(data_type, filter_sizes, mostly_numbers=k != 2),
            }
            if op.bias_tensor is not None:
                arrays["bias_tensor"] = Contents(data_type, op.bias_tensor.sizes, mostly_numbers=True)
            yield f"CONVOLUTION {data_type.name} {k} {backward} {last}", op, arrays


def channels_last(data_type: T, sizes: Sequence[int]) -> BufferTensorDesc:
    strides, step = [0] * len(sizes), 1
    for d in (1, *range(len(sizes) - 1, 1, -1), 0):
        strides[d] = step
        step *= sizes[d]
    return BufferTensorDesc(data_type, sizes, strides)


def poolings() -> Cases:
    for k, (window, stride, padding) in enumerate([(3, 2, 1), (2, 1, 0), (5, 3, 2), (13, 1, 0)]):
        for data_type in FLOATS:
            for channels in (3, 40):
                sizes, out = (
                    [2, channels, 13, 50],
                    [(each + 2 * padding - window) // stride + 1 for each in (13, 50)],
                )
                op = dml.AveragePoolingOperatorDesc(
                    input_tensor=layout(data_type, sizes, k),
                    output_tensor=layout(data_type, [2, channels, *out], k),
                    strides=[stride] * 2,
                    window_size=[window] * 2,
                    start_padding=[padding] * 2,
                    end_padding=[padding] * 2,
                    include_padding=k % 2 == 0,
                )
                x = Contents(data_type, sizes, mostly_numbers=True)
                yield f"AVERAGE_POOLING {data_type.name} {k} {channels}", op, {"input_tensor": x}


def normalizations() -> Cases:
    """With given statistics and those of the groups; the sizes are enough for three threads."""
    for last, (k, sizes) in product((False, True), enumerate(([1, 19, 113, 101], [3, 67, 57, 31]))):
        of = channels_last if last else BufferTensorDesc
        x, one = of(T.FLOAT32, sizes), BufferTensorDesc(T.FLOAT32, [1, sizes[1], 1, 1])
        arrays = {"input_tensor": Contents(T.FLOAT32, sizes, mostly_numbers=k == 0)}
        factors = {
            name: Contents(T.FLOAT32, one.sizes, mostly_numbers=True)
            for name in ("scale_tensor", "bias_tensor")
        }
        given = {
            "mean_tensor": Contents(T.FLOAT32, one.sizes, mostly_numbers=True),
            "variance_tensor": Contents(
                T.FLOAT32, one.sizes
            ),  # of those that are negative the results are NaN
        }
        op: Any = dml.BatchNormalizationOperatorDesc(
            input_tensor=x, output_tensor=x, **dict.fromkeys(given | factors, one), spatial=True, epsilon=1e-5
        )
        yield f"BATCH_NORMALIZATION {k} {last}", op, arrays | given | factors
        op = dml.BatchNormalizationTrainingOperatorDesc(
            input_tensor=x,
            output_tensor=x,
            output_mean_tensor=one,
            output_variance_tensor=one,
            **dict.fromkeys(factors, one),
            epsilon=1e-5,
        )
        yield f"BATCH_NORMALIZATION_TRAINING {k} {last}", op, arrays | factors


def networks() -> Cases:
    """Recurrent networks of 17 inputs and 19 units, and attention of 2 heads."""
    tanh, sigmoid = dml.ActivationTanhOperatorDesc(), dml.ActivationSigmoidOperatorDesc()
    clip = {"clip_threshold": 2.0, "use_clip_threshold": True, "couple_input_forget": False}
    kinds: list[tuple[Any, int, list[Any], dict[str, Any]]] = [
        (dml.RnnOperatorDesc, 1, [tanh], {}),
        (dml.LstmOperatorDesc, 4, [sigmoid, tanh, tanh], clip),
        (dml.GruOperatorDesc, 3, [sigmoid, tanh], {"linear_before_reset": False}),
    ]
    for (desc, gates, functions, fields), data_type, direction in product(
        kinds, FLOATS, dml.RecurrentNetworkDirection
    ):
        d = 2 if direction is dml.RecurrentNetworkDirection.BIDIRECTIONAL else 1
        arrays = {
            "input_tensor": Contents(data_type, [1, 3, 5, 17], mostly_numbers=True),
            "weight_tensor": Contents(data_type, [1, d, gates * 19, 17], mostly_numbers=True),
            "recurrence_tensor": Contents(data_type, [1, d, gates * 19, 19], mostly_numbers=True),
        }
        op = desc(
            **{
                name: layout(each.data_type, each.sizes, i + d)
                for i, (name, each) in enumerate(arrays.items())
            },
            output_sequence_tensor=layout(data_type, [3, d, 5, 19], d),
            activation_descs=functions * d,
            direction=direction,
            **fields,
        )
        yield f"{desc.TYPE.name} {data_type.name} {direction.name}", op, arrays
    for k, data_type in product(range(4), FLOATS):
        sizes = {"query_tensor": [2, 7, 46], "key_tensor": [2, 33, 46], "value_tensor": [2, 33, 30]}
        arrays = {name: Contents(data_type, each, mostly_numbers=True) for name, each in sizes.items()}
        attention = dml.MultiheadAttentionOperatorDesc(
            **{name: layout(data_type, each, k + i) for i, (name, each) in enumerate(sizes.items())},
            output_tensor=layout(data_type, [2, 7, 30], k),
            scale=0.25,
            mask_filter_value=-1e4,
            head_count=2,
            mask_type=dml.MultiheadAttentionMaskType.NONE,
        )
        yield f"MULTIHEAD_ATTENTION {data_type.name} {k}", attention, arrays


def resamplings() -> Cases:
    """Enlarged and reduced, so that rows are mixed by vectors, by pairs, and by columns of all channels."""
    linear, nearest = dml.InterpolationMode.LINEAR, dml.InterpolationMode.NEAREST_NEIGHBOR
    for data_type, (mode, antialiased) in product(
        (T.FLOAT32, T.FLOAT16, T.UINT8), ((linear, False), (linear, True), (nearest, False))
    ):
        for k, scale in enumerate((2.0, 1.3, 0.6, 0.3)):
            small, large = [2, 9, 13, 45], [2, 9, int(13 * scale), int(45 * scale)]
            of = channels_last if k % 2 else BufferTensorDesc
            op = dml.Resample3OperatorDesc(
                input_tensor=of(data_type, small),
                output_tensor=of(data_type, large),
                interpolation_mode=mode,
                rounding_direction=dml.AxisDirection.DECREASING,
                scales=[1.0, 1.0, scale, scale],
                input_pixel_offsets=[0.5] * 4,
                output_pixel_offsets=[-0.5] * 4,
                antialiased=antialiased,
            )
            x = Contents(data_type, small, mostly_numbers=data_type is not T.UINT8)
            yield f"RESAMPLE {data_type.name} {mode.name} {antialiased} {k}", op, {"input_tensor": x}


def cases() -> Cases:
    for group in (
        element_wise,
        families,
        casts,
        reductions,
        large,
        lines,
        products,
        convolutions,
        poolings,
        normalizations,
        networks,
        resamplings,
        others,
    ):
        yield from group()


def results(desc: Any, arrays: dict[str, Array]) -> dict[str, Array]:
    found: dict[str, Array] = dmlemu.evaluate(desc, **arrays)
    if "output_coordinates_tensor" in found:  # rows past the count are undefined
        rows = int(found["output_count_tensor"].ravel()[0])
        coordinates = found["output_coordinates_tensor"]
        found["output_coordinates_tensor"] = coordinates.reshape(-1, coordinates.shape[-1])[:rows]
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--cases", type=int, default=10**6, metavar="N", help="only N cases, evenly spread")
    parser.add_argument("--only", default="", metavar="NAME", help="only cases whose name contains NAME")
    arguments = parser.parse_args()
    every = [case for case in cases() if arguments.only in case[0]]
    chosen = min(arguments.cases, len(every))
    for number in (i * len(every) // chosen for i in range(chosen)):
        name, desc, contents = every[number]
        random = np.random.default_rng(number)
        arrays = {name: each.array(random) for name, each in contents.items()}
        if arguments.plain:
            with checked() as checker:
                found = results(desc, arrays)
            assert checker.dispatches > 0
            assert not checker.findings, f"{name}: {'; '.join(map(str, checker.findings))}"
        else:
            found = results(desc, arrays)
        digest = hashlib.sha256()
        for array in found.values():
            digest.update(np.ascontiguousarray(array).tobytes())
        print(name, digest.hexdigest()[:16], sep="\t")


if __name__ == "__main__":
    main()
