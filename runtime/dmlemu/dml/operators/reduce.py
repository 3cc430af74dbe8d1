"""REDUCE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import AxisDirection, FeatureLevel, OperatorType, ReduceFunction
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import Array, convert, float64
from ._reduction import ARGUMENT_SUPPORT, call_reduce, check_axes, index_of_extreme, reduced

if TYPE_CHECKING:
    from ..compile import Program

Support = Mapping[FeatureLevel, Mapping[str, base.Allowed]]

_TENSORS = "input_tensor output_tensor"
_FLOAT = "FLOAT32 FLOAT16"
_SMALL = "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"
_WIDE = "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"
_F = ReduceFunction
_ARGUMENTS = (_F.ARGMAX, _F.ARGMIN)

_FLOAT_ONLY: Support = {
    FeatureLevel.LEVEL_1_0: base.allow_each(_TENSORS, 4, 4, _FLOAT),
    FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, _FLOAT),
}
_INTEGER_LATE: Support = {
    **_FLOAT_ONLY,
    FeatureLevel.LEVEL_5_0: base.allow_each(_TENSORS, 1, 8, f"{_FLOAT} INT64 INT32 UINT64 UINT32"),
}
_INTEGER: Support = {
    FeatureLevel.LEVEL_1_0: base.allow_each(_TENSORS, 4, 4, _FLOAT),
    FeatureLevel.LEVEL_2_1: base.allow_each(_TENSORS, 4, 4, f"{_FLOAT} INT32 UINT32"),
    FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, f"{_FLOAT} INT32 UINT32"),
    FeatureLevel.LEVEL_5_0: base.allow_each(_TENSORS, 1, 8, f"{_FLOAT} INT64 INT32 UINT64 UINT32"),
}
_EXTREME: Support = {
    FeatureLevel.LEVEL_1_0: base.allow_each(_TENSORS, 4, 4, _FLOAT),
    FeatureLevel.LEVEL_2_1: base.allow_each(_TENSORS, 4, 4, f"{_FLOAT} INT32 UINT32"),
    FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, _SMALL),
    FeatureLevel.LEVEL_5_0: base.allow_each(_TENSORS, 1, 8, _WIDE),
}
_ARGUMENT: Support = {
    FeatureLevel.LEVEL_1_0: {
        "input_tensor": base.allow(4, 4, _FLOAT),
        "output_tensor": base.allow(4, 4, "UINT32"),
    },
    FeatureLevel.LEVEL_2_1: {
        "input_tensor": base.allow(4, 4, _SMALL),
        "output_tensor": base.allow(4, 4, "UINT32"),
    },
    **ARGUMENT_SUPPORT,
}

SUPPORT_BY_FUNCTION: Mapping[ReduceFunction, Support] = {
    _F.ARGMAX: _ARGUMENT,
    _F.ARGMIN: _ARGUMENT,
    _F.AVERAGE: _FLOAT_ONLY,
    _F.L1: _INTEGER_LATE,
    _F.L2: _FLOAT_ONLY,
    _F.LOG_SUM: _FLOAT_ONLY,
    _F.LOG_SUM_EXP: _FLOAT_ONLY,
    _F.MAX: _EXTREME,
    _F.MIN: _EXTREME,
    _F.MULTIPLY: _INTEGER,
    _F.SUM: _INTEGER,
    _F.SUM_SQUARE: _INTEGER_LATE,
}


def _union() -> Support:
    """What some function allows, at each level where a table changes."""
    levels = sorted({level for support in SUPPORT_BY_FUNCTION.values() for level in support})
    union: dict[FeatureLevel, dict[str, base.Allowed]] = {}
    for level in levels:
        tables = [base.table_for(support, level) for support in SUPPORT_BY_FUNCTION.values()]
        union[level] = {
            name: base.Allowed(
                min(table[name].min_rank for table in tables),
                max(table[name].max_rank for table in tables),
                frozenset().union(*(table[name].data_types for table in tables)),
            )
            for name in _TENSORS.split()
        }
    return union


# Elements reduced together stand in the last dimension: FLOAT64, or integers that wrap in their type.
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


class ReduceOperatorDesc(
    base.OperatorDesc, type=OperatorType.REDUCE, introduced=FeatureLevel.LEVEL_1_0, support=_union()
):
    """Reduces the listed axes to size 1 by a function of the elements they span; the rank stays.

    AVERAGE: sum / N. L1: sum of absolute values. L2: square root of the sum of squares. LOG_SUM: natural
    logarithm of the sum. LOG_SUM_EXP: logarithm of the sum of exponentials, computed without overflow.
    MAX, MIN, MULTIPLY, SUM, SUM_SQUARE: as named. ARGMAX, ARGMIN: index of the extreme in row-major
    order over the reduced axes, the lowest on ties.

    Which types are allowed depends on the function; the table is the union.  The output has the input's
    type, or an integer type for ARGMAX and ARGMIN.  Integers wrap.  A NaN never beats a number in MAX,
    MIN, ARGMAX and ARGMIN.  Axes may be empty, then each element is reduced by itself.
    """

    function: ReduceFunction = base.enumeration(ReduceFunction)
    input_tensor: BufferTensorDesc = base.input_tensor()
    output_tensor: BufferTensorDesc = base.output_tensor()
    axes: Sequence[int] = base.uint_array(count="AxisCount")

    def allowed(self, level: FeatureLevel) -> Mapping[str, base.Allowed]:
        return base.table_for(SUPPORT_BY_FUNCTION[self.function], level)

    def rules(self, check: base.Check) -> None:
        if self.function not in _ARGUMENTS:
            check.same_data_type("input_tensor", "output_tensor")
        check_axes(check, self.input_tensor, self.axes)

    def lower(self, program: Program) -> None:
        call_reduce(program, self.function, self.axes, AxisDirection.INCREASING)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, output = np.asarray(inputs["input_tensor"]), self.output_tensor
        if self.function in _ARGUMENTS:
            largest = self.function == _F.ARGMAX
            index = index_of_extreme(x, self.axes, output, largest, AxisDirection.INCREASING)
            return {"output_tensor": index}
        if x.dtype.kind == "f":
            x = float64(x)
        with np.errstate(all="ignore"):
            y = _REFERENCE[self.function](reduced(x, self.axes))
        return {"output_tensor": convert(y, output.data_type).reshape(output.sizes)}
