"""Family: operators that select elements of a tensor by indices in another tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ._conversion import Array
from .definition import Definition
from .rules import Axis, SameType

if TYPE_CHECKING:
    from .rules import Rule


class Gather(Definition):
    """Copies the elements of InputTensor that IndicesTensor selects along Axis to OutputTensor."""

    KEEPS_NANS = True
    RULES: ClassVar[Sequence[Rule]] = (
        SameType("input_tensor", "output_tensor"),
        Axis("axis", of="input_tensor"),
    )


def nearest(indices: Array, size: int) -> Array:
    """Resolved indices into ``size`` elements: negative ones count from the end, then all are clamped."""
    if indices.dtype.kind == "u":
        inside: Array = np.minimum(indices, indices.dtype.type(size - 1))
        return inside.astype(np.int64)
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + size, wide), 0, size - 1)
