"""Functions of each element, comparisons, casts and selections."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import onnx

from ... import graph as g
from ...dml.enums import IsInfinityMode, RoundingMode, TensorDataType
from ...graph import Expression, reinterpret
from ..calls import NO_NUMBER, Call, NotOnDevice, lowers, repeated
from ..tensors import NARROW
from .quantization import dequantized_from_narrow, narrow_zeros, quantized_to_narrow

_F = g.FUNCTIONS
_FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16)


def with_nan(c: Call, made: Expression, *sources: Expression) -> Expression:
    """NaN where one of the sources is: DirectML's comparisons are false for it, and take the other number."""
    if made.data_type in _FLOATS and c.wants_onnx(NO_NUMBER):
        for source in sources:
            made = _F["element_wise_if"](_F["element_wise_is_nan"](source), source, made)
    return made


def _alias(op: str, name: str, **fields: Any) -> None:
    lowers(op)(lambda c: _F[name](c.x(), **fields))


for _op in (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor"),
    *("Log", "Sin", "Sinh", "Sqrt", "Tan", "Tanh"),
):
    _alias(_op, f"element_wise_{_op.lower()}")
_alias("Neg", "element_wise_negate")
_alias("Reciprocal", "element_wise_recip")
_alias("Round", "element_wise_round", rounding_mode=RoundingMode.HALVES_TO_NEAREST_EVEN)
_alias("Not", "element_wise_logical_not")
_alias("BitwiseNot", "element_wise_bit_not")
_alias("IsNaN", "element_wise_is_nan")
_alias("Sigmoid", "activation_sigmoid")
_alias("Softplus", "activation_softplus")
_alias("Softsign", "activation_softsign")
_alias("HardSwish", "activation_hard_swish", alpha=1 / 6, beta=0.5)


@lowers("Sign")
def _sign(c: Call) -> Expression:
    x = c.x()
    return with_nan(c, _F["element_wise_sign"](x), x)


def _with_attributes(op: str, name: str, **attributes: tuple[str, float]) -> None:
    """``attributes``: the operator's fields, by ONNX's attribute and its default."""

    def lowering(c: Call) -> Expression:
        values = {field: c.attribute(each, default) for field, (each, default) in attributes.items()}
        x = c.x()
        made: Expression = _F[name](x, **values)
        return with_nan(c, made, x) if op in ("Celu", "HardSigmoid") else made

    lowers(op)(lowering)


_with_attributes("Elu", "activation_elu", alpha=("alpha", 1.0))
_with_attributes("Celu", "activation_celu", alpha=("alpha", 1.0))
_with_attributes("LeakyRelu", "activation_leaky_relu", alpha=("alpha", 0.01))
_with_attributes("HardSigmoid", "activation_hard_sigmoid", alpha=("alpha", 0.2), beta=("beta", 0.5))
_with_attributes("ThresholdedRelu", "activation_thresholded_relu", alpha=("alpha", 1.0))
_with_attributes("Swish", "activation_swish", sigmoid_input_scale=("alpha", 1.0))
_with_attributes(
    "Selu",
    "activation_scaled_elu",
    alpha=("alpha", 1.67326319217681884765625),
    gamma=("gamma", 1.05070102214813232421875),
)


@lowers("Shrink")
def _shrink(c: Call) -> Expression:
    """Of whole numbers in FLOAT32: ACTIVATION_SHRINK cuts the bias before it applies it."""
    x = c.x()
    is_whole = x.data_type not in _FLOATS
    values = g.cast(x, output_data_type=TensorDataType.FLOAT32) if is_whole else x
    made: Expression = g.activation_shrink(
        values, bias=c.attribute("bias", 0.0), threshold=c.attribute("lambd", 0.5)
    )
    return g.cast(made, output_data_type=x.data_type) if is_whole else made


