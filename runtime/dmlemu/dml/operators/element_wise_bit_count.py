"""ELEMENT_WISE_BIT_COUNT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._conversion import Array, unsigned
from .definition import Definition
from .rules import SameSizes

if TYPE_CHECKING:
    from ..compile import Program
    from .descs import ElementWiseBitCountOperatorDesc


class ElementWiseBitCount(Definition, of="ELEMENT_WISE_BIT_COUNT"):
    """``output`` = number of 1 bits in each element of the input, as it stands in memory.

    The input's type only gives the width: INT8 -1 has 8, FLOAT32 -0.0 has 1.  The output is UINT32 or
    UINT8, whatever the input's type; sizes are equal.
    """

    desc: ElementWiseBitCountOperatorDesc

    RULES = (SameSizes("input_tensor", "output_tensor"),)

    def lower(self, program: Program) -> None:
        program.call("element_wise_bit_count", program.read("input_tensor"), program.write("output_tensor"))

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        rest = unsigned(np.asarray(inputs["input_tensor"])).copy()
        count = np.zeros(rest.shape, self.desc.output_tensor.dtype)
        while rest.any():
            count += (rest & rest.dtype.type(1)).astype(count.dtype)
            rest >>= rest.dtype.type(1)
        return {"output_tensor": count}
