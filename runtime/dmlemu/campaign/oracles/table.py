"""The operators that are one call or a short expression elsewhere: element by element, activations, products,
reductions, windows, normalisation and copies."""

from __future__ import annotations

from collections.abc import Callable
from operator import gt
from typing import Any

import numpy as np

from ...dml import enums
from .rows import (
    Array,
    Function,
    Node,
    is_float,
    is_one,
    number_of,
    one_of,
    reaches,
    torch_pads,
    torch_windows,
)
from .rows import row as _row

__all__ = ["scipy_local_response", "torch_local_response", "torch_max", "torch_mean"]


# --- element by element ---

_row("ELEMENT_WISE_IDENTITY ACTIVATION_IDENTITY", "Identity", "clone")
_row("ELEMENT_WISE_ABS", "Abs", "abs")
_row("ELEMENT_WISE_ACOS", "Acos", "acos")
_row("ELEMENT_WISE_ASIN", "Asin", "asin")
_row("ELEMENT_WISE_ATAN", "Atan", "atan")
_row("ELEMENT_WISE_CEIL", "Ceil", "ceil")
_row("ELEMENT_WISE_COS", "Cos", "cos")
_row("ELEMENT_WISE_COSH", "Cosh", "cosh")
_row("ELEMENT_WISE_EXP", "Exp", "exp")
_row("ELEMENT_WISE_FLOOR", "Floor", "floor")
_row("ELEMENT_WISE_LOG", "Log", "log")
_row("ELEMENT_WISE_RECIP", "Reciprocal", "reciprocal")
_row("ELEMENT_WISE_SIN", "Sin", "sin")
_row("ELEMENT_WISE_SINH", "Sinh", "sinh")
_row("ELEMENT_WISE_SQRT", "Sqrt", "sqrt")
_row("ELEMENT_WISE_TAN", "Tan", "tan")
_row("ELEMENT_WISE_TANH ACTIVATION_TANH", "Tanh", "tanh")
_row("ELEMENT_WISE_ACOSH", "Acosh", "acosh")
_row("ELEMENT_WISE_ASINH", "Asinh", "asinh")
_row("ELEMENT_WISE_ATANH", "Atanh", "atanh")
_row("ELEMENT_WISE_ERF", "Erf", "erf", "erf")
_row("ELEMENT_WISE_SIGN", "Sign", "sign")
_row("ELEMENT_WISE_NEGATE", "Neg", "neg")
_row("ELEMENT_WISE_IS_NAN", "IsNaN", "isnan")
_row("ELEMENT_WISE_BIT_NOT", "BitwiseNot", "bitwise_not")
_row("ELEMENT_WISE_LOGICAL_NOT", lambda o, x: Node("Not", [x != 0]), lambda t, o, x: t.logical_not(x))
_row(
    "ELEMENT_WISE_ROUND",
    lambda o, x: Node("Round", [x]) if _is_to_even(o) else None,
    lambda t, o, x: t.round(x) if _is_to_even(o) else None,
)
_SIGNS = ("positive", "negative")
_row(
    "ELEMENT_WISE_IS_INFINITY",
    lambda o, x: Node("IsInf", [x], {f"detect_{sign}": int(_detects(o, sign)) for sign in _SIGNS}),
    lambda t, o, x: {"POSITIVE": t.isposinf, "NEGATIVE": t.isneginf}.get(o.infinity_mode.name, t.isinf)(x),
)


def _is_to_even(o: Any) -> bool:
    return o.rounding_mode is enums.RoundingMode.HALVES_TO_NEAREST_EVEN


def _detects(o: Any, sign: str) -> bool:
    return o.infinity_mode.name in ("EITHER", sign.upper())