@lowers("Relu")
def _relu(c: Call) -> Expression:
    x = c.x()
    made: Expression = (
        g.activation_relu(x) if x.data_type in _FLOATS else _F["element_wise_max"](x, c.scalar(0, x))
    )
    return with_nan(c, made, x)


@lowers("Gelu")
def _gelu(c: Call) -> Expression:
    if c.attribute("approximate", "none") != "none":
        raise NotOnDevice("ACTIVATION_GELU is not the approximation by tanh")
    made: Expression = g.activation_gelu(c.x())
    return made


@lowers("PRelu")
def _prelu(c: Call) -> Expression:
    made: Expression = g.activation_parameterized_relu(c.x(0), repeated(c.x(1), c.shape(0)))
    return made


@lowers("IsInf")
def _is_infinity(c: Call) -> Expression:
    negative, positive = c.attribute("detect_negative", 1), c.attribute("detect_positive", 1)
    x = c.x()
    if not negative and not positive:
        made: Expression = c.scalar(0, _F["element_wise_is_infinity"](x))
        return made
    mode = IsInfinityMode.EITHER if negative and positive else IsInfinityMode.POSITIVE
    mode = IsInfinityMode.NEGATIVE if negative and not positive else mode
    made = _F["element_wise_is_infinity"](x, infinity_mode=mode)
    return made


# --- of two ---


def _of_two(op: str, name: str) -> None:
    def lowering(c: Call) -> Expression:
        a, b = c.broadcast(0, 1)
        made: Expression = _F[name](a, b)
        return made

    lowers(op)(lowering)


for _op, _name in {
    "Add": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Div": "divide",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "BitwiseAnd": "bit_and",
    "BitwiseOr": "bit_or",
    "BitwiseXor": "bit_xor",
    "Equal": "logical_equals",
    "Greater": "logical_greater_than",
    "Less": "logical_less_than",
    "GreaterOrEqual": "logical_greater_than_or_equal",
    "LessOrEqual": "logical_less_than_or_equal",
}.items():
    _of_two(_op, f"element_wise_{_name}")


@lowers("Pow")
def _pow(c: Call) -> Expression:
    a, b = c.broadcast(0, 1)
    if a.data_type in _FLOATS and b.data_type is not a.data_type:
        b = g.cast(b, output_data_type=a.data_type)
    made: Expression = _F["element_wise_pow"](a, b)
    return made


@lowers("Mod")
def _mod(c: Call) -> Expression:
    a, b = c.broadcast(0, 1)
    if a.data_type in _FLOATS and not c.attribute("fmod", 0) and c.opset < 28:
        raise NotOnDevice("Mod of floats needs fmod = 1 before opset 28")
    name = "truncate" if c.attribute("fmod", 0) else "floor"
    made: Expression = _F[f"element_wise_modulus_{name}"](a, b)
    return made


@lowers("BitShift")
def _bit_shift(c: Call) -> Expression:
    a, b = c.broadcast(0, 1)
    if a.data_type in _SIGNED:
        return _arithmetic_shift(c, a, b)
    direction = "left" if c.attribute("direction") == "LEFT" else "right"
    shifted: Expression = _F[f"element_wise_bit_shift_{direction}"](a, b)
    too_far = _F["element_wise_logical_greater_than_or_equal"](b, c.scalar(8 * a.dtype.itemsize, b))
    made: Expression = _F["element_wise_if"](
        too_far, c.scalar(0, a), shifted
    )  # the device takes the count modulo the width
    return made


_SIGNED = {
    TensorDataType.INT8: TensorDataType.UINT8,
    TensorDataType.INT16: TensorDataType.UINT16,
    TensorDataType.INT32: TensorDataType.UINT32,
    TensorDataType.INT64: TensorDataType.UINT64,
}


