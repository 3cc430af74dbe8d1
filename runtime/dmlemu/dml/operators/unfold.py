"""UNFOLD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.columns import FoldFamily, column_rules
from .families.conversion import Array

if TYPE_CHECKING:
    from ..declared.descs import UnfoldOperatorDesc


class Unfold(FoldFamily, of="UNFOLD"):
    """Copies the elements under a window that moves over an image to a column for each of its positions.

    ``output[n, c * K + w, b] = input[n, c, b * Strides - StartPadding + w * Dilations]``: w counts the K
    places of the window and b its positions, both in row-major order; 0 outside of the input.  Elements are
    copied bit by bit; those under no place of the window are not read.

    The input has the dimensions N, C and the spatial ones; the output has three, or leading ones of
    size 1 before them: the page asks for one DimensionCount, its examples have different ones.  Its
    table names no data types; here they are FLOAT32 and FLOAT16.
    """

    desc: UnfoldOperatorDesc

    KEEPS_NANS = True
    KERNEL = "unfold"
    IMAGE = "input_tensor"

    RULES = column_rules("input_tensor", "output_tensor")

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x = np.asarray(inputs["input_tensor"])
        padded = np.zeros((*x.shape[:2], *self.padded), x.dtype)
        padded[self.inside] = x
        rows = [padded[place].reshape(*x.shape[:2], -1) for place in self.places()]
        columns = np.stack(rows, axis=2)  # N, C, places, blocks
        return {"output_tensor": columns.reshape(self.desc.output_tensor.sizes)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 4]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 4, 8]),
            "window_sizes": [2, 2],
            "strides": [1, 1],
            "dilations": [2, 1],
            "start_padding": [0, 1],
            "end_padding": [1, 0],
        }
