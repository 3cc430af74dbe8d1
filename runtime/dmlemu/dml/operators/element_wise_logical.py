"""Comparisons and logic: ELEMENT_WISE_LOGICAL_*."""

from __future__ import annotations

from ..enums import TensorDataType
from .families.conversion import Array
from .families.element_wise import Comparison, Logical, Unary, tensors

T = TensorDataType


class ElementWiseLogicalEquals(Comparison, of="ELEMENT_WISE_LOGICAL_EQUALS"):
    """``output = A == B``: 1 or 0, as UINT32 or UINT8.

    NaN equals nothing, -0 equals +0.  Integers are compared exactly.
    """

    KERNEL = "logical_equals"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = a == b
        return y


class ElementWiseLogicalGreaterThan(Comparison, of="ELEMENT_WISE_LOGICAL_GREATER_THAN"):
    """``output = A > B``: 1 or 0, as UINT32 or UINT8.

    NaN is neither above nor below anything.  Integers are compared exactly.
    """

    KERNEL = "logical_greater_than"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = a > b
        return y


class ElementWiseLogicalLessThan(Comparison, of="ELEMENT_WISE_LOGICAL_LESS_THAN"):
    """``output = A < B``: 1 or 0, as UINT32 or UINT8.

    NaN is neither above nor below anything.  Integers are compared exactly.
    """

    KERNEL = "logical_less_than"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = a < b
        return y


class ElementWiseLogicalGreaterThanOrEqual(Comparison, of="ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL"):
    """``output = A >= B``: 1 or 0, as UINT32 or UINT8.

    False if one of them is NaN.  Integers are compared exactly.
    """

    KERNEL = "logical_greater_than_or_equal"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = a >= b
        return y


class ElementWiseLogicalLessThanOrEqual(Comparison, of="ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL"):
    """``output = A <= B``: 1 or 0, as UINT32 or UINT8.

    False if one of them is NaN.  Integers are compared exactly.
    """

    KERNEL = "logical_less_than_or_equal"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = a <= b
        return y


class ElementWiseLogicalAnd(Logical, of="ELEMENT_WISE_LOGICAL_AND"):
    """``output = A != 0 and B != 0``: 1 or 0."""

    KERNEL = "logical_and"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = (a != 0) & (b != 0)
        return y


class ElementWiseLogicalOr(Logical, of="ELEMENT_WISE_LOGICAL_OR"):
    """``output = A != 0 or B != 0``: 1 or 0."""

    KERNEL = "logical_or"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = (a != 0) | (b != 0)
        return y


class ElementWiseLogicalXor(Logical, of="ELEMENT_WISE_LOGICAL_XOR"):
    """``output = (A != 0) != (B != 0)``: 1 or 0."""

    KERNEL = "logical_xor"

    def function(self, a: Array, b: Array) -> Array:
        y: Array = (a != 0) ^ (b != 0)
        return y


class ElementWiseLogicalNot(Unary, of="ELEMENT_WISE_LOGICAL_NOT"):
    """``output = 1`` where the input is 0, else 0."""

    KERNEL = "logical_not"
    EXAMPLE = tensors(T.UINT32, "input_tensor", "output_tensor")

    def function(self, x: Array) -> Array:
        y: Array = x == 0
        return y
