"""DEQUANTIZE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import QuantizationType, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert
from .families.quantization import Blocks, block_rules, dequantize

if TYPE_CHECKING:
    from ..declared.descs import DequantizeOperatorDesc


class Dequantize(Blocks, of="DEQUANTIZE"):
    """``output = (input - zero_point) * scale``, with a scale and a zero point for each block.

    A block is ``InputTensor.Sizes[d] / QuantizationTensors[0].Sizes[d]`` elements long in each dimension:
    sizes of 1 are one scale for all, the sizes of the input a scale for each element.  Two elements of INT4
    and UINT4 share a byte, the first one in the low half; rows may begin in the middle of a byte.

    Microsoft's page is unfinished; this is what its clients rely on.  Without a zero point (SCALE) it is 0
    for signed types, and the middle of the range for unsigned ones: 8 for UINT4, 128 for UINT8.  The
    difference is exact, the product is FLOAT32, also for FLOAT16, and is rounded to that at the end.
    """

    desc: DequantizeOperatorDesc

    KERNEL = "dequantize"

    RULES = block_rules(numbers="output_tensor", integers="input_tensor")

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        scale, zero_point = self.parameters(inputs, self.desc.input_tensor.data_type)
        product = dequantize(np.asarray(inputs["input_tensor"]), zero_point, scale)
        return {"output_tensor": convert(product, self.desc.output_tensor.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.INT4, [1, 2, 3, 4]),
            "quantization_type": QuantizationType.SCALE_ZERO_POINT,
            "quantization_tensors": [
                BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 1, 2]),
                BufferTensorDesc(TensorDataType.INT4, [1, 2, 1, 2]),
            ],
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
        }