_row("ELEMENT_WISE_ADD ELEMENT_WISE_ADD1", "Add", "add")
_row("ELEMENT_WISE_SUBTRACT", "Sub", "sub")
_row("ELEMENT_WISE_MULTIPLY", "Mul", "mul")
# Of whole numbers, a division by 0 ends the process of some implementations.
_row(
    "ELEMENT_WISE_DIVIDE",
    lambda o, a, b: Node("Div", [a, b]) if is_float(a) else None,
    lambda t, o, a, b: t.div(a, b) if a.is_floating_point() else None,
)
_row("ELEMENT_WISE_MAX", "Max", "maximum")
_row("ELEMENT_WISE_MIN", "Min", "minimum")
_row(
    "ELEMENT_WISE_MEAN",
    lambda o, a, b: Node("Mean", [a, b]) if is_float(a) else None,
    lambda t, o, a, b: (
        (a + b) / 2 if a.is_floating_point() else t.div(a.long() + b.long(), 2, rounding_mode="trunc")
    ),
)
_row("ELEMENT_WISE_POW", "Pow", "pow")
_row(
    "ELEMENT_WISE_CONSTANT_POW",
    lambda o, x: Node("Pow", [x, np.float32(o.exponent)]) if is_float(x) else None,
    lambda t, o, x: t.pow(x, o.exponent) if x.is_floating_point() else None,
)
_row("ELEMENT_WISE_ATAN_YX", None, "atan2")
_row("ELEMENT_WISE_DIFFERENCE_SQUARE", None, lambda t, o, a, b: (a - b) * (a - b))
_row(
    "ELEMENT_WISE_MODULUS_TRUNCATE",
    lambda o, a, b: Node("Mod", [a, b], {"fmod": 1}) if is_float(a) else None,
    lambda t, o, a, b: t.fmod(a, b) if a.is_floating_point() else None,
)
_row(
    "ELEMENT_WISE_MODULUS_FLOOR",
    None,
    lambda t, o, a, b: t.remainder(a, b) if a.is_floating_point() else None,
)
for _name in ("And", "Or", "Xor"):
    _row(
        f"ELEMENT_WISE_LOGICAL_{_name.upper()}",
        lambda o, a, b, name=_name: Node(name, [a != 0, b != 0]),
        f"logical_{_name.lower()}",
    )
    _row(f"ELEMENT_WISE_BIT_{_name.upper()}", f"Bitwise{_name}", f"bitwise_{_name.lower()}")
_row("ELEMENT_WISE_LOGICAL_EQUALS", "Equal", "eq")
_row("ELEMENT_WISE_LOGICAL_GREATER_THAN", "Greater", "gt")
_row("ELEMENT_WISE_LOGICAL_LESS_THAN", "Less", "lt")
_row("ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL", "GreaterOrEqual", "ge")
_row("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL", "LessOrEqual", "le")
_row(
    "ELEMENT_WISE_BIT_SHIFT_LEFT",
    lambda o, a, b: Node("BitShift", [a, b], {"direction": "LEFT"}),
    "bitwise_left_shift",
)
_row("ELEMENT_WISE_BIT_SHIFT_RIGHT", lambda o, a, b: Node("BitShift", [a, b], {"direction": "RIGHT"}))
_row(
    "ELEMENT_WISE_IF",
    lambda o, c, a, b: Node("Where", [c != 0, a, b]),
    lambda t, o, c, a, b: t.where(c != 0, a, b),
)
_row(
    "ELEMENT_WISE_CLIP",
    lambda o, x: (
        Node("Clip", [x, *(np.array(each, x.dtype) for each in (o.min, o.max))]) if is_float(x) else None
    ),
    lambda t, o, x: t.clamp(x, o.min, o.max) if x.is_floating_point() and o.min <= o.max else None,
)
_row("ELEMENT_WISE_THRESHOLD", None, lambda t, o, x: t.clamp(x, min=o.min) if x.is_floating_point() else None)


def _typed_clip(o: Any, x: Array) -> Node | None:
    low, high = (number_of(each, o.min_max_data_type, x.dtype) for each in (o.min, o.max))
    return Node("Clip", [x, low, high]) if low <= high else None


def _typed_bounds(o: Any) -> tuple[Any, Any]:
    return o.min.value(o.min_max_data_type), o.max.value(o.min_max_data_type)


def _torch_typed_clip(t: Any, o: Any, x: Any) -> Any:
    low, high = _typed_bounds(o)
    return t.clamp(x, low, high) if low <= high else None


_row("ELEMENT_WISE_CLIP1", _typed_clip, _torch_typed_clip, passes="a minimum above the maximum")


def _clip_gradient(t: Any, low: Any, high: Any, x: Any, gradient: Any) -> Any:
    """Of the function whose derivative is 0 on the bounds, too."""
    if low >= high:
        return None
    x, gradient = x.double(), gradient.double()
    with t.enable_grad():
        x = x.requires_grad_()
        return t.autograd.grad(t.nn.functional.hardtanh(x, low, high), x, gradient)[0]


_BOUNDS = "a minimum that is not below the maximum"
_row(
    "ELEMENT_WISE_CLIP_GRAD",
    None,
    lambda t, o, x, g: _clip_gradient(t, o.min, o.max, x, g) if x.is_floating_point() else None,
    passes=f"{_BOUNDS}, integers",
)
_row(
    "ELEMENT_WISE_CLIP_GRAD1",
    None,
    lambda t, o, x, g: _clip_gradient(t, *_typed_bounds(o), x, g),
    passes=_BOUNDS,
)

