"""The activations: each a function of one element, with up to two FLOAT parameters.

All of them can be the fused activation of another operator; then they have no tensors of their own.
Results are rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import erfc, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import FeatureLevel, TensorDataType
from ._conversion import Array
from ._fusion import Fusable
from .rules import AtLeast, Below

if TYPE_CHECKING:
    from ..compile import Program


def _f(value: float) -> float:
    """A FLOAT parameter as the kernel sees it."""
    return float(np.float32(value))


def _softplus(x: Array) -> Array:
    """ln(1 + exp(x)); large x give x, not infinity."""
    y: Array = np.logaddexp(0.0, x)
    return y


class ActivationElu(Fusable, of="ACTIVATION_ELU"):
    """``output = x if x >= 0 else Alpha * (exp(x) - 1)``; Alpha is usually 1."""

    FUNCTION = "ELU"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return np.where(x >= 0, x, _f(self.desc.alpha) * np.expm1(x))


class ActivationCelu(Fusable, of="ACTIVATION_CELU"):
    """``output = max(0, x) + min(0, Alpha * (exp(x / Alpha) - 1))``; Alpha is usually 1."""

    FUNCTION = "CELU"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        alpha = _f(self.desc.alpha)
        y: Array = np.fmax(0, x) + np.fmin(0, alpha * np.expm1(x / alpha))
        return y


class ActivationHardSigmoid(Fusable, of="ACTIVATION_HARD_SIGMOID"):
    """``output = max(0, min(Alpha * x + Beta, 1))``; Alpha is usually 0.2 and Beta 0.5."""

    FUNCTION = "HARD_SIGMOID"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        desc = self.desc
        y: Array = np.fmax(0, np.fmin(_f(desc.alpha) * x + _f(desc.beta), 1))
        return y


class ActivationIdentity(Fusable, of="ACTIVATION_IDENTITY"):
    """``output = x``.  The bits are copied, unless it is fused: NaN payloads and denormals stay."""

    FUNCTION = "IDENTITY"

    def lower(self, program: Program) -> None:
        program.call("copy", program.read("input_tensor"), program.write("output_tensor"))

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return x

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": np.asarray(inputs["input_tensor"]).copy()}


class ActivationLeakyRelu(Fusable, of="ACTIVATION_LEAKY_RELU"):
    """``output = x if x >= 0 else Alpha * x``; Alpha is usually 0.01."""

    FUNCTION = "LEAKY_RELU"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return np.where(x >= 0, x, _f(self.desc.alpha) * x)


class ActivationLinear(Fusable, of="ACTIVATION_LINEAR"):
    """``output = Alpha * x + Beta``."""

    FUNCTION = "LINEAR"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        desc = self.desc
        return _f(desc.alpha) * x + _f(desc.beta)


class ActivationParametricSoftplus(Fusable, of="ACTIVATION_PARAMETRIC_SOFTPLUS"):
    """``output = Alpha * ln(1 + exp(Beta * x))``, without overflow: large ones give Alpha * Beta * x."""

    FUNCTION = "PARAMETRIC_SOFTPLUS"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        desc = self.desc
        return _f(desc.alpha) * _softplus(_f(desc.beta) * x)


class ActivationRelu(Fusable, of="ACTIVATION_RELU"):
    """``output = max(0, x)``; a NaN becomes 0."""

    FUNCTION = "RELU"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = np.fmax(x.dtype.type(0), x)
        return y


class ActivationScaledElu(Fusable, of="ACTIVATION_SCALED_ELU"):
    """``output = Gamma * x if x > 0 else Gamma * (Alpha * exp(x) - Alpha)``.

    Alpha is usually 1.67326319217681884765625 and Gamma 1.05070102214813232421875.
    """

    FUNCTION = "SCALED_ELU"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        desc = self.desc
        alpha, gamma = _f(desc.alpha), _f(desc.gamma)
        return np.where(x > 0, gamma * x, gamma * (alpha * np.expm1(x)))


class ActivationScaledTanh(Fusable, of="ACTIVATION_SCALED_TANH"):
    """``output = Alpha * tanh(Beta * x)``; Alpha is usually 1 and Beta 0.5."""

    FUNCTION = "SCALED_TANH"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        desc = self.desc
        y: Array = _f(desc.alpha) * np.tanh(_f(desc.beta) * x)
        return y


class ActivationSigmoid(Fusable, of="ACTIVATION_SIGMOID"):
    """``output = 1 / (1 + exp(-x))``."""

    FUNCTION = "SIGMOID"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = 1 / (1 + np.exp(-x))
        return y


class ActivationSoftplus(Fusable, of="ACTIVATION_SOFTPLUS"):
    """``output = ln(1 + exp(Steepness * x)) / Steepness``, without overflow: large x give x.

    Steepness is usually 1, and at least 1 below feature level 6_4.
    """

    FUNCTION = "SOFTPLUS"

    RULES = (*Fusable.RULES, Below(FeatureLevel.LEVEL_6_4, AtLeast("steepness", 1)))

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        return {"alpha": self.desc.steepness}

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        steepness = _f(self.desc.steepness)
        return _softplus(steepness * x) / steepness


class ActivationSoftsign(Fusable, of="ACTIVATION_SOFTSIGN"):
    """``output = x / (1 + |x|)``; infinite x give NaN, as the formula has it."""

    FUNCTION = "SOFTSIGN"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = x / (1 + np.abs(x))
        return y


class ActivationTanh(Fusable, of="ACTIVATION_TANH"):
    """``output = tanh(x)``."""

    FUNCTION = "TANH"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = np.tanh(x)
        return y


class ActivationThresholdedRelu(Fusable, of="ACTIVATION_THRESHOLDED_RELU"):
    """``output = x if x > Alpha else 0``; Alpha is usually 1, a NaN becomes 0."""

    FUNCTION = "THRESHOLDED_RELU"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return np.where(x > _f(self.desc.alpha), x, 0)


class ActivationShrink(Fusable, of="ACTIVATION_SHRINK"):
    """``output = x - Bias if x > Threshold, x + Bias if x < -Threshold, else 0``; a NaN becomes 0.

    Bias is usually 0 and Threshold 0.5.  Integers are compared and shifted as floats, and
    converted back as CAST does.
    """

    FUNCTION = "SHRINK"

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        desc = self.desc
        return {"alpha": desc.threshold, "beta": desc.bias}

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        desc = self.desc
        bias, threshold = _f(desc.bias), _f(desc.threshold)
        return np.where(x > threshold, x - bias, np.where(x < -threshold, x + bias, 0))


class ActivationGelu(Fusable, of="ACTIVATION_GELU"):
    """``output = x / 2 * (1 + erf(x / sqrt(2)))``: the exact form, not the one with tanh."""

    FUNCTION = "GELU"

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        # 1 + erf(y) is erfc(-y), which stays exact where erf is next to -1.
        y: Array = 0.5 * x * np.vectorize(erfc, otypes=[np.float64])(-x / sqrt(2))
        return y
