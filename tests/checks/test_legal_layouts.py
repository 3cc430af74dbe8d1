"""Random programs that read what they wrote: no report says that a layout is wrong.

Every tensor has its own bytes of an arena, which are used again when it is gone.  It is read as it was
written, or through a view that keeps the meaning of its elements: a reshape, a slice, a broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

import numpy as np
import pytest
from layout_scene import ARENA, Place, Scene, at

from dmlemu import Severity

ALIGNMENT = 16  # DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT


class Program:
    """Tensors of a scene, and calls that keep them right."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.scene = Scene(reused=random.random() < 0.5)
        self.declares = random.random() < 0.5
        self.tensors: list[Place] = []
        self.updated: list[Place] = []  # of which a part was written again
        self.free = [(0, ARENA)]

    # --- memory ---

    def place(self, sizes: list[int], *, packed: bool = False) -> Place:
        """A new tensor with strides drawn by lot."""
        random = self.random
        order = list(range(len(sizes)))
        if not packed:
            random.shuffle(order)
        strides, reached = [0] * len(sizes), 1
        for axis in reversed(order):
            strides[axis] = reached
            reached *= sizes[axis] + (0 if packed or reached > 64 else random.choice((0, 0, 1, 3)))
        last = sum((n - 1) * stride for n, stride in zip(sizes, strides, strict=True))
        size = -(-4 * (1 + last) // ALIGNMENT) * ALIGNMENT
        while not any(end - begin >= size for begin, end in self.free):
            self.drop(random.choice(self.tensors))
        begin, end = random.choice([each for each in self.free if each[1] - each[0] >= size])
        self.free.remove((begin, end))
        if begin + size < end:
            self.free.append((begin + size, end))
        tensor = at(begin, sizes, strides)
        self.tensors.append(tensor)
        return tensor

    def drop(self, tensor: Place) -> None:
        """Its bytes may be used again."""
        self.tensors.remove(tensor)
        self.updated = [each for each in self.updated if each is not tensor]
        begin, size = tensor.binding
        end = begin + -(-size // ALIGNMENT) * ALIGNMENT
        spans = sorted([*self.free, (begin, end)])
        self.free = spans[:1]
        for low, high in spans[1:]:
            if self.free[-1][1] == low:
                self.free[-1] = self.free[-1][0], high
            else:
                self.free.append((low, high))

    # --- views ---

    def view(self, tensor: Place) -> Place:
        """The same elements, or some of them, in their order."""
        if tensor in self.updated:
            return tensor
        kind = self.random.choice((self.whole, self.whole, self.reshaped, self.sliced, self.broadcast))
        return kind(tensor)

    def whole(self, tensor: Place) -> Place:
        return tensor

    def reshaped(self, tensor: Place) -> Place:
        """Without axes of one, or with one more."""
        sizes, strides = list(tensor.desc.sizes), list(tensor.desc.effective_strides)
        packed, reached = True, 1
        for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
            packed, reached = packed and stride == reached, reached * size
        if packed and self.random.random() < 0.7:
            return at(tensor.offset, [reached])
        axis = self.random.randrange(len(sizes) + 1)
        return at(tensor.offset, [*sizes[:axis], 1, *sizes[axis:]], [*strides[:axis], 0, *strides[axis:]])

    def sliced(self, tensor: Place) -> Place:
        """A box of it."""
        offset, sizes = tensor.offset, []
        for size, stride in zip(tensor.desc.sizes, tensor.desc.effective_strides, strict=True):
            first = self.random.randrange(size)
            sizes.append(self.random.randint(1, size - first))
            offset += 4 * first * stride
        return tensor if offset % ALIGNMENT else at(offset, sizes, tensor.desc.effective_strides)

    def broadcast(self, tensor: Place) -> Place:
        """Once more along a new first axis."""
        repeats = self.random.randint(2, 3) if prod(tensor.desc.sizes) <= 64 else 1
        return at(tensor.offset, [repeats, *tensor.desc.sizes], [0, *tensor.desc.effective_strides])

    # --- calls ---

    def upload(self) -> None:
        tensor = self.place(self.sizes(), packed=True)
        declared = [tensor] if self.declares else []
        self.scene.upload(tensor.offset, np.ones(prod(tensor.desc.sizes), np.float32), *declared)

    def fill(self) -> None:
        self.scene.fill(self.place(self.sizes()))

    def relu(self) -> None:
        source = self.view(self.any())
        self.kept(source, lambda: self.scene.relu(source, self.place(list(source.desc.sizes))))

    def in_place(self) -> None:
        self.scene.relu(self.any())

    def add(self) -> None:
        a = self.view(self.any())
        self.kept(a, lambda: self.scene.add(a, a, self.place(list(a.desc.sizes))))

    def read(self) -> None:
        self.scene.read(self.view(self.any()))

    def joined(self) -> None:
        """Two producers write the halves of a tensor along an axis; then it is read."""
        tensor = self.place(self.sizes(least=2))
        sizes, strides = list(tensor.desc.sizes), tensor.desc.effective_strides
        axis = self.random.randrange(len(sizes))
        cut = self.random.randrange(1, sizes[axis])
        if 4 * cut * strides[axis] % ALIGNMENT:
            return self.drop(tensor)
        for first, count in ((0, cut), (cut, sizes[axis] - cut)):
            part = [*sizes[:axis], count, *sizes[axis + 1 :]]
            self.scene.fill(at(tensor.offset + 4 * first * strides[axis], part, strides))
        self.scene.read(tensor)

    def row(self) -> None:
        """One row of a tensor is updated; then it is read.

        Neither the first one, nor the first one of a slice that is read: such a slice looks like a tensor
        that is written with too few rows.
        """
        tensor = self.any()
        sizes, strides = list(tensor.desc.sizes), tensor.desc.effective_strides
        offset = 4 * self.random.randrange(sizes[0]) * strides[0]
        if offset and offset % ALIGNMENT == 0:
            self.scene.fill(at(tensor.offset + offset, [1, *sizes[1:]], strides), "row")
            self.updated.append(tensor)
        self.scene.read(tensor)

    def moved(self) -> None:
        """A copy of all its bytes, gaps included."""
        source = self.any()

        def move() -> None:
            offset, size = source.binding
            target = self.place([size // 4], packed=True)
            self.scene.move(target.offset, offset, size)
            self.tensors[-1] = Place(target.offset, source.desc)
            if source in self.updated:
                self.updated.append(self.tensors[-1])

        self.kept(source, move)

    def kept(self, view: Place, call: Callable[[], None]) -> None:
        """A call for which new memory must not be that of its operand."""
        owner = next(each for each in self.tensors if _within(view, each))
        self.tensors.remove(owner)
        try:
            call()
        finally:
            self.tensors.append(owner)

    def any(self) -> Place:
        if not self.tensors:
            self.fill()
        return self.random.choice(self.tensors)

    def sizes(self, least: int = 1) -> list[int]:
        return [self.random.choice((least, 2, 3, 4, 4, 8)) for _ in range(self.random.randint(1, 3))]


def _within(view: Place, tensor: Place) -> bool:
    (begin, size), (low, extent) = view.binding, tensor.binding
    return low <= begin and begin + size <= low + extent


CALLS = ("upload", "fill", "relu", "in_place", "add", "read", "joined", "row", "moved")


def reports_of(seed: int) -> list[str]:
    random = Random(seed)
    program = Program(random)
    for _ in range(25):
        getattr(program, random.choice(CALLS))()
    return [
        f"{each.report.id}: {each.report.message}"
        for each in program.scene.reports()
        if each.report.severity is not Severity.INFO
    ]


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_wrong(seed: int) -> None:
    assert reports_of(seed) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 300))
def test_nothing_is_wrong_in_many(seed: int) -> None:
    assert reports_of(seed) == []
