"""Random models of one node against the reference implementation of the onnx package.

Left out is what that implementation gets wrong or refuses: see the comments of the strategies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import hypothesis
import node_cases
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume
from hypothesis import strategies as st
from models import Array, model, node
from onnx import helper
from onnx.reference import ReferenceEvaluator

from dmlemu.graph import packed, random_layouts
from dmlemu.onnx import InferenceSession
from thorough import part_of

Shape = tuple[int, ...]
Draw = Any

F32, F16, I32, I64 = (np.dtype(each) for each in ("float32", "float16", "int32", "int64"))
U8, I8, U32 = (np.dtype(each) for each in ("uint8", "int8", "uint32"))


class Case(NamedTuple):
    """A node; ``known``: the inputs that are constants of the model; ``outputs``: how many."""

    op: str
    inputs: list[Array | None]
    attributes: dict[str, Any]
    opset: int = 21
    known: frozenset[int] = frozenset()
    outputs: int = 1
    rtol: float = 1e-4


def shapes(least: int = 0, most: int = 6, size: int = 4) -> st.SearchStrategy[Shape]:
    return st.lists(st.integers(1, size), min_size=least, max_size=most).map(tuple)


def _array(draw: Draw, shape: Shape, dtype: Any = F32, low: int = -6, high: int = 6) -> Array:
    """Small multiples of 1/4, whose sums are exact."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    low = max(low, 0) if dtype.kind == "u" else low
    values = (
        rng.integers(low * 4, high * 4 + 1, shape) / 4
        if dtype.kind == "f"
        else rng.integers(low, high + 1, shape)
    )
    return np.asarray(values).astype(dtype)


