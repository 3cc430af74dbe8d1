"""ELEMENT_WISE_CLIP and ELEMENT_WISE_CLIP1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..enums import TensorDataType
from ._conversion import FLOATS, Array, convert, float64, raw_bits
from ._element_wise import Unary, scale_bias_constants, scaled
from .rules import SameType

if TYPE_CHECKING:
    from .descs import ElementWiseClip1OperatorDesc, ElementWiseClipOperatorDesc


class ElementWiseClip(Unary, of="ELEMENT_WISE_CLIP"):
    """Limits each element to the closed range Min to Max: ``output = min(Max, max(Min, x))``.

    ``x`` is the input, or ``input * Scale + Bias``.  Min and Max are first converted to the tensor's
    type as CAST does.  Where Min > Max every element becomes Max; a NaN becomes Min.  May be the fused
    activation of a convolution or GEMM from feature level 6_0 on.
    """

    desc: ElementWiseClipOperatorDesc

    FUNCTION = "CLIP"

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        desc = self.desc
        # Through the output's type first: a fused clip of a FLOAT16 output has FLOAT16 bounds.
        low, high = (
            raw_bits(float(convert(np.float32(each), output)), working) for each in (desc.min, desc.max)
        )
        return {**scale_bias_constants(desc.scale_bias), "min_bits": low, "max_bits": high}

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        desc = self.desc
        x = scaled(x, desc.scale_bias, data_type)
        low, high = (convert(np.float32(each), data_type) for each in (desc.min, desc.max))
        y: Array = np.fmin(high, np.fmax(low, x))
        return y


class ElementWiseClip1(Unary, of="ELEMENT_WISE_CLIP1"):
    """Limits each element to the closed range Min to Max: ``output = max(Min, min(x, Max))``.

    As ELEMENT_WISE_CLIP with bounds in the tensor's own type, and the other order: where Min > Max
    every element becomes Min; a NaN becomes Max.
    """

    desc: ElementWiseClip1OperatorDesc

    FUNCTION = "CLIP1"

    RULES = (*Unary.RULES, SameType("output_tensor", "min_max_data_type"))

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        desc = self.desc
        size = desc.output_tensor.dtype.itemsize
        low, high = (int.from_bytes(each.bytes[:size], "little") for each in (desc.min, desc.max))
        return {**scale_bias_constants(desc.scale_bias), "min_bits": low, "max_bits": high}

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        desc = self.desc
        x = scaled(x, desc.scale_bias, data_type)
        low, high = (np.asarray(each.value(data_type), x.dtype) for each in (desc.min, desc.max))
        if data_type in FLOATS:
            low, high = float64(low), float64(high)
        y: Array = np.fmax(low, np.fmin(x, high))
        return y
