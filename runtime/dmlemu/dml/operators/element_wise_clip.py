"""ELEMENT_WISE_CLIP and ELEMENT_WISE_CLIP1."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..enums import FeatureLevel, OperatorType, TensorDataType
from ..structs import ScalarUnion, ScaleBias
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import FLOATS, Array, convert, float64, raw_bits
from ._element_wise import UnaryOperatorDesc, scale_bias_constants, scaled

_TENSORS = "input_tensor output_tensor"
_SMALL = "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"
_WIDE = "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"


class ElementWiseClipOperatorDesc(
    UnaryOperatorDesc,
    type=OperatorType.ELEMENT_WISE_CLIP,
    introduced=FeatureLevel.LEVEL_1_0,
    support={
        FeatureLevel.LEVEL_1_0: base.allow_each(_TENSORS, 4, 4, "FLOAT32 FLOAT16"),
        FeatureLevel.LEVEL_2_1: base.allow_each(_TENSORS, 4, 4, _SMALL),
        FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, _SMALL),
        FeatureLevel.LEVEL_5_0: base.allow_each(_TENSORS, 1, 8, _WIDE),
    },
    in_place=True,
):
    """Limits each element to the closed range Min to Max: ``output = min(Max, max(Min, x))``.

    ``x`` is the input, or ``input * Scale + Bias``.  Min and Max are first converted to the tensor's
    type as CAST does.  Where Min > Max every element becomes Max; a NaN becomes Min.  May be the fused
    activation of a convolution or GEMM from feature level 6_0 on.
    """

    FUNCTION: ClassVar[str] = "CLIP"

    input_tensor: BufferTensorDesc | None = base.input_tensor(fusable=True)
    output_tensor: BufferTensorDesc | None = base.output_tensor(fusable=True)
    scale_bias: ScaleBias | None = base.scale_bias()
    min: float = base.float32()
    max: float = base.float32()

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        # Through the output's type first: a fused clip of a FLOAT16 output has FLOAT16 bounds.
        low, high = (
            raw_bits(float(convert(np.float32(each), output)), working) for each in (self.min, self.max)
        )
        return {**scale_bias_constants(self.scale_bias), "min_bits": low, "max_bits": high}

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        x = scaled(x, self.scale_bias, data_type)
        low, high = (convert(np.float32(each), data_type) for each in (self.min, self.max))
        y: Array = np.fmin(high, np.fmax(low, x))
        return y


class ElementWiseClip1OperatorDesc(
    UnaryOperatorDesc,
    type=OperatorType.ELEMENT_WISE_CLIP1,
    introduced=FeatureLevel.LEVEL_5_0,
    support={FeatureLevel.LEVEL_5_0: base.allow_each(_TENSORS, 1, 8, _WIDE)},
    in_place=True,
):
    """Limits each element to the closed range Min to Max: ``output = max(Min, min(x, Max))``.

    As ELEMENT_WISE_CLIP with bounds in the tensor's own type, and the other order: where Min > Max
    every element becomes Min; a NaN becomes Max.
    """

    FUNCTION: ClassVar[str] = "CLIP1"

    input_tensor: BufferTensorDesc = base.input_tensor()
    output_tensor: BufferTensorDesc = base.output_tensor()
    scale_bias: ScaleBias | None = base.scale_bias()
    min_max_data_type: TensorDataType = base.enumeration(TensorDataType)
    min: ScalarUnion = base.scalar_union("min_max_data_type")
    max: ScalarUnion = base.scalar_union("min_max_data_type")

    def rules(self, check: base.Check) -> None:
        super().rules(check)
        data_type = self.output_tensor.data_type
        check.require(
            self.min_max_data_type == data_type,
            "TENSOR_DTYPE",
            "MinMaxDataType",
            f"MinMaxDataType ({self.min_max_data_type.name}) differs from "
            f"OutputTensor.DataType ({data_type.name}).",
            given=self.min_max_data_type.name,
            expected=data_type.name,
        )

    def parameters(self, working: TensorDataType, output: TensorDataType) -> dict[str, float]:
        size = self.output_tensor.dtype.itemsize
        low, high = (int.from_bytes(each.bytes[:size], "little") for each in (self.min, self.max))
        return {**scale_bias_constants(self.scale_bias), "min_bits": low, "max_bits": high}

    def function(self, x: Array, data_type: TensorDataType) -> Array:
        x = scaled(x, self.scale_bias, data_type)
        low, high = (np.asarray(each.value(data_type), x.dtype) for each in (self.min, self.max))
        if data_type in FLOATS:
            low, high = float64(low), float64(high)
        y: Array = np.fmax(low, np.fmin(x, high))
        return y
