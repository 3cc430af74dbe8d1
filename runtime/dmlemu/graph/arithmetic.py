"""Python's operators on expressions: broadcasting by views, numbers as scale and bias or as constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..dml.enums import FeatureLevel, TensorDataType
from ..dml.structs import ScaleBias

if TYPE_CHECKING:
    from .expression import Expression

__all__ = ["Arithmetic"]

_MOST = float(np.finfo(np.float32).max)
_FLOATS = (TensorDataType.FLOAT32, TensorDataType.FLOAT16, TensorDataType.FLOAT64)

# x with a number, as x * scale + bias.
_LINEAR: dict[tuple[str, bool], Callable[[float], tuple[float, float]]] = {
    ("add", False): lambda c: (1.0, c),
    ("add", True): lambda c: (1.0, c),
    ("subtract", False): lambda c: (1.0, -c),
    ("subtract", True): lambda c: (-1.0, c),
    ("multiply", False): lambda c: (c, -0.0),  # a bias that keeps the sign of zeros
    ("multiply", True): lambda c: (c, -0.0),
}


class Arithmetic:
    """The operators of an expression.

    The operands are expressions, arrays or numbers.  Sizes are matched as by NumPy, from the last dimension
    on, where a size of 1 is repeated: by a view with strides of 0.  An array, and a number that is not the
    scale or the bias of an ELEMENT_WISE_IDENTITY, is a constant of the graph with the other operand's type.
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves array + expression to the expression

    def __add__(self, other: Any) -> Expression:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Expression:
        return _binary("add", self, other, turned=True)

    def __sub__(self, other: Any) -> Expression:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return _binary("subtract", self, other, turned=True)

    def __mul__(self, other: Any) -> Expression:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return _binary("multiply", self, other, turned=True)

    def __truediv__(self, other: Any) -> Expression:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _binary("divide", self, other, turned=True)

    def __mod__(self, other: Any) -> Expression:
        """With the sign of the divisor, as in Python."""
        return _binary("modulus_floor", self, other)

    def __rmod__(self, other: Any) -> Expression:
        return _binary("modulus_floor", self, other, turned=True)

    def __pow__(self, other: Any) -> Expression:
        return _binary("pow", self, other)

    def __rpow__(self, other: Any) -> Expression:
        return _binary("pow", self, other, turned=True)

    def __and__(self, other: Any) -> Expression:
        return _binary("bit_and", self, other)

    def __rand__(self, other: Any) -> Expression:
        return _binary("bit_and", self, other, turned=True)

    def __or__(self, other: Any) -> Expression:
        return _binary("bit_or", self, other)

    def __ror__(self, other: Any) -> Expression:
        return _binary("bit_or", self, other, turned=True)

    def __xor__(self, other: Any) -> Expression:
        return _binary("bit_xor", self, other)

    def __rxor__(self, other: Any) -> Expression:
        return _binary("bit_xor", self, other, turned=True)

    def __lshift__(self, other: Any) -> Expression:
        return _binary("bit_shift_left", self, other)

    def __rlshift__(self, other: Any) -> Expression:
        return _binary("bit_shift_left", self, other, turned=True)

    def __rshift__(self, other: Any) -> Expression:
        return _binary("bit_shift_right", self, other)

    def __rrshift__(self, other: Any) -> Expression:
        return _binary("bit_shift_right", self, other, turned=True)

    def __lt__(self, other: Any) -> Expression:
        return _binary("logical_less_than", self, other)

    def __le__(self, other: Any) -> Expression:
        return _binary("logical_less_than_or_equal", self, other)

    def __gt__(self, other: Any) -> Expression:
        return _binary("logical_greater_than", self, other)

    def __ge__(self, other: Any) -> Expression:
        return _binary("logical_greater_than_or_equal", self, other)

    def __eq__(self, other: Any) -> Expression:  # type: ignore[override]
        return _binary("logical_equals", self, other)

    def __ne__(self, other: Any) -> Expression:  # type: ignore[override]
        equal = _binary("logical_equals", self, other)
        return equal if equal is NotImplemented else _run("element_wise_logical_not", equal)

    __hash__ = object.__hash__

    def __matmul__(self, other: Any) -> Expression:
        """GEMM: the product of the matrices in the last two dimensions; those before are repeated."""
        both = _operands(self, other)
        if both is None:
            return NotImplemented
        a, b = both
        *outer, _, _ = np.broadcast_shapes((*a.sizes[:-2], 1, 1), (*b.sizes[:-2], 1, 1))
        return _run("gemm", *(_broadcast(each, (*outer, *each.sizes[-2:])) for each in both))

    def __neg__(self) -> Expression:
        x: Any = self
        if x.graph.device.feature_level < FeatureLevel.LEVEL_5_0:
            return _run("element_wise_identity", x, scale_bias=ScaleBias(-1.0, 0.0))
        return _run("element_wise_negate", x)

    def __abs__(self) -> Expression:
        return _run("element_wise_abs", self)

    def __invert__(self) -> Expression:
        return _run("element_wise_bit_not", self)


def _run(name: str, *operands: Any, **fields: Any) -> Expression:
    from .functions import FUNCTIONS

    made: Expression = FUNCTIONS[name](*operands, **fields)
    return made


def _binary(name: str, x: Any, other: Any, *, turned: bool = False) -> Expression:
    """``x OP other``, or ``other OP x`` if ``turned``."""
    scale_bias = _scale_bias(name, turned, x, other)
    if scale_bias is not None:
        return _run("element_wise_identity", x, scale_bias=scale_bias)
    both = _operands(x, other)
    if both is None:
        return cast("Expression", NotImplemented)
    try:
        sizes = np.broadcast_shapes(*(each.sizes for each in both))
    except ValueError:
        raise ValueError(f"{both[0]!r} and {both[1]!r} have sizes that cannot be matched.") from None
    a, b = (_broadcast(each, sizes) for each in both)
    return _run(f"element_wise_{name}", *((b, a) if turned else (a, b)))


def _scale_bias(name: str, turned: bool, x: Any, number: Any) -> ScaleBias | None:
    """Of a tensor of floats with a number that FLOAT holds, for FLOAT64 exactly."""
    if not _is_number(number) or x.data_type not in _FLOATS:
        return None
    number = float(number)
    if not abs(number) <= _MOST:  # or NaN
        return None
    if x.data_type is TensorDataType.FLOAT64 and float(np.float32(number)) != number:
        return None
    if name == "divide" and not turned:
        exact = abs(np.frexp(number)[0]) == 0.5 and abs(number) > 1 / _MOST  # a power of two
        return ScaleBias(1 / number, -0.0) if exact else None
    linear = _LINEAR.get((name, turned))
    return None if linear is None else ScaleBias(*linear(number))


def _operands(x: Any, other: Any) -> tuple[Expression, Expression] | None:
    """Both as expressions; None: ``other`` is nothing that can be one."""
    if isinstance(other, Arithmetic):
        expression: Any = other
        return x, expression
    if not _is_number(other) and not isinstance(other, np.ndarray):
        return None
    array = np.asarray(other)
    if array.ndim == 0:
        array = array.reshape((1,) * x.rank)
    converted = array.astype(x.dtype)
    if x.dtype.kind in "iu" and not np.array_equal(converted, array):
        raise ValueError(f"{other!r} has values that {x.data_type.name}, the type of {x!r}, does not have.")
    return x, x.graph.constant(converted)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _broadcast(x: Expression, sizes: tuple[int, ...]) -> Expression:
    from .expression import broadcast

    return broadcast(x, sizes)
