"""Declared tensors: what the program says that a buffer holds, for the words of reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

__all__ = ["Declared", "Layout", "named"]

_NAMED = 3  # tensors in one range


class Layout(Protocol):
    """A tensor desc: a ``dml.BufferTensorDesc``."""

    @property
    def data_type(self) -> Any: ...
    @property
    def sizes(self) -> Sequence[int]: ...
    @property
    def effective_strides(self) -> tuple[int, ...]: ...
    @property
    def extent_in_bytes(self) -> int: ...


class Declared(NamedTuple):
    """A tensor at bytes [begin, end) of a buffer."""

    name: str
    begin: int
    end: int
    desc: Layout

    def within(self, begin: int, end: int) -> str:
        """``'bias' element (2)``: what of it lies in the range."""
        first = self._element(8 * (max(begin, self.begin) - self.begin))
        last = self._element(8 * (min(end, self.end) - self.begin) - 1)
        if (begin <= self.begin and self.end <= end) or first is None or last is None:
            return f"'{self.name}'"
        if first == last:
            return f"'{self.name}' element {_spell(first)}"
        return f"'{self.name}' elements {_spell(first)} to {_spell(last)}"

    def _element(self, bit: int) -> tuple[int, ...] | None:
        """The element that contains a bit of the tensor's memory; None: it lies in a gap."""
        sizes, strides = self.desc.sizes, self.desc.effective_strides
        count = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        bits = 8 * self.desc.extent_in_bytes // count & ~3  # a last half byte is rounded up
        rest = bit // bits
        element = [0] * len(sizes)
        for axis in sorted(range(len(sizes)), key=lambda axis: -strides[axis]):
            if strides[axis]:
                element[axis] = min(rest // strides[axis], sizes[axis] - 1)
                rest -= element[axis] * strides[axis]
        return None if rest else tuple(element)


def named(declared: Sequence[Declared], begin: int, end: int) -> str:
    """`` ('bias' element (2))``: the tensors that lie in a range; empty if there are none."""
    found = [each for each in declared if each.name and each.begin < end and begin < each.end]
    words = [each.within(begin, end) for each in found[:_NAMED]]
    if len(found) > _NAMED:
        words.append(f"{len(found) - _NAMED} more")
    return f" ({', '.join(words)})" if words else ""


def _spell(element: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, element))})"
