"""ELEMENT_WISE_IDENTITY."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..enums import FeatureLevel, OperatorType, TensorDataType
from ..structs import ScaleBias
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import Array
from ._element_wise import UnaryOperatorDesc, scale_bias_constants, scaled

if TYPE_CHECKING:
    from ..compile import Program

_TENSORS = "input_tensor output_tensor"
_SMALL = "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"
_ALL = "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"


class ElementWiseIdentityOperatorDesc(
    UnaryOperatorDesc,
    type=OperatorType.ELEMENT_WISE_IDENTITY,
    introduced=FeatureLevel.LEVEL_1_0,
    support={
        FeatureLevel.LEVEL_1_0: base.allow_each(_TENSORS, 4, 5, "FLOAT32 FLOAT16"),
        FeatureLevel.LEVEL_2_1: base.allow_each(_TENSORS, 4, 5, _SMALL),
        FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, _SMALL),
        FeatureLevel.LEVEL_4_1: base.allow_each(_TENSORS, 1, 8, _ALL),
    },
    in_place=True,
):
    """Copies a tensor, perhaps to another layout: ``output = input``, or ``input * Scale + Bias``.

    Without ScaleBias the bits are copied: NaN payloads and denormals stay.  With it the arithmetic is
    FLOAT32 with two roundings (FLOAT64 for FLOAT64 tensors), and integers are converted back as CAST
    does.  Types and sizes of input and output are equal; strides need not be.
    """

    FUNCTION: ClassVar[str] = "IDENTITY"

    input_tensor: BufferTensorDesc = base.input_tensor()
    output_tensor: BufferTensorDesc = base.output_tensor()
    scale_bias: ScaleBias | None = base.scale_bias()

    def lower(self, program: Program) -> None:
        if self.scale_bias is None:
            program.call("copy", program.read("input_tensor"), program.write("output_tensor"))
        else:
            super().lower(program)

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        return scale_bias_constants(self.scale_bias)

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        return scaled(x, self.scale_bias, data_type)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        if self.scale_bias is None:
            return {"output_tensor": np.asarray(inputs["input_tensor"]).copy()}
        return super().reference(inputs)
