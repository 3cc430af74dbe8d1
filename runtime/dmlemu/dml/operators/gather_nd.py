"""GATHER_ND and GATHER_ND1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.gather import Bounds, Gather, OneRank, batch_count, by_tuples, nearest, tuple_rules

if TYPE_CHECKING:
    from ..declared.descs import GatherNd1OperatorDesc, GatherNdOperatorDesc


class GatherNd(Gather, of="GATHER_ND"):
    """``output[t.., s..] = input[indices[t.., 0], .., indices[t.., T - 1], s..]``: tuples select blocks.

    Only the last InputDimensionCount dimensions of InputTensor and the last IndicesDimensionCount of
    IndicesTensor count; the others have size 1.  The last dimension of IndicesTensor is the tuple, of T
    indices, one for each of the first T dimensions.  GATHER_ND1 has BatchDimensionCount dimensions more,
    before both: ``output[b.., t.., s..] = input[b.., indices[b.., t.., 0], .., s..]``.  The output has the
    sizes of the tuples' dimensions, then those of a block, after leading 1s.  (The pages count a block's
    dimensions from DimensionCount, but their numbers from InputDimensionCount, as here.)

    Elements are copied bit by bit.  A signed index below 0 counts from the end of its dimension: -1 is the
    last element.  The documentation does not define an index outside its dimension: here the nearest
    element is read, and MEM_INDEX_VALUE reports the index.
    """

    desc: GatherNdOperatorDesc | GatherNd1OperatorDesc

    RULES = (*Gather.RULES, *tuple_rules("output_tensor"))

    USUAL = (OneRank("input_tensor", "indices_tensor", "output_tensor"),)

    def constants(self) -> dict[str, int]:
        return by_tuples(self.desc)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc, batch = self.desc, batch_count(self.desc)
        x, indices = np.asarray(inputs["input_tensor"]), np.asarray(inputs["indices_tensor"])
        x = x.reshape(x.shape[x.ndim - desc.input_dimension_count :])
        indices = indices.reshape(indices.shape[indices.ndim - desc.indices_dimension_count :])
        sizes: list[int] = list(x.shape)
        blocks = []
        length = desc.indices_tensor.sizes[-1]
        for b in np.ndindex(x.shape[:batch]):
            chosen = (nearest(indices[b][..., q], sizes[batch + q]) for q in range(length))
            blocks.append(x[b][tuple(chosen)])
        return {"output_tensor": np.stack(blocks).reshape(desc.output_tensor.sizes)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(
                TensorDataType.FLOAT32, [1, 9, 9, 2]
            ),  # small numbers are indices
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 3, 2, 2]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 2, 2]),
            "input_dimension_count": 3,
            "indices_dimension_count": 3,
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"input_tensor": [1, 3, 3, 2]}


def _most_batches(desc: GatherNd1OperatorDesc) -> int:
    return min(desc.input_dimension_count, desc.indices_dimension_count) - 1


class GatherNd1(GatherNd, of="GATHER_ND1"):
    __doc__ = GatherNd.__doc__

    desc: GatherNd1OperatorDesc

    RULES = (
        *Gather.RULES,
        *tuple_rules(
            "output_tensor",
            Bounds(
                "batch_dimension_count",
                0,
                _most_batches,
                "the smaller of InputDimensionCount and IndicesDimensionCount, less 1",
            ),
        ),
    )

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(
                TensorDataType.FLOAT32, [1, 3, 9, 2]
            ),  # small numbers are indices
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 3, 5, 1]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 5, 2]),
            "input_dimension_count": 3,
            "indices_dimension_count": 3,
            "batch_dimension_count": 1,
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"input_tensor": [1, 3, 3, 2]}
