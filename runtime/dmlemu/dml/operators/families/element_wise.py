"""Families: operators that compute each output element from the input elements with the same coordinates.

The function is a line of ``kernels_c/operators/element_wise/functions.inc``, and ``function`` in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ...declared.definition import Definition
from ...declared.rules import SameSizes, SameType
from ...declared.schema import FieldKind, operator_fields
from ...enums import TensorDataType
from ...structs import ScaleBias
from ...tensor_desc import BufferTensorDesc
from .conversion import FLOATS, Array, convert, dtype_of, float64, low_bits, unsigned

if TYPE_CHECKING:
    from ...declared.rules import Rule
    from ...lowering.compile import Program


def alike(*names: str) -> tuple[Rule, ...]:
    """The tensors have one data type, and the same sizes."""
    return SameType(*names), SameSizes(*names)


def tensors(data_type: TensorDataType, *names: str) -> dict[str, BufferTensorDesc]:
    """Fields of an example: tensors of that type."""
    return dict.fromkeys(names, BufferTensorDesc(data_type, [1, 2, 3, 4]))


class ElementWise(Definition):
    """Inputs and an output, of the same sizes."""

    KERNEL: ClassVar[str]
    """The function's name in ``functions.inc``."""

    EXAMPLE: ClassVar[Mapping[str, Any]] = {}
    """The fields of the example, except the tensors."""

    INPUTS: ClassVar[tuple[str, ...]]
    OUTPUT: ClassVar[str] = "output_tensor"

    function: Callable[..., Array]
    """The reference: maps inputs, floats as FLOAT64 and integers unchanged, to the unrounded output."""

    @property
    def output(self) -> BufferTensorDesc:
        """The output tensor."""
        found: BufferTensorDesc = getattr(self.desc, self.OUTPUT)
        return found

    def lower(self, program: Program) -> None:
        data_type = getattr(self.desc, self.INPUTS[0]).data_type
        operands = [program.read(name) for name in self.INPUTS]
        constants = self.constants(data_type, self.output.data_type)
        program.call(self.kernel(data_type), *operands, program.write(self.OUTPUT), constants=constants)

    def kernel(self, working: TensorDataType) -> str:
        """The kernel for inputs of that type."""
        return self.KERNEL

    def constants(self, working: TensorDataType, output: TensorDataType) -> bytes:
        """The kernel's constants, for inputs of type ``working`` (a fused activation works on FLOAT32)."""
        return kernels.pack(self.KERNEL)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        operands = [np.asarray(inputs[name]) for name in self.INPUTS]
        operands = [float64(each) if each.dtype.kind == "f" else each for each in operands]
        data_type = self.output.data_type
        with np.errstate(all="ignore"):
            return {self.OUTPUT: convert(self.apply(*operands, data_type=data_type), data_type)}

    def apply(self, *operands: Array, data_type: TensorDataType) -> Array:
        """``function`` for an output of that type."""
        return self.function(*operands)

    @classmethod
    def example(cls) -> dict[str, Any]:
        tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4])
        return {**dict.fromkeys([*cls.INPUTS, cls.OUTPUT], tensor), **cls.EXAMPLE}


class Unary(ElementWise):
    """One input, optionally scaled; ``function(x, alpha=...)`` gets the FLOATs of the desc by name."""

    INPUTS: ClassVar[tuple[str, ...]] = ("input_tensor",)

    RULES: ClassVar[Sequence[Rule]] = alike("input_tensor", "output_tensor")

    CONSTANTS: ClassVar[Mapping[str, str]] = {}
    """The parameter in ``functions.inc`` of each desc field that is not alpha, beta or gamma."""

    def constants(self, working: TensorDataType, output: TensorDataType) -> bytes:
        return kernels.pack(self.KERNEL, **self._scale_bias(), **self.parameters(working, output))

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, Any]:
        """The kernel's constants besides ScaleBias."""
        return {self.CONSTANTS.get(name, name): value for name, value in self.arguments(output).items()}

    def arguments(self, data_type: TensorDataType) -> dict[str, Any]:
        """The arguments of ``function`` besides the input, for an output of that type."""
        fields = (item for item in operator_fields(type(self.desc)) if item.kind is FieldKind.FLOAT)
        return {item.name: float(np.float32(getattr(self.desc, item.name))) for item in fields}

    def apply(self, *operands: Array, data_type: TensorDataType) -> Array:
        x = scaled(operands[0], self._scale_bias_of_desc(), data_type)
        return self.function(x, **self.arguments(data_type))

    def _scale_bias_of_desc(self) -> ScaleBias | None:
        found: ScaleBias | None = getattr(self.desc, "scale_bias", None)
        return found

    def _scale_bias(self) -> dict[str, float]:
        given = self._scale_bias_of_desc()
        return {} if given is None else {"has_scale_bias": 1, "scale": given.scale, "bias": given.bias}


