"""Family: operators that copy the elements of a tensor which indices in another tensor select.

The input of a gather and the output of a scatter are the table; the output of a gather and the updates of a
scatter are the values.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ...declared.definition import Definition
from ...declared.places import Attribute, field_of
from ...declared.rules import Axis, Demand, Rule, SameRank, SameSizes, SameType, Sizes
from ...declared.values import Between, Values
from ...enums import OperatorType
from ...rows import OP_DIMENSION_COUNT
from .conversion import Array

if TYPE_CHECKING:
    from ...declared.schema import OperatorDesc
    from ...enums import FeatureLevel
    from ...lowering.compile import Program
    from ...tensor_desc import BufferTensorDesc

Sized = Iterator[tuple[int, int | Values, str]]
"""Sizes that follow from other fields: see :class:`Sizes`."""


class Bounds(Rule):
    """A number whose bounds, ``low`` and the result of ``high``, follow from other fields; ``why``: "..."."""

    def __init__(self, name: str, low: int, high: Callable[[Any], int], why: str) -> None:
        self.name = name
        self.low = low
        self.high = high
        self.why = why

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        yield Demand(Attribute(self.name), Between(self.low, self.high(desc)), self.why)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return f"`{field_of(cls, self.name).c_name}` is at least {self.low} and at most {self.why}."


class Gather(Definition):
    """Copies the elements of InputTensor that IndicesTensor selects to OutputTensor."""

    KEEPS_NANS = True
    RULES: ClassVar[Sequence[Rule]] = (SameType("input_tensor", "output_tensor"),)

    @abstractmethod
    def constants(self) -> dict[str, int]:
        """Of the kernel: which axes of the tensors belong together."""

    def lower(self, program: Program) -> None:
        program.call(
            "gather",
            program.read("input_tensor"),
            program.read("indices_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("gather", **self.constants()),
        )


class Scatter(Definition):
    """Copies InputTensor to OutputTensor, then UpdatesTensor to the elements that IndicesTensor selects."""

    KEEPS_NANS = True
    RULES: ClassVar[Sequence[Rule]] = (
        SameType("input_tensor", "updates_tensor", "output_tensor"),
        SameSizes("input_tensor", "output_tensor"),
    )

    @abstractmethod
    def constants(self) -> dict[str, int]:
        """As those of a gather."""

    def lower(self, program: Program) -> None:
        program.call(
            "scatter",
            program.read("input_tensor"),
            program.read("indices_tensor"),
            program.read("updates_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("scatter", **self.constants()),
        )


# --- along an axis: every index selects one element ---


def _hint_on_slices(desc: Any, first: str, name: str) -> str:
    """For indices that are smaller than the input, as other APIs allow them: the part that they reach."""
    table, indices = desc.input_tensor, desc.indices_tensor
    if table.rank != indices.rank:
        return ""
    sizes = [
        size if i == desc.axis else own
        for i, (size, own) in enumerate(zip(table.sizes, indices.sizes, strict=True))
    ]
    if any(own > size for own, size in zip(sizes, table.sizes, strict=True)):
        return ""
    slice_of = f"the slice of it with Sizes {sizes} and Strides {list(table.effective_strides)}"
    hint = f"indices smaller than InputTensor reach only a part of it: describe InputTensor as {slice_of}"
    if desc.TYPE is OperatorType.GATHER_ELEMENTS:
        return hint
    return f"{hint}, and OutputTensor as its own; what is outside is copied by another operator"


ALONG_AXIS: Sequence[Rule] = (
    SameRank("input_tensor", "indices_tensor"),
    Axis("axis", of="input_tensor"),
    SameSizes("input_tensor", "indices_tensor", but="axis", hint=_hint_on_slices),
)


def along_axis(table: BufferTensorDesc, axis: int) -> dict[str, int]:
    """Constants of the kernels: the indices have the table's axes, and an axis of their own for ``axis``."""
    return {"axis": axis, "count": 1, "batch": axis, "own": 1, "trailing": table.rank - axis - 1}


# --- by tuples: the last axis of the indices has the coordinates of a block ---


