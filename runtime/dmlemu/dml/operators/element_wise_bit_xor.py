"""ELEMENT_WISE_BIT_XOR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._conversion import Array, unsigned
from ._element_wise import Binary

if TYPE_CHECKING:
    from .descs import ElementWiseBitXorOperatorDesc


class ElementWiseBitXor(Binary, of="ELEMENT_WISE_BIT_XOR"):
    """``output = A ^ B`` on the raw bits of each element; the type only gives the width.

    Results that are bit patterns of NaN are stored as they are.  Types and sizes of the three tensors
    are equal: broadcast an input with strides of 0.
    """

    desc: ElementWiseBitXorOperatorDesc

    FUNCTION = "BIT_XOR"

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        a, b = (unsigned(np.asarray(inputs[name])) for name in ("a_tensor", "b_tensor"))
        return {"output_tensor": (a ^ b).view(self.desc.output_tensor.dtype)}
