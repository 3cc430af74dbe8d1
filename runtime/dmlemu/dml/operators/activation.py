"""The activations: each a function of one element, with up to two FLOAT parameters.

All but the last ones can be the fused activation of another operator; then they have no tensors of their own.
Results are rounded once.
"""

from __future__ import annotations

from math import erfc, sqrt
from typing import Any

import numpy as np

from ..declared.rules import AtLeast, Below
from ..enums import FeatureLevel, TensorDataType
from .families.conversion import FLOATS, Array, convert, raw_bits
from .families.element_wise import ElementWise, FastUnary, Identity, Unary, alike
from .families.fusion import Fusable


def _softplus(x: Array) -> Array:
    """ln(1 + exp(x)); large x give x, not infinity."""
    y: Array = np.logaddexp(0.0, x)
    return y


class ActivationElu(Fusable, of="ACTIVATION_ELU"):
    """``output = x if x >= 0 else Alpha * (exp(x) - 1)``; Alpha is usually 1."""

    KERNEL = "elu"
    EXAMPLE = {"alpha": 1.0}
    ULPS = 2
    ULPS_REASON = "FLOAT32 is computed in FLOAT32"

    def function(self, x: Array, alpha: float) -> Array:
        return np.where(x >= 0, x, alpha * np.expm1(x))


class ActivationCelu(Fusable, of="ACTIVATION_CELU"):
    """``output = max(0, x) + min(0, Alpha * (exp(x / Alpha) - 1))``; Alpha is usually 1."""

    KERNEL = "celu"
    EXAMPLE = {"alpha": 1.0}
    ULPS = 2
    ULPS_REASON = "FLOAT32 is computed in FLOAT32 if Alpha is 1, otherwise in FLOAT64"

    def kernel(self, working: TensorDataType) -> str:
        return "celu_1" if self.desc.alpha == 1 else self.KERNEL

    def function(self, x: Array, alpha: float) -> Array:
        y: Array = np.fmax(0, x) + np.fmin(0, alpha * np.expm1(x / alpha))
        return y


class ActivationHardSigmoid(Fusable, of="ACTIVATION_HARD_SIGMOID"):
    """``output = max(0, min(Alpha * x + Beta, 1))``; Alpha is usually 0.2 and Beta 0.5."""

    KERNEL = "hard_sigmoid"
    EXAMPLE = {"alpha": 0.2, "beta": 0.5}
    ULPS = 1
    ULPS_REASON = "a FLOAT16 result is rounded to FLOAT32 first"

    def function(self, x: Array, alpha: float, beta: float) -> Array:
        y: Array = np.fmax(0, np.fmin(alpha * x + beta, 1))
        return y


class ActivationIdentity(Identity, of="ACTIVATION_IDENTITY"):
    """``output = x``.  The bits are copied, unless it is fused: NaN payloads and denormals stay."""

    FUSABLE = True


class ActivationLeakyRelu(Fusable, of="ACTIVATION_LEAKY_RELU"):
    """``output = x if x >= 0 else Alpha * x``; Alpha is usually 0.01."""

    KERNEL = "leaky_relu"
    EXAMPLE = {"alpha": 0.01}
    ULPS = 1
    ULPS_REASON = "a FLOAT16 result is rounded to FLOAT32 first"

    def function(self, x: Array, alpha: float) -> Array:
        return np.where(x >= 0, x, alpha * x)


class ActivationLinear(Fusable, of="ACTIVATION_LINEAR"):
    """``output = Alpha * x + Beta``."""

    KERNEL = "linear"
    EXAMPLE = {"alpha": 3.0, "beta": -1.0}
    ULPS = 1
    ULPS_REASON = "a FLOAT16 result is rounded to FLOAT32 first"

    def function(self, x: Array, alpha: float, beta: float) -> Array:
        return alpha * x + beta


class ActivationParametricSoftplus(Fusable, of="ACTIVATION_PARAMETRIC_SOFTPLUS"):
    """``output = Alpha * ln(1 + exp(Beta * x))``, without overflow: large ones give Alpha * Beta * x."""

    KERNEL = "parametric_softplus"
    EXAMPLE = {"alpha": 2.0, "beta": 0.5}
    ULPS = 1

    def function(self, x: Array, alpha: float, beta: float) -> Array:
        return alpha * _softplus(beta * x)


