"""ELEMENT_WISE_BIT_XOR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..enums import FeatureLevel, OperatorType
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import Array, unsigned
from ._element_wise import BinaryOperatorDesc

_TENSORS = "a_tensor b_tensor output_tensor"
_ALL = "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"


class ElementWiseBitXorOperatorDesc(
    BinaryOperatorDesc,
    type=OperatorType.ELEMENT_WISE_BIT_XOR,
    introduced=FeatureLevel.LEVEL_3_0,
    support={
        FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, "UINT32 UINT16 UINT8"),
        FeatureLevel.LEVEL_4_1: base.allow_each(_TENSORS, 1, 8, _ALL),
    },
    in_place=True,
):
    """``output = A ^ B`` on the raw bits of each element; the type only gives the width.

    Results that are bit patterns of NaN are stored as they are.  Types and sizes of the three tensors
    are equal: broadcast an input with strides of 0.
    """

    FUNCTION: ClassVar[str] = "BIT_XOR"

    a_tensor: BufferTensorDesc = base.input_tensor()
    b_tensor: BufferTensorDesc = base.input_tensor()
    output_tensor: BufferTensorDesc = base.output_tensor()

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        a, b = (unsigned(np.asarray(inputs[name])) for name in ("a_tensor", "b_tensor"))
        return {"output_tensor": (a ^ b).view(self.output_tensor.dtype)}
