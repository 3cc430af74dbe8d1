"""ARGMIN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import AxisDirection, FeatureLevel, OperatorType, ReduceFunction
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import Array
from ._reduction import ARGUMENT_SUPPORT, call_reduce, check_axes, index_of_extreme

if TYPE_CHECKING:
    from ..compile import Program


@dataclass(frozen=True, kw_only=True)
class ArgminOperatorDesc(
    base.OperatorDesc,
    type=OperatorType.ARGMIN,
    introduced=FeatureLevel.LEVEL_3_0,
    support=ARGUMENT_SUPPORT,
):
    """The index of the smallest among the elements that are reduced together.

    The index counts in row-major order over the reduced axes only, whatever the order of Axes; the rank
    stays and reduced dimensions have size 1.  Of equal values INCREASING takes the first and DECREASING
    the last; a NaN never beats a number, and where all are NaN the index is 0.  Axes may be empty, then
    every index is 0.
    """

    input_tensor: BufferTensorDesc = base.input_tensor()
    output_tensor: BufferTensorDesc = base.output_tensor()
    axes: Sequence[int] = base.uint_array(count="AxisCount")
    axis_direction: AxisDirection = base.enumeration(AxisDirection)

    def rules(self, check: base.Check) -> None:
        check_axes(check, self.input_tensor, self.axes)

    def lower(self, program: Program) -> None:
        call_reduce(program, ReduceFunction.ARGMIN, self.axes, self.axis_direction)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, direction = np.asarray(inputs["input_tensor"]), self.axis_direction
        return {"output_tensor": index_of_extreme(x, self.axes, self.output_tensor, False, direction)}
