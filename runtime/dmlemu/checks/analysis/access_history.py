"""Accesses that nothing may have ordered yet, and which of them meet.

Footprints are compared as patterns over physical memory, so that placed and reserved buffers over the
same bytes find each other.  What two accesses have to do with each other is asked in C, for many at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Container, Iterator
from enum import IntEnum
from typing import Any, NamedTuple

from dmlemu_hw.events import MAYBE_READ, UNDEFINE, WRITE, Accesses, Freed, Mapped
from dmlemu_hw.kernels import ffi, lib
from dmlemu_hw.memory import Memory
from dmlemu_hw.memory_spans import Span, spans

from ...d3d12.recording import Command
from ..framework.names import NamedCommand, Work
from .order import Done, holds

__all__ = [
    "Access",
    "Kind",
    "Kinds",
    "Part",
    "Pattern",
    "Place",
    "Places",
    "Reached",
    "Touch",
    "Touched",
    "Window",
    "touched",
]

_BIAS = 1 << 48  # physical addresses begin here: what stands before a span is still not below 0
_KEPT = 2048  # sets of accesses whose patterns are remembered
_LONG = 128  # accesses of such a set at most
_CHANGES = WRITE | UNDEFINE

_find = lib.dmlk_footprints_find
_buffer, _new, _NULL = ffi.buffer, ffi.new, ffi.NULL
_unread = _new("uint64_t *")


class Kind(IntEnum):
    """How a command reaches memory, as barriers see it."""

    UAV = 0  # dispatches and clears
    TAIL = 1  # the same, where an output's last element has ended: nobody relies on those bytes
    COPY_SOURCE = 2
    COPY_DEST = 3


Touch = tuple[Work, int, int]
"""Which command reached the memory: the list it is of, the index of its packet there, its operand."""

Kinds = tuple[Kind | None, Kind | None]
"""How reads and writes of a command reach memory; None: by a way that needs no barriers."""


class Place:
    """An allocation: commands reach memory through it, and barriers name it, by its ``address``.

    ``windows``: all accesses through it, and through others that share memory with it.
    """

    def __init__(self, address: int, end: int) -> None:
        self.address = address
        self.end = end
        self.spans: list[Span] | None = None  # None: to be asked for anew
        self.reach: list[tuple[int, int, int]] = []  # heap and bytes of it on which it ever stood
        self.own: dict[int, Window] = {}
        self.windows: list[Window] = []
        self.linked: list[Place] = []

    def link(self, other: Place) -> None:
        self.linked.append(other)
        self.windows += other.own.values()

    def unlink(self, other: Place) -> None:
        self.linked.remove(other)
        self.windows = [each for each in self.windows if each.place is not other]


class Pattern:
    """A footprint in physical memory; of one that stands on several spans, what lies in ``clip``.

    Adding ``shift`` to a GPU virtual address of its allocation gives the physical one.
    """

    __slots__ = ("begin", "changes", "clip", "end", "place", "shift", "struct")

    def __init__(self, place: Place, struct: Any, shift: int, clip: tuple[int, int] | None) -> None:
        self.place = place
        self.struct = struct
        self.shift = shift
        self.clip = clip
        self.begin: int = struct.address if clip is None else clip[0]
        self.end: int = struct.end if clip is None else clip[1]
        self.changes = bool(struct.access & _CHANGES)

    @property
    def access(self) -> int:
        access: int = self.struct.access
        return access

    @property
    def is_dense(self) -> bool:
        """Is every byte from the first to the last of an element?"""
        struct = self.struct
        extent = 1
        dimensions = zip(struct.sizes[0 : struct.rank], struct.strides[0 : struct.rank], strict=True)
        for stride, size in sorted((stride, size) for size, stride in dimensions if size > 1):
            if stride > extent:
                return False
            extent += stride * (size - 1)
        return True

    def first_byte(self, other: Pattern, low: int = 0, high: int = 2**64 - 1) -> int | None:
        """The lowest physical byte in [low, high) that both hold; None: there is none."""
        low = max(low, self.begin, other.begin)
        high = min(high, self.end, other.end)
        byte = _new("uint64_t *")
        if low >= high or lib.dmlk_footprints_meet(self.struct, other.struct, 0, low, high, byte) != 1:
            return None
        return int(byte[0])

    def last_byte(self, other: Pattern, first: int) -> int:
        """The highest one, when ``first`` is the lowest."""
        low, high = first, min(self.end, other.end)
        while True:  # something is shared in [low, high), and nothing from high on
            if high - low <= 1:
                return low
            middle = (low + high) // 2
            byte = self.first_byte(other, middle, high)
            if byte is None:
                high = middle
            else:
                low = byte


class Access(NamedTuple):
    """What a command touched, and how."""

    pattern: Pattern
    kind: Kind
    touch: Touch

    @property
    def command(self) -> NamedCommand:
        """In words."""
        work, packet, _ = self.touch
        return work.command(packet)

    @property
    def number(self) -> int:
        """Of the command in its list."""
        return self.command.number

    @property
    def order(self) -> tuple[int, int]:
        """Where the command stands among those that its queue got: its list's ticket, and its number."""
        return self.touch[0].ticket, self.number

    @property
    def handed(self) -> int:
        """Which call of the host handed the command to its queue."""
        return self.touch[0].handed

    @property
    def commands(self) -> list[Command]:
        """Those of the list: no other list has the same one."""
        return self.touch[0].commands