def tuple_rules(values: str, *batches: Rule) -> tuple[Rule, ...]:
    """The rules of GATHER_ND and SCATTER_ND; ``values``: the field with the selected blocks."""
    return (
        Bounds("input_dimension_count", 1, lambda desc: desc.input_tensor.rank, "InputTensor.DimensionCount"),
        Bounds(
            "indices_dimension_count",
            1,
            lambda desc: desc.indices_tensor.rank,
            "IndicesTensor.DimensionCount",
        ),
        *batches,
        Sizes(
            "input_tensor",
            lambda desc: _ones(desc.input_tensor.rank - desc.input_dimension_count, "InputDimensionCount"),
            "All sizes of `InputTensor` but the last `InputDimensionCount` are 1.",
        ),
        Sizes("indices_tensor", _indices_sizes, _INDICES),
        Sizes(values, partial(_values_sizes, values), f"`{_c_name(values)}`, {_VALUES}"),
    )


class OneRank(SameRank):
    """What is usual: each tensor counts its dimensions from the last one."""

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        for demand in super().demands(desc, level):
            yield demand._replace(check=OP_DIMENSION_COUNT)


def batch_count(desc: Any) -> int:
    """BatchDimensionCount, or 0 for the operators without it."""
    return getattr(desc, "batch_dimension_count", 0)


def by_tuples(desc: Any) -> dict[str, int]:
    """Constants of the kernels."""
    batch = batch_count(desc)
    return {
        "axis": desc.input_tensor.rank - desc.input_dimension_count + batch,
        "count": desc.indices_tensor.sizes[-1],
        "batch": batch,
        "own": desc.indices_dimension_count - 1 - batch,
        "is_tuple": 1,
    }


_INDICES = (
    "All sizes of `IndicesTensor` but the last `IndicesDimensionCount` are 1; the last one is the length of "
    "a tuple: at least 1, at most `InputDimensionCount` (less `BatchDimensionCount`), and large enough that "
    "the sizes below are no more than the DimensionCount of their tensor."
)
_VALUES = (
    "after leading 1s, has the sizes of `IndicesTensor` without leading 1s and the last one, and then those "
    "of `InputTensor` after the ones that a tuple indexes."
)


def _c_name(name: str) -> str:
    return "".join(map(str.capitalize, name.split("_")))


def _ones(count: int, field: str) -> Sized:
    for dimension in range(count):
        yield dimension, 1, f"since only the last {field} dimensions are used"


def _indices_sizes(desc: Any) -> Sized:
    rank, batch = desc.indices_tensor.rank, batch_count(desc)
    first = rank - desc.indices_dimension_count
    yield from _ones(first, "IndicesDimensionCount")
    for i in range(batch):
        source = desc.input_tensor.rank - desc.input_dimension_count + i
        yield first + i, desc.input_tensor.sizes[source], f"InputTensor.Sizes[{source}], as it counts batches"
    most = desc.input_dimension_count - batch
    values: BufferTensorDesc = getattr(desc, "updates_tensor", None) or desc.output_tensor
    least = max(1, desc.indices_dimension_count - 1 + most - values.rank)
    yield -1, Between(least, most), "the length of a tuple that indexes InputTensor"


def block_sizes(desc: Any) -> tuple[int, ...]:
    """The sizes of the selected blocks of elements, without leading 1s."""
    indices, table = desc.indices_tensor.sizes, desc.input_tensor.sizes
    first = len(table) - desc.input_dimension_count + batch_count(desc) + indices[-1]
    return (*indices[len(indices) - desc.indices_dimension_count : -1], *table[first:])


def _values_sizes(values: str, desc: Any) -> Sized:
    rank, sizes = getattr(desc, values).rank, block_sizes(desc)
    for dimension, size in enumerate((1,) * (rank - len(sizes)) + sizes):
        yield (
            dimension,
            size,
            "the sizes of IndicesTensor before the last, and of InputTensor after the indexed ones",
        )


# --- references ---


def wrapped(indices: Array, size: int) -> tuple[Array, Array]:
    """Indices into ``size`` elements, negative ones counted from the end, and whether they are inside."""
    if indices.dtype.kind == "u":
        inside = indices < indices.dtype.type(size)
        return np.where(inside, indices, 0).astype(np.int64), inside
    wide = indices.astype(np.int64)
    inside = (wide >= -size) & (wide < size)
    return np.where(inside, np.where(wide < 0, wide + size, wide), 0), inside


def nearest(indices: Array, size: int) -> Array:
    """Resolved indices into ``size`` elements: negative ones count from the end, then all are clamped."""
    if indices.dtype.kind == "u":
        inside: Array = np.minimum(indices, indices.dtype.type(size - 1))
        return inside.astype(np.int64)
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + size, wide), 0, size - 1)
