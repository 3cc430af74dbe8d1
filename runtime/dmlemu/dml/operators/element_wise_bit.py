"""Functions of the bits of elements: ELEMENT_WISE_BIT_*."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.rules import SameSizes
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, unsigned
from .families.element_wise import Binary, BinaryBits, Unary, UnaryBits, tensors

T = TensorDataType


class ElementWiseBitAnd(BinaryBits, of="ELEMENT_WISE_BIT_AND"):
    """``output = A & B`` on the raw bits of each element; the type only gives the width."""

    KERNEL = "bit_and"

    def function(self, a: Array, b: Array) -> Array:
        return a & b


class ElementWiseBitOr(BinaryBits, of="ELEMENT_WISE_BIT_OR"):
    """``output = A | B`` on the raw bits of each element; the type only gives the width."""

    KERNEL = "bit_or"

    def function(self, a: Array, b: Array) -> Array:
        return a | b


class ElementWiseBitXor(BinaryBits, of="ELEMENT_WISE_BIT_XOR"):
    """``output = A ^ B`` on the raw bits of each element; the type only gives the width.

    Results that are bit patterns of NaN are stored as they are.  Types and sizes of the three tensors
    are equal: broadcast an input with strides of 0.
    """

    KERNEL = "bit_xor"

    def function(self, a: Array, b: Array) -> Array:
        return a ^ b


class ElementWiseBitNot(UnaryBits, of="ELEMENT_WISE_BIT_NOT"):
    """``output = ~x`` on the raw bits of each element; the type only gives the width."""

    KERNEL = "bit_not"

    def function(self, x: Array) -> Array:
        return ~x


class _Shift(Binary):
    """Shifts of A by B bits."""

    EXAMPLE = tensors(T.UINT32, "a_tensor", "b_tensor", "output_tensor")

    def constants(self, working: TensorDataType, output: TensorDataType) -> bytes:
        return kernels.pack(self.KERNEL, min_bits=63 if working is T.UINT64 else 31)

    @staticmethod
    def count(b: Array) -> Array:
        """The bits of B that count."""
        bits: Array = b & b.dtype.type(63 if b.dtype.itemsize == 8 else 31)
        return bits


class ElementWiseBitShiftLeft(_Shift, of="ELEMENT_WISE_BIT_SHIFT_LEFT"):
    """``output = A << B``: bits that leave the element are lost.

    B counts modulo 64 for UINT64, otherwise modulo 32, as Direct3D's instructions do: UINT8 1 << 8 is 0,
    UINT32 1 << 32 is 1.
    """

    KERNEL = "bit_shift_left"

    def function(self, a: Array, b: Array) -> Array:
        return a.astype(np.uint64) << self.count(b).astype(np.uint64)


class ElementWiseBitShiftRight(_Shift, of="ELEMENT_WISE_BIT_SHIFT_RIGHT"):
    """``output = A >> B``: zeros come in from above.

    B counts modulo 64 for UINT64, otherwise modulo 32, as Direct3D's instructions do.
    """

    KERNEL = "bit_shift_right"

    def function(self, a: Array, b: Array) -> Array:
        return a.astype(np.uint64) >> self.count(b).astype(np.uint64)


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