class FastUnary(Unary):
    """A function that its kernel computes in FLOAT32 where the tensors are FLOAT32."""

    ULPS = 2
    ULPS_REASON = "FLOAT32 is computed in FLOAT32"


def scaled(x: Array, scale_bias: ScaleBias | None, data_type: TensorDataType) -> Array:
    """``x * Scale + Bias``: DML_SCALE_BIAS holds FLOATs, so in FLOAT32 with two roundings (FLOAT64
    tensors in FLOAT64). Integers lose their fraction and wrap; what is no number is 0."""
    if scale_bias is None:
        return x
    working = np.float64 if data_type is TensorDataType.FLOAT64 else np.float32
    scale, bias = working(np.float32(scale_bias.scale)), working(np.float32(scale_bias.bias))
    y: Array = x.astype(working) * scale + bias
    if data_type in FLOATS:
        return y.astype(np.float64)
    whole = np.vectorize(int, otypes=[object])(np.where(np.isfinite(y), y, 0))
    return low_bits(whole, dtype_of(data_type))


class Identity(Unary):
    """The input, scaled by ScaleBias if given; otherwise the bits are copied."""

    KERNEL = "identity"
    KEEPS_NANS = True

    def lower(self, program: Program) -> None:
        if self._scale_bias_of_desc() is None:
            program.call("copy", program.read("input_tensor"), program.write("output_tensor"))
        else:
            super().lower(program)

    def function(self, x: Array) -> Array:
        return x

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        if self._scale_bias_of_desc() is None:
            return {"output_tensor": np.asarray(inputs["input_tensor"]).copy()}
        return super().reference(inputs)


class Binary(ElementWise):
    """``function(a, b)``: ATensor and BTensor to an output of the same type and sizes."""

    INPUTS = ("a_tensor", "b_tensor")
    RULES: ClassVar[Sequence[Rule]] = alike("a_tensor", "b_tensor", "output_tensor")


class UnaryBits(Unary):
    """``function(x)`` of the bits of each element, unsigned: the type only gives the width."""

    KEEPS_NANS = True
    EXAMPLE = tensors(TensorDataType.UINT32, "input_tensor", "output_tensor")

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": of_bits(self.function, np.asarray(inputs["input_tensor"]))}


class BinaryBits(Binary):
    """``function(a, b)`` of the bits of each element, unsigned: the type only gives the width."""

    KEEPS_NANS = True
    EXAMPLE = tensors(TensorDataType.UINT32, "a_tensor", "b_tensor", "output_tensor")

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        operands = (np.asarray(inputs[name]) for name in self.INPUTS)
        return {"output_tensor": of_bits(self.function, *operands)}


def of_bits(function: Callable[..., Array], *operands: Array) -> Array:
    """``function`` of the operands' bits, as their type."""
    bits: Array = function(*map(unsigned, operands))
    return bits.view(operands[0].dtype)


class Comparison(ElementWise):
    """``function(a, b)`` of ATensor and BTensor, of one type; the output is 1 where it is true, else 0."""

    INPUTS = ("a_tensor", "b_tensor")
    EXAMPLE = tensors(TensorDataType.UINT32, "output_tensor")
    RULES: ClassVar[Sequence[Rule]] = (
        SameType("a_tensor", "b_tensor"),
        SameSizes("a_tensor", "b_tensor", "output_tensor"),
    )


class Logical(Binary):
    """``function(a, b)`` of what is true: every element that is not 0."""

    EXAMPLE = tensors(TensorDataType.UINT32, "a_tensor", "b_tensor", "output_tensor")
