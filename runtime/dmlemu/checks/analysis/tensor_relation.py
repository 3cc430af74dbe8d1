"""How a tensor that reads memory relates to the tensor that was written there.

Memory alone cannot tell what a program means, so only relations that no ordinary view has count as mistakes:
a reshape, a slice, a broadcast, a transposition and the split of an axis are views.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from math import prod
from typing import NamedTuple

from ...dml.enums import TensorDataType
from ...dml.tensor_desc import element_bits

__all__ = ["Relation", "Tensor", "first_moved", "is_same_kind", "relate"]

_Layout = tuple[TensorDataType, tuple[int, ...], tuple[int, ...]]
_Axes = tuple[tuple[int, int], ...]  # size and stride of each axis, in logical order


class Tensor(NamedTuple):
    """A tensor in memory: ``address`` is the byte of element (0, 0, ...); strides count elements.

    ``is_array``: it is a packed array that the CPU has uploaded.
    """

    path: str
    data_type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    is_array: bool = False

    @property
    def bits(self) -> int:
        return element_bits(self.data_type)

    def at(self, address: int) -> Tensor:
        """The same tensor elsewhere."""
        return self if address == self.address else self._replace(address=address)

    def byte(self, element: Sequence[int]) -> int:
        """The address of an element."""
        offset = sum(i * stride for i, stride in zip(element, self.strides, strict=True))
        return self.address + offset * self.bits // 8

    def element(self, address: int) -> tuple[int, ...] | None:
        """The element that contains a byte; None: the byte lies between elements, or beyond."""
        rest = (address - self.address) * 8 // self.bits
        element = [0] * len(self.sizes)
        for axis in sorted(range(len(self.sizes)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] and self.sizes[axis] > 1:
                element[axis] = min(rest // self.strides[axis], self.sizes[axis] - 1)
                rest -= element[axis] * self.strides[axis]
        return tuple(element) if rest == 0 else None


class Relation(Enum):
    """What the reader's elements are to the writer's."""

    SAME = "they are the same elements, or a slice or reshape of them"
    TRANSPOSED = "the same axes are in another order"
    OTHER_STRIDES = "the sizes are the same, the strides are not"
    SWAPPED_SIZES = "the sizes are swapped, but the elements are in the same order"
    OTHER_ROWS = "rows of the one do not lie on rows of the other"
    OTHER_TYPE = "the elements have another type"
    SPLIT = "elements begin in the middle of elements"

    @property
    def is_mistake(self) -> bool:
        return self not in (Relation.SAME, Relation.TRANSPOSED)


def first_moved(writer: Tensor, reader: Tensor) -> tuple[tuple[int, ...], tuple[int, ...] | None] | None:
    """An element of the reader that is another one, or none, of the writer's; None if none is."""
    for axis in reversed(range(len(reader.sizes))):
        if reader.sizes[axis] > 1 and reader.strides[axis]:
            element = tuple(int(i == axis) for i in range(len(reader.sizes)))
            written = writer.element(reader.byte(element))
            if written != element:
                return element, written
    return None


def relate(writer: Tensor, reader: Tensor, *, is_all: bool) -> Relation:
    """The relation of two tensors that share bytes; ``is_all``: all that is read was written there."""
    shift = reader.address - writer.address
    relation = _relate(writer[1:4], reader[1:4], shift, is_all)
    if not writer.is_array:
        return relation
    if relation is Relation.TRANSPOSED or _is_container(writer, reader):
        return Relation.SAME
    if relation is Relation.SAME and shift == 0 and _is_cut_short(_axes(*writer[2:4]), _axes(*reader[2:4])):
        return Relation.OTHER_ROWS
    return relation


def _is_container(array: Tensor, reader: Tensor) -> bool:
    """Whether an array may hold what NumPy has no type for: bits in unsigned integers, halves of bytes."""
    is_unsigned = array.data_type.name.startswith("UINT")
    return reader.bits < 8 or (is_unsigned and not is_same_kind(array.data_type, reader.data_type))


