"""QUANTIZE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import QuantizationType, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.quantization import Blocks, block_rules, quantize

if TYPE_CHECKING:
    from ..declared.descs import QuantizeOperatorDesc


class Quantize(Blocks, of="QUANTIZE"):
    """``output = saturate(round(input / scale) + zero_point)``, with a scale and a zero point for each block.

    A block is ``InputTensor.Sizes[d] / QuantizationTensors[0].Sizes[d]`` elements long in each dimension:
    sizes of 1 are one scale for all, the sizes of the input a scale for each element.  Two elements of INT4
    and UINT4 share a byte, the first one in the low half; rows may begin in the middle of a byte.  Of a
    byte that is only half an output, the other half keeps its contents.

    Microsoft's page is unfinished; this is what its clients rely on.  Without a zero point (SCALE) it is 0
    for signed types, and the middle of the range for unsigned ones: 8 for UINT4, 128 for UINT8.  As with
    ELEMENT_WISE_QUANTIZE_LINEAR, halves are rounded to even, the quotient is divided in FLOAT32, and a NaN is
    rounded to 0.
    """

    desc: QuantizeOperatorDesc

    KERNEL = "quantize"

    RULES = block_rules(numbers="input_tensor", integers="output_tensor")

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        data_type = self.desc.output_tensor.data_type
        scale, zero_point = self.parameters(inputs, data_type)
        with np.errstate(all="ignore"):
            quotient = np.asarray(inputs["input_tensor"]).astype(np.float32) / scale.astype(np.float32)
        return {"output_tensor": quantize(quotient, zero_point, data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            "quantization_type": QuantizationType.SCALE_ZERO_POINT,
            "quantization_tensors": [
                BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 1, 2]),
                BufferTensorDesc(TensorDataType.UINT4, [1, 2, 1, 2]),
            ],
            "output_tensor": BufferTensorDesc(TensorDataType.UINT4, [1, 2, 3, 4]),
        }
