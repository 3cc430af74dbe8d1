"""Access history: accesses that may still be unordered, and the search for conflicts among them.

Footprints are compared as patterns over physical memory, so that placed and reserved buffers over the
same bytes are compared with each other.  C code compares an access with many others at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Container, Iterator
from enum import IntEnum
from typing import Any, NamedTuple

from dmlemu_hw.events import MAYBE_READ, READ, UNDEFINE, WRITE, Accesses, Freed, Mapped
from dmlemu_hw.kernels import ffi, lib
from dmlemu_hw.memory import Memory
from dmlemu_hw.memory_spans import Span, spans

from ...d3d12.core.recording import Command
from ..framework.names import NamedCommand, Work
from .order import Done, holds

__all__ = [
    "Access",
    "Accessed",
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
    "physical",
    "touched",
]

_BIAS = 1 << 48  # offset of physical addresses, so that patterns shifted before a span stay above 0
_KEPT = 2048  # sets of accesses whose patterns are cached
_LONG = 128  # maximum number of accesses in such a set
_CHANGES = WRITE | UNDEFINE

_find = lib.dmlk_footprints_find
_buffer, _new, _NULL = ffi.buffer, ffi.new, ffi.NULL
_unread = _new("uint64_t *")


class Kind(IntEnum):
    """How a command accesses memory, as barriers distinguish it."""

    UAV = 0  # dispatches and clears
    TAIL = 1  # the same, for padding after an output's last element: its contents are undefined anyway
    COPY_SOURCE = 2
    COPY_DEST = 3


Touch = tuple[Work, int, int]
"""The command that accessed the memory: its list, the index of its packet there, its operand."""

Kinds = tuple[Kind | None, Kind | None]
"""How reads and writes of a command access memory; None: needs no barriers."""


class Place:
    """An allocation, identified by its ``address``, through which commands access memory.

    ``windows``: all accesses through it, and through allocations that share memory with it.
    """

    def __init__(self, address: int, end: int) -> None:
        self.address = address
        self.end = end
        self.spans: list[Span] | None = None  # None: not computed yet
        self.reach: list[tuple[int, int, int]] = []  # every heap, and range in it, that it was ever mapped to
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
    """A footprint in physical memory; if it covers several spans, the part of it within ``clip``.

    Adding ``shift`` to a GPU virtual address of the allocation gives the physical address.
    """

    __slots__ = ("_blocks", "begin", "changes", "clip", "end", "place", "shift", "struct")

    def __init__(self, place: Place, struct: Any, shift: int, clip: tuple[int, int] | None) -> None:
        self.place = place
        self.struct = struct
        self.shift = shift
        self.clip = clip
        self.begin: int = struct.address if clip is None else clip[0]
        self.end: int = struct.end if clip is None else clip[1]
        self.changes = bool(struct.access & _CHANGES)
        self._blocks: Blocks | None = None

    @property
    def access(self) -> int:
        access: int = self.struct.access
        return access

    def moved(self, shift: int) -> Pattern:
        """The same elements elsewhere, after a copy."""
        struct = _new("dmlk_footprint *", self.struct[0])
        struct.address += shift
        struct.end += shift
        clip = None if self.clip is None else (self.clip[0] + shift, self.clip[1] + shift)
        return Pattern(self.place, struct, 0, clip)

    @property
    def is_dense(self) -> bool:
        """Whether every byte from the first to the last belongs to an element."""
        return len(self.blocks[2]) == 0

    @property
    def blocks(self) -> Blocks:
        """The same bytes as blocks without gaps: in half bytes, for elements of 4 bits."""
        if self._blocks is None:
            self._blocks = _blocks(self.struct)
        return self._blocks

    def first_byte(self, other: Pattern, low: int = 0, high: int = 2**64 - 1) -> int | None:
        """The lowest physical byte in [low, high) that both contain; None if there is none."""
        low = max(low, self.begin, other.begin)
        high = min(high, self.end, other.end)
        byte = _new("uint64_t *")
        if low >= high or lib.dmlk_footprints_meet(self.struct, other.struct, 0, low, high, byte) != 1:
            return None
        return int(byte[0])

    def last_byte(self, other: Pattern, first: int) -> int:
        """The highest shared byte, where ``first`` is the lowest."""
        low, high = first, min(self.end, other.end)
        while True:  # a byte is shared in [low, high), and none from high on
            if high - low <= 1:
                return low
            middle = (low + high) // 2
            byte = self.first_byte(other, middle, high)
            if byte is None:
                high = middle
            else:
                low = byte


Blocks = tuple[int, int, tuple[tuple[int, int], ...]]
"""Address and length of the first block, and the sizes and strides of the axes along which it repeats."""


def _blocks(struct: Any) -> Blocks:
    rank, width = struct.rank, struct.bits // 4
    length = width
    axes: list[tuple[int, int]] = []
    pairs = zip(struct.sizes[0:rank], struct.strides[0:rank], strict=True)
    for stride, size in sorted((stride * width, size) for size, stride in pairs if size > 1 and stride):
        if not axes and stride <= length:
            length += stride * (size - 1)
        elif axes and axes[-1][0] * axes[-1][1] == stride:
            axes[-1] = axes[-1][0] * size, axes[-1][1]
        else:
            axes.append((size, stride))
    return 2 * struct.address, length, tuple(axes)


class Access(NamedTuple):
    """The memory a command accesses, and how."""

    pattern: Pattern
    kind: Kind
    touch: Touch

    @property
    def command(self) -> NamedCommand:
        """The command in words."""
        work, packet, _ = self.touch
        return work.command(packet)

    @property
    def number(self) -> int:
        """Number of the command in its list."""
        return self.command.number

    @property
    def order(self) -> tuple[int, int]:
        """Position of the command in its queue: the ticket of its list, and its number."""
        return self.touch[0].ticket, self.number

    @property
    def handed(self) -> int:
        """Number of the host call that submitted the command."""
        return self.touch[0].handed

    @property
    def commands(self) -> list[Command]:
        """The commands of the list; every list has its own object."""
        return self.touch[0].commands


Touched = tuple[Pattern, Kind, Touch]


class Accessed(NamedTuple):
    """The places that a command accesses, by views or as copies do; ``addresses`` begin with 0, for any.

    ``is_last``: it begins when all commands before it have ended.
    """

    by_view: bool
    addresses: tuple[int, ...]
    read: frozenset[int]
    written: frozenset[int]
    is_last: bool = False


class Reached:
    """Resolved accesses of equal content: patterns with their operands, and the places they lie in.

    ``addresses``: 0, which stands for any resource, and the addresses of all places accessed.
    ``by_views``: the entry of ``BarrierEpochs.commands`` for a command that accesses these by views.
    ``read`` and ``written``: the addresses of the places that are; of one that is not followed, nobody knows.
    """

    def __init__(self, patterns: list[tuple[Pattern, int]], addresses: tuple[int, ...]) -> None:
        self.patterns = patterns
        self.addresses = addresses
        self.places = tuple(dict.fromkeys(pattern.place for pattern, _ in patterns))
        self.written = frozenset(pattern.place.address for pattern, _ in patterns if pattern.changes)
        self.read = frozenset(
            pattern.place.address for pattern, _ in patterns if pattern.access & READ or not pattern.changes
        ) | (frozenset(addresses[1:]) - self.written)
        self.by_views = Accessed(True, addresses, self.read, self.written)


Part = tuple[Reached, Kinds, int, tuple[int, int]]
"""A packet of a command: its accesses and their kinds, its index, and bytes that are not compared."""


def touched(work: Work, parts: list[Part]) -> list[Touched]:
    """Everything the packets of a command access."""
    found: list[Touched] = []
    for reached, kinds, packet, (low, high) in parts:
        for pattern, operand in reached.patterns:
            kind = kinds[pattern.changes]
            if kind is not None and not (pattern.end <= high and pattern.begin >= low):
                found.append((pattern, kind, (work, packet, operand)))
    return found


class _Members:
    """Set of command numbers of a call: bit ``i`` stands for ``first`` + ``i``."""

    def __init__(self) -> None:
        self.first = 0
        self.bits = 0

    def add(self, command: int) -> None:
        """Adds a number higher than all others."""
        if not self.bits:
            self.first = command
        self.bits |= 1 << (command - self.first)

    def without(self, done: Done) -> Iterator[tuple[int, int | None]]:
        """Ranges that contain all commands missing from the other set, and none that are in both."""
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
    """Number of zero bits below the lowest set bit."""
    return (bits & -bits).bit_length() - 1


class Window:
    """Accesses of one kind through one place by one queue, oldest first.

    Of equal accesses only the last is kept, if everything ordered after it is also ordered after the others.
    ``phases`` never decrease.
    """

    def __init__(self, place: Place, queue: int, kind: Kind) -> None:
        self.place = place
        self.queue = queue
        self.kind = kind
        self.last = -1  # phase of the newest
        self.last_change = -1  # accesses that write
        self.phases: list[int] = []
        self.touches: list[Touch] = []
        self.patterns: list[Pattern] = []
        # Of the call that began with phase ``_call``: commands with accesses below index ``_noted``.
        self._call = -1
        self._noted = 0
        self._members = _Members()
        self._changes = _Members()  # accesses that write
        self._index: dict[Pattern, int] = {}
        self._entries = _new("dmlk_footprint[]", 4)
        self._capacity = 4
        self._is_clipped = False

    def add(self, pattern: Pattern, phase: int, call: int, touch: Touch, done: Done) -> bool:
        """Adds an access; ``done``: commands of its call that have ended before it begins.

        ``call`` is the first phase of that call.  Returns False if there is no room.
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
            self._entries[at].access = 0  # the last access touches nothing: the new one replaces it
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
        """Removes accesses with phases below ``ordered``, and grows if that frees little."""
        last, phases = set(self._index.values()), self.phases
        keep = [
            i
            for i in range(len(phases))
            if phases[i] >= ordered and (i in last or (phases[i] >= call and self._entries[i].access))
        ]
        least = len(keep) * (8 if len(keep) < 16 else 2)  # leaves room for alternating accesses too
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
        """Ranges of indices that contain all accesses of the last call that have not ended.

        ``only_changes``: only accesses that write.
        """
        self._note(call)
        runs, count = [], len(self.phases)
        for first, end in (self._changes if only_changes else self._members).without(done):
            start = bisect_left(self.phases, call + first)
            runs.append((start, count if end is None else bisect_left(self.phases, call + end)))
        return runs

    def find(self, pattern: Pattern, start: int, end: int) -> int:
        """Index of the first access in [``start``, ``end``) that conflicts with the pattern; -1 if none."""
        while True:
            at: int = _find(pattern.struct, self._entries, _NULL, start, end, _unread)
            if at < 0 or (pattern.clip is None and not self._is_clipped):
                return at
            if pattern.first_byte(self.patterns[at]) is not None:
                return at
            start = at + 1

    def access(self, at: int) -> Access:
        """The access at that index."""
        return Access(self.patterns[at], self.kind, self.touches[at])

    def same_command(self, at: int) -> Iterator[int]:
        """The indices up to this one that belong to the same command."""
        phase = self.phases[at]
        while at >= 0 and self.phases[at] == phase:
            yield at
            at -= 1

    def from_phase(self, phase: int) -> int:
        """Index of the first access whose phase is not lower."""
        return bisect_left(self.phases, phase)

    def newest(self, pattern: Pattern, runs: list[tuple[int, int]]) -> int:
        """Index of the last access in the ranges that conflicts with the pattern; -1 if none."""
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
        """Brings the set of members up to date."""
        if self._call != call or not self._noted:
            self._call, self._noted = call, bisect_left(self.phases, call)
            self._members.bits = self._changes.bits = 0
        for i in range(self._noted, len(self.phases)):
            self._members.add(self.phases[i] - call)
            if self.patterns[i].changes:
                self._changes.add(self.phases[i] - call)
        self._noted = len(self.phases)


