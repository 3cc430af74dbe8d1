"""SCATTER_ELEMENTS, also called SCATTER."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.rules import SameSizes
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.gather import ALONG_AXIS, Scatter, along_axis, wrapped

if TYPE_CHECKING:
    from ..declared.descs import ScatterElementsOperatorDesc
    from ..lowering.compile import Program


class ScatterElements(Scatter, of="SCATTER_ELEMENTS"):
    """``output = input``; then ``output[c with c[Axis] = indices[c]] = updates[c]``, for all coordinates c.

    The updates have the sizes of the indices, which may differ from the input's along Axis only.
    Elements are copied bit by bit.  A signed index below 0 counts from the end: -1 is the last element.

    The documentation does not define an index outside the dimension: here its update is not written, and
    MEM_INDEX_VALUE reports the index.  Two updates of one element are invalid, and which of them remains
    is undefined: here the last in row-major order, under ``dmlemu.chaos`` one that the seed draws;
    MEM_SCATTER_RACE reports them if they differ.
    """

    desc: ScatterElementsOperatorDesc

    RULES = (*Scatter.RULES, *ALONG_AXIS, SameSizes("indices_tensor", "updates_tensor"))

    def lower(self, program: Program) -> None:
        program.call(
            "scatter",
            program.read("input_tensor"),
            program.read("indices_tensor"),
            program.read("updates_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("scatter", **along_axis(self.desc.input_tensor, self.desc.axis)),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        axis, updates = self.desc.axis, np.asarray(inputs["updates_tensor"])
        y = np.array(inputs["input_tensor"])
        chosen, inside = wrapped(np.asarray(inputs["indices_tensor"]), y.shape[axis])
        for c in np.ndindex(updates.shape):
            if inside[c]:
                target = (*c[:axis], chosen[c], *c[axis + 1 :])
                y[target] = updates[c]
        return {"output_tensor": y}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 9]),
            # A single index: two equal ones would be a race.
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 2, 3, 1]),
            "updates_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 1]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 9]),
            "axis": 3,
        }

    PAGE_INPUTS: ClassVar[Mapping[str, Any]] = {"updates_tensor": [10, 20, 30, 40, 50, 60]}

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"input_tensor": [1, 2, 3, 3], "output_tensor": [1, 2, 3, 3]}
