"""The activations: each a function of one element, with up to two FLOAT parameters.

All of them can be the fused activation of another operator; then they have no tensors of their own.
Results are rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import erfc, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..enums import FeatureLevel, OperatorType, TensorDataType
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import Array
from ._fusion import FusableOperatorDesc

if TYPE_CHECKING:
    from ..compile import Program

_TENSORS = "input_tensor output_tensor"
_FLOAT = "FLOAT32 FLOAT16"
_SUPPORT = {
    FeatureLevel.LEVEL_1_0: base.allow_each(_TENSORS, 4, 4, _FLOAT),
    FeatureLevel.LEVEL_2_0: base.allow_each(_TENSORS, 4, 5, _FLOAT),
    FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, _FLOAT),
}


def _f(value: float) -> float:
    """A FLOAT parameter as the kernel sees it."""
    return float(np.float32(value))


def _softplus(x: Array) -> Array:
    """ln(1 + exp(x)); large x give x, not infinity."""
    y: Array = np.logaddexp(0.0, x)
    return y


class ActivationEluOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_ELU,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = x if x >= 0 else Alpha * (exp(x) - 1)``; Alpha is usually 1."""

    FUNCTION: ClassVar[str] = "ELU"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    alpha: float = base.float32()

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return np.where(x >= 0, x, _f(self.alpha) * np.expm1(x))


class ActivationCeluOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_CELU,
    introduced=FeatureLevel.LEVEL_3_0,
    support={FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, _FLOAT)},
    in_place=True,
):
    """``output = max(0, x) + min(0, Alpha * (exp(x / Alpha) - 1))``; Alpha is usually 1."""

    FUNCTION: ClassVar[str] = "CELU"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    alpha: float = base.float32()

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        alpha = _f(self.alpha)
        y: Array = np.fmax(0, x) + np.fmin(0, alpha * np.expm1(x / alpha))
        return y


class ActivationHardSigmoidOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_HARD_SIGMOID,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = max(0, min(Alpha * x + Beta, 1))``; Alpha is usually 0.2 and Beta 0.5."""

    FUNCTION: ClassVar[str] = "HARD_SIGMOID"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    alpha: float = base.float32()
    beta: float = base.float32()

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = np.fmax(0, np.fmin(_f(self.alpha) * x + _f(self.beta), 1))
        return y


class ActivationIdentityOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_IDENTITY,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = x``.  The bits are copied, unless it is fused: NaN payloads and denormals stay."""

    FUNCTION: ClassVar[str] = "IDENTITY"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)

    def lower(self, program: Program) -> None:
        program.call("copy", program.read("input_tensor"), program.write("output_tensor"))

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return x

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": np.asarray(inputs["input_tensor"]).copy()}


class ActivationLeakyReluOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_LEAKY_RELU,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = x if x >= 0 else Alpha * x``; Alpha is usually 0.01."""

    FUNCTION: ClassVar[str] = "LEAKY_RELU"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    alpha: float = base.float32()

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return np.where(x >= 0, x, _f(self.alpha) * x)


class ActivationLinearOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_LINEAR,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = Alpha * x + Beta``."""

    FUNCTION: ClassVar[str] = "LINEAR"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    alpha: float = base.float32()
    beta: float = base.float32()

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return _f(self.alpha) * x + _f(self.beta)


class ActivationParametricSoftplusOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_PARAMETRIC_SOFTPLUS,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = Alpha * ln(1 + exp(Beta * x))``, without overflow: large ones give Alpha * Beta * x."""

    FUNCTION: ClassVar[str] = "PARAMETRIC_SOFTPLUS"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    alpha: float = base.float32()
    beta: float = base.float32()

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return _f(self.alpha) * _softplus(_f(self.beta) * x)


class ActivationReluOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_RELU,
    introduced=FeatureLevel.LEVEL_1_0,
    support={
        **_SUPPORT,
        FeatureLevel.LEVEL_5_1: base.allow_each(_TENSORS, 1, 8, f"{_FLOAT} INT32 INT16 INT8"),
    },
    in_place=True,
):
    """``output = max(0, x)``; a NaN becomes 0."""

    FUNCTION: ClassVar[str] = "RELU"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = np.fmax(x.dtype.type(0), x)
        return y


class ActivationScaledEluOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_SCALED_ELU,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = Gamma * x if x > 0 else Gamma * (Alpha * exp(x) - Alpha)``.

    Alpha is usually 1.67326319217681884765625 and Gamma 1.05070102214813232421875.
    """

    FUNCTION: ClassVar[str] = "SCALED_ELU"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    alpha: float = base.float32()
    gamma: float = base.float32()

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        alpha, gamma = _f(self.alpha), _f(self.gamma)
        return np.where(x > 0, gamma * x, gamma * (alpha * np.expm1(x)))


class ActivationScaledTanhOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_SCALED_TANH,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = Alpha * tanh(Beta * x)``; Alpha is usually 1 and Beta 0.5."""

    FUNCTION: ClassVar[str] = "SCALED_TANH"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    alpha: float = base.float32()
    beta: float = base.float32()

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = _f(self.alpha) * np.tanh(_f(self.beta) * x)
        return y


class ActivationSigmoidOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_SIGMOID,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = 1 / (1 + exp(-x))``."""

    FUNCTION: ClassVar[str] = "SIGMOID"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = 1 / (1 + np.exp(-x))
        return y


class ActivationSoftplusOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_SOFTPLUS,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = ln(1 + exp(Steepness * x)) / Steepness``, without overflow: large x give x.

    Steepness is usually 1, and at least 1 below feature level 6_4.
    """

    FUNCTION: ClassVar[str] = "SOFTPLUS"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    steepness: float = base.float32()

    def rules(self, check: base.Check) -> None:
        super().rules(check)
        check.require(
            check.level >= FeatureLevel.LEVEL_6_4 or self.steepness >= 1,
            "OP_FIELD_RANGE",
            "Steepness",
            f"Steepness ({self.steepness}) is less than 1, which feature level 6_4 was the first to allow.",
            given=self.steepness,
            expected="1 or more",
        )

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        return {"alpha": self.steepness}

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        steepness = _f(self.steepness)
        return _softplus(steepness * x) / steepness


class ActivationSoftsignOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_SOFTSIGN,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = x / (1 + |x|)``; infinite x give NaN, as the formula has it."""

    FUNCTION: ClassVar[str] = "SOFTSIGN"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = x / (1 + np.abs(x))
        return y


class ActivationTanhOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_TANH,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = tanh(x)``."""

    FUNCTION: ClassVar[str] = "TANH"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        y: Array = np.tanh(x)
        return y


class ActivationThresholdedReluOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_THRESHOLDED_RELU,
    introduced=FeatureLevel.LEVEL_1_0,
    support=_SUPPORT,
    in_place=True,
):
    """``output = x if x > Alpha else 0``; Alpha is usually 1, a NaN becomes 0."""

    FUNCTION: ClassVar[str] = "THRESHOLDED_RELU"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    alpha: float = base.float32()

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return np.where(x > _f(self.alpha), x, 0)


# The page has the integer types from 5_1 on, the feature level history from 2_1 on: a caller of either is
# accepted.
_SHRINK_TYPES = f"{_FLOAT} INT32 INT16 INT8 UINT32 UINT16 UINT8"
_SHRINK_SUPPORT = {
    FeatureLevel.LEVEL_2_0: base.allow_each(_TENSORS, 4, 5, _FLOAT),
    FeatureLevel.LEVEL_2_1: base.allow_each(_TENSORS, 4, 5, _SHRINK_TYPES),
    FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, _SHRINK_TYPES),
}


class ActivationShrinkOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_SHRINK,
    introduced=FeatureLevel.LEVEL_2_0,
    support=_SHRINK_SUPPORT,
    in_place=True,
):
    """``output = x - Bias if x > Threshold, x + Bias if x < -Threshold, else 0``; a NaN becomes 0.

    Bias is usually 0 and Threshold 0.5.  Integers are compared and shifted as floats, and
    converted back as CAST does.
    """

    FUNCTION: ClassVar[str] = "SHRINK"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    bias: float = base.float32()
    threshold: float = base.float32()

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        return {"alpha": self.threshold, "beta": self.bias}

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        bias, threshold = _f(self.bias), _f(self.threshold)
        return np.where(x > threshold, x - bias, np.where(x < -threshold, x + bias, 0))


class ActivationGeluOperatorDesc(
    FusableOperatorDesc,
    type=OperatorType.ACTIVATION_GELU,
    introduced=FeatureLevel.LEVEL_5_1,
    support={FeatureLevel.LEVEL_5_1: base.allow_each(_TENSORS, 1, 8, _FLOAT)},
    in_place=True,
):
    """``output = x / 2 * (1 + erf(x / sqrt(2)))``: the exact form, not the one with tanh."""

    FUNCTION: ClassVar[str] = "GELU"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        # 1 + erf(y) is erfc(-y), which stays exact where erf is next to -1.
        y: Array = 0.5 * x * np.vectorize(erfc, otypes=[np.float64])(-x / sqrt(2))
        return y
