"""Provenance: who wrote every byte last, as footprints.

Memory is divided into intervals, each with the writes that are visible in it, newest first.  A write that
covers an interval without gaps replaces the others; one with gaps lies on top of them.  Addresses are
physical, so that resources over the same bytes share their provenance.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...d3d12.recording import Command
from .access_history import Pattern
from .tensor_relation import Tensor

__all__ = ["Author", "Input", "Provenance", "Source", "Write"]

_MANY = 4  # writes in one interval, before those that are hidden are looked for

_Bytes = np.ndarray[Any, np.dtype[np.bool_]]


class Input(NamedTuple):
    """What a command read: the tensor, if that is known, and the writes that it came from."""

    operand: str
    tensor: Tensor | None
    sources: list[Source]


class Author:
    """Who wrote: a command of a list, or the CPU, where ``commands`` is None.

    ``inputs``: what it read; None: that is no longer remembered.  ``before``: whose bytes a copy copied.
    When a command repeats the same accesses, it stays the author, under its new list and number.
    """

    __slots__ = ("before", "commands", "inputs", "list", "number")

    def __init__(
        self,
        commands: list[Command] | None = None,
        number: int = 0,
        list: str = "",
        inputs: list[Input] | None = None,
        before: Author | None = None,
    ) -> None:
        self.commands = commands
        self.number = number
        self.list = list
        self.inputs = inputs
        self.before = before

    @property
    def command(self) -> Command | None:
        """Its command; None: the CPU, or a list that is gone."""
        known = self.commands is not None and self.number < len(self.commands)
        return self.commands[self.number] if known and self.commands is not None else None

    @property
    def is_copy_or_host(self) -> bool:
        """Whether it only brought bytes whose layout nobody has said."""
        return self.commands is None or self.before is not None

    def operand(self, operand: int) -> str:
        """The name of an operand."""
        command = self.command
        operands = () if command is None else command.operands
        return operands[operand] if operand < len(operands) else ""

    def copied_by(self, copy: Author) -> Author:
        """The author of bytes that a copy moved."""
        before = Author(self.commands, self.number, self.list, self.inputs, self.before)
        return Author(copy.commands, copy.number, copy.list, self.inputs, before)


class Write:
    """A write: ``pattern`` are its elements (None: every byte), ``tensor`` what they are, if that is known.

    ``author`` and its ``operand`` name it; of two writes the later one has the higher ``number``.
    """

    __slots__ = ("author", "begin", "end", "is_dense", "number", "operand", "pattern", "tensor")

    def __init__(
        self,
        author: Author,
        operand: int,
        begin: int,
        end: int,
        pattern: Pattern | None,
        tensor: Tensor | None,
        number: int,
    ) -> None:
        self.author = author
        self.operand = operand
        self.begin = begin
        self.end = end
        self.pattern = pattern
        self.tensor = tensor
        self.number = number
        self.is_dense = pattern is None or pattern.is_dense

    def copied(self, begin: int, end: int, shift: int, author: Author, number: int) -> Write:
        """Those of its elements in the range, after a copy."""
        pattern = None if self.is_dense or self.pattern is None else self.pattern.moved(shift)
        tensor = self.tensor if self.tensor is None else self.tensor.at(self.tensor.address + shift)
        begin, end = max(begin, self.begin) + shift, min(end, self.end) + shift
        return Write(author, self.operand, begin, end, pattern, tensor, number)

    def paint(self, low: int, high: int) -> _Bytes:
        """Which bytes of [low, high) it wrote."""
        return painted(None if self.is_dense else self.pattern, low, high)


_Row = tuple[int, int, tuple[Write, ...]]  # an interval and its writes


class Source(NamedTuple):
    """What a read takes from one write, None: from bytes that nobody is known to have written."""

    write: Write | None
    first: int  # address of the first byte
    size: int  # bytes


class Provenance:
    """The visible writes of all memory.  ``version`` changes with them."""

    def __init__(self) -> None:
        self.version = 0
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._writes: list[tuple[Write, ...]] = []

    def write(self, write: Write) -> None:
        """Enters a write that is newer than all others."""
        begin, end = write.begin, write.end
        starts = self._starts
        at = bisect_left(starts, begin)
        if at < len(starts) and starts[at] == begin and self._ends[at] == end:
            newest = self._writes[at][0]
            if newest.pattern is write.pattern and newest.tensor == write.tensor:  # as in every frame
                newest.author, newest.number = write.author, write.number
                return
            self.version += 1
            self._writes[at] = (write,) if write.is_dense else self._over(at, write)
            return
        self.version += 1
        first, last = self._cut(begin, end)
        if write.is_dense:
            self._replace(first, last, [(begin, end, (write,))])
            return
        rows: list[_Row] = []
        reached = begin
        for i in range(first, last):
            if reached < self._starts[i]:
                rows.append((reached, self._starts[i], (write,)))
            rows.append((self._starts[i], self._ends[i], self._over(i, write)))
            reached = self._ends[i]
        if reached < end:
            rows.append((reached, end, (write,)))
        self._replace(first, last, rows)

    def copy(self, source: int, target: int, size: int, author: Author, number: int) -> None:
        """Bytes were copied: their writes are visible at the target, too; of unknown bytes, the copy is."""
        self.version += 1
        shift = target - source
        known: dict[Write, Write] = {}
        rows: list[_Row] = []
        for begin, end, writes in list(self._between(source, source + size)):
            for each in writes:
                if each not in known:
                    known[each] = each.copied(
                        source, source + size, shift, each.author.copied_by(author), number
                    )
            rows.append((begin + shift, end + shift, tuple(known[each] for each in writes)))
        first, last = self._cut(target, target + size)
        self._replace(first, last, rows)

    def forget(self, begin: int, end: int) -> None:
        """The memory is gone, or its contents are undefined."""
        self.version += 1
        first, last = self._cut(begin, end)
        self._replace(first, last, [])

    def sources(self, read: Pattern) -> list[Source]:
        """The writes that the bytes of a read come from, newest first."""
        found: dict[Write | None, tuple[int, int]] = {}
        reached = read.begin
        for begin, end, writes in self._between(read.begin, read.end):
            if reached < begin:
                _note(found, None, reached, _of(read, reached, begin))
            self._look(read, begin, end, writes, found)
            reached = end
        if reached < read.end:
            _note(found, None, reached, _of(read, reached, read.end))
        rows = [Source(write, first, size) for write, (first, size) in found.items()]
        return sorted(rows, key=lambda row: -1 if row.write is None else -row.write.number)

    def marks(self, read: Pattern, wanted: Collection[Write]) -> _Bytes:
        """Which bytes of [read.begin, read.end) are visible bytes of these writes."""
        marks = np.zeros(read.end - read.begin, np.bool_)
        for begin, end, writes in self._between(read.begin, read.end):
            rest = np.ones(end - begin, np.bool_)
            for each in writes:
                there = each.paint(begin, end) & rest
                if each in wanted:
                    marks[begin - read.begin : end - read.begin] |= there
                rest &= ~there
        return marks

    def at(self, address: int) -> Write | None:
        """The last write to a byte."""
        for begin, _, writes in self._between(address, address + 1):
            return next((each for each in writes if each.paint(begin, address + 1)[-1]), None)
        return None

    # --- inside ---

    def _look(
        self,
        read: Pattern,
        begin: int,
        end: int,
        writes: tuple[Write, ...],
        found: dict[Write | None, tuple[int, int]],
    ) -> None:
        if len(writes) == 1 and (writes[0].is_dense or writes[0].pattern is read):
            if read.is_dense:
                _note_size(found, writes[0], begin, end - begin)
            else:
                _note(found, writes[0], begin, _of(read, begin, end))
            return
        rest = painted(read, begin, end)
        for each in writes:
            there = each.paint(begin, end)
            _note(found, each, begin, rest & there)
            rest &= ~there
        _note(found, None, begin, rest)

    def _between(self, begin: int, end: int) -> Iterator[tuple[int, int, tuple[Write, ...]]]:
        """The intervals that meet the range, cut to it."""
        at = max(0, bisect_right(self._starts, begin) - 1)
        for i in range(at, len(self._starts)):
            if self._starts[i] >= end:
                return
            if self._ends[i] > begin:
                yield max(begin, self._starts[i]), min(end, self._ends[i]), self._writes[i]

    def _cut(self, begin: int, end: int) -> tuple[int, int]:
        """Splits intervals at both ends of the range; returns the indices of those inside."""
        for edge in (begin, end):
            at = bisect_right(self._starts, edge) - 1
            if at >= 0 and self._starts[at] < edge < self._ends[at]:
                self._starts.insert(at + 1, edge)
                self._ends.insert(at, edge)
                self._writes.insert(at, self._writes[at])
        return bisect_left(self._starts, begin), bisect_left(self._starts, end)

    def _replace(self, first: int, last: int, rows: list[_Row]) -> None:
        self._starts[first:last] = [begin for begin, _, _ in rows]
        self._ends[first:last] = [end for _, end, _ in rows]
        self._writes[first:last] = [writes for _, _, writes in rows]

    def _over(self, at: int, write: Write) -> tuple[Write, ...]:
        """The write on top of those of an interval, without those that it hides."""
        older = tuple(each for each in self._writes[at] if each.pattern is not write.pattern)
        if len(older) < _MANY:
            return (write, *older)
        begin, end = self._starts[at], self._ends[at]
        hidden = write.paint(begin, end)
        visible = [write]
        for each in older:
            there = each.paint(begin, end)
            if np.any(there & ~hidden):
                visible.append(each)
                hidden |= there
        return tuple(visible)


def painted(pattern: Pattern | None, low: int, high: int) -> _Bytes:
    """Which bytes of [low, high) belong to elements of the pattern."""
    if pattern is None or pattern.is_dense:
        marks = np.zeros(high - low, np.bool_)
        begin, end = (low, high) if pattern is None else (pattern.begin, pattern.end)
        marks[max(begin - low, 0) : max(end - low, 0)] = True
        return marks
    struct = pattern.struct
    first, last = struct.address, struct.end
    marks = np.zeros(last - first, np.bool_)
    rank, width = struct.rank, -(-struct.bits // 8)
    sizes, strides = (
        [*struct.sizes[0:rank], width],
        [stride * struct.bits // 8 for stride in struct.strides[0:rank]],
    )
    np.lib.stride_tricks.as_strided(marks, sizes, [*strides, 1])[...] = True
    whole = np.zeros(high - low, np.bool_)
    begin, end = max(low, first), min(high, last)
    whole[begin - low : end - low] = marks[begin - first : end - first]
    return whole


def _of(read: Pattern, begin: int, end: int) -> _Bytes:
    return painted(read, begin, end)


def _note(found: dict[Write | None, tuple[int, int]], write: Write | None, begin: int, marks: _Bytes) -> None:
    size = int(np.count_nonzero(marks))
    if size:
        _note_size(found, write, begin + int(np.argmax(marks)), size)


def _note_size(
    found: dict[Write | None, tuple[int, int]], write: Write | None, first: int, size: int
) -> None:
    known = found.get(write)
    found[write] = (first, size) if known is None else (min(first, known[0]), known[1] + size)
