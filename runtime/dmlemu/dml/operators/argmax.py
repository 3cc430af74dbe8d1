"""ARGMAX."""

from __future__ import annotations

from ..enums import FeatureLevel, OperatorType, ReduceFunction
from ._reduction import ARGUMENT_SUPPORT, ArgumentOperatorDesc


class ArgmaxOperatorDesc(
    ArgumentOperatorDesc,
    type=OperatorType.ARGMAX,
    introduced=FeatureLevel.LEVEL_3_0,
    support=ARGUMENT_SUPPORT,
):
    """The index of the largest among the elements that are reduced together.

    The index counts in row-major order over the reduced axes only, whatever the order of Axes; the rank
    stays and reduced dimensions have size 1.  Of equal values INCREASING takes the first and DECREASING
    the last; a NaN never beats a number, and where all are NaN the index is 0.  Axes may be empty, then
    every index is 0.
    """

    FUNCTION = ReduceFunction.ARGMAX
