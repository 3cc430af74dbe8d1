"""Host writes: which bytes of mapped memory the CPU has written.

Stores made by :class:`dmlemu.d3d12.MappedMemory` itself are known.  Stores through a pointer or an
array are not observable.  Where Map says that the CPU will not read (an empty ``read_range``), unwritten
4-byte words are therefore filled with a pattern: words that still hold it when the
memory becomes visible to the GPU were not written.  Elsewhere everything that was handed out counts as
written.

Through an array of smaller elements parts of words can be stored, and a stored byte may equal the pattern's.
Where memory is zeroed, everything such arrays reach counts as written: bytes not stored to are zeros, which
a pattern beside stored ones would change.  Where it is not zeroed, a run of 8 or more bytes of the pattern
counts as not written, except for 3 bytes at each end: those count as written and are left unchanged,
so that no byte stored by the program is lost.  The bytes of the pattern are values that are seldom stored
alone: no small numbers, no text, neither 0x80 nor 0xFF.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dmlemu_hw.events import MAYBE_READ, READ, Accesses, EventStream, Queued, Signalled, Submitted
from dmlemu_hw.kernels import ffi
from dmlemu_hw.memory import Memory
from dmlemu_hw.memory_spans import spans
from dmlemu_hw.shadow import Shadow

from ...d3d12.memory.resource import HostAccessed, HostMapped, HostUnmapped
from ...d3d12.types.enums import HeapFlags
from .mapped import without
from .visible import place_of

if TYPE_CHECKING:
    from ...d3d12.memory.resource import Resource

__all__ = ["HostEvent", "HostWrites", "PatternStored"]

HostEvent = HostMapped | HostAccessed | HostUnmapped | Submitted | Queued | Signalled
"""Host operations on memory, and those that let a queue continue."""

_Span = tuple[int, int]  # first byte and the byte after the last one
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_Same = np.ndarray[Any, np.dtype[np.bool_]]  # words that hold the pattern

_WORD = 4
_TILE = 1 << 16  # bytes after which the pattern repeats; buffers begin at multiples of it
_PATTERN = np.frombuffer(Random(0xD31).randbytes(_TILE), np.uint8) % (0xFF - 0x81) + np.uint8(0x81)
_PATTERN_WORDS = _PATTERN.view(np.uint32)
_SURE = 2  # this many untouched words in a row are no coincidence, nor is the first or last word of an array
_FEW = 4  # likewise this many single ones
_SMALL = 4096  # words: among so few, a stored word is not expected to equal the pattern
_UNSURE = 3  # this many pattern bytes next to stored ones may have been stored


class PatternStored(NamedTuple):
    """Unwritten bytes [begin, end) of a heap (``Span.heap``) were changed by :class:`HostWrites`.

    They now hold the pattern, or zeros: neither the CPU nor a command has stored them.
    """

    heap: int
    begin: int
    end: int


class HostStored(NamedTuple):
    """Stores of the CPU to GPU addresses [begin, end) have become visible."""

    begin: int
    end: int


@dataclass(eq=False)
class _Map:
    """A mapped buffer, at ``address``; it keeps no reference to the buffer.

    ``memory`` is its bytes, which begin at ``offset`` of ``heap``; ``physical`` is the physical address of
    the first one.  Arrays and pointers reach ``words``, which hold the pattern until stored to, and
    ``loose`` bytes, which count as written; both are sorted and disjoint.  In ``split``, parts of words may
    be stored.  ``touched`` counts the words of a span that were found to be stored to.
    """

    address: int
    memory: _Bytes
    heap: int
    offset: int
    is_zeroed: bool
    write_only: bool = True
    words: list[_Span] = field(default_factory=list)
    split: list[_Span] = field(default_factory=list)
    loose: list[_Span] = field(default_factory=list)
    touched: dict[_Span, int] = field(default_factory=dict)

    @staticmethod
    def of(resource: Resource) -> _Map:
        allocation, place = resource.allocation, place_of(resource)
        memory = np.frombuffer(allocation.buffer()[: resource.width], np.uint8)
        flags = resource.heap_flags if resource.heap is None else resource.heap.get_desc().flags
        is_zeroed = not flags & HeapFlags.CREATE_NOT_ZEROED
        return _Map(allocation.address, memory, place.heap, place.offset, is_zeroed)

    @property
    def physical(self) -> int:
        return self.heap + self.offset

    @property
    def all(self) -> _Span:
        return 0, len(self.memory)

    def part(self, low: int, high: int) -> _Span:
        """The part of it in physical bytes [low, high)."""
        begin, end = max(low - self.physical, 0), min(high - self.physical, len(self.memory))
        return (begin, end) if begin < end else (0, 0)

    def part_of(self, other: _Map, span: _Span) -> _Span:
        """The part of it that shares memory with a span of another map."""
        return self.part(other.physical + span[0], other.physical + span[1])

    def untouched(self, same: _Same, words: _Span) -> list[_Span]:
        """The bytes of the words that were not stored to, if that can be determined."""
        if any(_meet(words, split) for split in self.split):
            return _untouched_bytes(self.memory, same, words[0])
        return _untouched(same, words[0], self.is_zeroed)

    def loosen(self, span: _Span) -> None:
        """Turns the words of the span into loose bytes."""
        words = [part for each in self.words for part in without(each, [span])]
        lost = [part for each in self.words for part in without(each, words)]
        self.words, self.loose, self.touched = words, _union([*self.loose, *lost]), {}


class HostWrites:
    """Tracks maps; marks the CPU's writes in ``shadow`` and reports each range (addresses) to ``note``.

    Its own stores are reported to ``events``.
    ``patterned``: some mapped memory currently holds the pattern.
    """

    def __init__(
        self, memory: Memory, shadow: Shadow, events: EventStream, note: Callable[[int, int], None]
    ) -> None:
        self._memory = memory
        self._shadow = shadow
        self._events = events
        self._note = note
        self._range = ffi.new("dmlk_footprint *", {"bits": 8, "rank": 1, "strides": [1]})
        self._maps: dict[int, _Map] = {}  # by address
        self._freed: deque[int] = deque()
        self._hidden: list[tuple[_Map, _Span]] = []  # pattern bytes that are now zeros

    @property
    def patterned(self) -> bool:
        return bool(self._maps) and any(each.words for each in self._maps.values())

    def on_event(self, event: HostEvent) -> None:
        """Handles a host event."""
        self._settle()
        if isinstance(event, HostMapped):
            self._map(event)
        elif isinstance(event, HostAccessed):
            self._access(event)
        elif isinstance(event, HostUnmapped):
            self._unmap(event)
        else:
            for each in self._maps.values():
                self._see(each, each.all)

    def freed(self, address: int) -> None:
        """Notes a freed allocation, at any moment: a buffer may be collected while it is mapped."""
        if address in self._maps:
            self._freed.append(address)

    def before_read(self, accesses: Accesses) -> None:
        """Before a command reads: unwritten bytes hold zeros until :meth:`after_read`."""
        self._settle()
        found = []
        for i in range(len(accesses)):
            entry = accesses.pointer[i]
            if entry.access & (READ | MAYBE_READ):
                for place in self._physical(entry.address, entry.end):
                    found += [(each, each.part(*place)) for each in self._maps.values()]
        for each, part in found:
            self._compare(each, part)
        for each, part in found:
            self._hidden += [(each, wiped) for wiped in self._wipe(each, part)]

    def after_read(self) -> None:
        """The command is done: restores the pattern."""
        while self._hidden:
            self._fill(*self._hidden.pop())

    def end(self) -> None:
        """Removes the pattern from all memory."""
        self._hidden.clear()
        for known in list(self._maps.values()):
            self._end(known)

    # --- events ---

    def _map(self, event: HostMapped) -> None:
        address = event.resource.address
        if address not in self._maps:
            self._maps[address] = _Map.of(event.resource)
        known = self._maps[address]
        sharing = self._sharing(known)
        if event.read[0] != event.read[1] or not all(each.write_only for each in sharing):
            self._loosen(known, known.all)
            for each in sharing:
                each.write_only = False

    def _access(self, event: HostAccessed) -> None:
        known = self._maps.get(event.resource.address)
        if known is None or not event.writes:
            return
        span = event.begin, event.end
        if not event.reads:
            self._wrote(known, span)
            for word in {_word_of(span[0]), _word_of(span[1] - 1)}:
                self._fray(known, word, span)
            return
        is_whole = event.element % _WORD == event.begin % _WORD == 0
        if known.write_only and (is_whole or not known.is_zeroed):
            self._hand_out(known, span, is_whole)
        else:
            self._loosen(known, span)
            known.loose = _union([*known.loose, span])

    def _hand_out(self, known: _Map, span: _Span, is_whole: bool) -> None:
        """The program can store to the span through an array: whole words, or parts of words."""
        sharing = self._sharing(known)
        inner = span if is_whole else (-(-span[0] // _WORD) * _WORD, span[1] // _WORD * _WORD)
        loose = [_in_words(known.part_of(each, part)) for each in sharing for part in each.loose]
        taken = [known.part_of(each, part) for each in sharing for part in each.words]
        new = [part for free in without(inner, loose) for part in without(free, taken)]
        loose += [word for part in new for word in self._frayed(known, part)]
        for part in new:
            for whole in without(part, loose):
                self._fill(known, whole)
        words = list(without(inner, loose))
        known.loose = _union([*known.loose, *without(span, [*words, *taken])])
        known.words, known.touched = _union([*known.words, *words]), {}
        if not is_whole:
            known.split = _union([*known.split, span])

    def _unmap(self, event: HostUnmapped) -> None:
        known = self._maps.get(event.resource.address)
        if known is not None:
            self._see(known, event.written)
            if event.maps == 0:
                self._end(known)

    def _settle(self) -> None:
        """Removes the pattern from buffers that were freed while they were mapped."""
        while self._freed:
            known = self._maps.get(self._freed.popleft())
            if known is not None:
                self._end(known)

    def _end(self, known: _Map) -> None:
        others = [each for each in self._maps.values() if each is not known]
        self._wipe(known, known.all, [known.part_of(each, part) for each in others for part in each.words])
        del self._maps[known.address]

    def _loosen(self, known: _Map, span: _Span) -> None:
        """Any byte of the span may now be read, or stored alone: removes the pattern."""
        parts = [(each, _in_words(each.part_of(known, span))) for each in self._sharing(known)]
        for each, part in parts:
            self._compare(each, part)
        for each, part in parts:
            self._wipe(each, part)
        for each, part in parts:
            each.loosen(part)

    def _fray(self, known: _Map, word: _Span, stored: _Span) -> None:
        """A part of a word was stored alone: removes the pattern from the rest of the word."""
        rest = list(without(word, [stored]))
        parts = [(each, each.part_of(known, word)) for each in self._sharing(known)] if rest else []
        if not any(_meet(part, words) for each, part in parts for words in each.words):
            return
        is_split = any(_meet(part, split) for each, part in parts for split in each.split)
        if not is_split and all(np.array_equal(known.memory[slice(*part)], filling(*part)) for part in rest):
            for part in rest:
                for first, last in list(self._unwritten(known, part)):
                    self._store(known, first, last, 0)
        else:
            for each, part in parts:
                self._compare(each, part)
        for each, part in parts:
            each.loosen(part)

    def _frayed(self, known: _Map, span: _Span) -> Iterator[_Span]:
        """Words of which only a part is written."""
        for unwritten in list(self._unwritten(known, span)):
            for edge in unwritten:
                if edge % _WORD:
                    yield _word_of(edge)

    # --- stores and the pattern ---

    def _see(self, known: _Map, span: _Span) -> None:
        """Stores to the span become visible."""
        for part in known.loose:
            self._wrote(known, _both(part, span))
        self._compare(known, span)

    def _compare(self, known: _Map, span: _Span) -> None:
        """Marks the words of the span that were stored to as written."""
        for words in known.words:
            wanted = _both(words, span)
            if wanted[0] >= wanted[1]:
                continue
            same = _same(known.memory[slice(*words)], words[0])
            touched = len(same) - int(np.count_nonzero(same))
            if known.touched.get(words) == touched:
                continue
            if wanted == words:
                known.touched[words] = touched
            for part in without(wanted, known.untouched(same, words)):
                for unwritten in list(self._unwritten(known, part)):
                    self._wrote(known, unwritten)

    def _wrote(self, known: _Map, span: _Span) -> None:
        begin, end = known.address + span[0], known.address + span[1]
        if begin < end:
            footprint = self._range
            footprint.address, footprint.end, footprint.sizes[0] = begin, end, end - begin
            self._shadow.mark_written(footprint)
            self._note(begin, end)
            self._events.emit(HostStored(begin, end))

    def _fill(self, known: _Map, span: _Span) -> None:
        """Fills unwritten bytes with the pattern."""
        for first, last in list(self._unwritten(known, span)):
            self._store(known, first, last, filling(first, last))

    def _wipe(self, known: _Map, span: _Span, spared: Iterable[_Span] = ()) -> list[_Span]:
        """Replaces the pattern in the span with zeros; returns where it was."""
        wiped: list[_Span] = []
        for words in known.words:
            if _meet(words, span):
                same = _same(known.memory[slice(*words)], words[0])
                for untouched in known.untouched(same, words):
                    for part in without(_both(untouched, span), spared):
                        wiped += self._unwritten(known, part)
        for first, last in wiped:
            self._store(known, first, last, 0)
        return wiped

    def _store(self, known: _Map, first: int, last: int, bytes: _Bytes | int) -> None:
        """Changes unwritten bytes."""
        known.memory[first:last] = bytes
        self._events.emit(PatternStored(known.heap, known.offset + first, known.offset + last))

    # --- internals ---

    def _sharing(self, known: _Map) -> list[_Map]:
        """The map itself and all maps that share bytes with it, directly or through others."""
        found = [known]
        for each in found:
            rest = (other for other in self._maps.values() if other not in found)
            found += [other for other in rest if other.part_of(each, each.all) != (0, 0)]
        return found

    def _physical(self, begin: int, end: int) -> Iterator[_Span]:
        """The physical spans of GPU addresses."""
        allocation = self._memory.find(begin)
        if allocation is None:
            return
        for span in spans(allocation):
            start = allocation.address + span.start
            low, high = max(begin, start), min(end, start + span.size)
            if low < high:
                shift = span.heap + span.offset - start
                yield low + shift, high + shift

    def _unwritten(self, known: _Map, span: _Span) -> Iterator[_Span]:
        """The unwritten parts of the span."""
        begin, end = span
        if self._memory.find(known.address) is not None:  # otherwise it is freed and has no shadow
            for first, last in self._shadow.written_runs(known.address + begin, max(end - begin, 0)):
                if begin < first - known.address:
                    yield begin, first - known.address
                begin = last - known.address
        if begin < end:
            yield begin, end


def _same(memory: _Bytes, begin: int) -> _Same:
    """Which words of memory that begins at byte ``begin`` of a buffer hold the pattern."""
    words, first, period = memory.view(np.uint32), begin // _WORD, len(_PATTERN_WORDS)
    same = np.empty(len(words), np.bool_)
    for at in range(-(first % period), len(words), period):
        part = slice(max(at, 0), at + period)
        pattern = _PATTERN_WORDS[part.start - at :][: len(words[part])]
        np.equal(words[part], pattern, out=same[part])
    return same


def _untouched(same: _Same, begin: int, is_zeroed: bool) -> list[_Span]:
    """The bytes not stored to, if that can be determined; ``same``: words that hold the pattern.

    In a small array of zeroed memory every match counts: bytes not stored to must not keep the pattern.
    """
    runs = _runs(same)
    first, last = runs[:, 0], runs[:, 1]
    sure = (last - first >= _SURE) | (first == 0) | (last == len(same))
    is_small = is_zeroed and len(same) <= _SMALL
    if not is_small and len(runs) - np.count_nonzero(sure) < _FEW:
        runs = runs[sure]
    return [(begin + low, begin + high) for low, high in (runs * _WORD).tolist()]


def _untouched_bytes(memory: _Bytes, same: _Same, begin: int) -> list[_Span]:
    """The same where parts of words may have been stored alone."""
    end = begin + len(same) * _WORD
    runs = begin + _runs(same) * _WORD
    first, last = runs[:, 0].copy(), runs[:, 1].copy()
    for edges, step in ((first, -1), (last, 1)):
        goes_on = np.ones(len(edges), np.bool_)
        for _ in range(_WORD - 1):
            byte = edges - 1 if step < 0 else edges
            goes_on &= (byte >= begin) & (byte < end)
            byte = byte.clip(begin, end - 1)
            goes_on &= memory[byte] == _PATTERN[byte % _TILE]
            edges += step * goes_on
    sure = last - first >= _SURE * _WORD
    first, last = first + _UNSURE, np.where(last == end, last, last - _UNSURE)
    return list(zip(first[sure].tolist(), last[sure].tolist(), strict=True))


def _runs(same: _Same) -> np.ndarray[Any, np.dtype[np.intp]]:
    """First index, and the one after the last, of each run of words that hold the pattern."""
    return np.flatnonzero(np.diff(same.view(np.int8), prepend=0, append=0)).reshape(-1, 2)


def filling(begin: int, end: int) -> _Bytes:
    """The pattern at bytes [begin, end) of a buffer."""
    start = begin % _TILE
    return np.resize(
        np.roll(_PATTERN, -start) if end - begin > _TILE - start else _PATTERN[start:], end - begin
    )


def _word_of(byte: int) -> _Span:
    return byte // _WORD * _WORD, byte // _WORD * _WORD + _WORD


def _meet(one: _Span, other: _Span) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def _in_words(span: _Span) -> _Span:
    """The smallest span of whole words that contains the bytes."""
    return span[0] // _WORD * _WORD, -(-span[1] // _WORD) * _WORD


def _both(one: _Span, other: _Span) -> _Span:
    """The intersection of two spans; empty when it ends before it begins."""
    return max(one[0], other[0]), min(one[1], other[1])


def _union(parts: list[_Span]) -> list[_Span]:
    """The union of spans, sorted and disjoint."""
    joined: list[_Span] = []
    for begin, end in sorted(parts):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        elif begin < end:
            joined.append((begin, end))
    return joined
