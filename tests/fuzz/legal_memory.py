"""A model of memory: what its bytes hold, which commands touch them, and what orders two of those.

Simple, byte by byte, and on the safe side: where the documents leave a doubt, it counts as not ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dmlemu.dml import BufferTensorDesc

Index = np.ndarray[Any, np.dtype[np.int64]]  # numbers of bytes
Array = np.ndarray[Any, Any]
NOWHERE: Index = np.zeros(0, np.int64)
_WRITTEN, _UNDEFINED = -1, -2


class Kind(Enum):
    """How a command reaches bytes."""

    UAV = "uav"
    COPY_SOURCE = "copy source"
    COPY_DEST = "copy destination"
    QUEUE = "queue"  # lists and queues order it: query heaps, mappings of tiles


class Memory:
    """All bytes of the GPU, by number.

    ``value``; ``known``: is that value promised?; ``defined``: has somebody written it?  ``origin`` is for
    :func:`needs`: each byte's own number while nothing is traced.
    """

    def __init__(self) -> None:
        self.size = 0
        self.value, self.known, self.defined = (np.zeros(0, kind) for kind in (np.uint8, bool, bool))
        self.origin, self.marks = NOWHERE, np.zeros(0, bool)
        self.keeps_tails = True  # of outputs; chaos overwrites them
        self.null = 0  # numbers below 0 stand for bytes in NULL tiles, each for one

    def add(self, size: int, *, zeroed: bool = True) -> Index:
        """New bytes that nobody has written."""
        start, self.size = self.size, self.size + size
        if self.size > len(self.value):
            more = max(self.size, 2 * len(self.value), 1 << 17) - len(self.value)
            for name in ("value", "known", "defined", "marks"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros(more, old.dtype)]))
            self.origin = np.arange(len(self.value))
        self.known[start : self.size] = zeroed
        return np.arange(start, self.size)

    def add_null(self, size: int) -> Index:
        """Numbers for bytes in NULL tiles."""
        self.null += size
        return -np.arange(self.null - size + 1, self.null + 1)

    def read(self, where: Index) -> Array:
        """The values; NULL tiles hold zeros."""
        return np.where(where >= 0, self.value[np.maximum(where, 0)], 0).astype(np.uint8)

    def is_known(self, where: Index) -> Array:
        return np.where(where >= 0, self.known[np.maximum(where, 0)], True)

    def write(self, where: Index, data: Any, known: Any = True, defined: Any = True) -> None:
        """Values, whether they are promised, and whether they count as written; NULL tiles drop them."""
        real = where >= 0
        for array, new in ((self.value, data), (self.known, known), (self.defined, defined)):
            array[where[real]] = np.broadcast_to(new, len(where))[real]

    def share(self, one: Index, other: Index) -> bool:
        """Is a byte in both, be it of memory or in a NULL tile?"""
        null = np.intersect1d(one[one < 0], other[other < 0])
        return len(null) > 0 or self.meet(one[one >= 0], other[other >= 0])

    def meet(self, one: Index, other: Index) -> bool:
        """Is a byte of memory in both?"""
        self.marks[one] = True
        found = bool(self.marks[other].any())
        self.marks[one] = False
        return found


class Touch(NamedTuple):
    """Bytes that a command reads or writes through a buffer (None: it is none that barriers name).

    ``serial``: writes of a copy, which keep their order with others to the same buffer.
    """

    kind: Kind
    buffer: Any
    where: Index
    writes: bool
    serial: bool
    low: int
    high: int

    def conflicts(self, other: Touch, memory: Memory) -> bool:
        if not (self.writes or other.writes) or self.low > other.high or other.low > self.high:
            return False
        return memory.meet(self.where, other.where)


def touch(
    kind: Kind, buffer: Any, where: Index, *, writes: bool = False, serial: bool = False
) -> list[Touch]:
    """A touch of what is not NULL; none of nothing."""
    real = where[where >= 0]
    return [Touch(kind, buffer, real, writes, serial, real.min(), real.max())] if len(real) else []


class Barrier(NamedTuple):
    """``kind``: UAV, TRANSITION or ALIASING; buffers are None for any."""

    kind: str
    before: Any = None
    after: Any = None

    def orders(self, first: Touch, then: Touch) -> bool:
        """Does it order what stands before it, and what stands behind it?"""
        if self.kind == "ALIASING":
            return self.before in (None, first.buffer) and self.after in (None, then.buffer)
        if self.kind == "UAV" and not first.kind is then.kind is Kind.UAV:
            return False
        if self.kind == "UAV" and self.before is None:
            return True
        return first.buffer is then.buffer is self.before


# --- commands ---


class View(NamedTuple):
    """Bytes of a buffer."""

    buffer: Any
    offset: int
    size: int

    @property
    def where(self) -> Index:
        """Their numbers, as the buffer's tiles are mapped now."""
        found: Index = self.buffer.where[self.offset : self.offset + self.size]
        return found


