"""GATHER."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.places import Size, field_of
from ..declared.rules import Axis, Demand, Rule, SameRank, Sizes
from ..declared.values import Divisor, Exactly
from ..enums import TensorDataType
from ..rows import OP_INDEX_ROWS
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.gather import Bounds, Gather, Sized, nearest

if TYPE_CHECKING:
    from ..declared.descs import GatherOperatorDesc
    from ..declared.schema import OperatorDesc
    from ..enums import FeatureLevel
    from ..lowering.compile import Operand, Program


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


def _rows(desc: GatherOperatorDesc) -> int:
    """How many parts of the input have indices of their own."""
    return prod(desc.indices_tensor.sizes[: desc.indices_tensor.rank - desc.index_dimensions])


def _divisors(desc: GatherOperatorDesc) -> Sized:
    left = prod(desc.input_tensor.sizes[: desc.axis])
    for dimension in range(desc.indices_tensor.rank - desc.index_dimensions):
        size = desc.indices_tensor.sizes[dimension]
        yield dimension, Divisor(left), "since InputTensor is divided before Axis into as many parts"
        left = left // size if left % size == 0 else 1


class _OneRow(Rule):
    """The indices are the same for all of the input."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        for dimension in range(desc.indices_tensor.rank - desc.index_dimensions):
            why = "so that parts of InputTensor have indices of their own, which devices read differently"
            yield Demand(Size("indices_tensor", dimension), Exactly(1), why, check=OP_INDEX_ROWS)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return "All sizes of `IndicesTensor` but the last `IndexDimensions` are 1."


def _strides_as(tensor: BufferTensorDesc, sizes: Sequence[int]) -> list[int] | None:
    """The strides with which the tensor's elements, in their order, have these sizes; or None."""
    axes: list[list[int]] = []  # size and stride, innermost first; those that continue each other are joined
    for size, stride in zip(reversed(tensor.sizes), reversed(tensor.effective_strides), strict=True):
        if axes and stride == axes[-1][0] * axes[-1][1]:
            axes[-1][0] *= size
        elif size > 1:
            axes.append([size, stride])
    strides: list[int] = []
    left, step = 1, 0
    for size in reversed(sizes):
        if left == 1 and size > 1:
            left, step = axes.pop(0)
        if left % size != 0:
            return None
        strides.insert(0, step if size > 1 else 0)
        left, step = left // size, step * size
    return strides


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
    is read: here the nearest element is read, and MEM_INDEX_VALUE reports the index.

    Dimensions of IndicesTensor before the last IndexDimensions usually have size 1.  No page says what other
    sizes mean.  Here, as GPUs do, their product R is the number of rows of indices: the P coordinates before
    Axis (the product of ``InputTensor.Sizes[0 .. Axis - 1]``, a multiple of R) are divided into R parts, and
    part r has row r.  An NPU was seen to take row 0 for all; OP_INDEX_ROWS reports it.
    """

    desc: GatherOperatorDesc

    RULES = (
        *Gather.RULES,
        SameRank("input_tensor", "indices_tensor", "output_tensor"),
        Axis("axis", of="input_tensor"),
        Bounds("index_dimensions", 0, lambda desc: desc.indices_tensor.rank, "IndicesTensor.DimensionCount"),
        Sizes(
            "indices_tensor",
            _divisors,
            "The product of the sizes of `IndicesTensor` before the last `IndexDimensions` divides that of "
            "the sizes of `InputTensor` before `Axis`.",
        ),
        _Cropped(),
        Sizes(
            "output_tensor",
            _output_sizes,
            "`OutputTensor` has the sizes of `InputTensor`, with the last `IndexDimensions` sizes of "
            "`IndicesTensor` instead of the one on `Axis`, right-aligned.",
        ),
    )

    USUAL = (_OneRow(),)

    def constants(self) -> dict[str, int]:
        return {"axis": self.desc.axis, "count": 1, "own": self.desc.index_dimensions}

    def lower(self, program: Program) -> None:
        if _rows(self.desc) == 1:
            super().lower(program)
        else:
            self._by_rows(program)

    def _by_rows(self, program: Program) -> None:
        """With the parts of the input as an axis, and what a part has before Axis as another.  A tensor whose
        strides cannot say that is copied."""
        desc, rows = self.desc, _rows(self.desc)
        table = desc.input_tensor.sizes
        part, indices = prod(table[: desc.axis]) // rows, desc.indices_tensor.element_count // rows
        size, behind = table[desc.axis], prod(table[desc.axis + 1 :])
        own = self._reshaped(program, "indices_tensor", [rows, indices])
        sizes = [rows, part, indices, behind]
        strides = _strides_as(desc.output_tensor, sizes)
        copied = None if strides else program.temporary(desc.output_tensor.data_type, sizes)
        target = copied.write() if copied else program.write("output_tensor", sizes=sizes, strides=strides)
        program.call(
            "gather",
            self._reshaped(program, "input_tensor", [rows, part, size, behind]),
            replace(own, sizes=(rows, part, indices), strides=(own.strides[0], 0, own.strides[1])),
            replace(target, name="OutputTensor"),
            constants=kernels.pack("gather", axis=2, count=1, batch=2, own=1),
        )
        if copied:
            output = desc.output_tensor
            packed = BufferTensorDesc(output.data_type, output.sizes).effective_strides
            whole = replace(copied.read(), sizes=tuple(output.sizes), strides=packed)
            program.call("copy", whole, program.write("output_tensor"))

    def _reshaped(self, program: Program, name: str, sizes: Sequence[int]) -> Operand:
        tensor: BufferTensorDesc = getattr(self.desc, name)
        strides = _strides_as(tensor, sizes)
        if strides is not None:
            return program.read(name, sizes=sizes, strides=strides)
        copied = program.temporary(tensor.data_type, tensor.sizes)
        program.call("copy", program.read(name), copied.write())
        packed = BufferTensorDesc(tensor.data_type, sizes).effective_strides
        return replace(
            copied.read(),
            sizes=tuple(sizes),
            strides=tuple(packed),
            name=field_of(type(self.desc), name).c_name,
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc, rows = self.desc, _rows(self.desc)
        x, indices = np.asarray(inputs["input_tensor"]), np.asarray(inputs["indices_tensor"])
        size = x.shape[desc.axis]
        parts = x.reshape(rows, -1, size, prod(x.shape[desc.axis + 1 :]))
        own = nearest(indices.reshape(rows, -1), size)
        gathered = np.stack([part[:, chosen] for part, chosen in zip(parts, own, strict=True)])
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