# --- activations ---

_row("ACTIVATION_RELU", "Relu", "relu")
_row("ACTIVATION_SIGMOID", "Sigmoid", "sigmoid", "expit")
_row("ACTIVATION_SOFTSIGN", "Softsign", lambda t, o, x: t.nn.functional.softsign(x))
_row(
    "ACTIVATION_GELU", "Gelu", lambda t, o, x: t.nn.functional.gelu(x), lambda s, o, x: x * s.special.ndtr(x)
)
_row(
    "ACTIVATION_ELU",
    lambda o, x: Node("Elu", [x], _alpha(o)),
    lambda t, o, x: t.nn.functional.elu(x, o.alpha),
)
_row(
    "ACTIVATION_CELU",
    lambda o, x: Node("Celu", [x], _alpha(o)) if o.alpha else None,  # 0 divides by it
    lambda t, o, x: t.nn.functional.celu(x, o.alpha),
)
_row(
    "ACTIVATION_HARD_SIGMOID",
    lambda o, x: Node("HardSigmoid", [x], {**_alpha(o), "beta": o.beta}),
    lambda t, o, x: t.clamp(o.alpha * x + o.beta, 0, 1),
)
_row(
    "ACTIVATION_LEAKY_RELU",
    lambda o, x: Node("LeakyRelu", [x], _alpha(o)),
    lambda t, o, x: t.nn.functional.leaky_relu(x, o.alpha),
)
_row("ACTIVATION_LINEAR", None, lambda t, o, x: o.alpha * x + o.beta)
_row("ACTIVATION_SCALED_TANH", None, lambda t, o, x: o.alpha * t.tanh(o.beta * x))
_row(
    "ACTIVATION_PARAMETRIC_SOFTPLUS",
    None,
    lambda t, o, x: o.alpha * t.log1p(t.exp(o.beta * x)),
    lambda s, o, x: o.alpha * -s.special.log_expit(-o.beta * x),
)
_row(
    "ACTIVATION_SOFTPLUS",
    lambda o, x: Node("Softplus", [x]) if o.steepness == 1 else None,
    lambda t, o, x: t.nn.functional.softplus(x, o.steepness, 80),
    lambda s, o, x: -s.special.log_expit(-o.steepness * x) / o.steepness,
)
_row(
    "ACTIVATION_SCALED_ELU",
    lambda o, x: Node("Selu", [x], {**_alpha(o), "gamma": o.gamma}),
    lambda t, o, x: o.gamma * t.where(x > 0, x, o.alpha * t.expm1(x)),
)
_row(
    "ACTIVATION_THRESHOLDED_RELU",
    lambda o, x: Node("ThresholdedRelu", [x], _alpha(o)),
    lambda t, o, x: t.nn.functional.threshold(x, o.alpha, 0),
)
_row(
    "ACTIVATION_SHRINK",
    lambda o, x: Node("Shrink", [x], {"bias": o.bias, "lambd": o.threshold}) if is_float(x) else None,
    lambda t, o, x: (
        t.where(x > o.threshold, x - o.bias, t.where(x < -o.threshold, x + o.bias, t.zeros_like(x)))
        if x.is_floating_point() and o.threshold >= 0
        else None
    ),
)
_row("ACTIVATION_SWISH", None, lambda t, o, x: x * t.sigmoid(o.sigmoid_input_scale * x))
_row("ACTIVATION_HARD_SWISH", None, lambda t, o, x: x * t.clamp(o.alpha * x + o.beta, 0, 1))
_row("ACTIVATION_PARAMETERIZED_RELU", "PRelu", lambda t, o, x, slope: t.where(x < 0, slope * x, x))
_row("ACTIVATION_RELU_GRAD", None, lambda t, o, x, g: t.where(x > 0, g, t.zeros_like(g)))


def _alpha(o: Any) -> dict[str, float]:
    return {"alpha": o.alpha}


def _lines(o: Any) -> list[int]:
    """The axes of a function of lines; without the field the last dimension."""
    return list(getattr(o, "axes", None) or [o.input_tensor.rank - 1])


def _of_one_line(type: str) -> Function:
    return lambda o, x: Node(type, [x], {"axis": _lines(o)[0]}) if len(_lines(o)) == 1 else None


