"""GATHER_ELEMENTS and SCATTER_ELEMENTS, GATHER_ND and SCATTER_ND."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..declared.rules import SameSizes
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.gather import (
    ALONG_AXIS,
    Bounds,
    Gather,
    OneRank,
    Scatter,
    along_axis,
    batch_count,
    block_sizes,
    by_tuples,
    nearest,
    tuple_rules,
    wrapped,
)

if TYPE_CHECKING:
    from ..declared.descs import (
        GatherElementsOperatorDesc,
        GatherNd1OperatorDesc,
        GatherNdOperatorDesc,
        ScatterElementsOperatorDesc,
        ScatterNdOperatorDesc,
    )


class GatherElements(Gather, of="GATHER_ELEMENTS"):
    """``output[c] = input[c with c[Axis] = indices[c]]``: all coordinates but the one on Axis stay the same.

    The output has the sizes of the indices, which may differ from the input's along Axis only.
    Elements are copied bit by bit.  A signed index below 0 counts from the end: -1 is the last element.

    The documentation does not define an index outside the dimension: here the nearest element is read, and
    MEM_INDEX_VALUE reports the index.
    """

    desc: GatherElementsOperatorDesc

    RULES = (
        *Gather.RULES,
        *ALONG_AXIS,
        SameSizes("indices_tensor", "output_tensor"),
    )

    def constants(self) -> dict[str, int]:
        return along_axis(self.desc.input_tensor, self.desc.axis)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, axis = np.asarray(inputs["input_tensor"]), self.desc.axis
        chosen = nearest(np.asarray(inputs["indices_tensor"]), x.shape[axis])
        return {"output_tensor": np.take_along_axis(x, chosen, axis)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 9]),  # indices are small
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 2, 3, 5]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 5]),
            "axis": 3,
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"input_tensor": [1, 2, 3, 3]}


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

    def constants(self) -> dict[str, int]:
        return along_axis(self.desc.input_tensor, self.desc.axis)

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
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 9, 9, 2]),  # indices are small
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
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 9, 2]),  # indices are small
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 3, 5, 1]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 5, 2]),
            "input_dimension_count": 3,
            "indices_dimension_count": 3,
            "batch_dimension_count": 1,
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"input_tensor": [1, 3, 3, 2]}


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

    def constants(self) -> dict[str, int]:
        return by_tuples(self.desc)

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
