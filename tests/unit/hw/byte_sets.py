"""Footprints as sets of bytes, straight from the definition: what the C code is tested against."""

import itertools
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from dmlemu_hw.kernels import ffi, lib


@dataclass(frozen=True)
class Layout:
    """``struct dmlk_footprint`` in Python's own numbers."""

    address: int
    bits: int
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    access: int = lib.DMLK_WRITE

    @property
    def end(self) -> int:
        last = sum((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True))
        return self.address + ((last + 1) * self.bits + 7) // 8

    def struct(self):
        return self.struct_to(self.end)

    def struct_to(self, end: int):
        """With another end, where its own does not fit."""
        rank = len(self.sizes)
        fields = (self.address, end, 0, self.access, self.bits, rank)
        return ffi.new("dmlk_footprint *", (*fields, list(self.sizes), list(self.strides)))

    def at(self, address: int) -> "Layout":
        return replace(self, address=address)

    def elements(self):
        """Index and bytes of every element, in row-major order."""
        for index in itertools.product(*map(range, self.sizes)):
            at = 8 * self.address + self.bits * sum(i * s for i, s in zip(index, self.strides, strict=True))
            yield index, range(at // 8, (at + self.bits - 1) // 8 + 1)

    def bytes(self) -> set[int]:
        return {byte for _, covered in self.elements() for byte in covered}


BITS = st.sampled_from([4, 4, 8, 8, 16, 32, 64])


@st.composite
def layouts(draw, farthest=1040, most=6, longest=24) -> Layout:
    """Anything: permuted, padded, broadcast, overlapping itself."""
    rank = draw(st.integers(0, 5))
    limit = [600, 600, 25, 9, 5, 4][rank]
    sizes = tuple(draw(st.integers(1, min(limit, most))) for _ in range(rank))
    strides = tuple(draw(st.integers(0, longest)) for _ in range(rank))
    return Layout(draw(st.integers(1000, farthest)), draw(BITS), sizes, strides)
