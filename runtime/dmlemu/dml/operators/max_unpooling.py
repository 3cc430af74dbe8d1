"""MAX_UNPOOLING."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import SameSizes, SameType
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array

if TYPE_CHECKING:
    from ..declared.descs import MaxUnpoolingOperatorDesc
    from ..lowering.compile import Program


class MaxUnpooling(Definition, of="MAX_UNPOOLING"):
    """``output = 0``; then ``flat(output)[indices[c]] = input[c]``, for all coordinates c.

    Indices count the elements of the whole output in row-major order, batch and channel included, as if it
    were packed, whatever its strides: they are what MAX_POOLING1 and MAX_POOLING2 return.  Elements are
    copied bit by bit.  Batch and channel count of input and output need not agree.

    The documentation does not define an index past the last element: here its element is not written, and
    MEM_INDEX_VALUE reports it.  Of several elements with one index the last in row-major order remains, under
    ``dmlemu.chaos`` one that the seed draws; MEM_SCATTER_RACE reports them if they differ.
    """

    desc: MaxUnpoolingOperatorDesc

    KEEPS_NANS = True

    RULES = (
        SameType("input_tensor", "output_tensor"),
        SameSizes("input_tensor", "indices_tensor"),
    )

    def lower(self, program: Program) -> None:
        """A scatter to the flat output; if that is not packed, to a temporary copy of it."""
        desc, output = self.desc, self.desc.output_tensor
        count = output.element_count
        zero = program.temporary(output.data_type, [1])
        program.call(
            "fill_value_constant", zero.write(), constants=kernels.pack("fill_value_constant", value=0)
        )
        packed = BufferTensorDesc(output.data_type, output.sizes).effective_strides
        is_packed = tuple(output.effective_strides) == tuple(packed)
        flat = None if is_packed else program.temporary(output.data_type, [count])
        table = program.write("output_tensor", sizes=[count], strides=[1]) if flat is None else flat.write()
        program.call(
            "scatter",
            replace(zero.read(), sizes=(count,), strides=(0,)),
            program.read("indices_tensor"),
            program.read("input_tensor"),
            replace(table, name="the flattened OutputTensor"),
            constants=kernels.pack("scatter", axis=0, count=1, own=desc.input_tensor.rank),
        )
        if flat is not None:
            whole = replace(flat.read(), sizes=tuple(output.sizes), strides=tuple(packed))
            program.call("copy", whole, program.write("output_tensor"))

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, indices = np.asarray(inputs["input_tensor"]), np.asarray(inputs["indices_tensor"])
        y = np.zeros(self.desc.output_tensor.element_count, x.dtype)
        for c in np.ndindex(x.shape):
            if indices[c] < y.size:
                y[indices[c]] = x[c]
        return {"output_tensor": y.reshape(self.desc.output_tensor.sizes)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 1]),
            # A single index: two equal ones would be a race.
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 1, 1, 1]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 3]),
        }

    PAGE_INPUTS: ClassVar[Mapping[str, Any]] = {"indices_tensor": [5, 2, 8, 11]}

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {
            "input_tensor": [1, 1, 2, 2],
            "indices_tensor": [1, 1, 2, 2],
            "output_tensor": [1, 1, 4, 4],
        }