def _arithmetic_shift(c: Call, a: Expression, b: Expression) -> Expression:
    """By shifts of the bits as unsigned numbers: those of a negative number are inverted before and after.

    A count of at least the width, or a negative one, shifts all bits out.
    """
    signed, unsigned = a.data_type, _SIGNED[a.data_type]
    left = c.attribute("direction") == "LEFT"
    zero, width = c.scalar(0, a), c.scalar(8 * a.dtype.itemsize - 1, a)
    too_far = _F["element_wise_logical_or"](b > width, b < zero)
    count = _F["element_wise_if"](too_far, zero, b)
    negative = a < zero
    bits = a if left else _F["element_wise_if"](negative, _F["element_wise_bit_not"](a), a)
    shift = _F["element_wise_bit_shift_left" if left else "element_wise_bit_shift_right"]
    shifted = reinterpret(
        shift(reinterpret(bits, data_type=unsigned), reinterpret(count, data_type=unsigned)), data_type=signed
    )
    shifted = _F["element_wise_if"](too_far, zero, shifted)
    if not left:
        shifted = _F["element_wise_if"](negative, _F["element_wise_bit_not"](shifted), shifted)
    made: Expression = shifted
    return made


def _of_many(op: str, name: str) -> None:
    def lowering(c: Call) -> Expression:
        function: Callable[[Expression, Expression], Expression] = _F[f"element_wise_{name}"]
        given = c.broadcast()
        made = reduce(function, given)
        if op in ("Max", "Min") and len(given) > 1:
            made = with_nan(c, made, *given)
        if op == "Mean" and len(c.inputs) > 1:
            made = _F["element_wise_divide"](made, c.scalar(len(c.inputs), made))
        return made

    lowers(op)(lowering)


for _op, _name in {"Max": "max", "Min": "min", "Sum": "add", "Mean": "add"}.items():
    _of_many(_op, _name)


@lowers("Where")
def _where(c: Call) -> Expression:
    made: Expression = _F["element_wise_if"](*c.broadcast(0, 1, 2))
    return made


@lowers("Clip")
def _clip(c: Call) -> Expression:
    x = c.x()
    if c.opset < 11:
        limits = np.finfo(np.float32)
        made: Expression = _F["element_wise_clip"](
            x, min=c.attribute("min", float(limits.min)), max=c.attribute("max", float(limits.max))
        )
        return with_nan(c, made, x)
    made = x
    if c.has(1):
        made = _F["element_wise_max"](made, repeated(c.x(1), c.shape()))
    if c.has(2):
        made = _F["element_wise_min"](made, repeated(c.x(2), c.shape()))
    if x.data_type in _FLOATS and not (c.has(1) and c.has(2)):  # an infinity is beyond the limits of the type
        limits = np.finfo(x.dtype)
        made = _F["element_wise_clip"](made, min=float(limits.min), max=float(limits.max))
    return with_nan(c, made, x) if made is not x else x


# --- types ---


def cast(c: Call, x: Expression, source: int, target: int) -> Expression:
    """A tensor as another of ONNX's types."""
    if x.data_type in NARROW:
        x = _cast_from_narrow(c, x)
    if target == onnx.TensorProto.BOOL and source != onnx.TensorProto.BOOL:
        equal = _F["element_wise_logical_equals"](x, c.scalar(0, x))
        made: Expression = _F["element_wise_logical_not"](equal)
        return made
    data_type = c.device_type(target)
    if data_type in NARROW:
        return _cast_to_narrow(c, x, data_type)
    if x.data_type in _FLOATS and data_type in _WHOLE and c.wants_onnx(_OUT_OF_RANGE):
        return _whole(c, x, data_type)
    made = x if data_type is x.data_type else g.cast(x, output_data_type=data_type)
    return made


def _cast_from_narrow(c: Call, x: Expression) -> Expression:
    """As INT32: casts from there keep the lowest bits, those from floats saturate."""
    one = [1] * x.rank
    unit = c.constant(np.ones(one), dtype=np.float32)
    whole = dequantized_from_narrow(x, [unit, narrow_zeros(c, x.data_type, one)])
    made: Expression = g.cast(whole, output_data_type=TensorDataType.INT32)
    return made


