"""Python's operators of an expression; its graph carries them out, see :mod:`dmlemu.graph.arithmetic`."""

from __future__ import annotations

from typing import Any, TypeVar

__all__ = ["Operators"]

_E = TypeVar("_E", bound="Operators")


class Operators:
    """The operators of an expression.

    The operands are expressions, arrays or numbers.  Sizes are matched as by NumPy, from the last dimension
    on, where a size of 1 is repeated: by a view with strides of 0.  An array, and a number that is not the
    scale or the bias of an ELEMENT_WISE_IDENTITY, is a constant of the graph with the other operand's type.
    """

    __slots__ = ()

    graph: Any
    __array_ufunc__ = None  # NumPy leaves array + expression to the expression

    def __add__(self: _E, other: Any) -> _E:
        return _binary("add", self, other)

    def __radd__(self: _E, other: Any) -> _E:
        return _binary("add", self, other, turned=True)

    def __sub__(self: _E, other: Any) -> _E:
        return _binary("subtract", self, other)

    def __rsub__(self: _E, other: Any) -> _E:
        return _binary("subtract", self, other, turned=True)

    def __mul__(self: _E, other: Any) -> _E:
        return _binary("multiply", self, other)

    def __rmul__(self: _E, other: Any) -> _E:
        return _binary("multiply", self, other, turned=True)

    def __truediv__(self: _E, other: Any) -> _E:
        return _binary("divide", self, other)

    def __rtruediv__(self: _E, other: Any) -> _E:
        return _binary("divide", self, other, turned=True)

    def __mod__(self: _E, other: Any) -> _E:
        """With the sign of the divisor, as in Python."""
        return _binary("modulus_floor", self, other)

    def __rmod__(self: _E, other: Any) -> _E:
        return _binary("modulus_floor", self, other, turned=True)

    def __pow__(self: _E, other: Any) -> _E:
        return _binary("pow", self, other)

    def __rpow__(self: _E, other: Any) -> _E:
        return _binary("pow", self, other, turned=True)

    def __and__(self: _E, other: Any) -> _E:
        return _binary("bit_and", self, other)

    def __rand__(self: _E, other: Any) -> _E:
        return _binary("bit_and", self, other, turned=True)

    def __or__(self: _E, other: Any) -> _E:
        return _binary("bit_or", self, other)

    def __ror__(self: _E, other: Any) -> _E:
        return _binary("bit_or", self, other, turned=True)

    def __xor__(self: _E, other: Any) -> _E:
        return _binary("bit_xor", self, other)

    def __rxor__(self: _E, other: Any) -> _E:
        return _binary("bit_xor", self, other, turned=True)

    def __lshift__(self: _E, other: Any) -> _E:
        return _binary("bit_shift_left", self, other)

    def __rlshift__(self: _E, other: Any) -> _E:
        return _binary("bit_shift_left", self, other, turned=True)

    def __rshift__(self: _E, other: Any) -> _E:
        return _binary("bit_shift_right", self, other)

    def __rrshift__(self: _E, other: Any) -> _E:
        return _binary("bit_shift_right", self, other, turned=True)

    def __lt__(self: _E, other: Any) -> _E:
        return _binary("logical_less_than", self, other)

    def __le__(self: _E, other: Any) -> _E:
        return _binary("logical_less_than_or_equal", self, other)

    def __gt__(self: _E, other: Any) -> _E:
        return _binary("logical_greater_than", self, other)

    def __ge__(self: _E, other: Any) -> _E:
        return _binary("logical_greater_than_or_equal", self, other)

    def __eq__(self: _E, other: Any) -> _E:  # type: ignore[override]
        return _binary("logical_equals", self, other)

    def __ne__(self: _E, other: Any) -> _E:  # type: ignore[override]
        return _binary("logical_not_equals", self, other)

    __hash__ = object.__hash__

    def __matmul__(self: _E, other: Any) -> _E:
        """GEMM: the product of the matrices in the last two dimensions; those before are repeated."""
        return _binary("matrix_multiply", self, other)

    def __rmatmul__(self: _E, other: Any) -> _E:
        return _binary("matrix_multiply", self, other, turned=True)

    def __neg__(self: _E) -> _E:
        return _unary("negate", self)

    def __abs__(self: _E) -> _E:
        return _unary("abs", self)

    def __invert__(self: _E) -> _E:
        return _unary("bit_not", self)


def _binary(name: str, x: _E, other: Any, *, turned: bool = False) -> _E:
    made: _E = x.graph.binary(name, x, other, turned)
    return made


def _unary(name: str, x: _E) -> _E:
    made: _E = x.graph.unary(name, x)
    return made
