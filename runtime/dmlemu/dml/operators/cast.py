"""CAST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import FeatureLevel, OperatorType
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import Array, convert

if TYPE_CHECKING:
    from ..compile import Program

_TENSORS = "input_tensor output_tensor"
_WIDE = "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"


class CastOperatorDesc(
    base.OperatorDesc,
    type=OperatorType.CAST,
    introduced=FeatureLevel.LEVEL_1_0,
    support={
        FeatureLevel.LEVEL_1_0: base.allow_each(_TENSORS, 4, 4, "FLOAT32 FLOAT16 INT16 INT8 UINT16 UINT8"),
        FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 4, 4, _WIDE),
        FeatureLevel.LEVEL_3_1: base.allow_each(_TENSORS, 1, 8, _WIDE),
        FeatureLevel.LEVEL_4_1: base.allow_each(_TENSORS, 1, 8, f"FLOAT64 {_WIDE}"),
    },
):
    """Converts each element to the output's type; any listed type to any other, or to itself.

    Float to integer drops the fraction and stops at the type's limits, NaN gives 0; integer to narrower
    integer keeps the low bits; everything to float rounds to nearest even.  To the same type the bits
    are copied.
    """

    input_tensor: BufferTensorDesc = base.input_tensor()
    output_tensor: BufferTensorDesc = base.output_tensor()

    def rules(self, check: base.Check) -> None:
        check.same_sizes("input_tensor", "output_tensor")

    def lower(self, program: Program) -> None:
        program.call("cast", program.read("input_tensor"), program.write("output_tensor"))

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": convert(np.asarray(inputs["input_tensor"]), self.output_tensor.data_type)}
