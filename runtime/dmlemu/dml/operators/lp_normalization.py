"""LP_NORMALIZATION."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.places import Attribute
from ..declared.rules import Axis, Demand, Rule
from ..declared.values import Between
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, float64
from .families.lines import SAME
from .families.normalization import Normalization, float32

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..declared.schema import OperatorDesc
    from ..enums import FeatureLevel


class _Norm(Rule):
    """P is 1 or 2."""

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        yield Demand(Attribute("p"), Between(1, 2))

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "`P` is 1 or 2."


class LpNormalization(Normalization, of="LP_NORMALIZATION"):
    """``output = input / max(norm, Epsilon)`` of each line along Axis.

    The norm is the sum of the absolute values with P 1, and the root of the sum of the squares with P 2, in
    FLOAT64.  A line of zeros gives zeros, with Epsilon 0 NaNs.
    """

    RULES = (*SAME, Axis("axis", of="input_tensor"), _Norm())

    def kernel(self) -> str:
        return f"normalize_l{self.desc.p}"

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.desc.axis,)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x = float64(inputs["input_tensor"])
        with np.errstate(all="ignore"):
            powers = np.abs(x) if self.desc.p == 1 else x * x
            norm = powers.sum(self.desc.axis, keepdims=True)
            norm = norm if self.desc.p == 1 else np.sqrt(norm)
            y = x / np.maximum(norm, float32(self.desc.epsilon))
        return {"output_tensor": self.activated(y)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4])
        return {"input_tensor": tensor, "output_tensor": tensor, "axis": 1, "epsilon": 1e-5, "p": 2}