def _is_cut_short(array: _Axes, reader: _Axes) -> bool:
    """Whether a reader has as many rows as a packed array, but shorter ones, and takes them for packed."""
    if len(array) != len(reader) or len(array) < 2 or array[0][0] != reader[0][0]:
        return False
    sizes = [size for size, _ in reader]
    is_packed = [stride for _, stride in reader] == [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return (
        is_packed
        and all(small <= large for small, (large, _) in zip(sizes, array, strict=True))
        and (sizes != [size for size, _ in array])
    )


@lru_cache(4096)
def _relate(written: _Layout, read: _Layout, shift: int, is_all: bool) -> Relation:
    if element_bits(read[0]) == 64 and not _is_float(read[0]):
        written = _widened(written)
    (written_type, *written_axes), (read_type, *read_axes) = written, read
    bits = element_bits(written_type)
    if not is_same_kind(written_type, read_type):
        return Relation.OTHER_TYPE
    if shift * 8 % bits:
        return Relation.SPLIT
    writer, reader = _axes(*written_axes), _axes(*read_axes, repeats=False)
    if writer == reader:
        return Relation.SAME
    writer_sizes, reader_sizes = [size for size, _ in writer], [size for size, _ in reader]
    is_permuted = sorted(writer) == sorted(reader)
    if (is_all or shift == 0) and writer_sizes == reader_sizes:
        return Relation.TRANSPOSED if is_permuted else Relation.OTHER_STRIDES
    if is_permuted:
        return Relation.TRANSPOSED
    first = shift * 8 // bits
    if not (_is_view(writer, reader, first) or _is_view(reader, writer, -first)):
        return Relation.OTHER_ROWS
    if is_all and sorted(writer_sizes) == sorted(reader_sizes):
        return Relation.SWAPPED_SIZES
    return Relation.SAME


def _widened(layout: _Layout) -> _Layout:
    """Integers of 64 bits, where a layout is that of their lower words; else the layout.

    Devices without integers of 64 bits write them so: as UINT32 with doubled strides, into zeros.
    """
    data_type, sizes, strides = layout
    is_word = data_type is TensorDataType.UINT32  # zeros above INT32 would change negative numbers
    if not is_word or not any(strides) or any(stride % 2 for stride in strides):
        return layout
    return TensorDataType.UINT64, sizes, tuple(stride // 2 for stride in strides)


def is_same_kind(one: TensorDataType, other: TensorDataType) -> bool:
    """Whether elements of one type may be read as the other: signed and unsigned integers of one width."""
    return one is other or (
        element_bits(one) == element_bits(other) and not (_is_float(one) or _is_float(other))
    )


def _is_float(data_type: TensorDataType) -> bool:
    return data_type.name.startswith("FLOAT")


def _axes(sizes: Sequence[int], strides: Sequence[int], *, repeats: bool = True) -> _Axes:
    """The axes that have more than one element; without ``repeats`` those of stride 0 are left out too."""
    pairs = zip(sizes, strides, strict=True)
    return tuple((size, stride) for size, stride in pairs if size > 1 and (stride or repeats))


def _is_view(whole: _Axes, part: _Axes, first: int) -> bool:
    """Whether each axis of ``part`` moves along one axis of ``whole``, and elements lie on elements.

    Axes that follow each other in memory count as one; along the outermost one, the part may reach beyond.
    ``first``: the offset of the part's first element.
    """
    rows = _merged(whole)
    used = []
    for _, stride in rows:
        used.append(first // stride)
        first %= stride
    if first:
        return False
    for size, stride in part:
        row = next((i for i, (_, step) in enumerate(rows) if step <= stride), None)
        if row is None or stride % rows[row][1]:
            return False
        used[row] += (size - 1) * (stride // rows[row][1])
    return all(last < extent for last, (extent, _) in zip(used[1:], rows[1:], strict=True))


def _merged(axes: _Axes) -> list[tuple[int, int]]:
    """Extents and strides in memory order, largest stride first; contiguous axes are one."""
    rows: list[tuple[int, int]] = []
    for size, stride in sorted(axes, key=lambda axis: -axis[1]):
        if rows and rows[-1][1] == size * stride:
            rows[-1] = rows[-1][0] * size, stride
        else:
            rows.append((size, stride))
    return rows or [(1, 1)]