_row(
    "ACTIVATION_SOFTMAX ACTIVATION_SOFTMAX1",
    _of_one_line("Softmax"),
    lambda t, o, x: t.softmax(x, _lines(o)[0]) if len(_lines(o)) == 1 else None,
    lambda s, o, x: s.special.softmax(x, tuple(_lines(o))),
)
_row(
    "ACTIVATION_LOG_SOFTMAX ACTIVATION_LOG_SOFTMAX1",
    _of_one_line("LogSoftmax"),
    lambda t, o, x: t.log_softmax(x, _lines(o)[0]) if len(_lines(o)) == 1 else None,
    lambda s, o, x: s.special.log_softmax(x, tuple(_lines(o))),
)
_row("ACTIVATION_HARDMAX ACTIVATION_HARDMAX1", _of_one_line("Hardmax"))

# --- products ---


def _product(multiply: Callable[[Any, Any], Any], o: Any, a: Any, b: Any, c: Any) -> Any:
    a = a.swapaxes(-1, -2) if o.trans_a else a
    b = b.swapaxes(-1, -2) if o.trans_b else b
    found = o.alpha * multiply(a, b)
    return found if c is None or not o.beta else found + o.beta * c


def _gemm(o: Any, a: Array, b: Array, c: Array | None) -> Node:
    a, b = (x.swapaxes(-1, -2) if is_turned else x for x, is_turned in ((a, o.trans_a), (b, o.trans_b)))
    if a.ndim == 2:
        attributes = {"alpha": o.alpha, "beta": o.beta}
        return Node("Gemm", [a, b, c if o.beta else None], attributes)
    return Node(
        "MatMul", [a, b], finish=lambda y: o.alpha * y + (0 if c is None or not o.beta else o.beta * c)
    )


_row(
    "GEMM",
    _gemm,
    lambda t, o, a, b, c: _product(t.matmul, o, a, b, c),
    lambda s, o, a, b, c: _product(np.matmul, o, a, b, c),
)


def _convolution(o: Any, x: Array, w: Array, b: Array | None) -> Node | None:
    if o.mode is enums.ConvolutionMode.CONVOLUTION:
        w = np.flip(w, tuple(range(2, w.ndim)))
    attributes = {
        "strides": list(o.strides),
        "dilations": list(o.dilations),
        "pads": [*o.start_padding, *o.end_padding],
        "group": o.group_count,
    }
    bias = None if b is None else b.ravel()
    if o.direction is enums.ConvolutionDirection.FORWARD:
        return Node("Conv", [x, w, bias], attributes)
    attributes["output_padding"] = list(o.output_padding)
    return Node("ConvTranspose", [x, w, bias], attributes)


def _torch_convolution(t: Any, o: Any, x: Any, w: Any, b: Any) -> Any:
    rank = x.ndim - 2
    if o.mode is enums.ConvolutionMode.CONVOLUTION:
        w = w.flip(tuple(range(2, w.ndim)))
    bias = None if b is None else b.ravel()
    f = t.nn.functional
    if o.direction is enums.ConvolutionDirection.FORWARD:
        x = f.pad(x, torch_pads(o))
        return getattr(f, f"conv{rank}d")(x, w, bias, tuple(o.strides), 0, tuple(o.dilations), o.group_count)
    if list(o.start_padding) != list(o.end_padding):
        return None
    return getattr(f, f"conv_transpose{rank}d")(
        x,
        w,
        bias,
        tuple(o.strides),
        tuple(o.start_padding),
        tuple(o.output_padding),
        o.group_count,
        tuple(o.dilations),
    )


def _scipy_convolution(s: Any, o: Any, x: Array, w: Array, b: Array | None) -> Any:
    """One group, forward, without dilations: a correlation in all dimensions but the first."""
    is_usual = o.direction is enums.ConvolutionDirection.FORWARD and o.group_count == 1
    if not is_usual or any(each != 1 for each in o.dilations):
        return None
    if o.mode is enums.ConvolutionMode.CONVOLUTION:
        w = np.flip(w, tuple(range(2, w.ndim)))
    x = np.pad(x, [(0, 0), (0, 0), *zip(o.start_padding, o.end_padding, strict=True)])
    if any(n < m for n, m in zip(x.shape[2:], w.shape[2:], strict=True)):
        return None
    steps = (slice(0, 1), *(slice(None, None, step) for step in o.strides))
    found = np.concatenate(
        [s.signal.correlate(one, kernel, "valid", "direct")[steps] for one in x for kernel in w]
    ).reshape(len(x), len(w), *o.output_tensor.sizes[2:])
    return found if b is None else found + b


_row("CONVOLUTION", _convolution, _torch_convolution, _scipy_convolution)


def _integer_product(o: Any, a: Array, a_zero: Array | None, b: Array, b_zero: Array | None) -> Node | None:
    if not is_one(a_zero, b_zero):
        return None
    return Node("MatMulInteger", [a, b, one_of(a_zero), one_of(b_zero)])


