"""ACTIVATION_LOG_SOFTMAX and ACTIVATION_LOG_SOFTMAX1."""

from __future__ import annotations

import numpy as np

from .families.conversion import Array
from .families.lines import Softmax, WithAxes


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
