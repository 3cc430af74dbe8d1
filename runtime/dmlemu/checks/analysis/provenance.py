"""Provenance: who wrote every byte last, as footprints.

Memory is divided into intervals, each with the writes that are visible in it, newest first.  A write that
covers an interval without gaps replaces the others; one with gaps lies on top of them.  Addresses are
physical, so that resources over the same bytes share their provenance.

Which bytes are visible below writes with gaps is found by painting their blocks, within the bytes in question
only.  Where that would be too much (``_MOST``), a read is attributed to the newest write that it overlaps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from math import gcd, prod
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...d3d12.core.recording import Command
from .access_history import Pattern
from .tensor_relation import Tensor

__all__ = ["Author", "Input", "Provenance", "Source", "Sources", "Use", "Write"]

_MANY = 4  # writes in one interval, before those that are hidden are looked for
_MOST = 1 << 22  # marks that are painted at once
_COPIES = 1024  # that are remembered
_number = attrgetter("number")

_Marks = np.ndarray[Any, np.dtype[np.bool_]]


class Input(NamedTuple):
    """What a command read: the tensor, if that is known, and the writes that it came from."""

    operand: str
    tensor: Tensor | None
    sources: list[Source]


class Use:
    """What becomes of everything that one author wrote.

    ``is_over``: somebody read it, or need not to.  ``is_divided``: its tensors have uses of their own.
    """

    __slots__ = ("is_divided", "is_over")

    def __init__(self) -> None:
        self.is_over = False
        self.is_divided = False


class Author:
    """Who wrote: a command of a list, or the CPU, where ``commands`` is None.

    ``inputs``: what it read; None: that is no longer remembered.  ``before``: whose bytes a copy copied.
    When a command repeats the same accesses, it stays the author, under its new list and number.
    """

    __slots__ = ("before", "commands", "inputs", "list", "number", "use")

    def __init__(
        self,
        commands: list[Command] | None = None,
        number: int = 0,
        list: str = "",
        inputs: list[Input] | None = None,
        before: Author | None = None,
        use: Use | None = None,
    ) -> None:
        self.use = use or Use()
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
        """Whether it only brought bytes whose layout nobody has declared."""
        return self.commands is None or self.before is not None

    def operand(self, operand: int) -> str:
        """The name of an operand."""
        command = self.command
        operands = () if command is None else command.operands
        return operands[operand] if operand < len(operands) else ""

    def part(self) -> Author:
        """The author of a part of what it wrote, with a use of its own."""
        part = Author(self.commands, self.number, self.list, self.inputs, self.before)
        part.use.is_over = self.use.is_over
        return part

    def copied_by(self, copy: Author) -> Author:
        """The author of bytes that a copy moved."""
        before = Author(self.commands, self.number, self.list, self.inputs, self.before, self.use)
        return Author(copy.commands, copy.number, copy.list, self.inputs, before, copy.use)


class Write:
    """A write: ``pattern`` are its elements (None: every byte), ``tensor`` what they are, if that is known.

    ``author`` and its ``operand`` name it; of two writes the later one has the higher ``number``.
    ``is_padding``: the bytes follow the last element of ``tensor``, and kept their contents.
    ``is_typeless``: numbers of the program's own, which it may have written by the bits of another type.
    ``first``: the number of the write whose bytes a copy has moved here; None: it is no copy.
    """

    __slots__ = (
        "author",
        "begin",
        "end",
        "first",
        "is_dense",
        "is_padding",
        "is_typeless",
        "number",
        "operand",
        "pattern",
        "tensor",
    )

    def __init__(
        self,
        author: Author,
        operand: int,
        begin: int,
        end: int,
        pattern: Pattern | None,
        tensor: Tensor | None,
        number: float,
        *,
        is_padding: bool = False,
    ) -> None:
        self.author = author
        self.is_padding = is_padding
        self.is_typeless = False
        self.operand = operand
        self.begin = begin
        self.end = end
        self.pattern = pattern
        self.tensor = tensor
        self.number = number
        self.first: float | None = None
        self.is_dense = pattern is None or pattern.is_dense

    def is_again(self, older: Write) -> bool:
        """Whether it is the older write: of the same command, or of the same bytes by the CPU."""
        if self is older:
            return True
        is_host = self.author.commands is None and older.author.commands is None
        is_same = self.begin == older.begin and self.end == older.end and self.tensor == older.tensor
        return is_host and is_same and self.is_dense and older.is_dense

    def is_of_the_same(self, other: Write) -> bool:
        """Whether both are parts of one write, and copies have left each byte in its place."""
        one, another = (each.number if each.first is None else each.first for each in (self, other))
        return one == another and self.tensor is not None and self.tensor == other.tensor

    def copied(self, begin: int, end: int, shift: int, author: Author, number: float) -> Write:
        """Those of its elements in the range, after a copy."""
        pattern = None if self.is_dense or self.pattern is None else self.pattern.moved(shift)
        tensor = self.tensor if self.tensor is None else self.tensor.at(self.tensor.address + shift)
        begin, end = max(begin, self.begin) + shift, min(end, self.end) + shift
        made = Write(author, self.operand, begin, end, pattern, tensor, number, is_padding=self.is_padding)
        made.is_typeless = self.is_typeless
        return made


_Row = tuple[int, int, tuple[Write, ...]]  # an interval and its writes
_Saved = tuple[int, list[int], list[int], list[tuple[Write, ...]]]  # version, begins, ends and writes


class Source(NamedTuple):
    """What a read takes from one write, None: from bytes that nobody is known to have written."""

    write: Write | None
    first: int  # address of the first byte
    size: int  # bytes


class Sources(list[Source]):
    """The sources of a read; not ``is_exact``: there may be more, as there was too much memory to look at."""

    def __init__(self, sources: Iterable[Source], is_exact: bool) -> None:
        super().__init__(sources)
        self.is_exact = is_exact

    def without_padding(self) -> Sources:
        """Nobody has written what stands in padding."""
        sources = (Source(None, *each[1:]) if each.write and each.write.is_padding else each for each in self)
        return Sources(sources, self.is_exact)


class _Copy:
    """A copy of ``rows``: the writes that it made, and the rows that they are the ``result`` of.

    Nothing changes when it is made again while the provenance has its ``version``.
    """

    def __init__(
        self, rows: list[_Row], begin: int, end: int, shift: int, author: Author, number: int
    ) -> None:
        self.rows = rows
        self.version = -1
        self.use = author.use
        writes = {write for row in rows for write in row[2]}
        self.made = {
            each: each.copied(begin, end, shift, each.author.copied_by(author), number) for each in writes
        }
        self.name(author, number)
        self.result: list[_Row] = [
            (begin + shift, end + shift, tuple(self.made[each] for each in writes))
            for begin, end, writes in rows
        ]

    def name(self, author: Author, number: int) -> None:
        """It is made by this command.  The writes keep their order: each has a part of the number."""
        author.use = self.use
        step = 1 / max(len(self.made), 1)
        for i, each in enumerate(sorted(self.made, key=_number, reverse=True)):
            made = self.made[each]
            each.author.use.is_over = True
            made.author, made.number = each.author.copied_by(author), number - i * step
            made.first = each.number if each.first is None else each.first


class Provenance:
    """The visible writes of all memory.  ``version`` changes with them.

    ``hides``: called with the writes that meet the range of a newer one (no padding) before that is entered.
    """

    def __init__(self, hides: Callable[[Iterable[Write], Write], None] = lambda older, newer: None) -> None:
        self.version = 0
        self.hides = hides
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._writes: list[tuple[Write, ...]] = []
        self._copies: dict[tuple[int, int, int], _Copy] = {}  # by source, target and size

    def write(self, write: Write) -> None:
        """Enters a write that is newer than all others."""
        begin, end = write.begin, write.end
        starts = self._starts
        at = bisect_left(starts, begin)
        if at < len(starts) and starts[at] == begin and self._ends[at] == end:
            newest = self._writes[at][0]
            self._hide(self._writes[at], write)
            if write.is_again(newest):  # as in every frame
                newest.author, newest.operand, newest.number = write.author, write.operand, write.number
                return
            self.version += 1
            self._writes[at] = (write,) if write.is_dense else self._over(at, write)
            return
        self.version += 1
        first, last = self._cut(begin, end)
        self._hide(self._inside(first, last), write)
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
        copied = self._copies.get((source, target, size))
        if copied is not None and copied.version == self.version:  # as in every frame
            copied.name(author, number)
            return
        self.version += 1
        rows = list(self._between(source, source + size))
        if copied is None or copied.rows != rows:
            copied = _Copy(rows, source, source + size, target - source, author, number)
        else:  # the same writes as then
            copied.name(author, number)
        first, last = self._cut(target, target + size)
        whole = Write(author, 1, target, target + size, None, None, number)
        self._hide(self._inside(first, last), whole)
        self._replace(first, last, copied.result)
        if target + size <= source or source + size <= target:
            if len(self._copies) >= _COPIES:
                self._copies.clear()
            self._copies[source, target, size] = copied
            copied.version = self.version

    def forget(self, begin: int, end: int) -> None:
        """The memory is gone, or its contents are undefined."""
        first, last = self._cut(begin, end)
        if first < last:
            self.version += 1
            self._replace(first, last, [])

    def sources(self, read: Pattern) -> Sources:
        """The writes that the bytes of a read come from, newest first."""
        found = _Found(read)
        reached = read.begin
        for begin, end, writes in self._between(read.begin, read.end):
            if reached < begin:
                found.look(reached, begin, ())
            found.look(begin, end, writes)
            reached = end
        if reached < read.end:
            found.look(reached, read.end, ())
        return found.sources()

    def marks(self, read: Pattern, wanted: Collection[Write], bits: int) -> tuple[_Marks, int] | None:
        """Which parts of [read.begin, read.end) are visible in these writes; each part is ``int`` half bytes.

        The parts divide elements of ``bits``.  None: there are too many.
        """
        rows = list(self._between(read.begin, read.end))
        unit = gcd(
            _unit([read, *(each.pattern for row in rows for each in row[2])], 2 * read.begin), bits // 4
        )
        for begin, end, _ in rows:
            unit = gcd(unit, 2 * (begin - read.begin), 2 * (end - read.begin))
        if 2 * (read.end - read.begin) // unit > _MOST:
            return None
        marks = np.zeros(2 * (read.end - read.begin) // unit, np.bool_)
        for begin, end, writes in rows:
            rest = marks[2 * (begin - read.begin) // unit : 2 * (end - read.begin) // unit]
            hidden = np.zeros(len(rest), np.bool_)
            for each in writes:
                there = painted(None if each.is_dense else each.pattern, begin, end, unit)
                if there is None:
                    return None
                if each in wanted:
                    rest |= there & ~hidden
                hidden |= there
        return marks, unit

    def state(self, spans: Iterable[tuple[int, int]]) -> Hashable:
        """Everything that the sources of bytes depend on, if each read lies within one of these ranges."""
        state: list[object] = []
        for each in spans:
            rows = list(self._between(*each))
            state += rows
            if len(rows) > 1 or (rows and len(rows[0][2]) > 1):
                state += sorted({write for row in rows for write in row[2]}, key=_number)
        return tuple(state)

    def rows(self, spans: Iterable[tuple[int, int]]) -> list[list[_Row]]:
        """The intervals in each of these ranges."""
        return [list(self._between(*each)) for each in spans]

    def set_rows(self, spans: Iterable[tuple[int, int]], rows: Iterable[list[_Row]]) -> None:
        """Replaces the intervals in these ranges."""
        self.version += 1
        for span, each in zip(spans, rows, strict=True):
            self._replace(*self._cut(*span), each)

    def saved(self) -> _Saved:
        """All intervals, for :meth:`restore`."""
        return self.version, self._starts[:], self._ends[:], self._writes[:]

    def restore(self, saved: _Saved) -> None:
        """The intervals are those of then, and begin and end where they did; so is the version."""
        self.version, self._starts, self._ends, self._writes = saved

    def at(self, address: int) -> Write | None:
        """The last write to a byte."""
        for _, _, writes in self._between(address, address + 1):
            return next((each for each in writes if _holds(each, address)), None)
        return None

    def writes(self, begin: int, end: int) -> set[Write]:
        """The writes that are visible in a range, or in intervals of it."""
        return {each for _, _, writes in self._between(begin, end) for each in writes}

    # --- inside ---

    def _hide(self, older: Iterable[Write], newer: Write) -> None:
        if not newer.is_padding:
            self.hides(older, newer)

    def _inside(self, first: int, last: int) -> set[Write]:
        """The writes of these intervals."""
        return {each for writes in self._writes[first:last] for each in writes}

    def _between(self, begin: int, end: int) -> Iterator[tuple[int, int, tuple[Write, ...]]]:
        """The intervals that overlap the range, cut to it."""
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
        unit = _unit([write.pattern, *(each.pattern for each in older)], 2 * begin, 2 * end)
        visible: list[Write] = []
        hidden = np.zeros(0, np.bool_)
        for each in (write, *older):
            there = painted(None if each.is_dense else each.pattern, begin, end, unit)
            if there is None:  # too many to tell; no more than this are kept
                return (write, *older[: 4 * _MANY])
            if not visible or np.any(there & ~hidden):
                hidden = hidden | there if visible else there
                visible.append(each)
        return tuple(visible)


class _Found:
    """What is found of a read, in half bytes: for each write the first, and how many."""

    def __init__(self, read: Pattern) -> None:
        self.read = read
        self.found: dict[Write | None, tuple[int, int]] = {}
        self.is_exact = True

    def sources(self) -> Sources:
        rows = [Source(write, first // 2, -(-count // 2)) for write, (first, count) in self.found.items()]
        if len(rows) > 1:
            rows.sort(key=lambda row: -1 if row.write is None else -row.write.number)
        return Sources(rows, self.is_exact)

    def look(self, begin: int, end: int, writes: tuple[Write, ...]) -> None:
        """Looks at an interval; the bytes that are in none of the writes are nobody's."""
        read = self.read
        newest = writes[0] if writes else None
        if newest is None or newest.is_dense or _is_same(newest.pattern, read):
            self._all(newest, begin, end)
            return
        unit = _unit([read, *(each.pattern for each in writes)], 2 * begin, 2 * end)
        rest = painted(read, begin, end, unit)
        for each in writes:
            if rest is None or not rest.any():
                break
            there = painted(None if each.is_dense else each.pattern, begin, end, unit)
            if there is None:
                rest = None
                break
            self._note(each, begin, rest & there, unit)
            rest &= ~there
        if rest is None:
            self._roughly(begin, end, writes)
        else:
            self._note(None, begin, rest, unit)

    def _all(self, write: Write | None, begin: int, end: int) -> None:
        """All bytes of the read in the interval are from one write."""
        read = self.read
        address, length, axes = read.blocks
        if not axes:
            self._add(write, 2 * begin, 2 * (end - begin))
            return
        if read.clip is None and begin == read.begin and end == read.end and _is_disjoint(length, axes):
            self._add(write, address, length * prod(size for size, _ in axes))
            return
        unit = _unit([read], 2 * begin, 2 * end)
        marks = painted(read, begin, end, unit)
        if marks is not None:
            self._note(write, begin, marks, unit)
            return
        first = read.first_byte(read, begin, end)
        if first is not None:
            self.is_exact = False
            self._add(write, 2 * first, 2 * (end - first))

    def _roughly(self, begin: int, end: int, writes: tuple[Write, ...]) -> None:
        """The newest write that the read overlaps in the interval."""
        self.is_exact = False
        for each in writes:
            if each.pattern is None or each.is_dense:
                first = self.read.first_byte(self.read, begin, end)
            else:
                first = self.read.first_byte(each.pattern, begin, end)
            if first is not None:
                self._add(each, 2 * first, 2 * (end - first))
                return

    def _note(self, write: Write | None, begin: int, marks: _Marks, unit: int) -> None:
        count = int(np.count_nonzero(marks))
        if count:
            self._add(write, 2 * begin + int(np.argmax(marks)) * unit, count * unit)

    def _add(self, write: Write | None, first: int, count: int) -> None:
        known = self.found.get(write)
        self.found[write] = (first, count) if known is None else (min(first, known[0]), known[1] + count)


