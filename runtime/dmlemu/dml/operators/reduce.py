"""REDUCE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.definition import Definition
from ..declared.rules import SameType, Unless
from ..enums import AxisDirection, ReduceFunction, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, float64
from .families.reduction import REDUCED, call_reduce, index_of_extreme, reduced

if TYPE_CHECKING:
    from ..declared.descs import ReduceOperatorDesc
    from ..lowering.compile import Program

_F = ReduceFunction
_ARGUMENTS = (_F.ARGMAX, _F.ARGMIN)

# Elements reduced together are in the last dimension: FLOAT64, or integers that wrap in their type.
_REFERENCE: Mapping[ReduceFunction, Callable[[Array], Array]] = {
    _F.AVERAGE: lambda rows: rows.mean(-1),
    _F.L1: lambda rows: np.abs(rows).sum(-1, dtype=rows.dtype),
    _F.L2: lambda rows: np.sqrt(np.square(rows).sum(-1)),
    _F.LOG_SUM: lambda rows: np.log(rows.sum(-1)),
    _F.LOG_SUM_EXP: lambda rows: np.logaddexp.reduce(rows, -1),
    _F.MAX: lambda rows: np.fmax.reduce(rows, -1),
    _F.MIN: lambda rows: np.fmin.reduce(rows, -1),
    _F.MULTIPLY: lambda rows: np.multiply.accumulate(rows, -1)[..., -1],  # in order: it may overflow
    _F.SUM: lambda rows: rows.sum(-1, dtype=rows.dtype),
    _F.SUM_SQUARE: lambda rows: np.square(rows).sum(-1, dtype=rows.dtype),
}


class Reduce(Definition, of="REDUCE"):
    """Reduces the listed axes to size 1 by a function of the elements they span; the rank stays.

    AVERAGE: sum / N. L1: sum of absolute values. L2: square root of the sum of squares. LOG_SUM: natural
    logarithm of the sum. LOG_SUM_EXP: logarithm of the sum of exponentials, computed without overflow.
    MAX, MIN, MULTIPLY, SUM, SUM_SQUARE: as named. ARGMAX, ARGMIN: index of the extreme in row-major
    order over the reduced axes, the lowest on ties.

    Which types are allowed depends on the function; the table is the union.  The output has the input's
    type, or an integer type for ARGMAX and ARGMIN.  Integers wrap.  A NaN never beats a number in MAX,
    MIN, ARGMAX and ARGMIN.  With empty Axes each element is reduced by itself.
    """

    desc: ReduceOperatorDesc

    ULPS = 1
    ULPS_REASON = (
        "both compute in more bits and round once, but LOG_SUM_EXP in FLOAT32 where it is not near 0"
    )
    SUM_ERROR = 2.0**-42

    RULES = (Unless("function", _ARGUMENTS, SameType("input_tensor", "output_tensor")), *REDUCED)

    def lower(self, program: Program) -> None:
        desc = self.desc
        call_reduce(program, desc.function, desc.axes, AxisDirection.INCREASING)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        x, output = np.asarray(inputs["input_tensor"]), desc.output_tensor
        if desc.function in _ARGUMENTS:
            largest = desc.function == _F.ARGMAX
            index = index_of_extreme(x, desc.axes, output, largest, AxisDirection.INCREASING)
            return {"output_tensor": index}
        if x.dtype.kind == "f":
            x = float64(x)
        with np.errstate(all="ignore"):
            y = _REFERENCE[desc.function](reduced(x, desc.axes))
        return {"output_tensor": convert(y, output.data_type).reshape(output.sizes)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "function": ReduceFunction.SUM,
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 1, 4]),
            "axes": [2],
        }
