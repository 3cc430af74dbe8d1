"""ELEMENT_WISE_DEQUANTIZE_LINEAR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import Below, SameSizes, SameType
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert
from .families.quantization import OPTIONAL_FROM, Given, Linear, dequantize

if TYPE_CHECKING:
    from ..declared.descs import ElementWiseDequantizeLinearOperatorDesc


class ElementWiseDequantizeLinear(Linear, of="ELEMENT_WISE_DEQUANTIZE_LINEAR"):
    """``output = (input - zero_point) * scale``, element by element.

    All tensors have the same sizes: one scale for the whole tensor or for each index of an axis is a
    tensor with strides of 0.  From feature level 6_2 on ZeroPointTensor may be absent, which acts as 0.

    The documentation does not name the precision: here the difference is exact, whatever the type, then
    converted to FLOAT32 and multiplied in FLOAT32 (for FLOAT16 too, and rounded at the end).
    """

    desc: ElementWiseDequantizeLinearOperatorDesc

    KERNEL = "dequantize"

    RULES = (
        Below(OPTIONAL_FROM, Given("zero_point_tensor", like="input_tensor")),
        SameSizes("input_tensor", "scale_tensor", "zero_point_tensor", "output_tensor"),
        SameType("input_tensor", "zero_point_tensor"),
        SameType("scale_tensor", "output_tensor"),
    )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        zero_point = 0 if self.desc.zero_point_tensor is None else inputs["zero_point_tensor"]
        x, scale = np.asarray(inputs["input_tensor"]), np.asarray(inputs["scale_tensor"])
        return {"output_tensor": convert(dequantize(x, zero_point, scale), self.desc.output_tensor.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        numbers = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4])
        integers = BufferTensorDesc(TensorDataType.UINT8, [1, 2, 3, 4])
        return {
            "input_tensor": integers,
            "scale_tensor": numbers,
            "zero_point_tensor": integers,
            "output_tensor": numbers,
        }
