"""Memory of a layout test: its tensors in one buffer, byte for byte as their descs specify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dmlemu_hw.memory import POISON_BYTE

from .. import dml
from ..frozen import Frozen

__all__ = ["Array", "Memory", "Placed"]

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

    @cached_property
    def elements(self) -> Array:
        """The byte offset of each element from the tensor's begin, by logical index."""
        places = np.zeros(self.desc.sizes, np.int64)
        for d, (size, stride) in enumerate(zip(self.desc.sizes, self.desc.effective_strides, strict=True)):
            shape = [1] * self.desc.rank
            shape[d] = size
            places += np.arange(size, dtype=np.int64).reshape(shape) * stride
        return places * self.desc.dtype.itemsize

    @cached_property
    def bytes(self) -> Array:
        """The place of each element's bytes in the buffer: a row for each element, in logical order."""
        item = self.desc.dtype.itemsize
        places: Array = (self.offset + self.elements.reshape(-1))[:, None] + np.arange(item)
        return places

    def read(self, memory: Array) -> Array:
        """The logical values, from the bytes of the whole buffer."""
        values: Array = memory[self.bytes].view(self.desc.dtype).reshape(self.desc.sizes)
        return values

    def write(self, memory: Array, values: Array) -> None:
        memory[self.bytes] = np.ascontiguousarray(values).reshape(-1, 1).view(np.uint8)


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