def _cast_to_narrow(c: Call, x: Expression, data_type: TensorDataType) -> Expression:
    """The lowest four bits of a whole number; a fraction is cut off."""
    one = [1] * x.rank
    bits = _F["element_wise_bit_and"](
        g.cast(x, output_data_type=TensorDataType.INT32),
        repeated(c.constant(np.full(one, 15), dtype=np.int32), x.sizes),
    )
    if data_type is TensorDataType.INT4:
        negative = bits > c.scalar(7, bits)
        bits = _F["element_wise_if"](negative, bits - c.scalar(16, bits), bits)
    unit = c.constant(np.ones(one), dtype=np.float32)
    whole = g.cast(bits, output_data_type=TensorDataType.FLOAT32)
    return quantized_to_narrow(whole, [unit, narrow_zeros(c, data_type, one)])


_T = TensorDataType
_WHOLE = {
    _T.INT8: _T.INT32, _T.INT16: _T.INT32, _T.INT32: _T.INT32, _T.INT64: _T.INT64,
    _T.UINT8: _T.INT32, _T.UINT16: _T.INT32, _T.UINT32: _T.INT32, _T.UINT64: _T.INT64,
}  # fmt: skip
"""By way of which type a CPU makes whole numbers of floats."""
_OUT_OF_RANGE = "numbers out of range are cast to the nearest of the type, NaN to 0"


def _whole(c: Call, x: Expression, target: TensorDataType) -> Expression:
    """As x86's instructions cast: what does not fit INT32 or INT64 is its least number; of smaller types the
    low bits are kept, and an unsigned type of the same size has its upper half by an offset."""
    is_half = x.data_type is _T.FLOAT16
    x = g.cast(x, output_data_type=_T.FLOAT32) if is_half else x
    # UINT32 of FLOAT16 is made by way of INT64: the instructions with an offset are those of FLOAT32.
    wide = _T.INT64 if is_half and target is _T.UINT32 else _WHOLE[target]
    if (wide, target) not in ((_T.INT32, _T.UINT32), (_T.INT64, _T.UINT64)):
        made: Expression = g.cast(_signed(c, x, wide), output_data_type=target)
        return made
    half = 2.0 ** (31 if wide is _T.INT32 else 63)
    is_upper = _F["element_wise_logical_greater_than_or_equal"](x, c.scalar(half, x))
    low = _signed(c, _F["element_wise_if"](is_upper, x - c.scalar(half, x), x), wide)
    bits = reinterpret(low, data_type=target)
    upper = _F["element_wise_if"](is_upper, c.scalar(int(half), bits), c.scalar(0, bits))
    made = _F["element_wise_bit_xor"](bits, upper)
    return made


def _signed(c: Call, x: Expression, wide: TensorDataType) -> Expression:
    half = 2.0 ** (31 if wide is _T.INT32 else 63)
    fits = _F["element_wise_logical_less_than"](_F["element_wise_abs"](x), c.scalar(half, x))
    made = g.cast(x, output_data_type=wide)
    least: Expression = _F["element_wise_if"](fits, made, c.scalar(-int(half), made))
    return least


@lowers("Cast")
def _cast(c: Call) -> Expression:
    return cast(c, c.x(narrow=True), c.type_of(), c.attribute("to"))


@lowers("CastLike")
def _cast_like(c: Call) -> Expression:
    return cast(c, c.x(narrow=True), c.type_of(), c.type_of(1))


@lowers("Dropout")
def _dropout(c: Call) -> tuple[Expression, Expression | None]:
    if c.has(2) and bool(c.value(2)) and not (c.has(1) and c.value(1) == 0):
        raise NotOnDevice("Dropout in training draws random numbers")
    x = c.x()
    mask = None
    if c.wants(1):
        ones = c.graph.constant(np.ones([1] * x.rank, np.uint8 if c.opset > 9 else x.dtype))
        mask = repeated(ones, c.shape())
    return x, mask