def _broadcastable(draw: Draw, shape: Shape) -> Shape:
    """A shape that broadcasts to ``shape``, of any smaller rank."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(1 if draw(st.booleans()) else size for size in kept)


def _axis(draw: Draw, rank: int) -> int:
    return draw(st.integers(-rank, rank - 1))


def _axes(draw: Draw, rank: int, least: int = 0) -> list[int]:
    chosen = (
        draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=least, max_size=rank)) if rank else []
    )
    return [each - rank if draw(st.booleans()) else each for each in chosen]


# --- of each element ---

OF_ONE = {
    "Abs": (F32, F16, I32, I8),
    "Neg": (F32, I32, I8),
    "Ceil": (F32,),
    "Floor": (F16,),
    "Round": (F32,),
    "Sign": (F32, I32, I64),
    "Sigmoid": (F32,),
    "Tanh": (F32,),
    "Erf": (F32,),
    "Exp": (F32,),
    "Softplus": (F32,),
    "Softsign": (F32,),
    "Not": (np.bool_,),
    "BitwiseNot": (U8, I32),
    "HardSwish": (F32,),
    "HardSigmoid": (F32,),
    "LeakyRelu": (F32,),
    "Elu": (F32,),
    "Celu": (F32,),
    "Selu": (F32,),
    "ThresholdedRelu": (F32,),
    "Relu": (F32, I32, I8),
    "Shrink": (F32, I32),
    "Gelu": (F32,),
    "Mish": (F32,),
    "IsNaN": (F32,),
    "IsInf": (F32,),
}
OF_TWO = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Min", "Max"), (F32, F16, I32, I64, U8, I8)),
    "Div": (F32, I32, I64, U32, I8),
    "Pow": (F32,),
    "Mod": (I32, I64, U8, I8),
    **dict.fromkeys(("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"), (F32, I32, I64, U8)),
    **dict.fromkeys(("And", "Or", "Xor"), (np.bool_,)),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), (I32, U8)),
    "PRelu": (F32,),
    "Sum": (F32,),
    "Mean": (F32,),
}


@st.composite
def of_one(draw: Draw) -> Case:
    op = draw(st.sampled_from(sorted(OF_ONE)))
    x = _array(draw, draw(shapes()), draw(st.sampled_from(OF_ONE[op])))
    attributes: dict[str, Any] = {}
    if op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu") and draw(st.booleans()):
        attributes["alpha"] = 0.75
    if op == "Shrink":
        attributes = {"bias": draw(st.sampled_from([0.0, 1.5])), "lambd": draw(st.sampled_from([0.5, 2.0]))}
    if op == "IsInf" and x.size:
        x = np.where(x > 4, np.inf, np.where(x < -4, -np.inf, x)).astype(F32)
        attributes = {name: draw(st.integers(0, 1)) for name in ("detect_negative", "detect_positive")}
    return Case(op, [x], attributes)


@st.composite
def of_two(draw: Draw) -> Case:
    op = draw(st.sampled_from(sorted(OF_TWO)))
    dtype = np.dtype(draw(st.sampled_from(OF_TWO[op])))
    shape = draw(shapes())
    a, b = _array(draw, shape, dtype), _array(draw, _broadcastable(draw, shape), dtype)
    attributes: dict[str, Any] = {}
    if op not in ("PRelu", "Pow") and draw(st.booleans()):
        a, b = b, a
    if op in ("Div", "Mod"):
        b = np.where(b == 0, np.array(3, dtype), b)
    if op == "Pow":
        a, b = np.abs(a) + np.float32(0.5), b / np.float32(4)
    if op == "Mod":
        attributes["fmod"] = draw(st.integers(0, 1))
    return Case(op, [a, b], attributes, known=frozenset({1} if draw(st.booleans()) else ()))


@st.composite
def of_three(draw: Draw) -> Case:
    shape = draw(shapes())
    dtype = draw(st.sampled_from([F32, I32, U8]))
    if draw(st.booleans()):
        inputs = [_array(draw, _broadcastable(draw, shape), each) for each in (np.bool_, dtype, dtype)]
        return Case("Where", inputs, {})
    low = None if draw(st.booleans()) else np.array(1, dtype)
    high = None if draw(st.booleans()) else np.array(3, dtype)
    return Case("Clip", [_array(draw, shape, dtype), low, high], {})


@st.composite
def casts(draw: Draw) -> Case:
    types = [np.bool_, F32, F16, I32, I64, U8, I8, U32, np.int16, np.uint64]
    source, target = draw(st.sampled_from(types)), draw(st.sampled_from(types))
    # Negative numbers as unsigned ones are undefined.
    x = _array(draw, draw(shapes()), source, low=-6 if np.dtype(target).kind in "if" else 0)
    return Case("Cast", [x], {"to": int(helper.np_dtype_to_tensor_dtype(np.dtype(target)))})


# --- reductions ---


@st.composite
def reductions(draw: Draw) -> Case:
    op = "Reduce" + draw(
        st.sampled_from(["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"])
    )
    of_floats = op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
    dtype = F32 if of_floats else draw(st.sampled_from([F32, F32, I32, I64]))
    shape = draw(shapes(most=5))
    low = 1 if op == "ReduceLogSum" else -1 if op == "ReduceProd" else -6
    x = _array(draw, shape, dtype, low=low, high=2 if op == "ReduceProd" else 6)
    attributes: dict[str, Any] = {"keepdims": draw(st.integers(0, 1))}
    axes = None if draw(st.booleans()) else _axes(draw, len(shape))
    opset = draw(st.sampled_from([11, 18]))
    if op == "ReduceSum" and opset == 11:
        opset = 13
    if opset == 11:
        attributes |= {"axes": axes} if axes else {}
        return Case(op, [x], attributes, opset)
    attributes["noop_with_empty_axes"] = draw(st.integers(0, 1))
    # Without a reduction the reference implementation skips the function, too.
    assume(axes or not attributes["noop_with_empty_axes"] or op in ("ReduceSum", "ReduceMax", "ReduceMin"))
    return Case(op, [x, None if axes is None else np.array(axes, I64)], attributes, opset)


@st.composite
def along_an_axis(draw: Draw) -> Case:
    op = draw(st.sampled_from(["ArgMax", "ArgMin", "CumSum", "TopK", "Softmax", "LogSoftmax", "Hardmax"]))
    shape = draw(shapes(least=1, most=5))
    rank, axis = len(shape), _axis(draw, len(shape))
    x = _array(draw, shape)
    if op in ("ArgMax", "ArgMin"):
        attributes = {"axis": axis} | {
            name: draw(st.integers(0, 1)) for name in ("keepdims", "select_last_index")
        }
        return Case(op, [x], attributes)
    if op == "CumSum":
        return Case(
            op,
            [x, np.array(axis, draw(st.sampled_from([I32, I64])))],
            {name: draw(st.integers(0, 1)) for name in ("exclusive", "reverse")},
        )
    if op == "TopK":
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        x = rng.permutation(x.size).reshape(shape).astype(draw(st.sampled_from([F32, I32, I64])))
        k = np.array([draw(st.integers(1, shape[axis % rank]))])
        return Case(op, [x, k], {"axis": axis, "largest": draw(st.integers(0, 1))}, outputs=2)
    return Case(op, [x], {"axis": axis}, draw(st.sampled_from([11, 13])))


# --- windows ---


def _windows(draw: Draw, count: int, spatial: Shape, *, ceil: bool) -> dict[str, Any]:
    """Kernel and attributes of windows that fit into the padded image.

    With ``auto_pad`` the reference implementation ignores dilations and ceil_mode.
    """
    kernel = [draw(st.integers(1, 3)) for _ in range(count)]
    strides = [draw(st.integers(1, 3)) for _ in range(count)]
    auto = draw(st.sampled_from(["NOTSET"] * 3 + ["SAME_UPPER", "SAME_LOWER", "VALID"]))
    explicit = auto == "NOTSET"
    dilations = [draw(st.integers(1, 2)) if explicit else 1 for _ in range(count)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    pads = [0] * 2 * count
    if explicit and draw(st.booleans()):
        pads = [draw(st.integers(0, k - 1)) for k in kernel * 2]
        attributes["pads"] = pads
    if not explicit:
        attributes["auto_pad"] = auto
        # It makes no windows, or too many, where they have gaps.
        assume(all(k >= s for k, s in zip(kernel, strides, strict=True)))
    assume(
        auto.startswith("SAME")
        or all(spatial[i] + pads[i] + pads[i + count] >= reach[i] for i in range(count))
    )
    if ceil and explicit:
        attributes["ceil_mode"] = draw(st.integers(0, 1))
    return attributes


@st.composite
def convolutions(draw: Draw) -> Case:
    count, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    spatial = tuple(draw(st.integers(1, 6)) for _ in range(count))
    attributes = _windows(draw, count, spatial, ceil=False) | {"group": group}
    inner, outer = group * draw(st.integers(1, 2)), group * draw(st.integers(1, 2))
    x = _array(draw, (draw(st.integers(1, 2)), inner, *spatial))
    w = _array(draw, (outer, inner // group, *attributes["kernel_shape"]))
    bias = _array(draw, (outer,)) if draw(st.booleans()) else None
    return Case("Conv", [x, w, bias], attributes, known=frozenset({1, 2} if draw(st.booleans()) else ()))


@st.composite
def transposed_convolutions(draw: Draw) -> Case:
    count, group = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    spatial = tuple(draw(st.integers(1, 4)) for _ in range(count))
    attributes = _windows(draw, count, (99,) * count, ceil=False) | {"group": group}
    if "auto_pad" not in attributes and draw(st.booleans()):
        attributes["output_padding"] = [
            draw(st.integers(0, max(s, d) - 1))
            for s, d in zip(attributes["strides"], attributes["dilations"], strict=True)
        ]
    outer = draw(st.integers(1, 2))
    x = _array(draw, (draw(st.integers(1, 2)), group * draw(st.integers(1, 2)), *spatial))
    w = _array(draw, (x.shape[1], outer, *attributes["kernel_shape"]))
    # The reference implementation adds the bias of the first group to all groups.
    bias = _array(draw, (outer,)) if group == 1 and draw(st.booleans()) else None
    return Case("ConvTranspose", [x, w, bias], attributes)


@st.composite
def pools(draw: Draw) -> Case:
    op = draw(st.sampled_from(["AveragePool", "MaxPool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"]))
    count = draw(st.integers(1, 3))
    spatial = tuple(draw(st.integers(1, 6)) for _ in range(count))
    x = _array(draw, (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *spatial))
    if op.startswith("Global"):
        assume(count == 2 or op != "GlobalMaxPool")  # the reference implementation gives other shapes
        return Case(op, [x], {})
    # The reference implementation repeats elements for windows of LpPool that reach beyond the padding.
    attributes = _windows(draw, count, spatial, ceil=op != "LpPool")
    # Its MaxPool with SAME does not pad.
    assume(op != "MaxPool" or "auto_pad" not in attributes or max(attributes["strides"]) == 1)
    if op == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    if op == "LpPool":
        attributes["p"] = draw(st.integers(1, 3))
    if op == "MaxPool" and draw(st.booleans()):
        # The reference implementation counts indices in a plane.
        return Case(op, [x[:1, :1]], attributes, outputs=2)
    return Case(op, [x], attributes, 22 if onnx.defs.onnx_opset_version() >= 22 else 21)


# --- products ---


@st.composite
def products(draw: Draw) -> Case:
    m, k, n = (draw(st.integers(1, 4)) for _ in range(3))
    if draw(st.booleans()):
        trans = {name: draw(st.integers(0, 1)) for name in ("transA", "transB")}
        a = _array(draw, (k, m) if trans["transA"] else (m, k))
        b = _array(draw, (n, k) if trans["transB"] else (k, n))
        c = _array(draw, _broadcastable(draw, (m, n))) if draw(st.booleans()) else None
        scales = {name: draw(st.sampled_from([0.5, 1.0, 2.0])) for name in ("alpha", "beta")}
        return Case("Gemm", [a, b, c], trans | scales)
    batch = draw(shapes(most=3, size=3))
    shape_a = (k,) if draw(st.integers(0, 3)) == 0 else (*_broadcastable(draw, batch), m, k)
    shape_b = (k,) if draw(st.integers(0, 3)) == 0 else (*_broadcastable(draw, batch), k, n)
    if draw(st.booleans()):
        return Case("MatMul", [_array(draw, shape_a), _array(draw, shape_b)], {})
    inputs = [_array(draw, shape_a, U8), _array(draw, shape_b, draw(st.sampled_from([U8, I8])))]
    return Case("MatMulInteger", inputs, {})


# --- parts and shapes ---


MOVED = [
    *("Concat", "Expand", "Flatten", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose"),
    *("Trilu", "Unsqueeze"),
]


@st.composite
def moved(draw: Draw) -> Case:
    shape = draw(shapes(least=1))
    x = _array(draw, shape, draw(st.sampled_from([F32, I32, U8, np.bool_])))
    rank, axis = len(shape), _axis(draw, len(shape))
    op = draw(st.sampled_from(MOVED))
    if op == "Transpose":
        return Case(op, [x], {"perm": draw(st.permutations(range(rank)))} if draw(st.booleans()) else {})
    if op == "Expand":
        source = _broadcastable(draw, shape)
        target = shape if draw(st.booleans()) else _broadcastable(draw, shape)
        return Case(op, [_array(draw, source), np.array(target, I64)], {})
    if op == "Tile":
        return Case(op, [x, np.array([draw(st.integers(1, 3)) for _ in shape])], {})
    if op == "Concat":
        parts = [
            _array(draw, (*shape[: axis % rank], draw(st.integers(1, 3)), *shape[axis % rank + 1 :]), x.dtype)
            for _ in range(draw(st.integers(1, 4)))
        ]
        return Case(op, list(parts), {"axis": axis})
    if op == "Split":
        size = shape[axis % rank]
        if draw(st.booleans()):
            return Case(op, [x], {"axis": axis, "num_outputs": size}, outputs=size)
        first = draw(st.integers(1, size))
        parts = [first, size - first] if first < size else [size]
        return Case(op, [x, np.array(parts)], {"axis": axis}, outputs=len(parts))
    if op == "Slice":
        axes = _axes(draw, rank, 1)
        starts, ends = ([draw(st.integers(-6, 6)) for _ in axes] for _ in range(2))
        steps = [draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in axes]
        # Python's start in front of the first element is none, with a negative step.
        assume(all(t > 0 or s >= -shape[a % rank] for s, t, a in zip(starts, steps, axes, strict=True)))
        index = draw(st.sampled_from([I32, I64]))
        return Case(op, [x, *(np.array(each, index) for each in (starts, ends, axes, steps))], {})
    if op == "Pad":
        mode = draw(st.sampled_from(["constant", "edge", "reflect", "wrap"]))
        axes = _axes(draw, rank, 1)
        most = [shape[a % rank] - 1 if mode == "reflect" else 3 for a in axes]
        pads = [draw(st.integers(0, each)) for each in most * 2]
        value = None if mode != "constant" or draw(st.booleans()) else np.array(1, x.dtype)
        return Case(op, [x, np.array(pads), value, np.array(axes)], {"mode": mode})
    if op == "Flatten":
        return Case(op, [x], {"axis": draw(st.integers(-rank, rank))})
    if op == "Squeeze":
        return Case(op, [x], {})
    if op == "Unsqueeze":
        return (
            Case(op, [x[..., 0], np.array(_axes(draw, rank + 1, 2))], {})
            if rank < 6
            else Case(op, [x, np.array([axis])], {})
        )
    if op == "Trilu":
        assume(rank > 1)
        k = np.array(draw(st.integers(-5, 5)))
        return Case(op, [x, k if draw(st.booleans()) else None], {"upper": draw(st.integers(0, 1))})
    first = draw(st.integers(0, 1))
    return Case("Reshape", [x, np.array([0, -1] if first else [-1, shape[-1]])], {})


@st.composite
def indexed(draw: Draw) -> Case:
    op = draw(
        st.sampled_from(["Gather", "GatherElements", "GatherND", "ScatterND", "ScatterElements", "OneHot"])
    )
    shape = draw(shapes(least=1, most=4))
    rank, axis = len(shape), _axis(draw, len(shape))
    dtype = draw(st.sampled_from([I32, I64]))
    x = _array(draw, shape, draw(st.sampled_from([F32, I32, U8])))
    size = shape[axis % rank]

    def indices(of: Shape, most: int, kind: Any = I64) -> Array:
        return _array(draw, of, kind, -most, most - 1)

    if op == "Gather":
        return Case(op, [x, indices(draw(shapes(most=3)), size, dtype)], {"axis": axis})
    if op == "OneHot":
        values = _array(draw, (2,))
        inputs = [indices(shape, 5, dtype), np.array(draw(st.sampled_from([4, [4]]))), values]
        return Case(op, inputs, {"axis": draw(st.integers(-rank - 1, rank))})
    if op == "GatherElements":
        of = tuple(
            draw(st.integers(1, 4)) if i == axis % rank else draw(st.integers(1, each))
            for i, each in enumerate(shape)
        )
        return Case(op, [x, indices(of, size, dtype)], {"axis": axis})
    if op == "ScatterElements":
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        order = np.argsort(rng.random(shape), axis) - (size if draw(st.booleans()) else 0)
        return Case(op, [x, order.astype(dtype), _array(draw, shape, x.dtype)], {"axis": axis})
    batch = draw(st.integers(0, rank - 1)) if op == "GatherND" else 0
    depth = draw(st.integers(1, rank - batch))
    middle = draw(shapes(least=0 if batch else 1, most=2))
    columns = [indices((*shape[:batch], *middle, 1), each) for each in shape[batch : batch + depth]]
    tuples = np.concatenate(columns, -1)
    if op == "GatherND":
        return Case(op, [x, tuples], {"batch_dims": batch})
    flat = tuples.reshape(-1, depth) % np.array(shape[:depth])
    assume(len(np.unique(flat, axis=0)) == len(flat))
    return Case(op, [x, tuples, _array(draw, (*middle, *shape[depth:]), x.dtype)], {})


# --- interpolation and normalization ---


@st.composite
def resized(draw: Draw) -> Case:
    """Sizes whose scales are exact numbers, away from where one rounding decides."""
    shape = draw(shapes(least=1, most=5, size=4))
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    attributes: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": draw(
            st.sampled_from(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
        ),
    }
    if mode == "nearest":
        modes = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        attributes["nearest_mode"] = draw(st.sampled_from(modes))
    elif draw(st.booleans()):
        attributes["antialias"] = 1
    axes = _axes(draw, len(shape), 1)
    if draw(st.booleans()):
        scales = np.array([draw(st.sampled_from([0.5, 1.0, 1.5, 2.0, 2.5, 4.0])) for _ in axes], F32)
        lengths = [shape[axis] * scale for axis, scale in zip(axes, scales, strict=True)]
        assume(min(lengths) >= 1)
        inputs = [_array(draw, shape), None, scales]
    else:
        sizes = np.array([shape[axis] * draw(st.integers(1, 3)) for axis in axes])
        inputs = [_array(draw, shape), None, None, sizes]
    # The position of the only element is 0, and -0.5 in the reference implementation.
    one = min(sizes if len(inputs) == 4 else map(int, lengths)) == 1
    assume(not one or attributes["coordinate_transformation_mode"] != "pytorch_half_pixel")
    return Case("Resize", inputs, attributes | {"axes": axes}, 19)


NORMALIZED = [
    *("BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization"),
    *("LpNormalization", "MeanVarianceNormalization", "RMSNormalization"),
]


@st.composite
def normalized(draw: Draw) -> Case:
    op = draw(st.sampled_from(NORMALIZED))
    shape = draw(shapes(least=2, most=5))
    x = _array(draw, shape)
    rank, axis = len(shape), _axis(draw, len(shape))
    attributes: dict[str, Any] = {"epsilon": draw(st.sampled_from([1e-5, 0.25]))}
    channels = [_array(draw, (shape[1],)) for _ in range(3)]
    if op in ("LayerNormalization", "RMSNormalization"):
        whole = shape[axis % rank :]
        scale = _array(draw, whole)
        bias = _array(draw, whole) if draw(st.booleans()) and op[0] == "L" else None
        outputs = draw(st.sampled_from([1, 1, 3])) if op[0] == "L" else 1
        opset = 23 if op[0] == "R" else 17
        assume(opset <= onnx.defs.onnx_opset_version())
        return Case(op, [x, scale, bias], attributes | {"axis": axis}, opset, outputs=outputs)
    if op == "BatchNormalization":
        variance = np.abs(_array(draw, (shape[1],))) + np.float32(0.5)
        training = draw(st.booleans())
        attributes |= {"training_mode": 1, "momentum": 0.75} if training else {}
        return Case(op, [x, *channels, variance], attributes, 15, outputs=3 if training else 1)
    if op == "LpNormalization":
        p = draw(st.integers(1, 2))
        x = np.abs(x) if p == 1 else x  # the reference implementation adds the numbers, not their magnitudes
        return Case(op, [x], {"p": p, "axis": axis})
    if op == "MeanVarianceNormalization":
        return Case(op, [x], {"axes": _axes(draw, rank, 1)})
    assume(rank > 2)
    if op == "InstanceNormalization":
        return Case(op, [x, *channels[:2]], attributes)
    groups = draw(st.sampled_from([each for each in range(1, 5) if shape[1] % each == 0]))
    return Case(op, [x, *channels[:2]], attributes | {"num_groups": groups}, 21)


@st.composite
def quantized(draw: Draw) -> Case:
    op = draw(st.sampled_from(["QuantizeLinear", "DequantizeLinear"]))
    shape = draw(shapes(most=5))
    rank = len(shape)
    dtype = draw(st.sampled_from([U8, I8, np.dtype("int16"), np.dtype("uint16")]))
    by_axis = rank > 0 and draw(st.booleans())
    axis = _axis(draw, rank) if by_axis else 0
    of: Shape = (shape[axis],) if by_axis else ()
    attributes: dict[str, Any] = {"axis": axis} if by_axis else {}
    if by_axis and draw(st.booleans()):
        size = shape[axis]
        block = draw(st.sampled_from([each for each in range(1, 5) if size % each == 0]))
        attributes["block_size"] = block
        of = tuple(size // block if i == axis % rank else each for i, each in enumerate(shape))
    scale = np.array(_array(draw, of, F32, 1, 2))
    zero = _array(draw, of, dtype, -3, 3) if draw(st.booleans()) else None
    if op == "QuantizeLinear":
        x = _array(draw, shape, F32, -300, 300)
        return Case(op, [x, scale, zero if zero is not None or dtype == U8 else None], attributes)
    return Case(op, [_array(draw, shape, dtype, -128, 127), scale, zero], attributes)


EXAMPLES = 90

FAMILIES = {
    "of one": of_one(),
    "of two": of_two(),
    "of three": of_three(),
    "casts": casts(),
    "reductions": reductions(),
    "along an axis": along_an_axis(),
    "convolutions": convolutions(),
    "transposed convolutions": transposed_convolutions(),
    "pools": pools(),
    "products": products(),
    "moved": moved(),
    "indexed": indexed(),
    "resized": resized(),
    "normalized": normalized(),
    "quantized": quantized(),
}


def _reference(case: Case, made: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """What the reference implementation makes of a case; discards what it refuses."""
    if case.op in ("Softmax", "LogSoftmax", "Hardmax") and case.opset < 13:  # it ignores the opset
        x = feeds["x0"]
        axis = case.attributes["axis"] % x.ndim
        flat = x.reshape(int(np.prod(x.shape[:axis])), -1)
        flattened = case._replace(inputs=[flat], attributes={"axis": 1}, opset=13)
        made, feeds = _model(flattened)
        return [_reference(flattened, made, feeds)[0].reshape(x.shape)]
    with np.errstate(all="ignore"):
        try:
            results = ReferenceEvaluator(made).run(None, feeds)
        except Exception:  # of many types
            assume(False)
    if case.op.startswith("Reduce"):  # its sums of whole numbers are INT64
        return [np.asarray(each).astype(feeds["x0"].dtype) for each in results]
    return [np.asarray(each) for each in results]


def _model(case: Case) -> tuple[onnx.ModelProto, dict[str, Array]]:
    names = ["" if each is None else f"x{number}" for number, each in enumerate(case.inputs)]
    while names and not names[-1]:
        names.pop()
    given_ = {name: each for name, each in zip(names, case.inputs, strict=False) if each is not None and name}
    constants = {name: each for name, each in given_.items() if int(name[1:]) in case.known}
    feeds = {name: each for name, each in given_.items() if name not in constants}
    inputs = [
        (name, int(helper.np_dtype_to_tensor_dtype(each.dtype)), each.shape) for name, each in feeds.items()
    ]
    results = [f"y{number}" for number in range(case.outputs)]
    made = model([node(case.op, names, *results, **case.attributes)], inputs, [], constants, case.opset)
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in results)
    return made, feeds


def check(case: Case, seed: int) -> None:
    """``seed``: of the layouts; 0: all tensors are packed."""
    made, feeds = _model(case)
    expected = _reference(case, made, feeds)
    assume(all(each.ndim <= 8 for each in expected))
    del made.graph.output[:]
    for number, each in enumerate(expected):
        element_type = int(helper.np_dtype_to_tensor_dtype(each.dtype))
        made.graph.output.append(helper.make_tensor_value_info(f"y{number}", element_type, each.shape))
    policy = random_layouts(seed) if seed else packed
    session = InferenceSession(made, device=node_cases.device(), policy=policy)
    for got, want in zip(session.run(None, feeds), expected, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, got.shape, want.shape)
        if got.dtype.kind == "f":
            wide = 20 if got.dtype == np.float16 else 1
            np.testing.assert_allclose(got, want, case.rtol * wide, 1e-5 * wide)
        else:
            np.testing.assert_array_equal(got, want)


def _test_of(name: str) -> Any:
    @pytest.mark.dmlemu(expect=["*"])  # what is looked for is a result
    @hypothesis.settings(
        derandomize=True,
        deadline=None,
        max_examples=part_of(EXAMPLES),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @hypothesis.given(case=FAMILIES[name], seed=st.sampled_from([0, 0, 1, 2, 3]))
    def test(case: Case, seed: int) -> None:
        check(case, seed)

    return test


for _name in FAMILIES:
    globals()[f"test_{_name.replace(' ', '_')}"] = _test_of(_name)