class Places:
    """All allocations that were accessed, and the patterns of the accesses, which hold for one ``state``."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._places: dict[int, Place] = {}
        self._starts: list[int] = []  # their addresses, sorted
        self._by_serial: dict[int, Place] = {}
        self._by_heap: dict[int, list[Place]] = {}
        self.known: dict[bytes, Reached] = {}
        self._patterns: dict[bytes, list[Pattern]] = {}
        self._freed: deque[Freed] = deque()
        self._retired: list[Place] = []
        self.queues: set[int] = set()
        self.state = object()

    def reached(self, accesses: Accesses, *, once: bool = False) -> Reached:
        """Resolves all accesses; those to NULL tiles, dead memory or unknown bytes have no patterns.

        ``once``: they are not expected again, and not cached.
        """
        key = accesses.content
        found = self.known.get(key)
        if found is None:
            if len(self.known) >= _KEPT:
                self._forget_patterns()
            made: list[tuple[Pattern, int]] = []
            addresses = {0: None}
            for entry in (accesses.pointer[i] for i in range(len(accesses))):
                place = self._place(entry.address)
                if place is None:
                    continue
                addresses[place.address] = None
                if entry.access != MAYBE_READ:
                    patterns = self._translate(entry, place, once=once)
                    made += [(pattern, entry.operand) for pattern in patterns]
            found = Reached(made, tuple(addresses))
            if len(accesses) <= _LONG and not once:  # data-dependent accesses rarely repeat: not cached
                self.known[key] = found
        return found

    def find(self, address: int) -> Place | None:
        """The place of the resource that a barrier names, if it was accessed."""
        return self._places.get(address)

    def window(self, place: Place, queue: int, kind: Kind) -> Window:
        """Adds a window to a place."""
        window = place.own[queue << 2 | kind] = Window(place, queue, kind)
        self.queues.add(queue)
        place.windows.append(window)
        for other in place.linked:
            other.windows.append(window)
        return window

    # --- freed and remapped allocations ---

    def mapped(self, event: Mapped) -> None:
        """The tiles of a reserved allocation were mapped to other memory."""
        place = self._by_serial.get(event.allocation)
        if place is not None:
            place.spans = None
            self._forget_patterns()

    def freed(self, event: Freed) -> None:
        """Notes a freed allocation if it was accessed; may be called at any moment."""
        if event.address in self._places:
            self._freed.append(event)

    def settle(self) -> set[int]:
        """Processes the notes; returns the addresses of freed allocations."""
        freed = set()
        while self._freed:
            event = self._freed.popleft()
            freed.add(event.address)
            self._by_serial.pop(event.serial, None)
            place = self._places.pop(event.address, None)
            if place is not None:
                del self._starts[bisect_left(self._starts, place.address)]
                self._retired.append(place)
        return freed

    def forget_queues(self, released: Container[int]) -> None:
        """Removes these queues: nothing can conflict with their accesses any more."""
        self.queues = {queue for queue in self.queues if queue not in released}
        for place in (*self._places.values(), *self._retired):
            place.own = {key: window for key, window in place.own.items() if window.queue not in released}
            place.windows = [window for window in place.windows if window.queue not in released]

    def forget_retired(self, done: Callable[[int], int]) -> None:
        """Removes freed allocations that nothing can conflict with: queues are done up to a phase."""
        for place in list(self._retired):
            if all(window.last < done(window.queue) for window in place.own.values()):
                self._retired.remove(place)
                for other in place.linked:
                    other.unlink(place)
                for heap in {heap for heap, _, _ in place.reach}:
                    self._by_heap[heap].remove(place)
                    if not self._by_heap[heap]:
                        del self._by_heap[heap]

    @property
    def has_freed(self) -> bool:
        """Whether :meth:`settle` has anything to process."""
        return bool(self._freed)

    @property
    def has_retired(self) -> bool:
        return bool(self._retired)

    # --- internals ---

    def _forget_patterns(self) -> None:
        self.known.clear()
        self._patterns.clear()
        self.state = object()

    def _translate(self, entry: Any, place: Place, *, once: bool) -> list[Pattern]:
        struct = _new("dmlk_footprint *", entry)
        struct.operand = 0
        key = bytes(_buffer(struct))
        found = self._patterns.get(key)
        if found is None:
            found = _patterns(struct, place)
            if not once:
                self._patterns[key] = found
        return found

    def _place(self, address: int) -> Place | None:
        """The place of the live allocation that contains the address."""
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
        """The place is mapped to the span: it shares memory with all places ever mapped there."""
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


def physical(heap: int, size: int) -> tuple[int, int]:
    """The physical addresses of a heap, by its ``heap_number``."""
    return _BIAS + heap, _BIAS + heap + size


def _patterns(struct: Any, place: Place) -> list[Pattern]:
    """The patterns of a footprint in the spans of its place."""
    first, last = struct.address, struct.end
    begin, end = first - place.address, last - place.address
    made = []
    for span in place.spans or ():
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


def _meet(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]
