"""Element-wise operators defined by a function of one, two or three elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import erf
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import Below, SameSizes, SameType
from ..enums import FeatureLevel, IsInfinityMode, RoundingMode, TensorDataType
from ..structs import ScaleBias
from .families.conversion import FLOATS, Array, convert, dtype_of, low_bits, raw_bits, unsigned
from .families.element_wise import (
    Binary,
    ElementWise,
    FastUnary,
    Identity,
    Unary,
    of_bits,
    scaled,
    tensors,
)

if TYPE_CHECKING:
    from ..declared.descs import (
        ElementWiseIdentityOperatorDesc,
        ElementWiseIfOperatorDesc,
        ElementWisePowOperatorDesc,
    )

T = TensorDataType


def _hint_on_reshapes(desc: ElementWiseIdentityOperatorDesc, first: str, name: str) -> str:
    """For a copy of packed elements to as many others: the same bytes can be described in both ways."""
    both = desc.input_tensor, desc.output_tensor
    equal = both[0].element_count == both[1].element_count and both[0].data_type is both[1].data_type
    packed = all(each.effective_strides == replace(each, strides=None).effective_strides for each in both)
    if equal and packed and desc.scale_bias is None:
        return "no operator is needed for a reshape: bind the same bytes under the other desc"
    return ""


# --- one number ---


class ElementWiseIdentity(Identity, of="ELEMENT_WISE_IDENTITY"):
    """Copies a tensor, possibly to another layout: ``output = input``, or ``input * Scale + Bias``.

    Without ScaleBias the bits are copied: NaN payloads and denormals stay.  With it the arithmetic is
    FLOAT32 with two roundings (FLOAT64 for FLOAT64 tensors). Integers lose their fraction and wrap, as those
    of ADD do: torch_directml computes a - b as IDENTITY with a Scale of -1 and ADD, of UINT8 too, where
    9 - 2 is 7 only if -2 is 254.  The documentation leaves that open.

    Types and sizes of input and output are equal; strides may differ.
    """

    EXAMPLE = {"scale_bias": ScaleBias(2.0, 10.0)}
    RULES = (
        SameType("input_tensor", "output_tensor"),
        SameSizes("input_tensor", "output_tensor", hint=_hint_on_reshapes),
    )


class ElementWiseAcos(FastUnary, of="ELEMENT_WISE_ACOS"):
    """``output = acos(x)`` of the input, or of ``input * Scale + Bias``, in radians; NaN outside of -1 to
    1.
    """

    KERNEL = "acos"
    function = np.arccos


class ElementWiseAsin(FastUnary, of="ELEMENT_WISE_ASIN"):
    """``output = asin(x)`` of the input, or of ``input * Scale + Bias``, in radians; NaN outside of -1 to
    1.
    """

    KERNEL = "asin"
    function = np.arcsin


class ElementWiseAtan(FastUnary, of="ELEMENT_WISE_ATAN"):
    """``output = atan(x)`` of the input, or of ``input * Scale + Bias``, in radians."""

    KERNEL = "atan"
    function = np.arctan


class ElementWiseCos(FastUnary, of="ELEMENT_WISE_COS"):
    """``output = cos(x)`` of the input, or of ``input * Scale + Bias``, in radians.

    Large arguments are reduced exactly; infinite ones give NaN.
    """

    KERNEL = "cos"
    function = np.cos


class ElementWiseSin(FastUnary, of="ELEMENT_WISE_SIN"):
    """``output = sin(x)`` of the input, or of ``input * Scale + Bias``, in radians.

    Large arguments are reduced exactly; infinite ones give NaN.
    """

    KERNEL = "sin"
    function = np.sin


class ElementWiseTan(FastUnary, of="ELEMENT_WISE_TAN"):
    """``output = tan(x)`` of the input, or of ``input * Scale + Bias``, in radians.

    Large arguments are reduced exactly; infinite ones give NaN.
    """

    KERNEL = "tan"
    function = np.tan


class ElementWiseExp(FastUnary, of="ELEMENT_WISE_EXP"):
    """``output = exp(x)`` of the input, or of ``input * Scale + Bias``."""

    KERNEL = "exp"
    function = np.exp


class ElementWiseLog(FastUnary, of="ELEMENT_WISE_LOG"):
    """``output = ln(x)`` of the input, or of ``input * Scale + Bias``; 0 gives -infinity, negative ones
    NaN.
    """

    KERNEL = "log"
    function = np.log


class ElementWiseErf(Unary, of="ELEMENT_WISE_ERF"):
    """``output = erf(x)``, the error function of the input, or of ``input * Scale + Bias``."""

    KERNEL = "erf"
    ULPS = 5
    ULPS_REASON = "a quotient of polynomials in FLOAT32"

    def function(self, x: Array) -> Array:
        y: Array = np.vectorize(erf, otypes=[np.float64])(x)
        return y


class ElementWiseSinh(FastUnary, of="ELEMENT_WISE_SINH"):
    """``output = sinh(x)`` of the input, or of ``input * Scale + Bias``."""

    KERNEL = "sinh"
    function = np.sinh


class ElementWiseCosh(FastUnary, of="ELEMENT_WISE_COSH"):
    """``output = cosh(x)`` of the input, or of ``input * Scale + Bias``."""

    KERNEL = "cosh"
    function = np.cosh


class ElementWiseTanh(FastUnary, of="ELEMENT_WISE_TANH"):
    """``output = tanh(x)`` of the input, or of ``input * Scale + Bias``."""

    KERNEL = "tanh"
    function = np.tanh
    ULPS = 3


class ElementWiseAsinh(FastUnary, of="ELEMENT_WISE_ASINH"):
    """``output = asinh(x)`` of the input, or of ``input * Scale + Bias``.

    The function is odd: negative arguments lose no precision, as they would with ``ln(x + sqrt(x * x + 1))``.
    """

    KERNEL = "asinh"
    function = np.arcsinh
    ULPS = 1


class ElementWiseAcosh(FastUnary, of="ELEMENT_WISE_ACOSH"):
    """``output = acosh(x)`` of the input, or of ``input * Scale + Bias``; NaN below 1."""

    KERNEL = "acosh"
    function = np.arccosh
    ULPS = 1


class ElementWiseAtanh(FastUnary, of="ELEMENT_WISE_ATANH"):
    """``output = atanh(x)`` of the input, or of ``input * Scale + Bias``; -1 and 1 give infinities, beyond
    them NaN.
    """

    KERNEL = "atanh"
    function = np.arctanh
    ULPS = 1


class ElementWiseCeil(Unary, of="ELEMENT_WISE_CEIL"):
    """``output`` = the least whole number that is not below the input, or ``input * Scale + Bias``.

    Infinities and NaN stay; what lies between -1 and 0 becomes -0.
    """

    KERNEL = "ceil"
    function = np.ceil


class ElementWiseFloor(Unary, of="ELEMENT_WISE_FLOOR"):
    """``output`` = the largest whole number that is not above the input, or ``input * Scale + Bias``.

    Infinities, NaN and the sign of zeros stay.
    """

    KERNEL = "floor"
    function = np.floor


class ElementWiseRecip(Unary, of="ELEMENT_WISE_RECIP"):
    """``output = 1 / x`` of the input, or of ``input * Scale + Bias``, correctly rounded; zeros give
    infinities of their sign.
    """

    KERNEL = "recip"

    def function(self, x: Array) -> Array:
        y: Array = 1 / x
        return y


class ElementWiseSqrt(Unary, of="ELEMENT_WISE_SQRT"):
    """``output = sqrt(x)`` of the input, or of ``input * Scale + Bias``; negative ones give NaN."""

    KERNEL = "sqrt"
    function = np.sqrt


class ElementWiseAbs(Unary, of="ELEMENT_WISE_ABS"):
    """``output = |x|`` of the input, or of ``input * Scale + Bias``.

    Without ScaleBias only the sign bit of floats changes: NaN payloads stay.  The lowest integer stays as it
    is: its absolute value wraps.
    """

    KERNEL = "abs"
    KEEPS_NANS = True

    def kernel(self, working: TensorDataType) -> str:
        is_of_bits = working in FLOATS and self._scale_bias_of_desc() is None
        return "sign_clear" if is_of_bits else self.KERNEL

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, Any]:
        return {"min_bits": _sign(output) - 1}

    def function(self, x: Array) -> Array:
        y: Array = np.abs(x)
        return y

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, data_type = np.asarray(inputs["input_tensor"]), self.output.data_type
        if self.kernel(data_type) == self.KERNEL:
            return super().reference(inputs)
        return {"output_tensor": of_bits(lambda bits: bits & bits.dtype.type(_sign(data_type) - 1), x)}


class ElementWiseNegate(Unary, of="ELEMENT_WISE_NEGATE"):
    """``output = -x``: the sign bit of floats changes, NaN payloads stay; the lowest integer wraps to
    itself.
    """

    KERNEL = "negate"
    KEEPS_NANS = True

    def kernel(self, working: TensorDataType) -> str:
        return "sign_flip" if working in FLOATS else self.KERNEL

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, Any]:
        return {"min_bits": _sign(output)}

    def function(self, x: Array) -> Array:
        return -x

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, data_type = np.asarray(inputs["input_tensor"]), self.output.data_type
        if data_type not in FLOATS:
            return super().reference(inputs)
        return {"output_tensor": of_bits(lambda bits: bits ^ bits.dtype.type(_sign(data_type)), x)}


def _sign(data_type: TensorDataType) -> int:
    """The sign bit of that type."""
    return 1 << (8 * dtype_of(data_type).itemsize - 1)


class ElementWiseSign(Unary, of="ELEMENT_WISE_SIGN"):
    """``output = 1 if x > 0, -1 if x < 0, else 0``: zeros of either sign and NaN give 0."""

    KERNEL = "sign"

    def function(self, x: Array) -> Array:
        return np.where(x > 0, 1, np.where(x < 0, -1, 0))


class ElementWiseRound(Unary, of="ELEMENT_WISE_ROUND"):
    """``output`` = the input rounded to a whole number by RoundingMode:

    * HALVES_TO_NEAREST_EVEN: to the nearest one, of two the even one;
    * TOWARD_ZERO: without its fraction;
    * TOWARD_INFINITY: to the nearest one, of two the one further from zero (1.25 gives 1, 2.5 gives 3, -2.5
      gives -3).

    Infinities, NaN and the sign of zeros stay.
    """

    KERNEL = "round"
    EXAMPLE = {"rounding_mode": RoundingMode.TOWARD_INFINITY}

    def kernel(self, working: TensorDataType) -> str:
        return {
            RoundingMode.HALVES_TO_NEAREST_EVEN: "round",
            RoundingMode.TOWARD_ZERO: "round_toward_zero",
            RoundingMode.TOWARD_INFINITY: "round_halves_away",
        }[RoundingMode(self.desc.rounding_mode)]

    def function(self, x: Array) -> Array:
        if self.desc.rounding_mode == RoundingMode.HALVES_TO_NEAREST_EVEN:
            return np.rint(x)
        whole: Array = np.trunc(x)
        is_away = self.desc.rounding_mode == RoundingMode.TOWARD_INFINITY
        return np.where(is_away & (np.abs(x - whole) >= 0.5), whole + np.sign(x), whole)


class ElementWiseThreshold(Unary, of="ELEMENT_WISE_THRESHOLD"):
    """``output = max(x, Min)`` of the input, or of ``input * Scale + Bias``; a NaN becomes Min.

    Min is first converted to the tensor's type as CAST does.
    """

    KERNEL = "threshold"
    EXAMPLE = {"min": 0.5}

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, Any]:
        return {"min_bits": raw_bits(self.desc.min, output)}

    def arguments(self, data_type: TensorDataType) -> dict[str, Any]:
        return {"min": convert(np.float32(self.desc.min), data_type)}

    def function(self, x: Array, min: Array) -> Array:
        y: Array = np.fmax(x, min)
        return y


class ElementWiseConstantPow(Unary, of="ELEMENT_WISE_CONSTANT_POW"):
    """``output = pow(x, Exponent)`` of the input, or of ``input * Scale + Bias``.

    As C's pow: an Exponent of 0 gives 1 (even of NaN), negative x with a fraction as Exponent NaN.  Integers
    are raised as floats; the result is converted back as CAST does.
    """

    KERNEL = "constant_pow"
    CONSTANTS = {"exponent": "alpha"}
    EXAMPLE = {"exponent": 1.5}
    ULPS = 1  # FLOAT32 is computed in FLOAT32, with the logarithm in two parts

    def kernel(self, working: TensorDataType) -> str:
        if working not in FLOATS:
            return "constant_pow_of_integer"
        return {2.0: "constant_pow_2", 3.0: "constant_pow_3"}.get(self.desc.exponent, self.KERNEL)

    def function(self, x: Array, exponent: float) -> Array:
        y: Array = np.float_power(x, exponent)  # `**` is a square root for 0.5
        return y


class ElementWiseIsNan(Unary, of="ELEMENT_WISE_IS_NAN"):
    """``output = 1`` where the input is a NaN, of any sign and payload, else 0; UINT32 or UINT8."""

    KERNEL = "is_nan"
    function = np.isnan
    EXAMPLE = tensors(T.UINT32, "output_tensor")
    RULES = (SameSizes("input_tensor", "output_tensor"),)


class ElementWiseIsInfinity(Unary, of="ELEMENT_WISE_IS_INFINITY"):
    """``output = 1`` where the input is infinite, else 0; InfinityMode: of EITHER sign, POSITIVE or
    NEGATIVE.
    """

    KERNEL = "is_infinity"
    EXAMPLE = {**tensors(T.UINT8, "output_tensor"), "infinity_mode": IsInfinityMode.EITHER}
    RULES = (SameSizes("input_tensor", "output_tensor"),)

    def _infinities(self) -> tuple[float, float]:
        """The infinities that count; twice the same, if it is one."""
        both = {IsInfinityMode.POSITIVE: (np.inf, np.inf), IsInfinityMode.NEGATIVE: (-np.inf, -np.inf)}
        return both.get(self.desc.infinity_mode, (-np.inf, np.inf))

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, Any]:
        low, high = (raw_bits(each, working) for each in self._infinities())
        return {"min_bits": low, "max_bits": high}

    def function(self, x: Array) -> Array:
        return np.isin(x, self._infinities())


# --- two numbers ---


class ElementWiseSubtract(Binary, of="ELEMENT_WISE_SUBTRACT"):
    """``output = A - B``.  Integers wrap; FLOAT16 is rounded once.

    Types and sizes of the three tensors are equal: broadcast an input with strides of 0.
    """

    KERNEL = "subtract"

    def function(self, a: Array, b: Array) -> Array:
        return a - b


class ElementWiseMultiply(Binary, of="ELEMENT_WISE_MULTIPLY"):
    """``output = A * B``.  Integers wrap; FLOAT16 is rounded once."""

    KERNEL = "multiply"

    def function(self, a: Array, b: Array) -> Array:
        return a * b


class ElementWiseDivide(Binary, of="ELEMENT_WISE_DIVIDE"):
    """``output = A / B``, correctly rounded; of integers the quotient without its fraction.

    Integers: by 0 every bit of the result is 1; the lowest number divided by -1 wraps to itself.
    """

    KERNEL = "divide"

    def function(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return a / b
        return low_bits(np.where(b == 0, -1, _quotient(a, b)), a.dtype)


def _quotient(a: Array, b: Array) -> Array:
    """Of integers, toward zero, as Python's integers; 0 where b is 0."""
    dividend, divisor = a.astype(object), np.where(b == 0, 1, b.astype(object))
    size = abs(dividend) // abs(divisor)
    quotient: Array = np.where(b == 0, 0, np.where((a < 0) != (b < 0), -size, size))
    return quotient


