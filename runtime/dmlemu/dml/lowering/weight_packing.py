"""Weight packing: layouts of OWNED_BY_DML inputs, and of constants of graphs, in the persistent resource.

The flag exists so that an initializer can store weights in the layout that operators read fastest.  Under
chaos, axes are permuted and padded at random: operators compute the same, but a program that reads or copies
the persistent resource does not find the data that it uploaded.

Sums that kernels need of such inputs, to correct products of bytes for zero points, are kept beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from random import Random

import numpy as np

from ...frozen import Frozen, changed
from ..enums import TensorDataType
from ..tensor_desc import MINIMUM_BUFFER_TENSOR_ALIGNMENT, calc_buffer_tensor_size
from .compile import NOTHING, PERSISTENT, Access, Kept, KernelCall, Lowered, Operand, Owned, constant_calls

__all__ = ["laid_out", "relaid"]

_MOST_PADDING = 3  # elements after each row of an axis
_MOST_LEAD = 4  # multiples of the alignment before each input
_LARGE = 1 << 28  # bytes; with padding strides stay within 32 bits


class _Sums(Frozen):
    """INT32 sums of the bytes of ``read`` along ``axis``, at ``offset`` in the persistent resource.

    The longest of the other axes is the innermost.  A byte 1 follows the sums: the initializer computes them
    as products with it.
    """

    read: Operand
    axis: int
    offset: int

    @property
    def size(self) -> int:
        """Bytes, with a word for the byte 1."""
        return self._kept(PERSISTENT, Access.READ).byte_size + 4

    def place(self, slot: int) -> Operand:
        """The operand that a kernel reads."""
        return self._kept(slot, Access.READ)

    def calls(self, source: int, target: int) -> Iterator[KernelCall]:
        """The initializer's calls: for each index of the outer axes, a row of ones times a matrix."""
        *outer, inner = self._order()
        axes = (*outer, self.axis, inner)
        read, sums = self.read, self._kept(target, Access.WRITE)
        strides = dict(zip(self._axes(), sums.strides, strict=True))
        factors = changed(
            changed(read, slot=source),
            sizes=tuple(read.sizes[axis] for axis in axes),
            strides=tuple(read.strides[axis] for axis in axes),
        )
        sizes = tuple(read.sizes[axis] for axis in outer)
        row, one = (*sizes, 1, read.sizes[self.axis]), self.offset + sums.byte_size
        ones = Operand(target, Access.READ, TensorDataType.UINT8, row, (0,) * len(row), 4, one)
        rows = changed(
            sums,
            sizes=(*sizes, 1, read.sizes[inner]),
            strides=(*(strides[axis] for axis in outer), 0, strides[inner]),
        )
        yield from constant_calls(target, one, b"\1\0\0\0")
        yield KernelCall("multiply_integers", (ones, NOTHING, factors, NOTHING, NOTHING, rows))

    def of(self, elements: np.ndarray) -> bytes:
        """The sums of known bytes, an array of the sizes of ``read``."""
        signed = self.read.data_type is TensorDataType.INT8
        sums = elements.view(np.int8 if signed else np.uint8).sum(axis=self.axis, dtype=np.int32)
        axes = self._axes()
        packed: bytes = sums.transpose([axes.index(axis) for axis in self._order()]).tobytes()
        return packed

    def _axes(self) -> list[int]:
        return [axis for axis in range(len(self.read.sizes)) if axis != self.axis]

    def _order(self) -> list[int]:
        """The axes of the sums, outermost first."""
        return sorted(self._axes(), key=lambda axis: self.read.sizes[axis])

    def _kept(self, slot: int, access: Access) -> Operand:
        strides, stride = {}, 1
        for axis in reversed(self._order()):
            strides[axis], stride = stride, stride * self.read.sizes[axis]
        axes = self._axes()
        sizes = tuple(self.read.sizes[axis] for axis in axes)
        layout = sizes, tuple(strides[axis] for axis in axes)
        return Operand(slot, access, TensorDataType.INT32, *layout, 4 * stride, self.offset)


class _Relaid(Owned):
    """An input, read once by ``read``, and stored with other strides for readers with ``sizes``."""

    read: Operand
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    sums: _Sums | None = None

    def place(self, operand: Operand, slot: int) -> Operand:
        moved = changed(operand, slot=slot, offset=self.offset, byte_size=self.size)
        return changed(moved, sizes=self.sizes, strides=self.strides)

    def copies(self, source: int, target: int, readers: Iterable[Operand]) -> Iterator[KernelCall]:
        read = changed(self.read, slot=source)
        write = changed(read, slot=target, access=Access.WRITE, strides=self.strides)
        yield KernelCall("copy", (read, changed(write, offset=self.offset, byte_size=self.size)))
        if self.sums is not None:
            yield from self.sums.calls(source, target)


