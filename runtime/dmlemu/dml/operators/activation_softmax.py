"""ACTIVATION_SOFTMAX and ACTIVATION_SOFTMAX1."""

from __future__ import annotations

import numpy as np

from .families.conversion import Array
from .families.lines import Softmax, WithAxes


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