Touched = tuple[Pattern, Kind, Touch]


class Reached:
    """What accesses of equal content reach: patterns with their operands, and the places these lie in.

    ``addresses``: 0, which stands for any place, and those of all places that the accesses name.
    """

    def __init__(self, patterns: list[tuple[Pattern, int]], addresses: tuple[int, ...]) -> None:
        self.patterns = patterns
        self.addresses = addresses
        self.places = tuple(dict.fromkeys(pattern.place for pattern, _ in patterns))


Part = tuple[Reached, Kinds, int, tuple[int, int]]
"""A packet of a command: what it reaches and how, its index, and bytes of that which need no look."""


def touched(work: Work, parts: list[Part]) -> list[Touched]:
    """All that the packets of a command touch."""
    found: list[Touched] = []
    for reached, kinds, packet, (low, high) in parts:
        for pattern, operand in reached.patterns:
            kind = kinds[pattern.changes]
            if kind is not None and not (pattern.end <= high and pattern.begin >= low):
                found.append((pattern, kind, (work, packet, operand)))
    return found


class _Members:
    """Commands of a call, by their numbers: bit ``i`` stands for ``first`` + ``i``."""

    def __init__(self) -> None:
        self.first = 0
        self.bits = 0

    def add(self, command: int) -> None:
        """It is the highest one."""
        if not self.bits:
            self.first = command
        self.bits |= 1 << (command - self.first)

    def without(self, done: Done) -> Iterator[tuple[int, int | None]]:
        """Ranges of commands: all that the other set lacks, and none that are in both."""
        low, ended = done
        at, members = self.first, self.bits
        if low > at:
            at, members = low, members >> (low - at)
        else:
            ended >>= at - low
        ended &= members
        members ^= ended
        while members:
            skip = _zeros(members)
            at, members, ended = at + skip, members >> skip, ended >> skip
            if not ended:
                yield at, None
                return
            length = _zeros(ended)
            yield at, at + length
            at, members, ended = at + length, members >> length, ended >> length


def _zeros(bits: int) -> int:
    """Behind the last one bit."""
    return (bits & -bits).bit_length() - 1


