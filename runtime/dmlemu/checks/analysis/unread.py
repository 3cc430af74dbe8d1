"""Writes that nobody read before they were overwritten, released, or the program ended.

Not reported are: a write that was read in part, or with another output of the same dispatch; one that was
filled in piece by piece later, as a cleared arena is; clears, temporary and persistent resources; the same
command again; and everything that came after the CPU last read results.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from .mapped import Range, add_span, without
from .provenance import Author, Provenance, Write

__all__ = ["Unread", "UnreadWrite"]

_KEPT = 256  # causes


class UnreadWrite(NamedTuple):
    """A write that nobody read; ``by`` has overwritten it, None: nobody has."""

    write: Write
    author: Author
    by: Author | None
    number: float  # of the write
    where: str  # in words


class Unread:
    """Collects the unread writes of all memory; ``where`` gives its bytes in words."""

    def __init__(self, where: Callable[[int, int], str]) -> None:
        self._where = where
        self.memory = Provenance(self._hidden)
        self._found: dict[Hashable, UnreadWrite] = {}
        self._viewed: list[Range] = []  # by the CPU, at any time
        self._looked = 0.0  # number of the last write that the CPU may have looked at

    def view(self, begin: int, end: int) -> None:
        """The CPU may read these bytes, now or later."""
        add_span(self._viewed, begin, end)

    def release(self, begin: int, end: int, heap: str) -> None:
        """The memory of a heap is gone."""
        self._look()
        for each in self._unread(begin, end):
            where = f"bytes [{each.begin - begin}, {each.end - begin}) of {heap}, now released"
            self._add(each, None, where)
        self._viewed = [part for each in self._viewed for part in without(each, [(begin, end)])]
        self.memory.forget(begin, end)

    def take(self) -> list[UnreadWrite]:
        """What was found until now, in order; each is returned once."""
        self._look()
        for each in self._unread(0, 2**64 - 1):
            self._add(each, None)
        found = [each for each in self._found.values() if each.number < self._looked]
        found = [each for each in found if not each.author.use.is_over]
        self._found.clear()
        for write in found:
            write.author.use.is_over = True
        return sorted(found, key=lambda each: each.number)

    def _look(self) -> None:
        """What commands wrote where the CPU may read counts as read."""
        for begin, end in self._viewed:
            for each in self.memory.writes(begin, end):
                self._see(each)

    def _see(self, write: Write) -> None:
        if write.author.commands is not None:
            write.author.use.is_over = True
            self._looked = max(self._looked, write.number)

    def _hidden(self, older: Iterable[Write], newer: Write) -> None:
        """A newer write overlaps the range of older ones."""
        for each in older:
            use = each.author.use
            if each is newer:
                continue
            if _is_same(each.author, newer.author):
                newer.author.use.is_over |= use.is_over
            elif not use.is_over and _meet(each, newer):
                if any(begin < each.end and each.begin < end for begin, end in self._viewed):
                    self._see(each)
                elif _is_covered(each, newer) and each.author.commands is not None:
                    self._add(each, newer.author)
                else:
                    use.is_over = True

    def is_quiet(self, older: Write, newer: Write) -> bool:
        """Whether it changes nothing that the newer write overlaps the range of the older one."""
        one, other = older.author.use, newer.author.use
        if older is newer or (one.is_over and other.is_over):
            return True
        if _is_same(older.author, newer.author):
            return other.is_over or not one.is_over
        return one.is_over

    def _unread(self, begin: int, end: int) -> list[Write]:
        writes = (each for each in self.memory.writes(begin, end) if not each.author.use.is_over)
        return sorted(writes, key=lambda each: (each.number, each.begin))

    def _add(self, write: Write, by: Author | None, where: str = "") -> None:
        author = write.author
        if author.use.is_divided:
            return
        if author.commands is not None and author.before is None and write.tensor is None:
            return  # a clear, or a temporary or persistent resource
        key = by is None, _identity(author), write.operand, write.tensor and write.tensor.path
        if key not in self._found and len(self._found) < _KEPT:
            where = where or self._where(write.begin, write.end)
            now = Author(author.commands, author.number, author.list, None, author.before, author.use)
            kept = Write(now, write.operand, write.begin, write.end, None, write.tensor, write.number)
            self._found[key] = UnreadWrite(kept, now, by, write.number, where)


def _identity(author: Author) -> Hashable:
    """The same for a command that repeats; the CPU has one use for each buffer."""
    command = author.command
    return id(author.use) if command is None else (command.site, command.name)


def _is_same(one: Author, other: Author) -> bool:
    if one.commands is None or other.commands is None:
        return one.commands is other.commands
    return _identity(one) == _identity(other)


def _meet(older: Write, newer: Write) -> bool:
    """Whether they share a byte."""
    if older.is_dense or newer.is_dense or older.pattern is None or newer.pattern is None:
        return True
    return older.pattern.first_byte(newer.pattern) is not None


def _is_covered(older: Write, newer: Write) -> bool:
    """Whether nothing is left of the older write."""
    if newer.begin > older.begin or newer.end < older.end:
        return False
    if newer.is_dense or newer.pattern is None:
        return True
    return older.pattern is not None and older.pattern.blocks == newer.pattern.blocks
