"""ELEMENT_WISE_CLIP, ELEMENT_WISE_CLIP1 and their gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.rules import SameType
from ..enums import TensorDataType
from ..structs import ScalarUnion
from .families.conversion import FLOATS, Array, convert, dtype_of, float64, raw_bits
from .families.element_wise import ElementWise, Unary, alike

if TYPE_CHECKING:
    from ..declared.descs import ElementWiseClip1OperatorDesc, ElementWiseClipOperatorDesc


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


class ElementWiseClipGrad(ElementWise, of="ELEMENT_WISE_CLIP_GRAD"):
    """The gradient of CLIP: ``output = 0 if x <= Min or x >= Max, else the gradient``.

    Both bounds are exclusive; a NaN as input passes the gradient on.  Min and Max are first converted to the
    tensor's type as CAST does.
    """

    KERNEL = "clip_grad"
    INPUTS = ("input_tensor", "input_gradient_tensor")
    OUTPUT = "output_gradient_tensor"
    EXAMPLE: ClassVar[Mapping[str, Any]] = {"min": -1.0, "max": 1.0}
    RULES = alike("input_tensor", "input_gradient_tensor", "output_gradient_tensor")

    def bounds(self, data_type: TensorDataType) -> tuple[Array, Array]:
        """Min and Max in the tensor's type."""
        low, high = (convert(np.float32(each), data_type) for each in (self.desc.min, self.desc.max))
        return low, high

    def constants(self, working: TensorDataType, output: TensorDataType) -> bytes:
        low, high = (int.from_bytes(each.tobytes(), "little") for each in self.bounds(working))
        return kernels.pack(self.KERNEL, min_bits=low, max_bits=high)

    def function(self, x: Array, gradient: Array) -> Array:
        low, high = self.bounds(self.output.data_type)
        return np.where((x <= low) | (x >= high), gradient.dtype.type(0), gradient)


class ElementWiseClipGrad1(ElementWiseClipGrad, of="ELEMENT_WISE_CLIP_GRAD1"):
    """As ELEMENT_WISE_CLIP_GRAD, with bounds in the tensor's type."""

    EXAMPLE = {
        "min_max_data_type": TensorDataType.FLOAT32,
        "min": ScalarUnion.of(TensorDataType.FLOAT32, -1.0),
        "max": ScalarUnion.of(TensorDataType.FLOAT32, 1.0),
    }
    RULES = (*ElementWiseClipGrad.RULES, SameType("output_gradient_tensor", "min_max_data_type"))

    def bounds(self, data_type: TensorDataType) -> tuple[Array, Array]:
        dtype = dtype_of(data_type)
        low, high = (
            np.frombuffer(each.bytes[: dtype.itemsize], dtype)[0] for each in (self.desc.min, self.desc.max)
        )
        return low, high