class Window:
    """Accesses through one place by one queue, of one kind, oldest first.

    Of equal ones only the last is kept, if all that comes behind it comes behind the others too.  ``phases``
    rise.
    """

    def __init__(self, place: Place, queue: int, kind: Kind) -> None:
        self.place = place
        self.queue = queue
        self.kind = kind
        self.last = -1  # phase of the newest
        self.last_change = -1  # of those that write
        self.phases: list[int] = []
        self.touches: list[Touch] = []
        self.patterns: list[Pattern] = []
        # Of the call that began with phase ``_call``: commands that have accesses below index ``_noted``.
        self._call = -1
        self._noted = 0
        self._members = _Members()
        self._changes = _Members()  # those that write
        self._index: dict[Pattern, int] = {}
        self._entries = _new("dmlk_footprint[]", 4)
        self._capacity = 4
        self._is_clipped = False

    def add(self, pattern: Pattern, phase: int, call: int, touch: Touch, done: Done) -> bool:
        """``done`` has ended when the access begins, of the call that began with that phase.

        False: there is no room.
        """
        at, phases = self._index.get(pattern), self.phases
        if at is not None:
            old = phases[at]
            if old == phase:
                return True
            if old >= call + done[0] and not holds(done, old - call):
                at = None
            elif at + 1 == len(phases):
                phases[at] = self.last = phase
                self.touches[at] = touch
                if self._noted > at:
                    self._noted = at
                if pattern.changes:
                    self.last_change = phase
                return True
        count = len(phases)
        if count == self._capacity:
            return False
        if at is not None:
            self._entries[at].access = 0  # touches nothing: the new one stands for it
        self._entries[count] = pattern.struct[0]
        phases.append(phase)
        self.touches.append(touch)
        self.patterns.append(pattern)
        self._index[pattern] = count
        self.last = phase
        if pattern.changes:
            self.last_change = phase
        if pattern.clip is not None:
            self._is_clipped = True
        return True

    def make_room(self, ordered: int, call: int) -> None:
        """Forgets those with phases below ``ordered``, and grows if that frees little."""
        last, phases = set(self._index.values()), self.phases
        keep = [
            i
            for i in range(len(phases))
            if phases[i] >= ordered and (i in last or (phases[i] >= call and self._entries[i].access))
        ]
        least = len(keep) * (8 if len(keep) < 16 else 2)  # room for some time, also for what alternates
        while self._capacity < least:
            self._capacity *= 2
        entries = _new("dmlk_footprint[]", self._capacity)
        for to, i in enumerate(keep):
            entries[to] = self._entries[i]
        self._entries = entries
        self.phases = [self.phases[i] for i in keep]
        self.touches = [self.touches[i] for i in keep]
        self.patterns = [self.patterns[i] for i in keep]
        self._index = {pattern: i for i, pattern in enumerate(self.patterns)}
        self._is_clipped = any(pattern.clip is not None for pattern in self.patterns)
        self._noted = 0

    def pending(self, call: int, done: Done, only_changes: bool) -> list[tuple[int, int]]:
        """Ranges of indices that hold all accesses of the call, the last one, that have not ended.

        ``only_changes``: of those that write.
        """
        self._note(call)
        runs, count = [], len(self.phases)
        for first, end in (self._changes if only_changes else self._members).without(done):
            start = bisect_left(self.phases, call + first)
            runs.append((start, count if end is None else bisect_left(self.phases, call + end)))
        return runs

    def find(self, pattern: Pattern, start: int, end: int) -> int:
        """Index of the first from ``start`` to before ``end`` that conflicts with the pattern; -1: none."""
        while True:
            at: int = _find(pattern.struct, self._entries, _NULL, start, end, _unread)
            if at < 0 or (pattern.clip is None and not self._is_clipped):
                return at
            if pattern.first_byte(self.patterns[at]) is not None:
                return at
            start = at + 1

    def access(self, at: int) -> Access:
        """The one of that index."""
        return Access(self.patterns[at], self.kind, self.touches[at])

    def same_command(self, at: int) -> Iterator[int]:
        """That index and those before it that are of the same command."""
        phase = self.phases[at]
        while at >= 0 and self.phases[at] == phase:
            yield at
            at -= 1

    def from_phase(self, phase: int) -> int:
        """Index of the first that is not of a lower phase."""
        return bisect_left(self.phases, phase)

    def newest(self, pattern: Pattern, runs: list[tuple[int, int]]) -> int:
        """Index of the last in the ranges that conflicts with the pattern; -1: none."""
        for start, end in reversed(runs):
            at = self.find(pattern, start, end)
            if at < 0:
                continue
            while at + 1 < end:  # nothing is found from ``end`` on
                middle = (at + 1 + end) // 2
                found = self.find(pattern, middle, end)
                if found >= 0:
                    at = found
                else:
                    end = middle
            return at
        return -1

    def _note(self, call: int) -> None:
        """All members are known."""
        if self._call != call or not self._noted:
            self._call, self._noted = call, bisect_left(self.phases, call)
            self._members.bits = self._changes.bits = 0
        for i in range(self._noted, len(self.phases)):
            self._members.add(self.phases[i] - call)
            if self.patterns[i].changes:
                self._changes.add(self.phases[i] - call)
        self._noted = len(self.phases)


