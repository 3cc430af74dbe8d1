"""ELEMENT_WISE_IDENTITY."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import TensorDataType
from ._conversion import Array
from ._element_wise import Unary, scale_bias_constants, scaled

if TYPE_CHECKING:
    from ..lowering.compile import Program
    from .descs import ElementWiseIdentityOperatorDesc


class ElementWiseIdentity(Unary, of="ELEMENT_WISE_IDENTITY"):
    """Copies a tensor, perhaps to another layout: ``output = input``, or ``input * Scale + Bias``.

    Without ScaleBias the bits are copied: NaN payloads and denormals stay.  With it the arithmetic is
    FLOAT32 with two roundings (FLOAT64 for FLOAT64 tensors), and integers are converted back as CAST
    does.  Types and sizes of input and output are equal; strides need not be.
    """

    desc: ElementWiseIdentityOperatorDesc

    FUNCTION = "IDENTITY"

    def lower(self, program: Program) -> None:
        if self.desc.scale_bias is None:
            program.call("copy", program.read("input_tensor"), program.write("output_tensor"))
        else:
            super().lower(program)

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        return scale_bias_constants(self.desc.scale_bias)

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return scaled(x, self.desc.scale_bias, data_type)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        if self.desc.scale_bias is None:
            return {"output_tensor": np.asarray(inputs["input_tensor"]).copy()}
        return super().reference(inputs)
