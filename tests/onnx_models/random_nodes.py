"""Strategies for random nodes, with inputs and attributes that ONNX allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from hypothesis import assume
from hypothesis import strategies as st
from models import Array
from onnx import helper
from oracles import Case

Shape = tuple[int, ...]
Draw = Any

F32, F16, I32, I64 = (np.dtype(each) for each in ("float32", "float16", "int32", "int64"))
U8, I8, U32 = (np.dtype(each) for each in ("uint8", "int8", "uint32"))


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
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Log"), (F32,)),
    **dict.fromkeys(("Reciprocal", "Sin", "Sinh", "Sqrt", "Swish", "Tan"), (F32,)),
}
OF_TWO = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Min", "Max"), (F32, F16, I32, I64, U8, I8)),
    "Div": (F32, I32, I64, U32, I8),
    "Pow": (F32,),
    "Mod": (I32, I64, U8, I8),
    **dict.fromkeys(("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"), (F32, I32, I64, U8)),
    **dict.fromkeys(("And", "Or", "Xor"), (np.bool_,)),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), (I32, U8)),
    "BitShift": (U8, U32, np.uint64),
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
    return Case(op, [x], attributes, 24 if op == "Swish" else 21)


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
    if op == "BitShift":
        attributes["direction"] = draw(st.sampled_from(["LEFT", "RIGHT"]))
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
    if draw(st.booleans()):
        return Case("CastLike", [x, _array(draw, (), target)], {})
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
    if "pads" in attributes:
        reach = [
            (k - 1) * d for k, d in zip(attributes["kernel_shape"], attributes["dilations"], strict=True)
        ]
        steps = [(n - 1) * stride for n, stride in zip(spatial, attributes["strides"], strict=True)]
        pads = attributes["pads"]
        assume(all(reach[i] + steps[i] >= pads[i] + pads[i + count] for i in range(count)))
    outer = draw(st.integers(1, 2))
    x = _array(draw, (draw(st.integers(1, 2)), group * draw(st.integers(1, 2)), *spatial))
    w = _array(draw, (x.shape[1], outer, *attributes["kernel_shape"]))
    bias = _array(draw, (group * outer,)) if draw(st.booleans()) else None
    return Case("ConvTranspose", [x, w, bias], attributes)


@st.composite
def pools(draw: Draw) -> Case:
    op = draw(st.sampled_from(["AveragePool", "MaxPool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"]))
    count = draw(st.integers(1, 3))
    spatial = tuple(draw(st.integers(1, 6)) for _ in range(count))
    x = _array(draw, (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *spatial))
    if op.startswith("Global"):
        return Case(op, [x], {})
    attributes = _windows(draw, count, spatial, ceil=True)
    if op == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    if op == "LpPool":
        attributes["p"] = draw(st.integers(1, 3))
    if op == "MaxPool" and draw(st.booleans()):
        return Case(op, [x], attributes | {"storage_order": draw(st.integers(0, 1))}, outputs=2)
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
            Case(op, [x[..., 0], np.array(_axes(draw, rank + 1, 2)[:2])], {})
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
        of = tuple(draw(st.integers(1, each)) for each in shape)
        order = np.argsort(rng.random(shape), axis)[tuple(map(slice, of))]
        order = order - (size if draw(st.booleans()) else 0)
        return Case(op, [x, order.astype(dtype), _array(draw, of, x.dtype)], {"axis": axis})
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
        block = draw(st.integers(1, size))
        attributes["block_size"] = block
        of = tuple(-(-size // block) if i == axis % rank else each for i, each in enumerate(shape))
    scale = np.array(_array(draw, of, F32, 1, 2))
    zero = _array(draw, of, dtype, -3, 3) if draw(st.booleans()) else None
    if op == "QuantizeLinear":
        x = _array(draw, shape, F32, -300, 300)
        return Case(op, [x, scale, zero if zero is not None or dtype == U8 else None], attributes)
    return Case(op, [_array(draw, shape, dtype, -128, 127), scale, zero], attributes)


# --- others ---


@st.composite
def rearranged(draw: Draw) -> Case:
    op = draw(st.sampled_from(["DepthToSpace", "SpaceToDepth", "ReverseSequence", "EyeLike", "Dropout"]))
    if op in ("EyeLike", "Dropout"):
        x = _array(draw, (draw(st.integers(1, 5)), draw(st.integers(1, 5))))
        if op == "Dropout":
            opset = draw(st.sampled_from([7, 10, 13]))  # old masks are not defined in inference
            return Case(op, [x], {}, opset, outputs=draw(st.integers(1, 2)) if opset == 13 else 1)
        return Case(op, [x], {"k": draw(st.integers(-6, 6))})
    if op == "ReverseSequence":
        x = _array(draw, draw(shapes(least=2, most=4)))
        batch_axis = draw(st.integers(0, 1))
        lengths = _array(draw, (x.shape[batch_axis],), I64, 1, x.shape[1 - batch_axis])
        return Case(op, [x, lengths], {"batch_axis": batch_axis, "time_axis": 1 - batch_axis})
    block, n, c, h, w = (draw(st.integers(1, 3)) for _ in range(5))
    if op == "SpaceToDepth":
        return Case(op, [_array(draw, (n, c, h * block, w * block))], {"blocksize": block})
    mode = draw(st.sampled_from(["DCR", "CRD"]))
    return Case(op, [_array(draw, (n, c * block * block, h, w))], {"blocksize": block, "mode": mode})


@st.composite
def filtered(draw: Draw) -> Case:
    op = draw(st.sampled_from(["LRN", "MaxUnpool", "GlobalLpPool", "Col2Im"]))
    n, c, h, w = (draw(st.integers(1, 4)) for _ in range(4))
    if op == "LRN":
        attributes = {"size": draw(st.sampled_from([1, 3, 5])), "alpha": draw(st.sampled_from([0.5, 1e-4]))}
        return Case(
            op, [_array(draw, (n, c, h, w))], attributes | {"bias": draw(st.sampled_from([1.0, 2.0]))}
        )
    if op == "GlobalLpPool":
        return Case(op, [_array(draw, (n, c, h, w))], {"p": draw(st.integers(1, 3))})
    if op == "MaxUnpool":
        x = _array(draw, (n, c, h, w))
        planes = np.arange(n * c).reshape(n, c, 1, 1) * (4 * h * w)
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        places = np.array([rng.permutation(4 * h * w)[: h * w] for _ in range(n * c)]).reshape(n, c, h, w)
        return Case(op, [x, places + planes], {"kernel_shape": [2, 2], "strides": [2, 2]})
    kernel = [draw(st.integers(1, 3)) for _ in range(2)]
    blocks = (h + kernel[0] - 1 - (kernel[0] - 1)) * (w + kernel[1] - 1 - (kernel[1] - 1))
    image = np.array([h + kernel[0] - 1, w + kernel[1] - 1])
    return Case(op, [_array(draw, (n, c * kernel[0] * kernel[1], blocks)), image, np.array(kernel)], {})


@st.composite
def sampled(draw: Draw) -> Case:
    op = draw(st.sampled_from(["GridSample", "RoiAlign", "Upsample"]))
    n, c, h, w = (draw(st.integers(1, 4)) for _ in range(4))
    x = _array(draw, (n, c, h, w))
    if op == "Upsample":
        scales = np.array([1, 1, *(draw(st.integers(1, 3)) for _ in range(2))], F32)
        return Case(op, [x, scales], {"mode": draw(st.sampled_from(["nearest", "linear"]))}, 9)
    if op == "RoiAlign":
        starts = _array(draw, (2, 2), F32, 0, 3)
        rois = np.concatenate([starts, starts + _array(draw, (2, 2), F32, 1, 3)], 1)
        attributes = {"output_height": draw(st.integers(1, 3)), "output_width": draw(st.integers(1, 3))}
        attributes |= {"sampling_ratio": draw(st.integers(0, 2))}
        attributes["spatial_scale"] = draw(st.sampled_from([0.5, 1.0]))
        attributes["coordinate_transformation_mode"] = draw(
            st.sampled_from(["half_pixel", "output_half_pixel"])
        )
        return Case(op, [x, rois, _array(draw, (2,), I64, 0, n - 1)], attributes, 16)
    grid = _array(draw, (n, draw(st.integers(1, 3)), draw(st.integers(1, 3)), 2), F32, -6, 6) / np.float32(4)
    attributes = {"align_corners": draw(st.integers(0, 1))}
    attributes["mode"] = draw(
        st.sampled_from(["linear", "cubic"])
    )  # ties of the nearest are rounded as you like
    attributes["padding_mode"] = draw(st.sampled_from(["zeros", "border", "reflection"]))
    return Case(op, [x, grid], attributes, 20)


@st.composite
def recurrent(draw: Draw) -> Case:
    op, gates = draw(st.sampled_from([("RNN", 1), ("GRU", 3), ("LSTM", 4)]))
    length, batch, inner, hidden = (draw(st.integers(1, 3)) for _ in range(4))
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    count = 2 if direction == "bidirectional" else 1
    given = draw(st.booleans())

    def small(*shape: int) -> Array:
        return np.asarray(_array(draw, shape, F32, -2, 2) / np.float32(4))

    inputs: list[Array | None] = [
        small(length, batch, inner),
        small(count, gates * hidden, inner),
        small(count, gates * hidden, hidden),
        small(count, 2 * gates * hidden) if draw(st.booleans()) else None,
        _array(draw, (batch,), I32, 1, length) if draw(st.booleans()) else None,
        small(count, batch, hidden) if given else None,
    ]
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = draw(st.integers(0, 1))
    if op == "LSTM":
        inputs.append(small(count, batch, hidden) if given else None)
        inputs.append(small(count, 3 * hidden) if draw(st.booleans()) else None)
    outputs = 3 if op == "LSTM" else 2
    return Case(op, inputs, attributes, 14, outputs=outputs)


@st.composite
def of_bytes(draw: Draw) -> Case:
    op = draw(st.sampled_from(["ConvInteger", "QLinearConv", "QLinearMatMul", "DynamicQuantizeLinear"]))
    a, b = (draw(st.sampled_from([U8, I8])) for _ in range(2))
    if op == "DynamicQuantizeLinear":
        return Case(op, [_array(draw, draw(shapes(most=4)))], {}, outputs=3)
    zeros = [_array(draw, (), dtype, -3, 3) for dtype in (a, b, a)]
    scales = [np.float32(draw(st.sampled_from([0.25, 0.5, 1.0]))) for _ in range(3)]
    if op == "QLinearMatMul":
        m, k, n = (draw(st.integers(1, 4)) for _ in range(3))
        batch = draw(shapes(most=2, size=3))
        x, w = _array(draw, (*batch, m, k), a, -9, 9), _array(draw, (*batch, k, n), b, -9, 9)
        return Case(op, [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zeros[2]], {})
    group = draw(st.integers(1, 2))
    spatial = tuple(draw(st.integers(1, 5)) for _ in range(2))
    attributes = _windows(draw, 2, spatial, ceil=False) | {"group": group}
    x = _array(draw, (draw(st.integers(1, 2)), group * draw(st.integers(1, 2)), *spatial), a, -9, 9)
    filters = group * draw(st.integers(1, 2))
    w = _array(draw, (filters, x.shape[1] // group, *attributes["kernel_shape"]), b, -9, 9)
    if op == "ConvInteger":
        present = draw(st.integers(0, 2))
        return Case(
            op, [x, w, *(zero if k < present else None for k, zero in enumerate(zeros[:2]))], attributes
        )
    bias = _array(draw, (filters,), I32, -9, 9) if draw(st.booleans()) else None
    return Case(op, [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zeros[2], bias], attributes)


@st.composite
def einsums(draw: Draw) -> Case:
    letters = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    others = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    sizes = {letter: draw(st.integers(1, 4)) for letter in "abcd"}
    used = sorted({*letters, *others})
    kept = draw(st.lists(st.sampled_from(used), unique=True, max_size=4))
    equation = f"{''.join(letters)},{''.join(others)}" + ("" if draw(st.booleans()) else f"->{''.join(kept)}")
    arrays = [_array(draw, tuple(sizes[each] for each in part)) for part in (letters, others)]
    return Case("Einsum", arrays, {"equation": equation})


@st.composite
def attentions(draw: Draw) -> Case:
    batch, queries, keys, width, wide = (draw(st.integers(1, 3)) for _ in range(5))
    of_keys = draw(st.integers(1, 2))
    heads = of_keys * draw(st.integers(1, 2))

    def small(*shape: int) -> Array:
        return np.asarray(_array(draw, shape, F32, -4, 4) / np.float32(4))

    q, k = small(batch, heads, queries, width), small(batch, of_keys, keys, width)
    v = small(batch, of_keys, keys, wide)
    kind = draw(st.sampled_from([None, np.bool_, F32]))
    mask = None if kind is None else _array(draw, (queries, keys), kind)
    attributes: dict[str, Any] = {"is_causal": draw(st.integers(0, 1))}
    if draw(st.booleans()):
        attributes["softcap"] = 2.0
    if draw(st.booleans()):
        attributes["scale"] = 0.5
    return Case("Attention", [q, k, v, mask], attributes, 23)


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
    "rearranged": rearranged(),
    "filtered": filtered(),
    "sampled": sampled(),
    "recurrent": recurrent(),
    "of bytes": of_bytes(),
    "einsums": einsums(),
    "attentions": attentions(),
}
