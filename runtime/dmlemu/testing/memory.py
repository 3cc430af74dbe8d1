"""Memory of a layout test: its tensors in one buffer, half byte for half byte as their descs specify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dmlemu_hw.memory import POISON_BYTE

from .. import dml
from ..dml.tensor_desc import element_bits
from ..frozen import Frozen

__all__ = ["Array", "Memory", "Placed", "halves", "joined", "values_of_halves"]

Array = np.ndarray[Any, np.dtype[Any]]

_GUARD = 16  # bytes between tensors, at least
_FIRST = 48  # no tensor begins where the buffer does


class Placed(Frozen):
    """A tensor with its place in the buffer; ``offset`` counts bytes from the buffer's begin."""

    name: str
    desc: dml.BufferTensorDesc
    output: bool
    offset: int

    @property
    def end(self) -> int:
        return self.offset + self.desc.size_in_bytes

    @property
    def width(self) -> int:
        """The halves of an element."""
        return element_bits(self.desc.data_type) // 4

    @cached_property
    def elements(self) -> Array:
        """The place of each element, counted in elements from the tensor's begin, by logical index."""
        places = np.zeros(self.desc.sizes, np.int64)
        for d, (size, stride) in enumerate(zip(self.desc.sizes, self.desc.effective_strides, strict=True)):
            shape = [1] * self.desc.rank
            shape[d] = size
            places += np.arange(size, dtype=np.int64).reshape(shape) * stride
        return places

    @cached_property
    def halves(self) -> Array:
        """The place of each element's halves in the buffer: a row for each element, in logical order."""
        first = 2 * self.offset + self.elements.reshape(-1) * self.width
        places: Array = first[:, None] + np.arange(self.width)
        return places

    @property
    def after_last(self) -> int:
        """The half of the buffer behind the last element."""
        return int(self.halves.max()) + 1

    def byte(self, element: tuple[int, ...]) -> int:
        """The first byte of an element, from the tensor's begin."""
        return int(self.elements[element]) * self.width // 2

    def read(self, memory: Array) -> Array:
        """The logical values, from the bytes of the whole buffer."""
        return values_of_halves(halves(memory)[self.halves], self.desc.dtype).reshape(self.desc.sizes)

    def write(self, memory: Array, values: Array) -> None:
        split = halves(memory)
        item = halves(np.ascontiguousarray(values).reshape(-1, 1).view(np.uint8))
        split[self.halves] = item[:, : self.width]
        memory[:] = joined(split)


def halves(memory: Array) -> Array:
    """The half bytes, low ones first: elements of 4 bits are one each."""
    split: Array = np.stack((memory & 15, memory >> 4), axis=-1)
    return split.reshape(*memory.shape[:-1], -1)


def joined(split: Array) -> Array:
    """The bytes of halves."""
    return np.ascontiguousarray(split[..., ::2] | split[..., 1::2] << 4)


def values_of_halves(split: Array, dtype: np.dtype[Any]) -> Array:
    """The element of each row; one half alone is of 4 bits."""
    if split.shape[-1] > 1:
        return joined(split).view(dtype)
    values = split.astype(dtype)
    return (values ^ 8) - 8 if dtype.kind == "i" else values


class Memory:
    """Tensors in one buffer, with poison between them and between their elements."""

    def __init__(self, descs: Mapping[str, dml.BufferTensorDesc], outputs: Sequence[str]) -> None:
        self.tensors: dict[str, Placed] = {}
        end = _FIRST
        for name, desc in descs.items():
            alignment = max(dml.MINIMUM_BUFFER_TENSOR_ALIGNMENT, desc.guaranteed_base_offset_alignment)
            start = -(-end // alignment) * alignment
            placed = self.tensors[name] = Placed(name, desc, name in outputs, start)
            end = placed.end + _GUARD
        self.size = -(-end // 4) * 4

    def image(self, values: Mapping[str, Array], fill: int = POISON_BYTE) -> Array:
        """The bytes before a run: the inputs' values, ``fill`` in the outputs, and poison everywhere else."""
        image = np.full(self.size, POISON_BYTE, np.uint8)
        for name, placed in self.tensors.items():
            if placed.output:
                image[placed.offset : placed.end] = fill
            else:
                placed.write(image, values[name])
        return image