@lru_cache(4096)
def _bytes_of(desc: BufferTensorDesc) -> Index:
    """Byte offsets of all elements, one row each, in logical order."""
    at = np.zeros(1, np.int64)
    for size, stride in zip(desc.sizes, desc.effective_strides, strict=True):
        at = (at[:, None] + np.arange(size) * stride).ravel()
    itemsize = desc.dtype.itemsize
    found: Index = at[:, None] * itemsize + np.arange(itemsize)
    return found


class Tensor(NamedTuple):
    """A tensor that is bound to a view."""

    view: View
    desc: BufferTensorDesc

    @property
    def elements(self) -> Index:
        """Numbers of its bytes, a row for each element."""
        return self.view.where[_bytes_of(self.desc)]

    @property
    def tail(self) -> Index:
        """Bytes after the last element: they keep their contents, which nothing promises."""
        return self.view.where[self.desc.extent_in_bytes : self.desc.size_in_bytes]

    def read(self, memory: Memory) -> Array:
        data = memory.read(self.elements.ravel())
        return data.view(self.desc.dtype).reshape(self.desc.sizes)


class Command:
    """What a recorded command does, by how tiles are mapped when it is asked."""

    def touches(self) -> list[Touch]:
        raise NotImplementedError

    def trace(self, memory: Memory) -> tuple[Index, list[tuple[Index, Any]]]:
        """Bytes that must be written, and from where each byte it changes has its contents."""
        raise NotImplementedError

    def run(self, memory: Memory) -> None:
        raise NotImplementedError


@dataclass
class Copy(Command):
    """CopyBufferRegion."""

    target: View
    source: View

    def touches(self) -> list[Touch]:
        source = touch(Kind.COPY_SOURCE, self.source.buffer, self.source.where)
        buffer = self.target.buffer
        serial = not len(buffer.tiles)  # one byte may stand at several places of a reserved buffer
        target = touch(Kind.COPY_DEST, buffer, self.target.where, writes=True, serial=serial)
        return [*source, *target]

    def trace(self, memory: Memory) -> tuple[Index, list[tuple[Index, Any]]]:
        source = self.source.where
        origin = np.where(source >= 0, memory.origin[np.maximum(source, 0)], _WRITTEN)
        return NOWHERE, [(self.target.where, origin)]

    def run(self, memory: Memory) -> None:
        source = self.source.where
        defined = np.where(source >= 0, memory.defined[np.maximum(source, 0)], True)
        memory.write(self.target.where, memory.read(source), memory.is_known(source), defined)


@dataclass
class Set(Command):
    """Writes values (None: nobody knows them), as clears and queries do."""

    target: View
    kind: Kind
    data: bytes | None
    more: Callable[[], list[Touch]] = list

    def touches(self) -> list[Touch]:
        return [*touch(self.kind, self.target.buffer, self.target.where, writes=True), *self.more()]

    def trace(self, memory: Memory) -> tuple[Index, list[tuple[Index, Any]]]:
        return NOWHERE, [(self.target.where, _WRITTEN)]

    def run(self, memory: Memory) -> None:
        if self.data is None:
            memory.write(self.target.where, 0, known=False)
        else:
            memory.write(self.target.where, np.frombuffer(self.data, np.uint8))


@dataclass
class Query(Command):
    """EndQuery: changes what no buffer shows."""

    where: Index

    def touches(self) -> list[Touch]:
        return touch(Kind.QUEUE, None, self.where, writes=True)

    def trace(self, memory: Memory) -> tuple[Index, list[tuple[Index, Any]]]:
        return NOWHERE, []

    def run(self, memory: Memory) -> None:
        memory.write(self.where, 0, known=False)


Results = Sequence[tuple[Array, Any]]  # values, and which of them are defined


