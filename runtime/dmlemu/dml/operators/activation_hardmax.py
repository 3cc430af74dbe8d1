"""ACTIVATION_HARDMAX and ACTIVATION_HARDMAX1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dmlemu_hw import kernels

from ..enums import TensorDataType
from .families.conversion import Array
from .families.lines import Softmax, WithAxes, axes_mask

if TYPE_CHECKING:
    from ..lowering.compile import Program


class ActivationHardmax(Softmax, of="ACTIVATION_HARDMAX"):
    """1 at the first largest element of each row of the last dimension, otherwise 0.

    A NaN never beats a number; of a row of NaNs the first element gets the 1.
    """

    def lower(self, program: Program) -> None:
        axes, sizes = self.axes, self.desc.input_tensor.sizes
        mask = axes_mask(axes)
        place = program.temporary(
            TensorDataType.UINT64, [1 if d in axes else size for d, size in enumerate(sizes)]
        )
        constants = kernels.pack("reduce_argmax", axes_mask=mask, last_index=0)
        program.call("reduce_argmax", program.read("input_tensor"), place.write(), constants=constants)
        constants = kernels.pack("hardmax", axes_mask=mask)
        program.call("hardmax", place.read(), program.write("output_tensor"), constants=constants)

    def function(self, groups: Array) -> Array:
        largest = groups == np.fmax.reduce(groups, -1, keepdims=True)
        first = np.argmax(largest, -1, keepdims=True)  # 0 where all are NaN
        y: Array = (np.arange(groups.shape[-1]) == first).astype(np.float64)
        return y


class ActivationHardmax1(WithAxes, ActivationHardmax, of="ACTIVATION_HARDMAX1"):
    """1 at the first largest element of each group, otherwise 0.

    A group: elements with the same coordinates except along Axes; the first: in row-major order, whatever
    the order of Axes.  A NaN never beats a number; of a group of NaNs the first element gets the 1.
    """