def _torch_integer_product(t: Any, o: Any, a: Any, a_zero: Any, b: Any, b_zero: Any) -> Any:
    a, b = a.int(), b.int()
    return t.matmul(a if a_zero is None else a - a_zero.int(), b if b_zero is None else b - b_zero.int())


_row("MATRIX_MULTIPLY_INTEGER", _integer_product, _torch_integer_product)
_row(
    "ELEMENT_WISE_QUANTIZE_LINEAR",
    lambda o, x, scale, zero: (
        Node(
            "QuantizeLinear",
            [x, scale.ravel()[0], np.array(0, o.output_tensor.dtype) if zero is None else one_of(zero)],
        )
        if is_one(scale, zero)
        else None
    ),
)
_row(
    "ELEMENT_WISE_DEQUANTIZE_LINEAR",
    lambda o, x, scale, zero: (
        Node("DequantizeLinear", [x, scale.ravel()[0], one_of(zero)]) if is_one(scale, zero) else None
    ),
    lambda t, o, x, scale, zero: (x.int() - (0 if zero is None else zero.int())) * scale,
)

# --- along dimensions ---

_REDUCTIONS = {
    "AVERAGE": "Mean",
    "L1": "L1",
    "L2": "L2",
    "LOG_SUM": "LogSum",
    "LOG_SUM_EXP": "LogSumExp",
    "MAX": "Max",
    "MIN": "Min",
    "MULTIPLY": "Prod",
    "SUM": "Sum",
    "SUM_SQUARE": "SumSquare",
}


def _reduction(o: Any, x: Array) -> Node | None:
    name = _REDUCTIONS.get(o.function.name)
    if name is None or (name == "Mean" and not is_float(x)):
        return None
    if name == "Sum":
        return Node("ReduceSum", [x, np.array(o.axes, np.int64)])
    return Node(f"Reduce{name}", [x, np.array(o.axes, np.int64)])


def _torch_reduction(t: Any, o: Any, x: Any) -> Any:
    if not x.is_floating_point():
        return None
    functions: dict[str, Function] = {
        "AVERAGE": t.mean,
        "L1": lambda x, axes, keep: x.abs().sum(axes, keep),
        "L2": lambda x, axes, keep: (x * x).sum(axes, keep).sqrt(),
        "LOG_SUM": lambda x, axes, keep: x.sum(axes, keep).log(),
        "LOG_SUM_EXP": t.logsumexp,
        "MAX": t.amax,
        "MIN": t.amin,
        "SUM": t.sum,
        "SUM_SQUARE": lambda x, axes, keep: (x * x).sum(axes, keep),
    }
    function = functions.get(o.function.name)
    return None if function is None else function(x, tuple(o.axes), True)


def _scipy_reduction(s: Any, o: Any, x: Array) -> Any:
    if o.function is not enums.ReduceFunction.LOG_SUM_EXP or o.input_tensor.dtype.kind != "f":
        return None
    return s.special.logsumexp(x, tuple(o.axes), keepdims=True)


_row("REDUCE", _reduction, _torch_reduction, _scipy_reduction)


def _extreme(type: str) -> Function:
    def node(o: Any, x: Array) -> Node | None:
        if len(o.axes) != 1:
            return None
        last = int(o.axis_direction is enums.AxisDirection.DECREASING)
        return Node(type, [x], {"axis": o.axes[0], "select_last_index": last})

    return node


_row("ARGMAX", _extreme("ArgMax"))
_row("ARGMIN", _extreme("ArgMin"))


def _running(exclusive: str, name: str) -> Function:
    """From PyTorch; one that is exclusive begins with nothing."""

    def function(t: Any, o: Any, x: Any) -> Any:
        if not x.is_floating_point() or getattr(o, exclusive):
            return None
        turned = o.axis_direction is enums.AxisDirection.DECREASING
        found = getattr(t, name)(x.flip(o.axis) if turned else x, o.axis)
        return found.flip(o.axis) if turned else found

    return function


def _cumulative_sum(o: Any, x: Array) -> Node:
    reverse = int(o.axis_direction is enums.AxisDirection.DECREASING)
    attributes = {"exclusive": int(o.has_exclusive_sum), "reverse": reverse}
    return Node("CumSum", [x, np.array(o.axis, np.int64)], attributes)


_row("CUMULATIVE_SUMMATION", _cumulative_sum, _running("has_exclusive_sum", "cumsum"))
_row("CUMULATIVE_PRODUCT", None, _running("has_exclusive_product", "cumprod"))


