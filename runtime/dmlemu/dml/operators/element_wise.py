"""Element-wise operators defined by a function of one or two elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..enums import TensorDataType
from ..structs import ScaleBias
from ..tensor_desc import BufferTensorDesc
from ._conversion import Array, unsigned
from ._element_wise import Binary, BinaryBits, Identity, Unary
from .rules import SameSizes


class ElementWiseIdentity(Identity, of="ELEMENT_WISE_IDENTITY"):
    """Copies a tensor, possibly to another layout: ``output = input``, or ``input * Scale + Bias``.

    Without ScaleBias the bits are copied: NaN payloads and denormals stay.  With it the arithmetic is
    FLOAT32 with two roundings (FLOAT64 for FLOAT64 tensors), and integers are converted back as CAST
    does.  Types and sizes of input and output are equal; strides may differ.
    """

    EXAMPLE = {"scale_bias": ScaleBias(2.0, 10.0)}


class ElementWiseBitXor(BinaryBits, of="ELEMENT_WISE_BIT_XOR"):
    """``output = A ^ B`` on the raw bits of each element; the type only gives the width.

    Results that are bit patterns of NaN are stored as they are.  Types and sizes of the three tensors
    are equal: broadcast an input with strides of 0.
    """

    KERNEL = "bit_xor"

    def function(self, a: Array, b: Array) -> Array:
        return a ^ b


class ElementWiseBitCount(Unary, of="ELEMENT_WISE_BIT_COUNT"):
    """``output`` = number of 1 bits in each element of the input, as stored in memory.

    The input's type only gives the width: INT8 -1 has 8, FLOAT32 -0.0 has 1.  The output is UINT32 or
    UINT8, whatever the input's type; sizes are equal.
    """

    KERNEL = "bit_count"
    EXAMPLE = dict.fromkeys(
        ["input_tensor", "output_tensor"], BufferTensorDesc(TensorDataType.UINT32, [1, 2, 3, 4])
    )

    RULES = (SameSizes("input_tensor", "output_tensor"),)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        rest = unsigned(np.asarray(inputs["input_tensor"])).copy()
        count = np.zeros(rest.shape, self.desc.output_tensor.dtype)
        while rest.any():
            count += (rest & rest.dtype.type(1)).astype(count.dtype)
            rest >>= rest.dtype.type(1)
        return {"output_tensor": count}


class ElementWiseSqrt(Unary, of="ELEMENT_WISE_SQRT"):
    """``output = sqrt(x)`` of the input, or of ``input * Scale + Bias``; negative ones give NaN."""

    KERNEL = "sqrt"

    def function(self, x: Array) -> Array:
        y: Array = np.sqrt(x)
        return y


class ElementWiseAtanYx(Binary, of="ELEMENT_WISE_ATAN_YX"):
    """``output = atan2(A, B)``: the angle of the point with y = A and x = B, from -pi to pi; signs of zeros
    are treated as in C.  DirectML does not define the angle of (0, 0); here it is 0 or pi
    with the sign of A."""

    KERNEL = "atan_yx"
    ULPS = 1

    def function(self, a: Array, b: Array) -> Array:
        y: Array = np.arctan2(a, b)
        return y
