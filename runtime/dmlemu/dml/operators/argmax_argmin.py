"""ARGMAX and ARGMIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..enums import ReduceFunction
from .families.reduction import Argument

if TYPE_CHECKING:
    from ..declared.descs import ArgmaxOperatorDesc, ArgminOperatorDesc


_SAYS = """The index of the {} of the elements that are reduced together.

    The index counts in row-major order over the reduced axes only, whatever the order of Axes; the rank
    is kept and reduced dimensions have size 1.  Of equal values INCREASING takes the first and DECREASING
    the last; a NaN never beats a number, and where all are NaN the index is 0.  With empty
    Axes every index is 0.
    """


class Argmax(Argument, of="ARGMAX"):
    __doc__ = _SAYS.format("largest")

    desc: ArgmaxOperatorDesc

    FUNCTION = ReduceFunction.ARGMAX


class Argmin(Argument, of="ARGMIN"):
    __doc__ = _SAYS.format("smallest")

    desc: ArgminOperatorDesc

    FUNCTION = ReduceFunction.ARGMIN