class ActivationRelu(Fusable, of="ACTIVATION_RELU"):
    """``output = max(0, x)``; a NaN and -0 become 0."""

    KERNEL = "relu"

    def function(self, x: Array) -> Array:
        return np.where(x > 0, x, x.dtype.type(0))


class ActivationScaledElu(Fusable, of="ACTIVATION_SCALED_ELU"):
    """``output = Gamma * x if x > 0 else Gamma * (Alpha * exp(x) - Alpha)``.

    Alpha is usually 1.67326319217681884765625 and Gamma 1.05070102214813232421875.
    """

    KERNEL = "scaled_elu"
    EXAMPLE = {"alpha": 1.6732632, "gamma": 1.0507011}
    ULPS = 2
    ULPS_REASON = "FLOAT32 is computed in FLOAT32"

    def function(self, x: Array, alpha: float, gamma: float) -> Array:
        return np.where(x > 0, gamma * x, gamma * (alpha * np.expm1(x)))


class ActivationScaledTanh(Fusable, of="ACTIVATION_SCALED_TANH"):
    """``output = Alpha * tanh(Beta * x)``; Alpha is usually 1 and Beta 0.5."""

    KERNEL = "scaled_tanh"
    EXAMPLE = {"alpha": 1.0, "beta": 0.5}
    ULPS = 1

    def function(self, x: Array, alpha: float, beta: float) -> Array:
        y: Array = alpha * np.tanh(beta * x)
        return y


class ActivationSigmoid(Fusable, of="ACTIVATION_SIGMOID"):
    """``output = 1 / (1 + exp(-x))``."""

    KERNEL = "sigmoid"
    ULPS = 3
    ULPS_REASON = "FLOAT32 is computed in FLOAT32"

    def function(self, x: Array) -> Array:
        y: Array = 1 / (1 + np.exp(-x))
        return y


class ActivationSoftplus(Fusable, of="ACTIVATION_SOFTPLUS"):
    """``output = ln(1 + exp(Steepness * x)) / Steepness``, without overflow: large x give x.

    Steepness is usually 1, and at least 1 below feature level 6_4.
    """

    KERNEL = "softplus"
    CONSTANTS = {"steepness": "alpha"}
    EXAMPLE = {"steepness": 1.0}
    ULPS = 2
    ULPS_REASON = "FLOAT32 is computed in FLOAT32 if Steepness is 1, otherwise in FLOAT64"

    RULES = (*Fusable.RULES, Below(FeatureLevel.LEVEL_6_4, AtLeast("steepness", 1)))

    def kernel(self, working: TensorDataType) -> str:
        return "softplus_1" if self.desc.steepness == 1 else self.KERNEL

    def function(self, x: Array, steepness: float) -> Array:
        return _softplus(steepness * x) / steepness


class ActivationSoftsign(Fusable, of="ACTIVATION_SOFTSIGN"):
    """``output = x / (1 + |x|)``; infinite x give NaN, as in the formula."""

    KERNEL = "softsign"
    ULPS = 2
    ULPS_REASON = "FLOAT32 is computed in FLOAT32"

    def function(self, x: Array) -> Array:
        y: Array = x / (1 + np.abs(x))
        return y


class ActivationTanh(Fusable, of="ACTIVATION_TANH"):
    """``output = tanh(x)``."""

    KERNEL = "tanh"
    function = np.tanh
    ULPS = 3
    ULPS_REASON = "FLOAT32 is computed in FLOAT32"


class ActivationThresholdedRelu(Fusable, of="ACTIVATION_THRESHOLDED_RELU"):
    """``output = x if x > Alpha else 0``; Alpha is usually 1, a NaN becomes 0."""

    KERNEL = "thresholded_relu"
    EXAMPLE = {"alpha": 1.0}

    def function(self, x: Array, alpha: float) -> Array:
        return np.where(x > alpha, x, 0)


