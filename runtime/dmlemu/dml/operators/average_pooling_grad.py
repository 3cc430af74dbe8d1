"""AVERAGE_POOLING_GRAD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, float64
from .families.pooling import PoolingGradient

if TYPE_CHECKING:
    from ..declared.descs import AveragePoolingGradOperatorDesc
    from ..lowering.compile import Operand, Program


class AveragePoolingGrad(PoolingGradient, of="AVERAGE_POOLING_GRAD"):
    """The gradient of AVERAGE_POOLING: ``gradient[p] = sum of InputGradient[o] / n[o]``, over all outputs o
    of the pooling whose window contains element p of its input.

    n is the divisor of AVERAGE_POOLING: the number of places of the window inside the pooling's input or,
    with IncludePadding, inside the input or its padding.  OutputGradientTensor has the sizes of the pooling's
    input, InputGradientTensor those of its output, which may be larger than the number of windows.  Elements
    that no window contains are 0.

    Quotients and sums, in row-major order of the outputs, are FLOAT64, rounded once.
    """

    desc: AveragePoolingGradOperatorDesc

    KERNEL = "average_pooling_grad"

    def operands(self, program: Program) -> Sequence[Operand]:
        return program.read("input_gradient_tensor"), program.write("output_gradient_tensor")

    def constants(self) -> Mapping[str, Any]:
        return {"include_padding": int(self.desc.include_padding)}

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_gradient_tensor
        gradient = float64(inputs["input_gradient_tensor"])
        numbers = np.arange(output.element_count).reshape(output.sizes)
        places = list(self.places(numbers))
        count = sum(padded if self.desc.include_padding else inside for _, inside, padded in places)
        part = gradient / np.maximum(count, 1)
        positions = np.stack([np.where(inside, number, -1) for number, inside, _ in places], axis=-1)
        parts = np.repeat(part[..., None], len(places), axis=-1)
        return {"output_gradient_tensor": self.added(positions, parts)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 3]),
            "output_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            "strides": [1, 2],
            "window_size": [2, 2],
            "start_padding": [0, 1],
            "end_padding": [0, 1],
            "include_padding": False,
        }
