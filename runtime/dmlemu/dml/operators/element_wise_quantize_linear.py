"""ELEMENT_WISE_QUANTIZE_LINEAR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.places import DataType
from ..declared.rules import Below, Demand, Rule, SameSizes, SameType
from ..declared.values import Exactly
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.quantization import OPTIONAL_FROM, Given, Linear, quantize

if TYPE_CHECKING:
    from ..declared.descs import ElementWiseQuantizeLinearOperatorDesc
    from ..declared.schema import OperatorDesc
    from ..enums import FeatureLevel


class _ScaleType(Rule):
    """The scale has the input's type; for INT32, FLOAT32."""

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        given = DataType("input_tensor").value(desc)
        wanted = TensorDataType.FLOAT32 if given is TensorDataType.INT32 else given
        clause = f"is not {wanted.name}, the type of the scale of an InputTensor of {given.name}"
        yield Demand(DataType("scale_tensor"), Exactly(wanted), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "`ScaleTensor` has the data type of `InputTensor`, or FLOAT32 if that is INT32."


class ElementWiseQuantizeLinear(Linear, of="ELEMENT_WISE_QUANTIZE_LINEAR"):
    """``output = saturate(round(input / scale) + zero_point)``, element by element.

    All tensors have the same sizes: one scale for the whole tensor or for each index of an axis is a
    tensor with strides of 0.  From feature level 6_2 on ZeroPointTensor may be absent, which acts as 0.

    The documentation does not say how halves are rounded: here to even, as devices were seen to do.  Nor
    does it name the precision: here the quotient is divided, not multiplied by a reciprocal, in FLOAT32
    (FLOAT16 too; INT32 in FLOAT64).  A NaN is rounded to 0; what is divided by a scale of 0 is infinite or
    NaN.
    """

    desc: ElementWiseQuantizeLinearOperatorDesc

    KERNEL = "quantize"

    RULES = (
        Below(OPTIONAL_FROM, Given("zero_point_tensor", like="output_tensor")),
        SameSizes("input_tensor", "scale_tensor", "zero_point_tensor", "output_tensor"),
        SameType("output_tensor", "zero_point_tensor"),
        _ScaleType(),
    )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, scale = np.asarray(inputs["input_tensor"]), np.asarray(inputs["scale_tensor"])
        working = np.float32 if x.dtype.kind == "f" else np.float64
        with np.errstate(all="ignore"):
            quotient = x.astype(working) / scale.astype(working)
        zero_point = 0 if self.desc.zero_point_tensor is None else inputs["zero_point_tensor"]
        return {"output_tensor": quantize(quotient, zero_point, self.desc.output_tensor.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        numbers = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4])
        integers = BufferTensorDesc(TensorDataType.UINT8, [1, 2, 3, 4])
        return {
            "input_tensor": numbers,
            "scale_tensor": numbers,
            "zero_point_tensor": integers,
            "output_tensor": integers,
        }
