"""ELEMENT_WISE_CLIP and ELEMENT_WISE_CLIP1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import TensorDataType
from ..structs import ScalarUnion
from ._conversion import FLOATS, Array, convert, dtype_of, float64, raw_bits
from ._element_wise import Unary
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

    KERNEL = "clip"
    EXAMPLE = {"min": -1.0, "max": 1.0}

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, Any]:
        desc = self.desc
        # Through the output's type first: a fused clip of a FLOAT16 output has FLOAT16 bounds.
        low, high = (
            raw_bits(float(convert(np.float32(each), output)), working) for each in (desc.min, desc.max)
        )
        return {"min_bits": low, "max_bits": high}

    def arguments(self, data_type: TensorDataType) -> dict[str, Any]:
        return {name: convert(np.float32(getattr(self.desc, name)), data_type) for name in ("min", "max")}

    def function(self, x: Array, min: Array, max: Array) -> Array:
        y: Array = np.fmin(max, np.fmax(min, x))
        return y


class ElementWiseClip1(Unary, of="ELEMENT_WISE_CLIP1"):
    """Limits each element to the closed range Min to Max: ``output = max(Min, min(x, Max))``.

    As ELEMENT_WISE_CLIP, with bounds in the tensor's type and the opposite order: where Min > Max
    every element becomes Min; a NaN becomes Max.
    """

    desc: ElementWiseClip1OperatorDesc

    KERNEL = "clip1"
    EXAMPLE = {
        "min_max_data_type": TensorDataType.FLOAT32,
        "min": ScalarUnion.of(TensorDataType.FLOAT32, -1.0),
        "max": ScalarUnion.of(TensorDataType.FLOAT32, 1.0),
    }

    RULES = (*Unary.RULES, SameType("output_tensor", "min_max_data_type"))

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, Any]:
        desc = self.desc
        size = desc.output_tensor.dtype.itemsize
        low, high = (int.from_bytes(each.bytes[:size], "little") for each in (desc.min, desc.max))
        return {"min_bits": low, "max_bits": high}

    def arguments(self, data_type: TensorDataType) -> dict[str, Any]:
        desc = self.desc
        bounds = {"min": desc.min.value(data_type), "max": desc.max.value(data_type)}
        if data_type in FLOATS:
            return {name: float64(each) for name, each in bounds.items()}
        return {name: np.asarray(each, dtype_of(data_type)) for name, each in bounds.items()}

    def function(self, x: Array, min: Array, max: Array) -> Array:
        y: Array = np.fmax(min, np.fmin(x, max))
        return y
