"""A tensor in a buffer, and which element lies at a bit: what all pictures are drawn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import gcd, prod
from typing import NamedTuple

__all__ = ["Index", "Tensor", "grouped", "shown"]

Index = tuple[int, ...]


class Tensor(NamedTuple):
    """A strided tensor at a place in a buffer.  Strides count elements of ``bits`` bits, as in
    ``DML_BUFFER_TENSOR_DESC``; ``offset`` and ``size`` count bytes."""

    name: str
    data_type: str
    bits: int
    sizes: Index
    strides: Index
    offset: int
    size: int

    @staticmethod
    def of_bytes(name: str, offset: int, size: int) -> Tensor:
        """``size`` bytes about which nothing else is known."""
        return Tensor(name, "bytes", 8, (size,), (1,), offset, size)

    def __str__(self) -> str:
        place = f" at byte {self.offset}" if self.offset else ""
        shape = f"sizes {list(self.sizes)}, strides {list(self.strides)}"
        text = f"{self.data_type} {shape}, {self.size} bytes{place}"
        return f"{self.name}: {text}" if self.name else text

    @property
    def element_count(self) -> int:
        """Logical elements."""
        return prod(self.sizes)

    @property
    def axes(self) -> list[int]:
        """The axes along which there is more than one element."""
        return [axis for axis, size in enumerate(self.sizes) if size > 1]

    def bit(self, index: Sequence[int]) -> int:
        """The first bit of an element, counted from the buffer's start."""
        return self.offset * 8 + self.bits * sum(i * s for i, s in zip(index, self.strides, strict=True))

    def at(self, bit: int) -> list[Index]:
        """The elements that hold a bit, two at most; axes of stride 0 count once."""
        rest = bit - self.offset * 8
        if rest < 0 or not self.element_count:
            return []
        order = sorted(
            (axis for axis in self.axes if self.strides[axis]), key=lambda axis: -self.strides[axis]
        )
        return [self._index(found) for found in islice(self._solve(order, rest // self.bits), 2)]

    def _solve(self, order: list[int], rest: int) -> Iterator[dict[int, int]]:
        """Coordinates along the axes ``order``, the largest stride first, whose place is ``rest``."""
        if not order:
            if rest == 0:
                yield {}
            return
        axis, *others = order
        stride, last = self.strides[axis], self.sizes[axis] - 1
        reach = sum((self.sizes[each] - 1) * self.strides[each] for each in others)
        least, most = max(0, -((reach - rest) // stride)), min(last, rest // stride)
        for i in _congruent(stride, rest, gcd(*(self.strides[each] for each in others)), least, most):
            for found in self._solve(others, rest - i * stride):
                yield {axis: i, **found}

    def _index(self, found: dict[int, int]) -> Index:
        return tuple(found.get(axis, 0) for axis in range(len(self.sizes)))

    def spell(self, index: Index) -> str:
        """The coordinates along :attr:`axes`."""
        return ",".join(str(index[axis]) for axis in self.axes) or "0"

    def repeats(self, index: Index) -> int | None:
        """An axis of stride 0 along which the element repeats the one before."""
        return next((axis for axis in self.axes if not self.strides[axis] and index[axis]), None)

    def planes(self, most: int, focus: Index | None) -> list[Index | None]:
        """Coordinates of the shown planes of the last two axes; None: some are left out."""
        leading = self.sizes[:-2]
        at = None if focus is None else self._number(focus[:-2])
        return [
            None if number is None else self._place(number)
            for number in shown(prod(leading), most, at, few=1)
        ]

    def _number(self, place: Index) -> int:
        number = 0
        for i, size in zip(place, self.sizes[:-2], strict=True):
            number = number * size + i
        return number

    def _place(self, number: int) -> Index:
        place = []
        for size in reversed(self.sizes[:-2]):
            number, i = divmod(number, size)
            place.append(i)
        return tuple(reversed(place))


def grouped(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same tensors, with otherwise unknown bytes in groups as large as the others' elements.

    Groups are a power of two, 16 bytes at most, and never larger than what the bytes begin and end at.
    """
    most = max((each.bits // 8 for each in tensors if each.data_type != "bytes"), default=16)
    ends = [end for each in tensors if each.data_type == "bytes" for end in (each.offset, each.size)]
    unit = 16
    while unit > 1 and (unit > most or any(end % unit for end in ends)):
        unit //= 2
    return [_in_groups(each, unit) if each.data_type == "bytes" else each for each in tensors]


def _in_groups(tensor: Tensor, unit: int) -> Tensor:
    if unit == 1:
        return tensor
    kind, count = f"groups of {unit} bytes", tensor.size // unit
    return tensor._replace(data_type=kind, bits=unit * 8, sizes=(count,), strides=(1,))


def _congruent(stride: int, rest: int, step: int, least: int, most: int) -> range:
    """The i from ``least`` to ``most`` with which rest - i * stride is a multiple of ``step`` (0: is 0)."""
    if step == 0:
        i, remainder = divmod(rest, stride)
        return range(i, i + 1) if not remainder and least <= i <= most else range(0)
    common = gcd(stride, step)
    if rest % common:
        return range(0)
    step //= common
    first = rest // common * pow(stride // common, -1, step) % step if step > 1 else 0
    return range(least + (first - least) % step, most + 1, step)


def shown(size: int, most: int, focus: int | None = None, few: int = 3) -> list[int | None]:
    """The numbers below ``size`` that are shown: all if they are no more than ``most``; else the first
    ``few``, as many around ``focus``, and the last one, with None for those between."""
    if size <= most:
        return list(range(size))
    few = min(few, max(1, most // 3))
    chosen = {*range(few), size - 1}
    if focus is not None:
        begin = min(max(0, focus - few // 2), size - few)
        chosen |= {focus, *range(begin, begin + few)}
    result: list[int | None] = []
    for i in sorted(chosen):
        if result and i - 1 not in chosen:
            result.append(None)
        result.append(i)
    return result
