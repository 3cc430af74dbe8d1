"""GATHER."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from ._conversion import Array
from ._gather import Bounds, Gather, Sized, nearest
from .places import Size
from .rules import Axis, Demand, Rule, SameRank, Sizes
from .values import Exactly

if TYPE_CHECKING:
    from ..enums import FeatureLevel
    from .descs import GatherOperatorDesc
    from .schema import OperatorDesc


def _entries(desc: GatherOperatorDesc) -> list[tuple[str, int, int]]:
    """The output's sizes before they are aligned: tensor field, dimension and size of each."""
    table, indices, axis = desc.input_tensor.sizes, desc.indices_tensor.sizes, desc.axis
    first = len(indices) - desc.index_dimensions
    return [
        *(("input_tensor", d, table[d]) for d in range(axis)),
        *(("indices_tensor", d, indices[d]) for d in range(first, len(indices))),
        *(("input_tensor", d, table[d]) for d in range(axis + 1, len(table))),
    ]


class _Cropped(Rule):
    """Leading sizes that the output has no dimension for."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        entries = _entries(desc)
        for name, dimension, _ in entries[: max(len(entries) - desc.output_tensor.rank, 0)]:
            yield Demand(Size(name, dimension), Exactly(1), "since OutputTensor has no dimension for it")

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "Sizes that `OutputTensor` has no dimension for are 1."


def _unused(desc: GatherOperatorDesc) -> Sized:
    for dimension in range(desc.indices_tensor.rank - desc.index_dimensions):
        yield dimension, 1, "since only the last IndexDimensions dimensions are used"


def _output_sizes(desc: GatherOperatorDesc) -> Sized:
    rank, entries = desc.output_tensor.rank, _entries(desc)
    ones = rank - len(entries)
    for dimension in range(rank):
        if dimension < ones:
            yield dimension, 1, "since the sizes that are gathered have fewer dimensions"
        else:
            owner, source, size = entries[dimension - ones]
            tensor = "InputTensor" if owner == "input_tensor" else "IndicesTensor"
            yield dimension, size, f"{tensor}.Sizes[{source}], with Axis {desc.axis}"


class GatherAxis(Gather, of="GATHER"):
    """``output[a.., j.., b..] = input[a.., indices[j..], b..]``, with ``indices[j..]`` on Axis.

    The last IndexDimensions dimensions of IndicesTensor replace dimension Axis of InputTensor; with
    IndexDimensions 0 there is one index, and the dimension disappears.  The resulting sizes are
    right-aligned in OutputTensor: leading 1s are added, or dropped if there are too many.  Elements are
    copied bit by bit.  A signed index below 0 counts from the end: -1 is the last element.

    The documentation promises for an index outside the dimension only that no memory outside the tensor
    is read: here the nearest element is read, and MEM_INDEX_VALUE reports the index.  Dimensions of
    IndicesTensor before the last IndexDimensions must have size 1, since devices differ otherwise.
    """

    desc: GatherOperatorDesc

    RULES = (
        *Gather.RULES,
        SameRank("input_tensor", "indices_tensor", "output_tensor"),
        Axis("axis", of="input_tensor"),
        Bounds("index_dimensions", 0, lambda desc: desc.indices_tensor.rank, "IndicesTensor.DimensionCount"),
        Sizes(
            "indices_tensor",
            _unused,
            "All sizes of `IndicesTensor` but the last `IndexDimensions` are 1.",
        ),
        _Cropped(),
        Sizes(
            "output_tensor",
            _output_sizes,
            "`OutputTensor` has the sizes of `InputTensor`, with the last `IndexDimensions` sizes of "
            "`IndicesTensor` instead of the one on `Axis`, right-aligned.",
        ),
    )

    def constants(self) -> dict[str, int]:
        return {"axis": self.desc.axis, "count": 1, "own": self.desc.index_dimensions}

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        x, indices = np.asarray(inputs["input_tensor"]), np.asarray(inputs["indices_tensor"])
        indices = indices.reshape(indices.shape[indices.ndim - desc.index_dimensions :])
        gathered = np.take(x, nearest(indices, x.shape[desc.axis]), desc.axis)
        return {"output_tensor": gathered.reshape(desc.output_tensor.sizes)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(
                TensorDataType.FLOAT32, [1, 1, 9, 2]
            ),  # small numbers are indices
            "indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 1, 3, 5]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 3, 5, 2]),
            "axis": 2,
            "index_dimensions": 2,
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {"input_tensor": [1, 1, 3, 2]}
