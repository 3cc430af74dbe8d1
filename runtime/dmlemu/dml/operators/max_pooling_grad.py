"""MAX_POOLING_GRAD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import SameSizes, SameType
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, float64
from .families.pooling import PoolingGradient, first_maxima

if TYPE_CHECKING:
    from ..declared.descs import MaxPoolingGradOperatorDesc
    from ..lowering.compile import Operand, Program


class MaxPoolingGrad(PoolingGradient, of="MAX_POOLING_GRAD"):
    """The gradient of MAX_POOLING2: each element of InputGradientTensor is added to the element of
    OutputGradientTensor that is the maximum of its window.

    The maximum is found in InputTensor, as MAX_POOLING2 does: of equal elements it is the first in row-major
    order, and of a window of NaNs the first element (a test of Microsoft's TensorFlow plugin expects that of
    DirectML).
    A window with no place inside the input has no effect.  Elements that are no maximum are 0.

    Sums, in row-major order of InputGradientTensor, are FLOAT64, rounded once.
    """

    desc: MaxPoolingGradOperatorDesc

    KERNEL = "max_pooling_grad"

    RULES = (
        SameType("input_tensor", "input_gradient_tensor", "output_gradient_tensor"),
        SameSizes("input_tensor", "output_gradient_tensor"),
        *PoolingGradient.RULES[1:],
    )

    def operands(self, program: Program) -> Sequence[Operand]:
        read = (program.read(name) for name in ("input_tensor", "input_gradient_tensor"))
        return *read, program.write("output_gradient_tensor")

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x = np.asarray(inputs["input_tensor"])
        _, position = first_maxima(self, x)
        inside = np.logical_or.reduce([inside for _, inside, _ in self.places(x)])
        positions = np.where(inside, position.astype(np.int64), -1)
        gradients = float64(inputs["input_gradient_tensor"])
        return {"output_gradient_tensor": self.added(positions, gradients)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return super().example() | {
            "input_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 3]),
            "output_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 5, 4]),
        }
