"""Family: operators that choose elements of a tensor by indices that stand in another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._conversion import Array
from .definition import Definition

if TYPE_CHECKING:
    from .validation import DescValidator


class Gather(Definition):
    """Copies what IndicesTensor chooses of InputTensor to OutputTensor, along Axis."""

    def rules(self, check: DescValidator) -> None:
        desc = self.desc
        check.same_data_type("input_tensor", "output_tensor")
        rank = desc.input_tensor.rank
        check.require(
            desc.axis < rank,
            "OP_FIELD_RANGE",
            "Axis",
            f"Axis ({desc.axis}) is not less than InputTensor.DimensionCount ({rank}).",
            given=desc.axis,
            expected=f"0 to {rank - 1}",
        )


def nearest(indices: Array, size: int) -> Array:
    """Where indices into ``size`` elements lead: below 0 they count from the end, then they are clamped."""
    if indices.dtype.kind == "u":
        inside: Array = np.minimum(indices, indices.dtype.type(size - 1))
        return inside.astype(np.int64)
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + size, wide), 0, size - 1)
