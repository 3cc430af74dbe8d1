"""Family: what operators on small integers with a scale and a zero point share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...declared.places import Attribute, field_of
from ...declared.rules import Demand, Rule
from ...declared.values import Except, Values
from ...enums import FeatureLevel, TensorDataType
from ...rows import OP_OPTIONAL
from ...tensor_desc import element_bits
from .conversion import Array, dtype_of

if TYPE_CHECKING:
    from ...declared.schema import OperatorDesc


class Given(Rule):
    """An optional tensor is not absent."""

    def __init__(self, name: str, like: str) -> None:
        self.name = name
        self.like = like

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        place = _Presence(self.name, self.like)
        yield Demand(place, Except((None,)), clause="is missing", expected="a tensor desc")

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"`{field_of(cls, self.name).c_name}` is required."


class _Presence(Attribute):
    """Whether an optional tensor is given; a new one has the sizes and the type of the field ``like``."""

    check = OP_OPTIONAL

    def __init__(self, name: str, like: str) -> None:
        super().__init__(name)
        self.like = like

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        return super().put(desc, None if value is None else getattr(desc, self.like))

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return Except(())


OPTIONAL_FROM = FeatureLevel.LEVEL_6_2
"""The level from which a zero point may be absent."""


def limits(data_type: TensorDataType) -> tuple[int, int]:
    """The lowest and the highest number of an integer type."""
    bits = element_bits(data_type)
    if data_type.name.startswith("U"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def quantize(quotient: Array, zero_point: Array | int, data_type: TensorDataType) -> Array:
    """Rounds half to even, adds the zero point, then saturates; NaN is rounded to 0."""
    low, high = limits(data_type)
    with np.errstate(invalid="ignore"):
        rounded = np.rint(np.where(np.isnan(quotient), 0, quotient))
    near = np.clip(rounded, -(2**20), 2**20).astype(np.int64)  # past that it is saturated in any case
    total: Array = np.clip(near + np.asarray(zero_point).astype(np.int64), low, high)
    return total.astype(dtype_of(data_type))


def dequantize(x: Array, zero_point: Array | int, scale: Array) -> Array:
    """The exact difference as FLOAT32, times the scale in FLOAT32."""
    difference = x.astype(np.int64) - np.asarray(zero_point).astype(np.int64)
    with np.errstate(all="ignore"):
        product: Array = difference.astype(np.float32) * scale.astype(np.float32)
    return product
