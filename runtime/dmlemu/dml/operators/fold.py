"""FOLD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.columns import FoldFamily, column_rules
from .families.conversion import Array, convert, float64

if TYPE_CHECKING:
    from ..declared.descs import FoldOperatorDesc


class Fold(FoldFamily, of="FOLD"):
    """Adds the columns of the positions of a window to the elements of an image under it: where windows
    overlap, their elements are summed.

    ``output[n, c, b * Strides - StartPadding + w * Dilations] += input[n, c * K + w, b]``: w counts the K
    places of the window and b its positions, both in row-major order.  What falls in the padding is dropped,
    and not read; elements under no window are 0.  Sums are computed in FLOAT64, in the order of w, and
    rounded once.

    The output has the dimensions N, C and the spatial ones; the input has three, or leading ones of
    size 1 before them: the page asks for one DimensionCount, its examples have different ones.  Its
    table names no data types; here they are FLOAT32 and FLOAT16.
    """

    desc: FoldOperatorDesc

    KERNEL = "fold"
    IMAGE = "output_tensor"

    RULES = column_rules("output_tensor", "input_tensor")

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_tensor
        n, c = output.sizes[:2]
        columns = float64(inputs["input_tensor"]).reshape(n, c, -1, *self.blocks)
        padded = np.zeros((n, c, *self.padded))
        with np.errstate(all="ignore"):
            for w, place in enumerate(self.places()):
                padded[place] += columns[:, :, w]
        return {"output_tensor": convert(padded[self.inside], output.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 4, 8]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 4]),
            "window_sizes": [2, 2],
            "strides": [1, 1],
            "dilations": [2, 1],
            "start_padding": [0, 1],
            "end_padding": [1, 0],
        }