def _greatest(o: Any, x: Array) -> Node:
    largest = int(
        getattr(o, "axis_direction", enums.AxisDirection.DECREASING) is enums.AxisDirection.DECREASING
    )
    return Node(
        "TopK",
        [x, np.array([o.k], np.int64)],
        {"axis": o.axis, "largest": largest},
        lambda found: {"output_value_tensor": found[0]},  # of equal elements any may come first
        2,
    )


_row(
    "TOP_K TOP_K1",
    _greatest,
    lambda t, o, x: {
        "output_value_tensor": t.topk(
            x,
            o.k,
            o.axis,
            getattr(o, "axis_direction", enums.AxisDirection.DECREASING) is enums.AxisDirection.DECREASING,
        ).values
    },
)

# --- windows ---


def _pooling(type: str, **given: Any) -> Function:
    def node(o: Any, x: Array) -> Node | None:
        ends = _ends(o)
        is_counted = getattr(o, "include_padding", False)
        if not reaches(o) or (is_counted and any(map(gt, ends, o.end_padding))):
            return None
        inner = [slice(n + min(end, 0)) for n, end in zip(x.shape[2:], ends, strict=True)]
        x = x[tuple([slice(None)] * 2 + inner)]
        pads = [*o.start_padding, *(max(end, 0) for end in ends)]
        attributes: dict[str, Any] = {
            "kernel_shape": list(o.window_size),
            "strides": list(o.strides),
            "pads": pads,
        }
        attributes |= {name: int(getattr(o, field)) for name, field in given.items()}
        if hasattr(o, "dilations"):
            attributes["dilations"] = list(o.dilations)
        is_usual = type != "MaxPool" or len(set(pads)) == 1
        by = ("onnxruntime", "onnx") if is_usual else ("onnxruntime",)  # onnx.reference exchanges pads
        return Node(type, [x], attributes, lambda y: {"output_tensor": y}, by=by)

    return node


def _ends(o: Any) -> list[int]:
    """The padding behind the input that the outputs take; below 0: the elements that no window reaches."""
    sizes = o.input_tensor.sizes[2:], o.output_tensor.sizes[2:]
    dilations = getattr(o, "dilations", None) or [1] * len(o.window_size)
    numbers = zip(*sizes, o.window_size, o.strides, dilations, o.start_padding, strict=True)
    return [(m - 1) * step + (k - 1) * d + 1 - n - start for n, m, k, step, d, start in numbers]


def torch_max(t: Any, o: Any, x: Any) -> Any:
    if not x.is_floating_point():
        return None
    padded = t.nn.functional.pad(x, torch_pads(o), value=-np.inf)
    function = getattr(t.nn.functional, f"max_pool{x.ndim - 2}d")
    found = function(
        padded, **torch_windows(o), dilation=tuple(getattr(o, "dilations", None) or [1] * (x.ndim - 2))
    )
    return {"output_tensor": found}


def torch_mean(t: Any, o: Any, x: Any) -> Any:
    """Of windows that have a place in the input: what others give is left open."""
    if any(each != 1 for each in getattr(o, "dilations", ())):
        return None
    f, pads = t.nn.functional, torch_pads(o)
    pool = getattr(f, f"avg_pool{x.ndim - 2}d")
    total = pool(f.pad(x, pads), **torch_windows(o))
    parts = pool(f.pad(t.ones_like(x), pads), **torch_windows(o))
    if not parts.all():
        return None
    return total if o.include_padding else total / parts


def _torch_norm(t: Any, o: Any, x: Any) -> Any:
    if any(each != 1 for each in getattr(o, "dilations", ())):
        return None
    f = t.nn.functional
    pool = getattr(f, f"avg_pool{x.ndim - 2}d")
    mean = pool(f.pad(x.abs() ** o.p, torch_pads(o)), **torch_windows(o))
    return (mean * int(np.prod(o.window_size))) ** (1 / o.p)


_row(
    "AVERAGE_POOLING AVERAGE_POOLING1",
    _pooling("AveragePool", count_include_pad="include_padding"),
    torch_mean,
)
_row(
    "MAX_POOLING MAX_POOLING1 MAX_POOLING2",
    _pooling("MaxPool"),
    torch_max,
)
_row("LP_POOLING LP_POOLING1", _pooling("LpPool", p="p"), _torch_norm)

# --- normalisation ---


def _of_channels(o: Any, *parameters: Array) -> list[Array] | None:
    """Parameters with one number for each channel."""
    rank = o.input_tensor.rank
    channels = o.input_tensor.sizes[1] if rank > 1 else 0
    sizes = [1, channels] + [1] * (rank - 2)
    return [x.ravel() for x in parameters] if all(list(x.shape) == sizes for x in parameters) else None