class ElementWiseModulusTruncate(Binary, of="ELEMENT_WISE_MODULUS_TRUNCATE"):
    """``output = A - B * trunc(A / B)``, exactly: the remainder with the sign of A, as C's ``%`` and fmod.

    Floats: an infinite B gives A; an infinite A, or a B of 0, NaN.  Integers: by 0 every bit of the result is
    1.
    """

    KERNEL = "modulus_truncate"

    def function(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.fmod(a, b)
        return low_bits(np.where(b == 0, -1, a.astype(object) - b * _quotient(a, b)), a.dtype)


class ElementWiseModulusFloor(Binary, of="ELEMENT_WISE_MODULUS_FLOOR"):
    """``output = A - B * floor(A / B)``: the remainder with the sign of B, as Python's ``%``.

    Floats are computed from the exact remainder of A, to which B is added if the signs differ; a zero has the
    sign of B.  An infinite A, or a B of 0, gives NaN.  Integers: by 0 every bit of the result is 1.
    """

    KERNEL = "modulus_floor"

    def function(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.mod(a, b)
        divisor = np.where(b == 0, 1, b.astype(object))
        return low_bits(np.where(b == 0, -1, a.astype(object) % divisor), a.dtype)


class ElementWiseMax(Binary, of="ELEMENT_WISE_MAX"):
    """``output = max(A, B)``: a number wins over a NaN, and +0 over -0."""

    KERNEL = "max"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = np.fmax(a, b)
        return np.where((a == 0) & (b == 0), a + b, y)  # +0, unless both are -0


class ElementWiseMin(Binary, of="ELEMENT_WISE_MIN"):
    """``output = min(A, B)``: a number wins over a NaN, and -0 over +0."""

    KERNEL = "min"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = np.fmin(a, b)
        return np.where((a == 0) & (b == 0), -(-a - b), y)  # -0, unless both are +0


class ElementWiseMean(Binary, of="ELEMENT_WISE_MEAN"):
    """``output = (A + B) / 2``: the sum does not overflow; of integers the quotient without its fraction."""

    KERNEL = "mean"

    def function(self, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return (a + b) / 2
        total = a.astype(np.int64) + b.astype(np.int64)
        half: Array = np.sign(total) * (np.abs(total) // 2)
        return half


class ElementWiseDifferenceSquare(Binary, of="ELEMENT_WISE_DIFFERENCE_SQUARE"):
    """``output = (A - B) * (A - B)``, rounded once; integers wrap."""

    KERNEL = "difference_square"

    def function(self, a: Array, b: Array) -> Array:
        difference: Array = a - b
        return difference * difference


class ElementWisePow(Unary, of="ELEMENT_WISE_POW"):
    """``output = pow(x, Exponent)`` of the input, or of ``input * Scale + Bias``, and of ExponentTensor.

    * A float to any power: as C's pow; an exponent of 0 gives 1 (even of NaN), negative x with a fraction as
      exponent NaN.
    * An integer to an integer: the low bits of the exact result.  Negative exponents: 1 gives 1, -1 gives 1
      or -1, 0 gives a number whose bits are all 1 (-1, or the largest of unsigned types), as DIVIDE by 0
      does, others 0.  The documentation leaves 0 to a negative integer open: PyTorch gives 0, ONNX Runtime
      the lowest integer.
    * An integer to a float: raised as a float, and the result is converted back as CAST does.

    Types of InputTensor and OutputTensor are equal; ExponentTensor may have another one.
    """

    desc: ElementWisePowOperatorDesc

    KERNEL = "pow"
    ULPS = 1  # FLOAT32 is computed in FLOAT32, with the logarithm in two parts
    INPUTS = ("input_tensor", "exponent_tensor")
    RULES = (
        SameType("input_tensor", "output_tensor"),
        SameSizes("input_tensor", "exponent_tensor", "output_tensor"),
        Below(FeatureLevel.LEVEL_3_0, SameType("input_tensor", "exponent_tensor")),
    )

    def apply(self, *operands: Array, data_type: TensorDataType) -> Array:
        x, exponent = operands
        x = scaled(x, self.desc.scale_bias, data_type)
        if data_type in FLOATS or exponent.dtype.kind == "f":
            y: Array = x.astype(np.float64) ** exponent.astype(np.float64)
            return y
        bits, is_signed = 8 * x.dtype.itemsize, x.dtype.kind == "i"
        whole: Array = np.vectorize(_whole_power, otypes=[x.dtype])(x, exponent, bits, is_signed)
        return whole


def _whole_power(x: int, exponent: int, bits: int, is_signed: bool) -> int:
    x, exponent = int(x), int(exponent)
    if exponent >= 0:
        power = pow(x, exponent, 1 << bits)
    else:
        power = {0: -1, 1: 1, -1: (-1) ** -exponent}.get(x, 0) % (1 << bits)
    return power - (1 << bits) if is_signed and power >> (bits - 1) else power


class ElementWiseAtanYx(Binary, of="ELEMENT_WISE_ATAN_YX"):
    """``output = atan2(A, B)``: the angle of the point with y = A and x = B, from -pi to pi; signs of zeros
    are treated as in C.  DirectML does not define the angle of (0, 0); here it is 0 or pi
    with the sign of A."""

    KERNEL = "atan_yx"
    ULPS = 1

    def function(self, a: Array, b: Array) -> Array:
        y: Array = np.arctan2(a, b)
        return y


# --- a choice ---


class ElementWiseIf(ElementWise, of="ELEMENT_WISE_IF"):
    """``output = A`` where the condition is not 0, else B; every bit is copied.

    Sizes of the four tensors are equal: broadcast an input with strides of 0.
    """

    desc: ElementWiseIfOperatorDesc

    KERNEL = "if"
    KEEPS_NANS = True
    INPUTS = ("condition_tensor", "a_tensor", "b_tensor")
    EXAMPLE = tensors(T.UINT8, "condition_tensor")
    RULES = (
        SameType("a_tensor", "b_tensor", "output_tensor"),
        SameSizes("condition_tensor", "a_tensor", "b_tensor", "output_tensor"),
    )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        condition, a, b = (np.asarray(inputs[name]) for name in self.INPUTS)
        return {"output_tensor": np.where(condition != 0, unsigned(a), unsigned(b)).view(a.dtype)}