class Places:
    """All allocations that were accessed, and the patterns of the accesses."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._places: dict[int, Place] = {}
        self._starts: list[int] = []  # their addresses, sorted
        self._by_serial: dict[int, Place] = {}
        self._by_heap: dict[int, list[Place]] = {}
        self._known: dict[bytes, Reached] = {}
        self._patterns: dict[bytes, list[Pattern]] = {}
        self._freed: deque[Freed] = deque()
        self._retired: list[Place] = []
        self._queues: set[int] = set()

    def reached(self, accesses: Accesses) -> Reached:
        """The patterns of all accesses; those to NULL tiles, to no live memory, or not known, have none."""
        key = accesses.content
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._forget_patterns()
            made = [
                (pattern, operand)
                for i in range(len(accesses))
                if accesses.pointer[i].access != MAYBE_READ
                for operand in (accesses.pointer[i].operand,)
                for pattern in self._translate(accesses.pointer[i])
            ]
            places = (self._place(accesses.pointer[i].address) for i in range(len(accesses)))
            addresses = (place.address for place in places if place is not None)
            found = Reached(made, (0, *dict.fromkeys(addresses)))
            if len(accesses) <= _LONG:  # what data chooses is rarely the same again
                self._known[key] = found
        return found

    def find(self, address: int) -> Place | None:
        """The place that a barrier names, if it was accessed."""
        return self._places.get(address)

    def window(self, place: Place, queue: int, kind: Kind) -> Window:
        """A new one."""
        window = place.own[queue << 2 | kind] = Window(place, queue, kind)
        self._queues.add(queue)
        place.windows.append(window)
        for other in place.linked:
            other.windows.append(window)
        return window

    # --- what becomes of allocations ---

    def mapped(self, event: Mapped) -> None:
        """Tiles of a reserved allocation stand on other memory from now on."""
        place = self._by_serial.get(event.allocation)
        if place is not None:
            place.spans = None
            self._forget_patterns()

    def freed(self, event: Freed) -> None:
        """To be called at any moment: it only takes a note, and none of what was never accessed."""
        if event.address in self._places:
            self._freed.append(event)

    def settle(self) -> set[int]:
        """Does what the notes ask for; returns the addresses of what was freed."""
        gone = set()
        while self._freed:
            event = self._freed.popleft()
            gone.add(event.address)
            self._by_serial.pop(event.serial, None)
            place = self._places.pop(event.address, None)
            if place is not None:
                del self._starts[bisect_left(self._starts, place.address)]
                self._retired.append(place)
        return gone

    def forget_queues(self, gone: Container[int]) -> None:
        """Nothing can conflict with accesses of these queues any more."""
        self._queues = {queue for queue in self._queues if queue not in gone}
        for place in (*self._places.values(), *self._retired):
            place.own = {key: window for key, window in place.own.items() if window.queue not in gone}
            place.windows = [window for window in place.windows if window.queue not in gone]

    def forget_retired(self, done: Callable[[int], int]) -> None:
        """Lets go of freed allocations that nobody can conflict with: queues are done up to a phase."""
        for place in list(self._retired):
            if all(window.last < done(window.queue) for window in place.own.values()):
                self._retired.remove(place)
                for other in place.linked:
                    other.unlink(place)
                for heap in {heap for heap, _, _ in place.reach}:
                    self._by_heap[heap].remove(place)
                    if not self._by_heap[heap]:
                        del self._by_heap[heap]

    def has_others(self, queue: int) -> bool:
        """May there be accesses of other queues?"""
        return len(self._queues) > 1 or queue not in self._queues

    @property
    def has_freed(self) -> bool:
        """Is there anything for :meth:`settle` to do?"""
        return bool(self._freed)

    @property
    def has_retired(self) -> bool:
        return bool(self._retired)

    # --- inside ---

    def _forget_patterns(self) -> None:
        self._known.clear()
        self._patterns.clear()

    def _translate(self, entry: Any) -> list[Pattern]:
        struct = _new("dmlk_footprint *", entry)
        struct.operand = 0
        key = bytes(_buffer(struct))
        found = self._patterns.get(key)
        if found is None:
            found = self._patterns[key] = self._make(struct)
        return found

    def _make(self, struct: Any) -> list[Pattern]:
        place = self._place(struct.address)
        if place is None or place.spans is None:
            return []
        first, last = struct.address, struct.end
        begin, end = first - place.address, last - place.address
        made = []
        for span in place.spans:
            low, high = max(begin, span.start), min(end, span.start + span.size)
            if low >= high:
                continue
            base = _BIAS + span.heap + span.offset - span.start
            shift = base - place.address
            whole = low == begin and high == end
            part = struct if whole else _new("dmlk_footprint *", struct[0])
            part.address, part.end = first + shift, last + shift
            made.append(Pattern(place, part, shift, None if whole else (base + low, base + high)))
        return made

    def _place(self, address: int) -> Place | None:
        """The place of the live allocation that holds the address."""
        at = bisect_right(self._starts, address) - 1
        place = self._places[self._starts[at]] if at >= 0 else None
        if place is not None and address < place.end and place.spans is not None:
            return place
        allocation = self._memory.find(address)
        if allocation is None:
            return None
        place = self._places.get(allocation.address)
        if place is None:
            place = Place(allocation.address, allocation.address + allocation.size)
            self._places[place.address] = place
            insort(self._starts, place.address)
            if allocation.heap is None:
                self._by_serial[allocation.serial] = place
        if place.spans is None:
            place.spans = spans(allocation)
            for span in place.spans:
                self._reach(place, span)
        return place

    def _reach(self, place: Place, span: Span) -> None:
        """The place stands on the span from now on: it shares memory with whoever did before."""
        here = span.heap, span.offset, span.offset + span.size
        place.reach.append(here)
        rows = self._by_heap.setdefault(span.heap, [])
        if place not in rows:
            rows.append(place)
        for other in rows:
            if (
                other is not place
                and other not in place.linked
                and any(_meet(here, each) for each in other.reach)
            ):
                place.link(other)
                other.link(place)


def _meet(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]