def _batch_normalization(
    o: Any, x: Array, mean: Array, variance: Array, scale: Array, bias: Array
) -> Node | None:
    found = _of_channels(o, scale, bias, mean, variance)
    return None if found is None else Node("BatchNormalization", [x, *found], {"epsilon": o.epsilon})


_row(
    "BATCH_NORMALIZATION",
    _batch_normalization,
    lambda t, o, x, mean, variance, scale, bias: (x - mean) * t.rsqrt(variance + o.epsilon) * scale + bias,
)


def _torch_mean_variance(t: Any, o: Any, x: Any, scale: Any, bias: Any) -> Any:
    if getattr(o, "use_mean", True) is False:
        return None
    has_variance = getattr(o, "normalize_variance", getattr(o, "use_variance", True))
    axes = tuple(getattr(o, "axes", None) or ((1, 2, 3) if o.cross_channel else (2, 3)))
    x = x.double()
    found = x - x.mean(axes, True)
    if has_variance:
        found = found * t.rsqrt(x.var(axes, unbiased=False, keepdim=True) + o.epsilon)
    found = found if scale is None else found * scale
    return found if bias is None else found + bias


_row(
    "MEAN_VARIANCE_NORMALIZATION MEAN_VARIANCE_NORMALIZATION1 MEAN_VARIANCE_NORMALIZATION2",
    None,
    _torch_mean_variance,
)


def _local_response(o: Any, x: Array) -> Node | None:
    attributes = {"size": o.local_size, "alpha": o.alpha, "beta": o.beta, "bias": o.bias}
    return Node("LRN", [x], attributes) if o.cross_channel else None


def scipy_local_response(s: Any, o: Any, x: Array) -> Any:
    """Of an even number of elements, one more lies behind."""
    sums, ones = x * x, np.ones(o.local_size)
    for axis in [1] if o.cross_channel else [2, 3]:
        origin = -1 if o.local_size % 2 == 0 else 0
        sums = s.ndimage.correlate1d(sums, ones, axis, mode="constant", origin=origin)
    return x / (o.bias + o.alpha / o.local_size * sums) ** o.beta


def torch_local_response(t: Any, o: Any, x: Any) -> Any:
    """Of an even number of elements, PyTorch takes one more before, not behind."""
    if not o.cross_channel or o.local_size % 2 == 0:
        return None
    return t.nn.functional.local_response_norm(x, o.local_size, o.alpha, o.beta, o.bias)


_row(
    "LOCAL_RESPONSE_NORMALIZATION",
    _local_response,
    torch_local_response,
    scipy_local_response,
    by=("onnxruntime",),  # onnx.reference counts the items of a batch as channels
    passes="ONNX and PyTorch: without CrossChannel, an even LocalSize",
)
_row("LP_NORMALIZATION", None, lambda t, o, x: t.nn.functional.normalize(x, o.p, o.axis, o.epsilon))

# --- copies ---


def _window(o: Any) -> list[list[int]]:
    """Starts, ends and steps of SLICE."""
    last = zip(o.offsets, o.sizes, o.strides, strict=True)
    ends = [offset + (size - 1) * step + 1 for offset, size, step in last]
    return [list(o.offsets), ends, list(o.strides)]


def _window1(o: Any) -> list[list[int]]:
    """Those of SLICE1, where a negative step begins at the window's last element."""
    found = []
    fields = o.input_window_offsets, o.input_window_sizes, o.input_window_strides
    for offset, size, step in zip(*fields, strict=True):
        if step > 0:
            found.append([offset, offset + size, step])
        else:
            found.append([offset + size - 1, offset - 1 if offset else _BEFORE_FIRST, step])
    return [list(each) for each in zip(*found, strict=True)]


_BEFORE_FIRST = -(1 << 40)


def _slice_node(x: Array, window: list[list[int]]) -> Node:
    starts, ends, steps = (np.array(each, np.int64) for each in window)
    return Node("Slice", [x, starts, ends, np.arange(x.ndim), steps])


def _torch_slice(x: Any, window: list[list[int]]) -> Any:
    return x[tuple(slice(*each) for each in zip(*window, strict=True))]


_row("SLICE", lambda o, x: _slice_node(x, _window(o)), lambda t, o, x: _torch_slice(x, _window(o)))
_row(
    "SLICE1",
    lambda o, x: _slice_node(x, _window1(o)),
    lambda t, o, x: _torch_slice(x, _window1(o)),  # of no negative steps
)


