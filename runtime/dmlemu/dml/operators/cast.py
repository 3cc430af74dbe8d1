"""CAST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.definition import Definition
from ..declared.rules import SameSizes
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert

if TYPE_CHECKING:
    from ..declared.descs import CastOperatorDesc
    from ..lowering.compile import Program


class Cast(Definition, of="CAST"):
    """Converts each element to the output's type; any listed type to any other, or to itself.

    Float to integer truncates and saturates at the type's limits, NaN gives 0; integer to narrower
    integer keeps the low bits; any type to float rounds to nearest even.  A conversion to the same type
    copies the bits.
    """

    desc: CastOperatorDesc

    KEEPS_NANS = True

    RULES = (SameSizes("input_tensor", "output_tensor"),)

    def lower(self, program: Program) -> None:
        program.call("cast", program.read("input_tensor"), program.write("output_tensor"))

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {
            "output_tensor": convert(np.asarray(inputs["input_tensor"]), self.desc.output_tensor.data_type)
        }

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            "output_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 2, 3, 4]),
        }
