"""A run: its moments, and what everything was after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from dmlemu_hw.footprints import element_at
from dmlemu_hw.memory_spans import Span

from ..diagnostics.location import CallSite, spell_late
from .model import COMMAND, HOST, Buffer, Change, Content, Heap, Listing, Moment
from .pages import Pages, pieces
from .versions import Versions

__all__ = ["Run"]

_WORD = 8  # bytes: what the CPU writes counts as written as a whole, although only changed bytes are seen
_NEAR = 8  # bytes between two changes that are shown as one


class Run:
    """The moments of a run in order, and the versions of everything that changed.

    ``notes``: what is missing, one sentence each.  Going back is asking for an earlier moment, -1 for the
    time before the first one; nothing is executed again.
    """

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.buffers: list[Buffer] = []
        self.heaps: list[Heap] = []
        self.fences: list[str] = []
        self.notes: list[str] = []
        self.failure = ""  # how the program ended, if it failed; one of the notes
        self.listings: dict[tuple[int, int], Listing] = {}  # by submission
        self.pages = Pages()
        self.spans: Versions[int, tuple[Span, ...]] = Versions()  # by buffer
        self.descriptor_versions: Versions[tuple[int, int], str] = Versions()
        self.state_versions: Versions[int, str] = Versions()
        self.fence_versions: Versions[int, int] = Versions()
        self._cached = lru_cache(maxsize=64)(self._changed)

    def fail(self, how: str) -> None:
        """Notes that the program failed."""
        self.failure = how
        self.notes.append(how)

    def __len__(self) -> int:
        return len(self.moments)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cached"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cached = lru_cache(maxsize=64)(self._changed)

    def spell(self) -> None:
        """Puts the lines of call sites into all texts, for a front end that spells them late."""
        listed = {key: [each.recorded_at for each in found.commands] for key, found in self.listings.items()}
        texts = [
            [each.name, each.text, each.queue, each.list, each.site, each.fields] for each in self.moments
        ]
        named: list[Buffer | Heap] = [*self.buffers, *self.heaps]
        texts, names, self.fences, sites = spell_late(
            [texts, [each.name for each in named], self.fences, list(listed.values())]
        )
        for moment, row in zip(self.moments, texts, strict=True):
            moment.name, moment.text, moment.queue, moment.list, moment.site, moment.fields = row
            moment.reports = [each.spelled() for each in moment.reports]
        for each, name in zip(named, names, strict=True):
            each.name = name
        for key, lines in zip(listed, sites, strict=True):
            packets, commands = self.listings[key]
            spelled = [
                command._replace(site=CallSite([line]) if line else None)
                for command, line in zip(commands, lines, strict=True)
            ]
            self.listings[key] = Listing(packets, spelled)
        self.descriptor_versions.change(spell_late)

    # --- what everything is after a moment ---

    def living(self, moment: int) -> list[Buffer]:
        """The buffers that exist."""
        return [each for each in self.buffers if each.lives(moment)]

    def states(self, moment: int) -> dict[int, str]:
        """The states of the living buffers, by number, as the commands that ran have left them."""
        return {
            each.number: self.state_versions.get(moment, each.number) or "COMMON"
            for each in self.living(moment)
        }

    def descriptors(self, moment: int) -> dict[tuple[int, int], str]:
        """What was written into descriptor heaps, by heap and index."""
        return dict(self.descriptor_versions.items(moment))

    def fence_values(self, moment: int) -> dict[int, int]:
        """The values of the fences that exist, by number."""
        return dict(self.fence_versions.items(moment))

    def listing(self, moment: int) -> Listing | None:
        """The list that the moment is a command of, with the packets that were not executed."""
        return self.listings.get(self.moments[moment].submission)

    def content(self, buffer: int, moment: int, begin: int = 0, end: int | None = None) -> Content:
        """Bytes [begin, end) of a buffer."""
        end = self.buffers[buffer].size if end is None else min(end, self.buffers[buffer].size)
        data, unknown = bytearray(max(0, end - begin)), []
        for page, first, start, size in self._pieces(buffer, moment, begin, end):
            found, at = self.pages.get(page, moment), start - begin
            if found is None:
                unknown.append((at, at + size))
            else:
                data[at : at + size] = found[first : first + size]
        return Content(bytes(data), tuple(_joined(unknown, 0)))

    # --- what a moment changed ---

    def changed(self, buffer: int, moment: int) -> list[tuple[int, int]]:
        """The bytes of a buffer that the moment changed, through whichever buffer over the same memory."""
        return self._cached(buffer, moment)

    def _changed(self, buffer: int, moment: int) -> list[tuple[int, int]]:
        pages = set(self.pages.changed(moment))
        if not pages:
            return []
        ranges: list[tuple[int, int]] = []
        for page, first, start, size in self._pieces(buffer, moment, 0, self.buffers[buffer].size):
            if page in pages:
                before, after = self.pages.get(page, moment - 1), self.pages.get(page, moment)
                assert before is not None and after is not None
                part = slice(first, first + size)
                ranges += ((start + a, start + b) for a, b in _differences(before[part], after[part]))
        return list(_joined(ranges, _NEAR))

    def changes(self, moment: int) -> list[Change]:
        """The changed bytes of the buffers that the moment accessed."""
        numbers = dict.fromkeys(each.buffer for each in self.moments[moment].operands)
        return [
            Change(
                number,
                begin,
                self.content(number, moment - 1, begin, end).data,
                self.content(number, moment, begin, end).data,
            )
            for number in numbers
            if number is not None
            for begin, end in self.changed(number, moment)
        ]

    def _pieces(self, buffer: int, moment: int, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """The pages under bytes [begin, end) of a buffer, as :func:`pieces` gives them."""
        return pieces(self.spans.get(moment, buffer) or self.spans.last(buffer) or (), begin, end)

    # --- searches: the number of a moment, or None ---

    def find(self, at: int, step: int, wanted: Callable[[Moment], bool]) -> int | None:
        """The next moment after (``step`` 1) or before (-1) ``at`` that is wanted."""
        at = min(max(-1, at), len(self.moments))
        while 0 <= (at := at + step) < len(self.moments):
            if wanted(self.moments[at]):
                return at
        return None

    def opening(self) -> int:
        """Where a reader begins: the first report, else the first dispatch, else the first moment."""
        found = self.next_report(-1, 1)
        return (self.next_dispatch(-1, 1) if found is None else found) or 0

    def next_match(self, at: int, step: int, text: str) -> int | None:
        """The next moment that contains a text: :meth:`Moment.contains`."""
        return self.find(at, step, lambda moment: moment.contains(text))

    def next_command(self, at: int, step: int) -> int | None:
        """The next packet of a command list."""
        return self.find(at, step, lambda moment: moment.kind == COMMAND)

    def next_dispatch(self, at: int, step: int) -> int | None:
        """The next dispatch of an operator: the first of its packets."""
        return self.find(at, step, lambda moment: moment.is_dispatch and self._begins(moment))

    def _begins(self, moment: Moment) -> bool:
        """Whether it is the first packet of its command."""
        found = self.find(moment.number, -1, lambda each: each.queue_id == moment.queue_id)
        before = None if found is None else self.moments[found]
        same = before is not None and before.submission == moment.submission
        return not (same and before is not None and before.command == moment.command)

    def next_list(self, at: int, step: int) -> int | None:
        """The first command of the next list that was executed, or of this or the previous one."""

        def is_first(moment: Moment) -> bool:
            if moment.kind != COMMAND:
                return False
            before = self.find(moment.number, -1, lambda each: each.queue_id == moment.queue_id)
            return before is None or self.moments[before].submission != moment.submission

        return self.find(at, step, is_first)

    def next_report(self, at: int, step: int) -> int | None:
        """The next moment at which something was reported, or the GPU failed."""
        return self.find(at, step, lambda moment: bool(moment.reports) or moment.failed)

    def next_writer(self, at: int, step: int, buffer: int, byte: int) -> int | None:
        """The next moment that writes an element over a byte, through whichever buffer."""
        spans = self.spans.get(at, buffer) or self.spans.last(buffer) or ()
        places = [
            each.heap + each.offset + byte - each.start
            for each in spans
            if each.start <= byte < each.start + each.size
        ]
        if not places:
            return None
        return self.find(at, step, lambda moment: self._writes(moment, places[0]))

    def _writes(self, moment: Moment, place: int) -> bool:
        """Whether the moment writes the byte of memory, or the CPU changed it or what is beside it."""
        for operand in moment.operands:
            if not operand.writes or operand.buffer is None:
                continue
            for byte in self._bytes_at(operand.buffer, moment.number, place):
                if not operand.begin <= byte < operand.end:
                    continue
                if moment.kind == HOST:
                    changed = self.changed(operand.buffer, moment.number)
                    if any(begin - begin % _WORD <= byte < end - end % -_WORD for begin, end in changed):
                        return True
                elif any(
                    element_at(each, self.buffers[operand.buffer].address + byte) is not None
                    for each in operand.footprints
                ):
                    return True
        return False

    def _bytes_at(self, buffer: int, moment: int, place: int) -> Iterator[int]:
        """The bytes of a buffer at a byte of memory."""
        for span in self.spans.get(moment, buffer) or ():
            first = span.heap + span.offset
            if first <= place < first + span.size:
                yield span.start + place - first


def _differences(before: bytes, after: bytes) -> list[tuple[int, int]]:
    """The ranges in which the bytes differ."""
    differ = np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)
    edges = np.flatnonzero(np.diff(differ, prepend=False, append=False))
    return [(int(begin), int(end)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def _joined(ranges: list[tuple[int, int]], near: int) -> Iterator[tuple[int, int]]:
    """Sorted ranges, those not more than ``near`` bytes apart as one."""
    begin = end = -1
    for first, last in sorted(ranges):
        if end < 0:
            begin, end = first, last
        elif first - end <= near:
            end = max(end, last)
        else:
            yield begin, end
            begin, end = first, last
    if end >= 0:
        yield begin, end