def _cast(o: Any, x: Array) -> Node:
    from onnx import helper

    return Node("Cast", [x], {"to": helper.np_dtype_to_tensor_dtype(o.output_tensor.dtype)})


_row("CAST", _cast, lambda t, o, x: x.to(getattr(t, o.output_tensor.dtype.name)))
_row(
    "SPLIT",
    lambda o, x: Node(
        "Split",
        [x, np.array(_parts(o), np.int64)],
        {"axis": o.axis},
        lambda found: {"output_tensors": found if len(o.output_tensors) > 1 else [found]},
        len(o.output_tensors),
    ),
    lambda t, o, x: {"output_tensors": list(t.split(x, _parts(o), o.axis))},
)


def _parts(o: Any) -> list[int]:
    return [each.sizes[o.axis] for each in o.output_tensors]


_row(
    "JOIN",
    lambda o, tensors: Node("Concat", tensors, {"axis": o.axis}),
    lambda t, o, tensors: t.cat(tensors, o.axis),
)
_MODES = {"CONSTANT": "constant", "EDGE": "edge", "REFLECTION": "reflect", "WRAP": "wrap"}


def _padding_value(o: Any) -> Any:
    if hasattr(o, "padding_value_data_type"):
        return o.padding_value.value(o.padding_value_data_type)
    return o.padding_value


def _padding(o: Any, x: Array) -> Node | None:
    mode = _MODES.get(o.padding_mode.name)
    if mode is None:
        return None
    pads = np.array([*o.start_padding, *o.end_padding], np.int64)
    return Node("Pad", [x, pads, np.array(_padding_value(o), x.dtype)], {"mode": mode})


_row(
    "PADDING PADDING1",
    _padding,
    lambda t, o, x: (
        t.nn.functional.pad(x, torch_pads(o), value=_padding_value(o))
        if o.padding_mode is enums.PaddingMode.CONSTANT and x.is_floating_point()
        else None
    ),
    passes="SYMMETRIC; PyTorch: other than CONSTANT",
)
_row(
    "VALUE_SCALE_2D",
    None,
    lambda t, o, x: x * o.scale + t.tensor(list(o.bias), dtype=t.float32).reshape(1, -1, 1, 1),
)
_row(
    "TILE",
    lambda o, x: Node("Tile", [x, np.array(o.repeats, np.int64)]),
    lambda t, o, x: t.tile(x, tuple(o.repeats)),
)


def _are_inside(o: Any, indices: Any) -> bool:
    """What others give is left open there, too."""
    return bool((indices < o.input_tensor.sizes[o.axis]).all())


_row(
    "GATHER_ELEMENTS",
    lambda o, x, i: (
        Node("GatherElements", [x, i.astype(np.int64)], {"axis": o.axis}) if _are_inside(o, i) else None
    ),
    lambda t, o, x, i: t.gather(x, o.axis, i.long()) if _are_inside(o, i) else None,
)


def _shuffle(type: str) -> Function:
    def node(o: Any, x: Array) -> Node | None:
        order = getattr(o, "order", enums.DepthSpaceOrder.DEPTH_COLUMN_ROW)
        is_dcr = order is enums.DepthSpaceOrder.DEPTH_COLUMN_ROW
        if type == "DepthToSpace":
            return Node(type, [x], {"blocksize": o.block_size, "mode": "DCR" if is_dcr else "CRD"})
        return Node(type, [x], {"blocksize": o.block_size}) if is_dcr else None

    return node


def _is_of_columns(o: Any) -> bool:
    return getattr(o, "order", None) is enums.DepthSpaceOrder.COLUMN_ROW_DEPTH


_row(
    "DEPTH_TO_SPACE DEPTH_TO_SPACE1",
    _shuffle("DepthToSpace"),
    lambda t, o, x: t.pixel_shuffle(x, o.block_size) if _is_of_columns(o) else None,
)
_row(
    "SPACE_TO_DEPTH SPACE_TO_DEPTH1",
    _shuffle("SpaceToDepth"),
    lambda t, o, x: t.pixel_unshuffle(x, o.block_size) if _is_of_columns(o) else None,
)


def _upsampling(t: Any, o: Any, x: Any) -> Any:
    is_nearest = o.interpolation_mode is enums.InterpolationMode.NEAREST_NEIGHBOR
    factors = (float(o.scale_size.height), float(o.scale_size.width))
    if is_nearest:
        return t.nn.functional.interpolate(x, scale_factor=factors, mode="nearest")
    return t.nn.functional.interpolate(x, scale_factor=factors, mode="bilinear", align_corners=False)


_row("UPSAMPLE_2D", None, _upsampling)
