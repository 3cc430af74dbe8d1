"""ACTIVATION_SOFTMAX, ACTIVATION_LOG_SOFTMAX and ACTIVATION_HARDMAX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dmlemu_hw import kernels

from ..enums import TensorDataType
from .families.conversion import Array
from .families.lines import Softmax, WithAxes, axes_mask

if TYPE_CHECKING:
    from ..lowering.compile import Program


class ActivationSoftmax(Softmax, of="ACTIVATION_SOFTMAX"):
    """``output = exp(x) / sum(exp(x))`` of each row of the last dimension.

    Computed as ``exp(x - max) / sum(exp(x - max))``, so that it does not overflow; exponentials are
    FLOAT32 and sums FLOAT64, in row-major order.  A row with a NaN or +infinity, or of -infinities
    only, is NaN.
    """

    KERNEL = "softmax"
    ULPS = 3
    ULPS_REASON = "exponentials are computed in FLOAT32, and their errors add up"

    def function(self, groups: Array) -> Array:
        e = np.exp(groups - np.fmax.reduce(groups, -1, keepdims=True))
        y: Array = e / e.sum(-1, keepdims=True)
        return y


class ActivationSoftmax1(WithAxes, ActivationSoftmax, of="ACTIVATION_SOFTMAX1"):
    """``output = exp(x) / sum(exp(x))`` over groups: elements with the same coordinates except along Axes.

    All axes make one joint group.  Computed as ``exp(x - max) / sum(exp(x - max))``, so that it does not
    overflow; exponentials are FLOAT32 and sums FLOAT64, in row-major order.  A group with a NaN
    or +infinity, or of -infinities only, is NaN.
    """


class ActivationLogSoftmax(Softmax, of="ACTIVATION_LOG_SOFTMAX"):
    """``output = ln(exp(x) / sum(exp(x)))`` of each row of the last dimension.

    Computed as ``x - max - ln(sum(exp(x - max)))``: an element far below the largest gives a large
    negative number, not -infinity.  Exponentials are FLOAT32, sums FLOAT64, in row-major order.  A row
    with a NaN or +infinity, or of -infinities only, is NaN.
    """

    LARGEST_ERROR = 2.0**-48

    KERNEL = "log_softmax"
    ULPS = 3
    ULPS_REASON = "exponentials are computed in FLOAT32, that of the largest element, too"

    def function(self, groups: Array) -> Array:
        x = groups - np.fmax.reduce(groups, -1, keepdims=True)
        y: Array = x - np.log(np.exp(x).sum(-1, keepdims=True))
        return y


class ActivationLogSoftmax1(WithAxes, ActivationLogSoftmax, of="ACTIVATION_LOG_SOFTMAX1"):
    """``output = ln(exp(x) / sum(exp(x)))`` over groups: elements with the same coordinates except along
    Axes.

    All axes make one joint group.  Computed as ``x - max - ln(sum(exp(x - max)))``: an element far below
    the largest gives a large negative number, not -infinity.  Exponentials are FLOAT32, sums
    FLOAT64, in row-major order.  A group with a NaN or +infinity, or of -infinities only, is NaN.  The
    numbers of the page's examples are those of HARDMAX1; here the formula counts.
    """


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
