"""GATHER_ELEMENTS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import SameSizes
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.gather import ALONG_AXIS, Gather, along_axis, nearest

if TYPE_CHECKING:
    from ..declared.descs import GatherElementsOperatorDesc


class GatherElements(Gather, of="GATHER_ELEMENTS"):
    """``output[c] = input[c with c[Axis] = indices[c]]``: all coordinates but the one on Axis stay the same.

    The output has the sizes of the indices, which may differ from the input's along Axis only.
    Elements are copied bit by bit.  A signed index below 0 counts from the end: -1 is the last element.

    The documentation does not define an index outside the dimension: here the nearest element is read, and
    MEM_INDEX_VALUE reports the index.
    """

    desc: GatherElementsOperatorDesc

    RULES = (
        *Gather.RULES,
        *ALONG_AXIS,
        SameSizes("indices_tensor", "output_tensor"),
    )

    def constants(self) -> dict[str, int]:
        return along_axis(self.desc.input_tensor, self.desc.axis)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, axis = np.asarray(inputs["input_tensor"]), self.desc.axis
        chosen = nearest(np.asarray(inputs["indices_tensor"]), x.shape[axis])
        return {"output_tensor": np.take_along_axis(x, chosen, axis)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(
                TensorDataType.FLOAT32, [1, 2, 3, 9]
            ),  # small numbers are indices
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 2, 3, 5]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 5]),
            "axis": 3,
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"input_tensor": [1, 2, 3, 3]}