def painted(pattern: Pattern | None, low: int, high: int, unit: int) -> _Marks | None:
    """Which parts of [low, high), of ``unit`` half bytes, belong to the pattern; None: too many to tell."""
    count = 2 * (high - low) // unit
    if count > _MOST:
        return None
    if pattern is None:
        return np.ones(count, np.bool_)
    address, length, axes = pattern.blocks
    begin, end = 2 * max(low, pattern.begin), 2 * min(high, pattern.end)
    whole = np.zeros(count, np.bool_)
    if begin >= end:
        return whole
    if axes:  # only those blocks of the outermost axis that reach into the range
        (size, stride), inner = axes[-1], axes[:-1]
        extent = length + sum((size - 1) * stride for size, stride in inner)
        skipped = min(max(0, -(-(begin - address - extent + 1) // stride)), size - 1)
        last = max(min((end - 1 - address) // stride, size - 1), skipped)
        address += skipped * stride
        axes = (*inner, (last - skipped + 1, stride))
    extent = length + sum((size - 1) * stride for size, stride in axes)
    sizes = [*(size for size, _ in axes), length // unit]
    if extent // unit > 4 * _MOST or prod(sizes) > 4 * _MOST:
        return None
    marks = np.zeros(extent // unit, np.bool_)
    strides = [*(stride // unit for _, stride in axes), 1]
    np.lib.stride_tricks.as_strided(marks, sizes, strides)[...] = True
    begin, end = max(begin, address), min(end, address + extent)
    if begin < end:
        to, source, size = (begin - 2 * low) // unit, (begin - address) // unit, (end - begin) // unit
        whole[to : to + size] = marks[source : source + size]
    return whole


def _unit(patterns: list[Pattern | None], *edges: int) -> int:
    """The largest number of half bytes that divides all blocks, their distances, and the edges."""
    unit = gcd(*edges)
    for each in patterns:
        if each is not None:
            address, length, axes = each.blocks
            unit = gcd(unit, address, length, 2 * each.begin, 2 * each.end, *(stride for _, stride in axes))
    return unit


def _is_disjoint(length: int, axes: tuple[tuple[int, int], ...]) -> bool:
    """Whether no two blocks overlap."""
    extent = length
    for size, stride in axes:
        if stride < extent:
            return False
        extent += (size - 1) * stride
    return True


def _is_same(one: Pattern | None, other: Pattern) -> bool:
    """Whether both have the same bytes, as far as they are not clipped."""
    return one is other or (one is not None and one.blocks == other.blocks)


def _holds(write: Write, address: int) -> bool:
    """Whether the write covers a byte, or half of it."""
    if write.is_dense or write.pattern is None:
        return True
    return write.pattern.first_byte(write.pattern, address, address + 1) is not None
