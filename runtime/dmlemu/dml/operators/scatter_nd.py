"""SCATTER_ND."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.gather import OneRank, Scatter, block_sizes, by_tuples, tuple_rules, wrapped

if TYPE_CHECKING:
    from ..declared.descs import ScatterNdOperatorDesc
    from ..lowering.compile import Program


class ScatterNd(Scatter, of="SCATTER_ND"):
    """``output = input``; then ``output[indices[t.., 0], .., indices[t.., T - 1], s..] = updates[t.., s..]``.

    Only the last InputDimensionCount dimensions of InputTensor and the last IndicesDimensionCount of
    IndicesTensor count; the others have size 1.  The last dimension of IndicesTensor is the tuple, of T
    indices, one for each of the first T dimensions.  The updates have the sizes of the tuples' dimensions,
    then those of a block, after leading 1s.  (The page counts a block's dimensions from DimensionCount,
    but its numbers from InputDimensionCount, as here.)

    Elements are copied bit by bit.  A signed index below 0 counts from the end of its dimension: -1 is the
    last element.  The documentation does not define an index outside its dimension: here the whole block
    is not written, and MEM_INDEX_VALUE reports the index.  Two updates of one element are invalid, and
    which of them remains is undefined: here the last in row-major order, under ``dmlemu.chaos`` one that
    the seed draws; MEM_SCATTER_RACE reports them if they differ.
    """

    desc: ScatterNdOperatorDesc

    RULES = (*Scatter.RULES, *tuple_rules("updates_tensor"))

    USUAL = (OneRank("input_tensor", "indices_tensor", "updates_tensor"),)

    def lower(self, program: Program) -> None:
        program.call(
            "scatter",
            program.read("input_tensor"),
            program.read("indices_tensor"),
            program.read("updates_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("scatter", **by_tuples(self.desc)),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        y, indices = np.array(inputs["input_tensor"]), np.asarray(inputs["indices_tensor"])
        table = y.reshape(y.shape[y.ndim - desc.input_dimension_count :])  # the same elements
        indices = indices.reshape(indices.shape[indices.ndim - desc.indices_dimension_count :])
        updates = np.asarray(inputs["updates_tensor"]).reshape(block_sizes(desc))
        sizes: list[int] = list(table.shape)
        pairs = [wrapped(indices[..., q], sizes[q]) for q in range(desc.indices_tensor.sizes[-1])]
        for t in np.ndindex(indices.shape[:-1]):
            if all(inside[t] for _, inside in pairs):
                table[tuple(chosen[t] for chosen, _ in pairs)] = updates[t]
        return {"output_tensor": y}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 9, 9, 2]),
            # A single tuple: two equal ones would be a race.
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 1, 1, 2]),
            "updates_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 2]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 9, 9, 2]),
            "input_dimension_count": 3,
            "indices_dimension_count": 2,
        }

    PAGE_INPUTS: ClassVar[Mapping[str, Any]] = {"updates_tensor": [10, 20]}

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"input_tensor": [1, 3, 3, 2], "output_tensor": [1, 3, 3, 2]}
