"""ELEMENT_WISE_BIT_COUNT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import FeatureLevel, OperatorType
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import Array, unsigned

if TYPE_CHECKING:
    from ..compile import Program

_ALL = "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"


class ElementWiseBitCountOperatorDesc(
    base.OperatorDesc,
    type=OperatorType.ELEMENT_WISE_BIT_COUNT,
    introduced=FeatureLevel.LEVEL_3_0,
    support={
        FeatureLevel.LEVEL_3_0: {
            "input_tensor": base.allow(1, 8, "UINT32 UINT16 UINT8"),
            "output_tensor": base.allow(1, 8, "UINT32 UINT8"),
        },
        FeatureLevel.LEVEL_4_1: {
            "input_tensor": base.allow(1, 8, _ALL),
            "output_tensor": base.allow(1, 8, "UINT32 UINT8"),
        },
    },
):
    """``output`` = number of 1 bits in each element of the input, as it stands in memory.

    The input's type only gives the width: INT8 -1 has 8, FLOAT32 -0.0 has 1.  The output is UINT32 or
    UINT8, whatever the input's type; sizes are equal.
    """

    input_tensor: BufferTensorDesc = base.input_tensor()
    output_tensor: BufferTensorDesc = base.output_tensor()

    def rules(self, check: base.Check) -> None:
        check.same_sizes("input_tensor", "output_tensor")

    def lower(self, program: Program) -> None:
        program.call("element_wise_bit_count", program.read("input_tensor"), program.write("output_tensor"))

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        rest = unsigned(np.asarray(inputs["input_tensor"])).copy()
        count = np.zeros(rest.shape, self.output_tensor.dtype)
        while rest.any():
            count += (rest & rest.dtype.type(1)).astype(count.dtype)
            rest >>= rest.dtype.type(1)
        return {"output_tensor": count}
