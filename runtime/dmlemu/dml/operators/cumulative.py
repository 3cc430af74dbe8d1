"""CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT."""

from __future__ import annotations

import numpy as np

from .families.lines import Cumulative


class CumulativeSummation(Cumulative, of="CUMULATIVE_SUMMATION"):
    """The sum of the elements along Axis up to each element, or with HasExclusiveSum before it.

    DECREASING begins at the last element; results stay at their own index.  Floats are added in FLOAT64,
    one after the other, and each output is rounded once; a NaN spreads to later elements of its line
    only.  Integers wrap.
    """

    KERNEL = "cumulative_summation"
    EXCLUSIVE = "has_exclusive_sum"
    FIRST = 0
    ACCUMULATE = np.add


class CumulativeProduct(Cumulative, of="CUMULATIVE_PRODUCT"):
    """The product of the elements along Axis up to each element, or with HasExclusiveProduct before it.

    DECREASING begins at the last element; results stay at their own index.  Floats are multiplied in
    FLOAT64, one after the other, and each output is rounded once; a NaN spreads to later elements of its
    line only.  Integers wrap.
    """

    KERNEL = "cumulative_product"
    EXCLUSIVE = "has_exclusive_product"
    FIRST = 1
    ACCUMULATE = np.multiply
