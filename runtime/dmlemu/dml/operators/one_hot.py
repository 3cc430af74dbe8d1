"""ONE_HOT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import Axis, SameRank, SameSizes, SameType, Sizes
from ..declared.values import Between
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.gather import along_axis, wrapped

if TYPE_CHECKING:
    from ..declared.descs import OneHotOperatorDesc
    from ..lowering.compile import Program


def _one(desc: OneHotOperatorDesc) -> Iterator[tuple[int, int, str]]:
    yield desc.axis, 1, "since it has one index for each sequence"


def _two_values(desc: OneHotOperatorDesc) -> Iterator[tuple[int, Between, str]]:
    sizes = desc.values_tensor.sizes
    others = desc.values_tensor.element_count // sizes[-1]
    yield -1, Between(1 if others > 1 else 2, None), "since it has OffValue and OnValue"


def on_value(tensor: BufferTensorDesc) -> int:
    """The last dimension above 1: OnValue is the second element along it."""
    return max(i for i, size in enumerate(tensor.sizes) if size > 1)


class OneHot(Definition, of="ONE_HOT"):
    """``output[c] = c[Axis] == indices[c with c[Axis] = 0] ? OnValue : OffValue``.

    OffValue is the first element of ValuesTensor and OnValue the second one along its last dimension
    above 1; further elements are not read.  Elements are copied bit by bit.  A signed index below 0 counts
    from the end of OutputTensor's dimension Axis: -1 is the last element.

    An index outside the dimension is legal: all elements are OffValue then.  (The page defines this for an
    index that is too large; here the same holds for one that is too far below 0.)
    """

    desc: OneHotOperatorDesc

    KEEPS_NANS = True

    RULES = (
        SameType("values_tensor", "output_tensor"),
        SameRank("indices_tensor", "values_tensor", "output_tensor"),
        Axis("axis", of="indices_tensor"),
        Sizes("indices_tensor", _one, "The size of `IndicesTensor` along `Axis` is 1."),
        SameSizes("indices_tensor", "output_tensor", but="axis"),
        Sizes("values_tensor", _two_values, "`ValuesTensor` has at least two elements."),
    )

    def lower(self, program: Program) -> None:
        """OffValue everywhere, then OnValue scattered: both are broadcast."""
        desc = self.desc
        dimension = on_value(desc.values_tensor)
        strides = (0,) * desc.output_tensor.rank
        off = program.read("values_tensor", sizes=desc.output_tensor.sizes, strides=strides)
        on = program.read("values_tensor", sizes=desc.indices_tensor.sizes, strides=strides)
        start = desc.values_tensor.effective_strides[dimension] * desc.values_tensor.dtype.itemsize
        program.call(
            "scatter",
            off,
            program.read("indices_tensor"),
            replace(on, offset=on.offset + start, byte_size=on.byte_size - start),
            program.write("output_tensor"),
            constants=kernels.pack("scatter", may_miss=1, **along_axis(desc.output_tensor, desc.axis)),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        values = np.asarray(inputs["values_tensor"])
        second = tuple(int(i == on_value(desc.values_tensor)) for i in range(values.ndim))
        off, on = values[(0,) * values.ndim], values[second]
        size = desc.output_tensor.sizes[desc.axis]
        places = np.arange(size).reshape([-1 if d == desc.axis else 1 for d in range(values.ndim)])
        chosen, inside = wrapped(np.asarray(inputs["indices_tensor"]), size)
        return {"output_tensor": np.where(inside & (places == chosen), on, off)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 2, 3, 1]),
            "values_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 2]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 9]),
            "axis": 3,
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"output_tensor": [1, 2, 3, 3]}
