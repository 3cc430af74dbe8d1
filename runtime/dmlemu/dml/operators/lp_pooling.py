"""LP_POOLING and LP_POOLING1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import AtLeast
from .families.conversion import Array, convert, float64
from .families.pooling import Pooling

if TYPE_CHECKING:
    from ..declared.descs import LpPooling1OperatorDesc, LpPoolingOperatorDesc


class LpPooling(Pooling, of="LP_POOLING LP_POOLING1"):
    """The P-norm of the elements under a window: ``(sum of |x| ** P) ** (1 / P)``.

    Place w of the window of output o reads element ``o * Strides[i] + w * Dilations[i] - StartPadding[i]``
    along spatial dimension i; places outside the input add nothing.

    The page prints ``x ** P``; here, as in ONNX, the absolute value is raised.  Powers, sums (in row-major
    order of the window) and the root are computed in FLOAT64 and rounded once: P = 1 and P = 2 without a
    power function.  The output may be larger than the number of windows in the padded input.
    """

    desc: LpPoolingOperatorDesc | LpPooling1OperatorDesc

    ULPS = 1
    ULPS_REASON = "powers and roots above P = 2 are those of the kernel's pow"

    RULES = (*Pooling.RULES, AtLeast("p", 1))

    def __init__(self, desc: LpPoolingOperatorDesc | LpPooling1OperatorDesc) -> None:
        super().__init__(desc)
        self.ULPS = 0 if desc.p <= 2 else 1  # type: ignore[misc]

    def kernel(self) -> str:
        return {1: "l1_pooling", 2: "l2_pooling"}.get(self.desc.p, "lp_pooling")

    def constants(self) -> Mapping[str, Any]:
        return {"power": self.desc.p}

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        p, output = self.desc.p, self.desc.output_tensor
        total = np.zeros(output.sizes)
        with np.errstate(all="ignore"):
            for element, _, _ in self.places(float64(inputs["input_tensor"])):
                total = total + np.abs(element) ** p
            root = total if p == 1 else np.sqrt(total) if p == 2 else total ** (1 / p)
        return {"output_tensor": convert(root, output.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return super().example() | {"p": 2}