class ActivationShrink(Fusable, of="ACTIVATION_SHRINK"):
    """``output = x - Bias if x > Threshold, x + Bias if x < -Threshold, else 0``; a NaN becomes 0.

    Bias is usually 0 and Threshold 0.5.  For integers both are first converted to the tensor's type as CAST
    does; results wrap.
    """

    KERNEL = "shrink"
    CONSTANTS = {"threshold": "alpha", "bias": "beta"}
    EXAMPLE = {"bias": 0.25, "threshold": 0.5}

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, Any]:
        if working in FLOATS:
            return super().parameters(working, output)
        return {
            "min_bits": raw_bits(self.desc.threshold, working),
            "max_bits": raw_bits(self.desc.bias, working),
        }

    def arguments(self, data_type: TensorDataType) -> dict[str, Any]:
        floats = super().arguments(data_type)
        if data_type in FLOATS:
            return floats
        return {name: np.int64(convert(value, data_type)) for name, value in floats.items()}

    def function(self, x: Array, bias: float, threshold: float) -> Array:
        return np.where(x > threshold, x - bias, np.where(x < -threshold, x + bias, 0))


class ActivationGelu(Fusable, of="ACTIVATION_GELU"):
    """``output = x / 2 * (1 + erf(x / sqrt(2)))``: the exact form, not the one with tanh."""

    KERNEL = "gelu"
    ULPS = 4
    ULPS_REASON = "FLOAT32 is computed in FLOAT32, also the tail, where 1 + erf is small"

    def function(self, x: Array) -> Array:
        # 1 + erf(y) is erfc(-y), which stays exact where erf is close to -1.
        y: Array = 0.5 * x * np.vectorize(erfc, otypes=[np.float64])(-x / sqrt(2))
        return y


class ActivationSwish(Unary, of="ACTIVATION_SWISH"):
    """``output = x / (1 + exp(-SigmoidInputScale * x))``, also called SiLU; SigmoidInputScale is usually 1.

    -infinity gives NaN, as in the formula.
    """

    KERNEL = "swish"
    CONSTANTS = {"sigmoid_input_scale": "alpha"}
    EXAMPLE = {"sigmoid_input_scale": 1.5}
    ULPS = 2
    ULPS_REASON = "FLOAT32 is computed in FLOAT32 if SigmoidInputScale is 1, otherwise in FLOAT64"

    def kernel(self, working: TensorDataType) -> str:
        return "swish_1" if self.desc.sigmoid_input_scale == 1 else self.KERNEL

    def function(self, x: Array, sigmoid_input_scale: float) -> Array:
        y: Array = x * (1 / (1 + np.exp(-sigmoid_input_scale * x)))
        return y


class ActivationHardSwish(FastUnary, of="ACTIVATION_HARD_SWISH"):
    """``output = x * max(0, min(Alpha * x + Beta, 1))``; Alpha is usually 1/6 and Beta 0.5.

    -infinity gives NaN, as in the formula.
    """

    KERNEL = "hard_swish"
    EXAMPLE = {"alpha": 0.25, "beta": 0.5}

    def function(self, x: Array, alpha: float, beta: float) -> Array:
        y: Array = x * np.fmax(0, np.fmin(alpha * x + beta, 1))
        return y


class ActivationParameterizedRelu(ElementWise, of="ACTIVATION_PARAMETERIZED_RELU"):
    """``output = x if x >= 0 else Slope * x``, with a slope for each element; integers wrap.

    Share a slope between elements with strides of 0.
    """

    KERNEL = "parameterized_relu"
    INPUTS = ("input_tensor", "slope_tensor")
    RULES = alike("input_tensor", "slope_tensor", "output_tensor")

    def function(self, x: Array, slope: Array) -> Array:
        return np.where(x >= 0, x, slope * x)


class ActivationReluGrad(ElementWise, of="ACTIVATION_RELU_GRAD"):
    """The gradient of RELU: ``output = the gradient if x > 0, else 0``; a NaN as input gives 0."""

    KERNEL = "relu_grad"
    INPUTS = ("input_tensor", "input_gradient_tensor")
    OUTPUT = "output_gradient_tensor"
    RULES = alike("input_tensor", "input_gradient_tensor", "output_gradient_tensor")

    def function(self, x: Array, gradient: Array) -> Array:
        return np.where(x > 0, gradient, gradient.dtype.type(0))
