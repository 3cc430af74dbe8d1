"""LOCAL_RESPONSE_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION_GRAD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import AtLeast
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64
from .families.element_wise import alike
from .families.normalization import float32

if TYPE_CHECKING:
    from ..declared.rules import Rule
    from ..lowering.compile import Operand, Program


class LocalResponseNormalization(Definition, of="LOCAL_RESPONSE_NORMALIZATION"):
    """``output = input / s^Beta``, ``s = Bias + Alpha / LocalSize * (sum of the squares around the input)``.

    The sum extends over LocalSize channels, ``(LocalSize - 1) / 2`` before and after the input's; of an even
    LocalSize one more after it.  Without CrossChannel it extends over as many rows and as many columns of the
    input's channel, a square.  What is outside of the tensor adds nothing; Alpha is divided by LocalSize
    everywhere.  Computed in FLOAT64 and rounded once.
    """

    desc: Any

    ULPS = 1
    OUTPUT: ClassVar[str] = "output_tensor"

    RULES: ClassVar[Sequence[Rule]] = (*alike("input_tensor", "output_tensor"), AtLeast("local_size", 1))

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which the region extends."""
        return (1,) if self.desc.cross_channel else (2, 3)

    @property
    def around(self) -> tuple[int, int]:
        """The elements of the region before and after the input."""
        return (self.desc.local_size - 1) // 2, self.desc.local_size // 2

    def lower(self, program: Program) -> None:
        squares = self._sums(program, "local_squares", program.read("input_tensor"), self.around)
        self._elements(program, "local_response", squares)

    def _sums(self, program: Program, kernel: str, of: Operand, around: tuple[int, int]) -> Operand:
        """The sums over the region: along one axis after the other."""
        before, after = around
        for axis in self.axes:
            sums = program.temporary(TensorDataType.FLOAT64, self.desc.input_tensor.sizes)
            constants = kernels.pack(kernel, axis=axis, before=before, after=after, size=self.desc.local_size)
            program.call(kernel, of, sums.write(), constants=constants)
            kernel, of = "local_sums", sums.read()
        return of

    def _elements(self, program: Program, kernel: str, *more: Operand, out: Operand | None = None) -> None:
        """A function of each input and of ``more``; ``out``: not to the output."""
        desc = self.desc
        constants = kernels.pack(
            kernel, alpha=desc.alpha, beta=desc.beta, bias=desc.bias, size=desc.local_size
        )
        out = program.write(self.OUTPUT) if out is None else out
        program.call(kernel, program.read("input_tensor"), *more, out, constants=constants)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x = float64(inputs["input_tensor"])
        with np.errstate(all="ignore"):
            y = x * self.scaled(x) ** -float32(self.desc.beta)
        return {"output_tensor": convert(y, self.desc.output_tensor.data_type)}

    def scaled(self, x: Array) -> Array:
        """The s of each element."""
        squares = region_sums(x * x, self.axes, *self.around)
        s: Array = float32(self.desc.bias) + float32(self.desc.alpha) / self.desc.local_size * squares
        return s

    @classmethod
    def example(cls) -> dict[str, Any]:
        tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 5, 2, 3])
        tensors = ["input_tensor", "input_gradient_tensor", "output_tensor", "output_gradient_tensor"]
        fields = {"cross_channel": True, "local_size": 3, "alpha": 0.75, "beta": 0.5, "bias": 1.0}
        return {**dict.fromkeys(tensors, tensor), **fields}


class LocalResponseNormalizationGrad(LocalResponseNormalization, of="LOCAL_RESPONSE_NORMALIZATION_GRAD"):
    """The gradient of LOCAL_RESPONSE_NORMALIZATION: with s as there and ``a = Alpha / LocalSize``,
    ``output = g * s^-Beta - 2 * Beta * a * input * u``.

    g is the InputGradient, and u the sum of ``g * input * s^(-Beta - 1)`` over the elements whose region
    contains the input: the mirrored region.  Computed in FLOAT64 and rounded once.
    """

    LARGEST_ERROR = 2.0**-46

    OUTPUT = "output_gradient_tensor"

    RULES = (
        *alike("input_tensor", "input_gradient_tensor", "output_gradient_tensor"),
        AtLeast("local_size", 1),
    )

    def lower(self, program: Program) -> None:
        before, after = self.around
        squares = self._sums(program, "local_squares", program.read("input_tensor"), (before, after))
        gradient = program.read("input_gradient_tensor")
        shares = program.temporary(TensorDataType.FLOAT64, self.desc.input_tensor.sizes)
        self._elements(program, "local_response_share", squares, gradient, out=shares.write())
        u = self._sums(program, "local_sums", shares.read(), (after, before))
        self._elements(program, "local_response_grad", squares, gradient, u)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        with np.errstate(all="ignore"):
            own, others = self.terms(
                float64(inputs["input_tensor"]), float64(inputs["input_gradient_tensor"])
            )
            y = own - others
        return {"output_gradient_tensor": convert(y, self.desc.output_gradient_tensor.data_type)}

    def terms(self, x: Array, g: Array) -> tuple[Array, Array]:
        """What comes of the input's own gradient, and of those around it."""
        before, after = self.around
        alpha, beta = float32(self.desc.alpha) / self.desc.local_size, float32(self.desc.beta)
        s = self.scaled(x)
        u = region_sums(g * x * s ** (-beta - 1), self.axes, after, before)
        return g * s**-beta, 2 * beta * alpha * x * u


def region_sums(x: Array, axes: Sequence[int], before: int, after: int) -> Array:
    """For each element the sum from ``before`` elements before it to ``after`` after it, along each axis."""
    for axis in axes:
        lines = np.moveaxis(x, axis, -1)
        n = lines.shape[-1]
        sums = [lines[..., max(0, i - before) : i + after + 1].sum(-1) for i in range(n)]
        x = np.moveaxis(np.stack(sums, -1), -1, axis)
    return x
