"""Python's operators on expressions: broadcasting by views, numbers as scale and bias or as constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dml.enums import FeatureLevel, TensorDataType
from ..dml.structs import ScaleBias
from .expression import Expression, broadcast
from .functions import FUNCTIONS

__all__ = ["binary", "unary"]

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


def unary(name: str, x: Expression) -> Expression:
    """``negate``, ``abs`` or ``bit_not`` of a tensor."""
    if name == "negate" and x.graph.device.feature_level < FeatureLevel.LEVEL_5_0:
        return _run("identity", x, scale_bias=ScaleBias(-1.0, -0.0))
    return _run(name, x)


def binary(name: str, x: Expression, other: Any, turned: bool) -> Any:
    """``x OP other``, or ``other OP x`` if ``turned``; NotImplemented if ``other`` cannot be an operand.

    ``name``: of an element-wise operator, ``logical_not_equals`` or ``matrix_multiply``.
    """
    scale_bias = _scale_bias(name, turned, x, other)
    if scale_bias is not None:
        return _run("identity", x, scale_bias=scale_bias)
    both = _operands(x, other)
    if both is None:
        return NotImplemented
    if name == "matrix_multiply":
        return _product(*(reversed(both) if turned else both))
    try:
        sizes = np.broadcast_shapes(*(each.sizes for each in both))
    except ValueError:
        raise ValueError(f"{both[0]!r} and {both[1]!r} have sizes that cannot be matched.") from None
    a, b = (broadcast(each, sizes) for each in (reversed(both) if turned else both))
    if name == "logical_not_equals":
        return _run("logical_not", _run("logical_equals", a, b))
    return _run(name, a, b)


def _run(name: str, *operands: Expression, **fields: Any) -> Expression:
    made: Expression = FUNCTIONS[f"element_wise_{name}"](*operands, **fields)
    return made


def _product(a: Expression, b: Expression) -> Expression:
    """GEMM of the last two dimensions, with those before repeated."""
    *outer, _, _ = np.broadcast_shapes((*a.sizes[:-2], 1, 1), (*b.sizes[:-2], 1, 1))
    made: Expression = FUNCTIONS["gemm"](*(broadcast(each, (*outer, *each.sizes[-2:])) for each in (a, b)))
    return made


def _scale_bias(name: str, turned: bool, x: Expression, number: Any) -> ScaleBias | None:
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


def _operands(x: Expression, other: Any) -> tuple[Expression, Expression] | None:
    """Both as expressions; None: ``other`` is nothing that can be one."""
    if isinstance(other, Expression):
        return x, other
    if not _is_number(other) and not isinstance(other, np.ndarray):
        return None
    array = np.asarray(other)
    if array.ndim == 0:
        array = array.reshape((1,) * x.rank)
    if array.dtype.kind not in "iufb":
        return None
    converted = array.astype(x.dtype)
    if x.dtype.kind in "iu" and not np.array_equal(converted, array):
        raise ValueError(f"{other!r} has values that {x.data_type.name}, the type of {x!r}, does not have.")
    return x, x.graph.constant(converted)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
