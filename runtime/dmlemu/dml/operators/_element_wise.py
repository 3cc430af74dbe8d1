"""Families: operators that compute each element of the output from the elements at its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..enums import TensorDataType
from ..structs import ScaleBias
from ._conversion import FLOATS, Array, convert, float64
from .definition import Definition
from .rules import SameSizes, SameType

if TYPE_CHECKING:
    from ..compile import Program
    from .rules import Rule


class Unary(Definition):
    """One input, one output, one function of an element; what the ``element_wise_unary`` kernel runs."""

    FUNCTION: ClassVar[str]
    """The kernel's name of the function: ``ELU`` for ``DMLK_UNARY_ELU``."""

    RULES: ClassVar[Sequence[Rule]] = (
        SameType("input_tensor", "output_tensor"),
        SameSizes("input_tensor", "output_tensor"),
    )

    def lower(self, program: Program) -> None:
        data_type = self.desc.input_tensor.data_type
        source, target = program.read("input_tensor"), program.write("output_tensor")
        program.call("element_wise_unary", source, target, constants=self.constants(data_type, data_type))

    def constants(self, working: TensorDataType, output: TensorDataType) -> bytes:
        """The kernel's constants, for an input of type ``working`` (a fused one works on FLOAT32)."""
        function = kernels.constant(f"DMLK_UNARY_{self.FUNCTION}")
        return kernels.pack("element_wise_unary", function=function, **self.parameters(working, output))

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        """The kernel's constants beside ``function``: Alpha, Beta and Gamma as far as declared."""
        return {
            name: getattr(self.desc, name) for name in ("alpha", "beta", "gamma") if hasattr(self.desc, name)
        }

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        """The reference: ``x`` in FLOAT64 (integers as they are) to the output, not yet rounded."""
        raise NotImplementedError

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, data_type = np.asarray(inputs["input_tensor"]), self.desc.output_tensor.data_type
        with np.errstate(all="ignore"):
            x = float64(x) if data_type in FLOATS else x
            return {"output_tensor": convert(self.function(x, data_type), data_type)}


def scaled(x: Array, scale_bias: ScaleBias | None, data_type: TensorDataType) -> Array:
    """``x * Scale + Bias``: DML_SCALE_BIAS holds FLOATs, so in FLOAT32 with two roundings (FLOAT64
    tensors in FLOAT64); integers are converted back."""
    if scale_bias is None:
        return x
    working = np.float64 if data_type is TensorDataType.FLOAT64 else np.float32
    scale, bias = working(np.float32(scale_bias.scale)), working(np.float32(scale_bias.bias))
    y: Array = x.astype(working) * scale + bias
    return y if data_type in FLOATS else convert(y, data_type)


def scale_bias_constants(scale_bias: ScaleBias | None) -> dict[str, float]:
    """ScaleBias as constants of the ``element_wise_unary`` kernel."""
    if scale_bias is None:
        return {}
    return {"has_scale_bias": 1, "scale": scale_bias.scale, "bias": scale_bias.bias}


class Binary(Definition):
    """``ATensor`` and ``BTensor`` to an output of the same type and sizes; no broadcasting by size."""

    FUNCTION: ClassVar[str]
    """The kernel's name of the function: ``ADD`` for ``DMLK_BINARY_ADD``."""

    RULES: ClassVar[Sequence[Rule]] = (
        SameType("a_tensor", "b_tensor", "output_tensor"),
        SameSizes("a_tensor", "b_tensor", "output_tensor"),
    )

    def lower(self, program: Program) -> None:
        a, b = program.read("a_tensor"), program.read("b_tensor")
        program.call("element_wise_binary", a, b, program.write("output_tensor"), constants=self.constants())

    def constants(self) -> bytes:
        function = kernels.constant(f"DMLK_BINARY_{self.FUNCTION}")
        return kernels.pack("element_wise_binary", function=function)