@dataclass
class Dispatch(Command):
    """``function`` makes the outputs of the inputs; ``reads`` and ``writes`` are opaque bytes.

    ``unsure``: outputs of which some elements may come to be undefined.
    """

    inputs: list[Tensor]
    outputs: list[Tensor]
    function: Callable[[list[Array]], Results]
    reads: list[tuple[Any, Index]] = field(default_factory=list)
    writes: list[tuple[Any, Index]] = field(default_factory=list)
    temporary: View | None = None
    unsure: frozenset[int] = frozenset()
    in_place: bool = False

    def touches(self) -> list[Touch]:
        found = [each for tensor in self.inputs for each in _uav(tensor.view.buffer, tensor.elements)]
        for buffer, where in self.reads:
            found += _uav(buffer, where)
        for buffer, where in self._written():
            found += _uav(buffer, where, writes=True)
        return found

    def _written(self) -> list[tuple[Any, Index]]:
        own = [(each.view.buffer, where) for each in self.outputs for where in (each.elements, each.tail)]
        temporary = [] if self.temporary is None else [(self.temporary.buffer, self.temporary.where)]
        return [*own, *self.writes, *temporary]

    def trace(self, memory: Memory) -> tuple[Index, list[tuple[Index, Any]]]:
        needed = [each.elements.ravel() for each in self.inputs]
        changes: list[tuple[Index, Any]] = []
        for i, each in enumerate(self.outputs):
            changes += [(each.elements.ravel(), _UNDEFINED if i in self.unsure else _WRITTEN)]
        if self.temporary is not None:
            changes.append((self.temporary.where, _UNDEFINED))
        return np.concatenate([NOWHERE, *needed]), changes

    def run(self, memory: Memory) -> None:
        known = all(memory.is_known(each.elements.ravel()).all() for each in self.inputs)
        results = self.function([each.read(memory) for each in self.inputs])
        for tensor, (values, defined) in zip(self.outputs, results, strict=True):
            where, size = tensor.elements.ravel(), tensor.desc.dtype.itemsize
            is_defined = np.repeat(np.broadcast_to(defined, values.shape).ravel(), size)
            data = np.ascontiguousarray(values).view(np.uint8).ravel()
            memory.write(where, data, is_defined & known, is_defined)
            if not memory.keeps_tails:
                memory.known[tensor.tail[tensor.tail >= 0]] = False
        if self.temporary is not None:
            memory.write(self.temporary.where, 0, False, False)

    def is_apart(self, memory: Memory) -> bool:
        """What it writes meets nothing else that it uses, but for work in place."""
        for i, output in enumerate(self.outputs):
            elements = output.elements.ravel()
            if len(np.unique(elements[elements >= 0])) < np.count_nonzero(elements >= 0):
                return False  # tiles that are one
            others = [each for each in self.inputs if not (self.in_place and each == output)]
            found = [each.elements for each in others] + [where for _, where in self.reads]
            found += [where for j, each in enumerate(self.outputs) if j != i for where in _all(each)]
            found += [where for _, where in self.writes]
            found += [] if self.temporary is None else [self.temporary.where]
            if any(memory.share(mine, where) for mine in _all(output) for where in found):
                return False
        if self.temporary is None:
            return True
        mine = self.temporary.where
        if mine.min() < 0 or len(np.unique(mine)) < len(mine):
            return False  # what is put there must be there later
        found = [each.elements for each in self.inputs] + [where for _, where in self.reads]
        return not any(memory.share(mine, where) for where in found)


def _uav(buffer: Any, where: Index, *, writes: bool = False) -> list[Touch]:
    return touch(Kind.UAV, buffer, where.ravel(), writes=writes)


def _real(where: Index) -> Index:
    return where[where >= 0]


def _all(tensor: Tensor) -> tuple[Index, Index]:
    return tensor.elements, tensor.tail


# --- many commands ---


def needs(commands: Iterable[Command], memory: Memory) -> Index | None:
    """Bytes that must be written before the commands run; None: they read what they leave undefined."""
    origin, changed, needed = memory.origin, [NOWHERE], [NOWHERE]
    try:
        for command in commands:
            read, changes = command.trace(memory)
            sources = origin[_real(read)]
            if (sources == _UNDEFINED).any():
                return None
            needed.append(sources[sources >= 0])
            for where, source in changes:
                real = where >= 0
                changed.append(where[real])
                origin[where[real]] = np.broadcast_to(source, len(where))[real]
    finally:
        for where in changed:
            origin[where] = where
    found = np.unique(np.concatenate(needed))
    missing: Index = found[~memory.defined[found]]
    return missing


Step = Command | Barrier


def clash(steps: Sequence[tuple[Step, list[Touch]]], then: list[Touch], memory: Memory) -> Any:
    """The last touch of the steps that nothing orders before one of ``then``, and that one; or None."""
    barriers: list[Barrier] = []
    for step, touches in reversed(steps):
        if isinstance(step, Barrier):
            barriers.append(step)
            continue
        for first in touches:
            for second in then:
                if Kind.QUEUE in (first.kind, second.kind) or not first.conflicts(second, memory):
                    continue
                serial = first.serial and second.serial and first.buffer is second.buffer
                if not serial and not any(each.orders(first, second) for each in barriers):
                    return first, second
    return None
