"""Weight packing: layouts of OWNED_BY_DML inputs, and of constants of graphs, in the persistent resource.

The flag exists so that an initializer can store weights in the layout that operators read fastest.  Under
chaos, axes are permuted and padded at random: operators compute the same, but a program that reads or copies
the persistent resource does not find the data that it uploaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from random import Random

import numpy as np

from ...frozen import changed
from ..tensor_desc import MINIMUM_BUFFER_TENSOR_ALIGNMENT, calc_buffer_tensor_size
from .compile import PERSISTENT, Access, Kept, KernelCall, Lowered, Operand, Owned

__all__ = ["laid_out", "relaid"]

_MOST_PADDING = 3  # elements after each row of an axis
_MOST_LEAD = 4  # multiples of the alignment before each input
_LARGE = 1 << 28  # bytes; with padding strides stay within 32 bits


class _Relaid(Owned):
    """An input, read once by ``read``, and stored with other strides for readers with ``sizes``."""

    read: Operand
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def place(self, operand: Operand, slot: int) -> Operand:
        moved = changed(operand, slot=slot, offset=self.offset, byte_size=self.size)
        return changed(moved, sizes=self.sizes, strides=self.strides)

    def copies(self, source: int, target: int, readers: Iterable[Operand]) -> Iterator[KernelCall]:
        read = changed(self.read, slot=source)
        write = changed(read, slot=target, access=Access.WRITE, strides=self.strides)
        yield KernelCall("copy", (read, changed(write, offset=self.offset, byte_size=self.size)))


def laid_out(lowered: Lowered) -> Lowered:
    """The program, with owned inputs in the layouts that their kernels read fastest.

    An input that is read in several layouts, or repeats elements, keeps the layout in which it is bound.
    """
    for slot, readers in lowered.readers().items():
        if len(readers) == 1 and readers[0].kept and readers[0].sizes_once == readers[0].sizes:
            lowered.owned[slot] = _pack(lowered.owned[slot], readers[0], readers[0].kept)
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
    packed = _pack(Owned(offset, len(data)), reader, reader.kept)
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
        place = packed.place(reader, PERSISTENT)
        lowered.calls = [
            changed(call, operands=tuple(place if each == reader else each for each in call.operands))
            for call in lowered.calls
        ]


def _pack(owned: Owned, reader: Operand, kept: Kept) -> Owned:
    read = kept.split(reader)
    strides, stride = [0] * len(read.sizes), 1
    for axis in reversed(kept.order):
        strides[axis], stride = stride, stride * read.sizes[axis]
    size = calc_buffer_tensor_size(read.data_type, read.sizes, strides)
    return _Relaid(owned.offset, size, read, read.sizes, tuple(strides)) if size <= owned.size else owned


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
