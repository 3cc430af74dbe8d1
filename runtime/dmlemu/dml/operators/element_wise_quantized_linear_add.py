"""ELEMENT_WISE_QUANTIZED_LINEAR_ADD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import Ones, SameRank, SameSizes, SameType
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.quantization import dequantize, quantize

if TYPE_CHECKING:
    from ..declared.descs import ElementWiseQuantizedLinearAddOperatorDesc
    from ..lowering.compile import Program

_INPUTS = (
    "a_tensor",
    "a_scale_tensor",
    "a_zero_point_tensor",
    "b_tensor",
    "b_scale_tensor",
    "b_zero_point_tensor",
    "output_scale_tensor",
    "output_zero_point_tensor",
)


class ElementWiseQuantizedLinearAdd(Definition, of="ELEMENT_WISE_QUANTIZED_LINEAR_ADD"):
    """``output = saturate(round(sum / OutputScale) + OutputZeroPoint)``, where ``sum`` is
    ``(A - AZeroPoint) * AScale + (B - BZeroPoint) * BScale``.

    Scales and zero points have one element each; an absent zero point is 0.  OutputScaleTensor and
    OutputZeroPointTensor are inputs too.  A, B and the output may each be INT8 or UINT8.

    The documentation leaves the rounding open: here the products, their sum and the quotient are each
    rounded to FLOAT32, and halves are rounded to even.  A NaN is rounded to 0.
    """

    desc: ElementWiseQuantizedLinearAddOperatorDesc

    RULES = (
        SameRank(*_INPUTS, "output_tensor"),
        SameSizes("a_tensor", "b_tensor", "output_tensor"),
        *(
            Ones(name, "since it holds one number")
            for name in _INPUTS
            if name not in ("a_tensor", "b_tensor")
        ),
        SameType("a_tensor", "a_zero_point_tensor"),
        SameType("b_tensor", "b_zero_point_tensor"),
        SameType("output_tensor", "output_zero_point_tensor"),
    )

    def lower(self, program: Program) -> None:
        program.call(
            "quantized_linear_add",
            *map(program.read, _INPUTS),
            program.write("output_tensor"),
            constants=kernels.pack("quantized_linear_add"),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        def zero_point(name: str) -> Array:
            return np.asarray(0 if inputs.get(name) is None else inputs[name])

        a, b = (
            dequantize(
                np.asarray(inputs[f"{name}_tensor"]),
                zero_point(f"{name}_zero_point_tensor"),
                np.asarray(inputs[f"{name}_scale_tensor"]),
            )
            for name in "ab"
        )
        with np.errstate(all="ignore"):
            quotient = (a + b) / np.asarray(inputs["output_scale_tensor"])
        result = quantize(quotient, zero_point("output_zero_point_tensor"), self.desc.output_tensor.data_type)
        return {"output_tensor": result}

    @classmethod
    def example(cls) -> dict[str, Any]:
        scale = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 1])
        fields = dict.fromkeys(["a_scale_tensor", "b_scale_tensor", "output_scale_tensor"], scale)
        for name, data_type in (("a", "UINT8"), ("b", "INT8"), ("output", "UINT8")):
            fields[f"{name}_tensor"] = BufferTensorDesc(TensorDataType[data_type], [1, 2, 3, 4])
            fields[f"{name}_zero_point_tensor"] = BufferTensorDesc(TensorDataType[data_type], [1, 1, 1, 1])
        return fields