def laid_out(lowered: Lowered) -> Lowered:
    """The program, with owned inputs in the layouts that their kernels read fastest.

    An input that is read in several layouts, or repeats elements, keeps the layout in which it is bound.
    """
    for slot, readers in lowered.readers().items():
        if len(readers) == 1 and readers[0].kept and readers[0].sizes_once == readers[0].sizes:
            lowered.owned[slot] = _pack(lowered, lowered.owned[slot], readers[0], readers[0].kept)
    for number in range(len(lowered.constants)):
        _pack_constant(lowered, number)
    return lowered


def _pack_constant(lowered: Lowered, number: int) -> None:
    """Lays out a constant as an owned input, but here, as its bytes are known."""
    offset, data = lowered.constants[number]
    readers = {
        each
        for call in lowered.calls
        for each in call.operands
        if each.slot == PERSISTENT and offset <= each.offset < offset + len(data)
    }
    if len(readers) != 1:
        return
    (reader,) = readers
    if reader.kept is None or reader.offset != offset or reader.sizes_once != reader.sizes:
        return
    packed = _pack(lowered, Owned(offset, len(data)), reader, reader.kept)
    if isinstance(packed, _Relaid):
        element = f"V{calc_buffer_tensor_size(reader.data_type, (4,)) // 4}"
        relaid = np.zeros(packed.size, np.uint8)
        source, target = (
            np.ndarray(
                packed.sizes, element, memory, strides=[each * np.dtype(element).itemsize for each in steps]
            )
            for memory, steps in ((data, packed.read.strides), (relaid, packed.strides))
        )
        target[...] = source
        lowered.constants[number] = offset, relaid.tobytes()
        if packed.sums is not None:
            lowered.constants.append((packed.sums.offset, packed.sums.of(source.reshape(reader.sizes))))
        place = packed.place(reader, PERSISTENT)
        lowered.calls = [
            changed(call, operands=tuple(place if each == reader else each for each in call.operands))
            for call in lowered.calls
        ]


def _pack(lowered: Lowered, owned: Owned, reader: Operand, kept: Kept) -> Owned:
    """The input in the layout ``kept``, if it fits; its readers are given the sums kept beside it."""
    read = kept.split(reader)
    strides, stride = [0] * len(read.sizes), 1
    for axis in reversed(kept.order):
        strides[axis], stride = stride, stride * read.sizes[axis]
    size = calc_buffer_tensor_size(read.data_type, read.sizes, strides)
    if size > owned.size:
        return owned
    sums = _keep_sums(lowered, reader, kept)
    return _Relaid(owned.offset, size, read, read.sizes, tuple(strides), sums)


def _keep_sums(lowered: Lowered, reader: Operand, kept: Kept) -> _Sums | None:
    if kept.sums is None:
        return None
    sums = _Sums(reader, kept.sums.axis, lowered.persistent_size)
    lowered.reserve_persistent(sums.size)
    place = sums.place(PERSISTENT)
    for number, call in enumerate(lowered.calls):
        if reader in call.operands:
            operands = list(call.operands)
            operands[kept.sums.operand] = place
            lowered.calls[number] = changed(call, operands=tuple(operands))
    return sums


def relaid(lowered: Lowered, random: Random) -> Lowered:
    """The same program with owned inputs in other layouts at other offsets.

    An input that is read in several layouts, or is very large, changes only its offset.
    """
    result, all_readers = copy(lowered), lowered.readers()
    result.owned = {}
    if not lowered.constants:  # kept unchanged
        result.persistent_size = 0
    for slot, kept in random.sample(sorted(lowered.owned.items()), len(lowered.owned)):
        readers = all_readers[slot]
        if len(readers) == 1 and kept.size < _LARGE:
            result.owned[slot] = _draw(result, readers[0], random)
        else:
            result.owned[slot] = Owned(_reserve(result, kept.size, random), kept.size)
    return result


def _draw(lowered: Lowered, reader: Operand, random: Random) -> Owned:
    sizes, strides = reader.sizes_once, [0] * len(reader.sizes)
    stride = 1
    for axis in random.sample(range(len(sizes)), len(sizes)):
        if reader.strides[axis]:  # else every index is the same element
            strides[axis] = stride
            stride = stride * sizes[axis] + random.randint(0, _MOST_PADDING)
    size = calc_buffer_tensor_size(reader.data_type, sizes, strides)
    read = changed(reader, sizes=sizes)
    return _Relaid(_reserve(lowered, size, random), size, read, reader.sizes, tuple(strides))


def _reserve(lowered: Lowered, size: int, random: Random) -> int:
    """The offset for so many bytes, at a distance from the previous allocation."""
    lead = MINIMUM_BUFFER_TENSOR_ALIGNMENT * random.randint(1, _MOST_LEAD)
    return lowered.reserve_persistent(lead + size) + lead
