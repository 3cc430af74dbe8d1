"""Provenance: tensors read through another layout, or only partly written last (group g)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from dmlemu_hw import kernels
from dmlemu_hw.events import (
    NO_ACCESSES,
    READ,
    UNDEFINE,
    WRITE,
    Access,
    Accesses,
    Accessing,
    Allocated,
    Executing,
    Footprint,
    Foresight,
    Freed,
    LeftUndefined,
    Mapped,
    Place,
    Stretch,
    Submitted,
)
from dmlemu_hw.memory_spans import heap_number, spans
from dmlemu_hw.packets import KERNEL, Opcode, commands, is_tail

from ...d3d12.core.recording import Command
from ...d3d12.memory.resource import HostAccessed, HostMapped, TensorExpected
from ...diagnostics.declaration import Declaration
from ...diagnostics.report import Severity
from ...dml.events import DispatchRecorded
from ...dml.lowering.dispatchable import Dispatchable, OperatorInitializer
from ...dml.tensor_desc import BufferTensorDesc, element_bits
from ..analysis.access_history import Pattern, Places, Reached, physical
from ..analysis.host_writes import HostStored
from ..analysis.mapped import Range, add_span
from ..analysis.provenance import Author, Input, Provenance, Source, Sources, Use, Write
from ..analysis.tensor_relation import Relation, Tensor, is_same_kind, relate
from ..analysis.unread import Unread
from ..analysis.visible import place_of
from ..framework.check import Check, on
from ..lineage import Lineage, lineage_of
from . import messages
from .messages import Suspect
from .rows import (
    LAYOUT_HANDOVER,
    MEM_PADDING_READ,
    OVERWRITTEN_UNREAD,
    READ_MIXED,
    READ_NOT_COMPARED,
    WRITTEN_NEVER_READ,
)

if TYPE_CHECKING:
    from ...d3d12.device.device import Device

_DISPATCH, _DISCARD = int(Opcode.DISPATCH), int(Opcode.DISCARD)
_COPIES = commands(lambda effects: effects.copies)
_MOVING = frozenset({"copy"})
_FILLING = frozenset({"fill_value_constant", "fill_value_sequence"})
_AUTHORS = 8192
_SUSPECTS = 256
_KEPT = 2048  # contents of accesses, and lists, that are remembered
_first = attrgetter("first")
_ATTEMPTS = 4  # to find how far nothing is to be said about a stretch
_STATES = 16  # of the memory, for each content, and for each stretch


_Marks = np.ndarray[Any, np.dtype[np.bool_]]


_Tensors = dict[str, tuple[Tensor, int]]  # by path: the tensor at address 0, and its bytes


class _Dispatch(NamedTuple):
    """A recorded dispatch: the number of its first packet, and the layouts of its tensors by path."""

    first: int
    tensors: _Tensors
    is_initializer: bool


class _Known:
    """Accesses that were seen: their ``writes``, and their authors by the state of the memory before.

    What was read comes from the same writes as the last time in that state.  ``latest`` is the last author;
    nothing changes by it while the provenance has this ``version``.  ``unseen``: what may be read besides.
    ``is_in_place``: it may read what it has written; the state after it is another one than before it.
    """

    __slots__ = ("authors", "is_in_place", "latest", "unseen", "version", "writes")

    def __init__(self, writes: list[Write], *, is_in_place: bool) -> None:
        self.writes = writes
        self.is_in_place = is_in_place
        self.version = -1
        self.latest: Author | None = None
        self.unseen: list[Pattern] = []
        self.authors: dict[Hashable, Author] = {}

    def read(self, author: Author, memory: Provenance) -> None:
        """Its author reads again: whoever wrote that by now is not unread."""
        sources = (source for each in author.inputs or () for source in each.sources)
        _used(source.write for source in sources if source.write is not None)
        for pattern in self.unseen:
            _used(memory.writes(pattern.begin, pattern.end))

    def became(self, version: int, state: Hashable, author: Author) -> None:
        """They were found, or found again."""
        if len(self.authors) >= _STATES and state not in self.authors:
            self.authors.clear()
        self.authors[state] = self.latest = author
        self.version = -1 if self.is_in_place else version


class _Outcome:
    """What a stretch does up to packet ``end``, from one state of the memory: nothing is to be said about it.

    Of each packet: its ``author`` and what it ``writes``.  ``after``: the intervals of the ranges that are
    written; None: as before.  ``uses``: of the writes that are there before.  ``hidden``: pairs of writes of
    which one hides the other, and nothing was to be said because of their names, those of ``named``, a list
    and a command.  ``forgotten``: how many authors had been forgotten.  ``attempt``: how often it was looked
    for again, as it ended early.
    """

    def __init__(self, named: tuple[int, int], forgotten: int) -> None:
        self.end = 0
        self.authors: list[Author | None] = []
        self.writes: list[list[Write]] = []
        self.after: list[Any] | None = None
        self.uses: list[tuple[Write, Use]] = []
        self.hidden: list[tuple[Write, Write]] = []
        self.named = named
        self.forgotten = forgotten
        self.attempt = 0


class _Course:
    """A stretch: the ``spans`` that it reads or writes, those that it has ``written``, and its outcomes.

    ``tensors``: those of the dispatches, by list and first command.  An outcome is looked for in a state that
    was there before (``seen``).
    """

    def __init__(self, stretch: Stretch, places: Places) -> None:
        self.reached = [places.reached(each) if each else None for each in stretch.accesses]
        self.spans: list[Range] = []
        self.written: list[Range] = []
        for pattern, _ in (pair for each in self.reached if each is not None for pair in each.patterns):
            add_span(self.spans, *_span(pattern))
            if pattern.changes:
                add_span(self.written, *_span(pattern))
        self.tensors: dict[tuple[int, int], tuple[int, ...]] = {}
        self.seen: set[int] = set()
        self.outcomes: dict[Hashable, _Outcome] = {}


class WhoseBytes(Check, Foresight):
    """Keeps the provenance of all memory and compares what dispatches read with it."""

    declarations = (
        LAYOUT_HANDOVER,
        READ_MIXED,
        MEM_PADDING_READ,
        READ_NOT_COMPARED,
        WRITTEN_NEVER_READ,
        OVERWRITTEN_UNREAD,
    )

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._places = Places(device.context.gpu.memory)
        self._unread = Unread(self._where)
        self._memory = self._unread.memory
        self._uploads: dict[int, Use] = {}  # by the address of the buffer that the CPU wrote
        self._advised: set[Hashable] = set()  # reported once, as they are not mistakes
        self._suspects: list[Suspect] = []
        self._dispatches: OrderedDict[int, list[_Dispatch]] = OrderedDict()  # by the serial of their list
        self._known: dict[tuple[bytes, int], _Known] = {}  # by content and tensors
        self._written = 0
        self._tensors: WeakKeyDictionary[Dispatchable, _Tensors] = WeakKeyDictionary()
        self._authors: deque[Author] = deque()  # whose inputs are remembered
        self._expected: list[tuple[Pattern, Tensor]] = []  # by the program
        self._list: tuple[int, list[Command], str] = 0, [], ""
        self._heaps: dict[int, tuple[int, int]] = {}  # where they lie, by serial
        self._freed: deque[Freed] = deque()  # to be forgotten
        self._courses: WeakKeyDictionary[Stretch, _Course] = WeakKeyDictionary()
        self._forgotten = 0  # authors whose inputs are no longer remembered
        self._outcome: tuple[_Course, _Outcome] | None = None  # of the stretch that runs
        self._due: tuple[_Course, _Outcome, int] | None = None  # to be entered: its first packets

    # --- events ---

    @on(DispatchRecorded)
    def recorded(self, event: DispatchRecorded) -> None:
        """Remembers the tensors of a dispatch."""
        dispatchable = event.dispatchable
        tensors = self._tensors.get(dispatchable)
        is_initializer = isinstance(dispatchable, OperatorInitializer)  # which may be reset
        if tensors is None or is_initializer:
            tensors = {
                slot.path: _whole(slot.path, slot.desc)
                for slot in dispatchable.slots()
                if slot.desc is not None
            }
            self._tensors[dispatchable] = tensors
        self._dispatches.setdefault(event.list_serial, []).append(
            _Dispatch(event.first, tensors, is_initializer)
        )
        if len(self._dispatches) > _KEPT:
            recordings = self.device.context.recordings
            for serial in [serial for serial in self._dispatches if recordings.get(serial) is None]:
                del self._dispatches[serial]

    @on(Allocated)
    def allocated(self, event: Allocated) -> None:
        """A heap may lie where another one was."""
        self._enter_due()
        self._forget_freed()
        if event.kind == "heap":
            heap = self.device.context.gpu.memory.find_heap(event.serial)
            if heap is not None:
                where = self._heaps[event.serial] = physical(heap_number(heap), event.size)
                self._memory.forget(*where)

    @on(Freed)
    def freed(self, event: Freed) -> None:
        """May be called at any moment."""
        if event.kind == "heap":
            self._freed.append(event)
        self._places.freed(event)

    def _forget_freed(self) -> None:
        """The bytes of heaps that are gone, with the commands that wrote them."""
        while self._freed:
            heap = self._freed.popleft()
            where = self._heaps.pop(heap.serial, None)
            if where is not None:
                self._unread.release(*where, heap.label)
                self._expected = [each for each in self._expected if not where[0] <= each[0].begin < where[1]]
        if self._places.has_freed:
            for address in self._places.settle():
                self._uploads.pop(address, None)
            self._places.forget_retired(lambda queue: 0)

    @on(Mapped)
    def mapped(self, event: Mapped) -> None:
        """A reserved buffer was remapped."""
        self._enter_due()
        self._places.mapped(event)
        self._forget_known()

    @on(Submitted)
    def submitted(self, event: Submitted) -> None:
        """Memory that was freed before holds nothing."""
        self._enter_due()
        self._forget_freed()

    @on(HostStored)
    def stored(self, event: HostStored) -> None:
        """The CPU wrote."""
        self._enter_due()
        span = Footprint(event.begin, 8, (event.end - event.begin,), (1,))
        reached = self._places.reached(Accesses.of([Access(0, WRITE, span)]), once=True)
        author = Author(inputs=[])
        for pattern, _ in reached.patterns[:1]:
            author.use = self._uploads.setdefault(pattern.place.address, Use())
        self._enter(reached, author, _writes(reached, author, None))
        for pattern, _ in reached.patterns:
            self._declare_within(pattern.begin, pattern.end)

    @on(HostMapped, HostAccessed)
    def viewed(self, event: HostMapped | HostAccessed) -> None:
        """The CPU may read the bytes until it unmaps the buffer, or longer."""
        if isinstance(event, HostMapped):
            first, end = event.read
        else:
            first, end = (event.begin, event.end) if event.reads else (0, 0)
        if first < end and not event.resource.allocation.closed:
            place = place_of(event.resource)
            self._unread.view(*physical(place.heap + place.offset + first, end - first))

    @on(TensorExpected)
    def expect(self, event: TensorExpected) -> None:
        """The program says what lies there."""
        self._enter_due()
        desc, address = event.desc, event.resource.address + event.offset
        footprint = Footprint(
            address, element_bits(desc.data_type), tuple(desc.sizes), desc.effective_strides
        )
        for pattern, _ in self._places.reached(Accesses.of([Access(0, WRITE, footprint)])).patterns:
            tensor = Tensor(
                f"'{event.name}'" if event.name else "array" if event.is_array else "",
                desc.data_type,
                footprint.sizes,
                footprint.strides,
                pattern.struct.address,
                event.is_array,
            )
            if not event.is_array:
                kept = [each for each in self._expected if not _meet(each[0], pattern)]
                self._expected = [*kept, (pattern, tensor)]
            self._declare(pattern, tensor)

    def _declare(self, pattern: Pattern, tensor: Tensor) -> None:
        """What the CPU wrote there, or a copy, is that tensor."""
        writes = [source.write for source in self._memory.sources(pattern)]
        newest = writes[0]
        if newest is None or any(each is not None and not _is_undeclared(each) for each in writes):
            return
        for each in writes:
            if each is not None:
                each.author.use.is_divided = True
        author = newest.author.part()
        self._memory.write(Write(author, 0, pattern.begin, pattern.end, pattern, tensor, newest.number))

    def _declare_within(self, begin: int, end: int) -> None:
        for pattern, tensor in self._expected:
            if pattern.begin < end and begin < pattern.end:
                self._declare(pattern, tensor)

    @on(LeftUndefined)
    def undefined(self, event: LeftUndefined) -> None:
        """A kernel left a part of its output undefined."""
        self._enter_due()
        for pattern, _ in self._places.reached(Accesses.of([event.access])).patterns:
            self._memory.forget(pattern.begin, pattern.end)

    @on(Accessing)
    def look(self, event: Executing) -> None:
        """Compares what is read first, then enters what is written."""
        self._enter_due()
        accesses = event.accesses
        if accesses is NO_ACCESSES or not accesses:
            return
        is_padding = event.opcode == _DISCARD and is_tail(event.packet)
        dispatch = self._dispatch(event) if event.opcode == _DISPATCH or is_padding else None
        key = accesses.content, 0 if dispatch is None else id(dispatch.tensors)
        known = self._known.get(key)
        latest = None if known is None or known.version != self._memory.version else known.latest
        if known is not None and latest is not None and latest.inputs is not None:
            self._name(latest, event)
            known.read(latest, self._memory)
            for write in known.writes:
                self._written += 1
                write.number = self._written
            return
        if event.opcode in _COPIES:
            self._copy(event)
            return
        reached = self._places.reached(accesses)
        state = self._memory.state(_spans_read(reached))
        author = None if known is None else known.authors.get(state)
        if author is None or author.inputs is None:
            author = self._look(event, dispatch, reached)
        else:
            self._name(author, event)
        if known is None:
            made = _padding(reached, author, dispatch) if is_padding else _writes(reached, author, dispatch)
            if event.opcode == _DISPATCH and _kernel(event) in _FILLING:
                for each in made:
                    each.is_typeless = True
            known = self._know(key, made, reached)
            known.unseen = self._unseen(event)
        elif known.latest is not None:
            author.use = known.latest.use
        known.read(author, self._memory)
        self._enter(reached, author, known.writes)
        known.became(self._memory.version, state, author)

    # --- stretches ---

    def foresees(self, stretch: Stretch, place: Place) -> int:
        """Commands that were looked at in this state of the memory: nobody was told anything new."""
        self._enter_due()
        course = self._courses.get(stretch)
        if course is None:
            course = self._courses[stretch] = _Course(stretch, self._places)
        tensors = self._tensors_of(stretch, course, place)
        key = self._memory.state(course.spans), tensors
        outcome = course.outcomes.get(key)
        if outcome is not None and not self._holds(outcome, place):
            outcome = None
        if outcome is None and hash(key) not in course.seen:
            if len(course.seen) >= _STATES:
                course.seen.clear()
            course.seen.add(hash(key))
            return 0
        if outcome is None or (outcome.end < stretch.count and outcome.attempt < _ATTEMPTS):
            attempt = 0 if outcome is None else outcome.attempt + 1
            outcome = self._rehearse(stretch, course, tensors, place, stretch.count)
            if outcome.end and outcome.end < stretch.count:
                outcome = self._rehearse(stretch, course, tensors, place, outcome.end)
            outcome.attempt = attempt
            if len(course.outcomes) >= _STATES:
                course.outcomes.clear()
            course.outcomes[key] = outcome
        self._outcome = course, outcome
        return outcome.end

    def passed(self, stretch: Stretch, place: Place, first: int, end: int) -> None:
        """The authors get the names of these commands; the memory changes when somebody asks."""
        assert self._outcome is not None
        course, outcome = self._outcome
        for i in range(first, end):
            author = outcome.authors[i]
            if author is not None:
                self._name(author, place)
                author.number = place.command + i
                for write in outcome.writes[i]:
                    self._written += 1
                    write.author, write.number = author, self._written
        if outcome.after is not None:
            self._due = course, outcome, end

    def _enter_due(self) -> None:
        """Enters what a stretch has written."""
        if self._due is None:
            return
        (course, outcome, end), self._due = self._due, None
        if end == outcome.end and outcome.after is not None:
            self._memory.set_rows(course.written, outcome.after)
            return
        hides, self._memory.hides = self._memory.hides, lambda older, newer: None
        for write in (each for writes in outcome.writes[:end] for each in writes):
            self._memory.write(write)
        self._memory.hides = hides

    def _tensors_of(self, stretch: Stretch, course: _Course, place: Place) -> tuple[int, ...]:
        """For each packet the tensors of its dispatch, as in the key of what is known of it."""
        serial, command = place.list_serial, place.command
        tensors = course.tensors.get((serial, command))
        if tensors is None:
            rows = (self._dispatch_at(serial, command + i) for i in range(stretch.count))
            tensors = tuple(0 if row is None else id(row.tensors) for row in rows)
            if len(course.tensors) >= _STATES:
                course.tensors.clear()
            course.tensors[serial, command] = tensors
        return tensors

    def _holds(self, outcome: _Outcome, place: Place) -> bool:
        """Whether nothing has changed by which something would be to be said now."""
        return (
            outcome.forgotten == self._forgotten
            and all(write.author.use is use for write, use in outcome.uses)
            and (not outcome.hidden or outcome.named == place[2:])
            and all(self._unread.is_quiet(*each) for each in outcome.hidden)
        )

    def _rehearse(
        self, stretch: Stretch, course: _Course, tensors: tuple[int, ...], place: Place, end: int
    ) -> _Outcome:
        """What the packets before ``end`` would do, while nothing is to be said; the memory stays."""
        memory, hides = self._memory, self._memory.hides
        saved, before = memory.saved(), memory.rows(course.written)
        outcome = _Outcome((place.list_serial, place.command), self._forgotten)
        there = {write for rows in memory.rows(course.spans) for row in rows for write in row[2]}
        outcome.uses = [(write, write.author.use) for write in there]
        changed: dict[Write, tuple[Author, float]] = {}
        loud: list[Write] = []

        def hide(older: Iterable[Write], newer: Write) -> None:
            for each in older:
                if not self._unread.is_quiet(each, newer):
                    loud.append(each)
                elif each is not newer and not (each.author.use.is_over and newer.author.use.is_over):
                    outcome.hidden.append((each, newer))

        memory.hides = hide
        for i in range(end):
            accesses, reached = stretch.accesses[i], course.reached[i]
            if reached is None:
                outcome.authors.append(None)
                outcome.writes.append([])
                continue
            known = self._known.get((accesses.content, tensors[i]))
            author = None if known is None else self._author_again(known, reached)
            if known is None or author is None:
                break
            for number, write in enumerate(known.writes, self._written + 1 + len(outcome.writes)):
                changed.setdefault(write, (write.author, write.number))
                write.author, write.number = author, number
                memory.write(write)
            if loud:
                break
            outcome.authors.append(author)
            outcome.writes.append(known.writes)
        memory.hides = hides
        outcome.end = len(outcome.authors)
        after = memory.rows(course.written)
        memory.restore(saved)
        for write, (writer, last) in changed.items():
            write.author, write.number = writer, last
        outcome.after = None if after == before else after
        return outcome

    def _author_again(self, known: _Known, reached: Reached) -> Author | None:
        """The author of accesses that were seen in this state of the memory, if all that it reads is used."""
        memory = self._memory
        author = known.authors.get(memory.state(_spans_read(reached)))
        if author is None or author.inputs is None:
            return None
        read = [each.write for source in author.inputs for each in source.sources if each.write is not None]
        for pattern in known.unseen:
            read += memory.writes(pattern.begin, pattern.end)
        return author if all(write.author.use.is_over for write in read) else None

    def _unseen(self, event: Executing) -> list[Pattern]:
        """What it reads, perhaps, and is not compared."""
        is_dispatch, accesses = event.opcode == _DISPATCH, event.accesses
        read = accesses.not_followed if is_dispatch else [each for each in accesses if each.access & READ]
        return self._followed(read) if read else []

    def _followed(self, accesses: Sequence[Access]) -> list[Pattern]:
        """The bytes of accesses, as if all of them were read."""
        read = Accesses.of([each._replace(access=READ) for each in accesses])
        return [pattern for pattern, _ in self._places.reached(read, once=True).patterns]

    def _know(self, key: tuple[bytes, int], writes: list[Write], reached: Reached) -> _Known:
        if len(self._known) >= _KEPT:
            self._forget_known()
        read = [pattern for pattern, _ in reached.patterns if pattern.access & READ]
        known = self._known[key] = _Known(writes, is_in_place=_any_meet(read, writes))
        return known

    def _forget_known(self) -> None:
        self._known.clear()
        self._courses.clear()

    def _look(self, event: Executing, dispatch: _Dispatch | None, reached: Reached) -> Author:
        """Accesses, or a state of the memory, that are new."""
        author = self._author(event)
        if event.opcode == _DISPATCH:
            for pattern, operand in reached.patterns:
                if pattern.access & READ:
                    self._compare(event, dispatch, pattern, operand, author)
        return author

    def end(self) -> None:
        """Reports what nobody has read: one report for each that a wrong read explains, one for the rest."""
        self._enter_due()
        self._forget_freed()
        reported = {each.report.id for each in self.device.reports.kept() if not each.suppressed}
        suspects = [each for each in self._suspects if each.id in reported]
        unread = [messages.Unread.of(each, suspects) for each in self._unread.take()]
        for id, is_told in ((WRITTEN_NEVER_READ.id, False), (OVERWRITTEN_UNREAD.id, True)):
            these = [each for each in unread if (each.by is not None) == is_told]
            alone = [each for each in these if each.suspect is None]
            for group in (
                *([each] for each in these if each.suspect is not None),
                *([alone] if alone else []),
            ):
                self.report(id, **messages.unread(group))

    def _where(self, begin: int, end: int) -> str:
        """Bytes of physical memory, in words; empty if no buffer lies there."""
        for alive in self.device.context.names.resources.valuerefs():  # other threads may add some
            buffer = alive()
            if buffer is not None and not buffer.allocation.closed:
                for span in spans(buffer.allocation):
                    low, high = physical(span.heap + span.offset, span.size)
                    if low <= begin and end <= high:
                        at = buffer.address + span.start - low
                        return self.names.bytes(at + begin, at + end)
        return ""

    def lineage(self, address: int) -> Lineage:
        """The writes that the byte at a GPU virtual address comes from."""
        self._enter_due()
        span = Accesses.of([Access(0, READ, Footprint(address, 8, (1,), (1,)))])
        patterns = self._places.reached(span).patterns
        return lineage_of(self._memory.at(patterns[0][0].begin) if patterns else None)

    # --- writes ---

    def _author(self, event: Executing) -> Author:
        """A new author; what the last ones read is remembered."""
        author = Author(inputs=[])
        self._authors.append(author)
        if len(self._authors) > _AUTHORS:
            self._authors.popleft().inputs = None
            self._forgotten += 1
        self._name(author, event)
        return author

    def _name(self, author: Author, event: Executing | Place) -> None:
        """The command of the event is the author, in its list."""
        if event.list_serial != self._list[0]:
            recording = self.device.context.recordings.get(event.list_serial)
            gone: tuple[list[Command], str] = [], "a list that is gone"
            named = gone if recording is None else (recording.commands, recording.owner)
            self._list = event.list_serial, *named
        _, author.commands, author.list = self._list
        author.number = event.command

    def _enter(self, reached: Reached, author: Author, writes: list[Write]) -> None:
        for pattern, _ in reached.patterns:
            if pattern.access & UNDEFINE and not writes:  # padding replaces what was there
                self._memory.forget(pattern.begin, pattern.end)
        for write in writes:
            self._written += 1
            write.author, write.number = author, self._written
            self._memory.write(write)

    def _copy(self, event: Executing) -> None:
        author, accesses = Author(inputs=[]), event.accesses
        self._name(author, event)
        patterns = self._places.reached(accesses).patterns
        sources = [pattern for pattern, operand in patterns if operand == accesses.pointer[0].operand]
        targets = [pattern for pattern, operand in patterns if operand == accesses.pointer[1].operand]
        self._written += 1
        if len(sources) == len(targets) == 1 and sources[0].clip is targets[0].clip is None:
            source, target = sources[0], targets[0]
            self._memory.copy(source.begin, target.begin, target.end - target.begin, author, self._written)
            self._declare_within(target.begin, target.end)
            return
        for source in sources:
            _used(self._memory.writes(source.begin, source.end))
        for target in targets:  # through tiles in several places
            self._memory.write(Write(author, 1, target.begin, target.end, None, None, self._written))

    # --- reads ---

    def _dispatch(self, event: Executing) -> _Dispatch | None:
        """The recorded dispatch that a packet belongs to."""
        return self._dispatch_at(event.list_serial, event.command)

    def _dispatch_at(self, list_serial: int, command: int) -> _Dispatch | None:
        dispatches = self._dispatches.get(list_serial, ())
        at = bisect_right(dispatches, command, key=_first)
        return dispatches[at - 1] if at else None

    def _compare(
        self, event: Executing, dispatch: _Dispatch | None, read: Pattern, operand: int, author: Author
    ) -> None:
        path = author.operand(operand)
        tensor = _tensor(read, path, dispatch)
        sources = self._memory.sources(read)
        padding = next((each for each in sources if each.write is not None and each.write.is_padding), None)
        if padding is not None:
            sources = sources.without_padding()
        assert author.inputs is not None
        author.inputs.append(Input(path, tensor, sources))
        if tensor is None:
            return
        if padding is not None:
            self._say_padding(event, read, tensor, padding)
        if not sources.is_exact:
            _used(self._memory.writes(read.begin, read.end))
            words = messages.not_compared(self.names.command(event), tensor)
            self.report(READ_NOT_COMPARED.id, cause="once", **words)
            return
        for each in sources:
            written = None if each.write is None else each.write.tensor
            if each.write is None or written is None:
                continue
            relation, is_mistake = _relation(each.write, written, tensor, is_all=len(sources) == 1)
            if relation is Relation.SAME or (
                relation is Relation.OTHER_TYPE and _only_moves(event, dispatch)
            ):
                continue
            words = messages.handover(self.names.command(event), tensor, each, relation, self._base(read))
            words |= {} if is_mistake else {"severity": Severity.INFO}
            if words["cause"] not in self._advised:
                self._say(event, LAYOUT_HANDOVER, read, tensor, words)
            if is_mistake:
                return
            self._advised.add(words["cause"])
        can_mix = len(sources) > 1 and read.clip is None  # not through tiles in several places
        mixture = self._mixture(read, tensor, sources) if can_mix else None
        if mixture is not None:
            words = messages.mixed(self.names.command(event), tensor, *mixture, self._base(read))
            self._say(event, READ_MIXED, read, tensor, words)

    def _base(self, read: Pattern) -> int:
        """Where the buffer begins in physical memory, of which this is read."""
        return read.place.address + read.shift

    def _mixture(self, read: Pattern, tensor: Tensor, sources: Sources) -> tuple[Source, Source] | None:
        """What was written last, and what does not belong to it."""
        known = [each for each in sources if each.write is not None]
        for i, older in enumerate(known):
            above = [
                each
                for each in known[:i]
                if _is_beneath(older, each) and not _is_patch(each) and not _is_same(older, each)
            ]
            if all(_is_upload(each) for each in (*above, older)) and not _is_cut(read, older):
                continue  # the program overwrites a part of its data
            if _is_blank(older) and not any(_is_cut(read, each) for each in (*above, older)):
                continue  # this tensor was cleared to be filled: a cache, or channels that are padded
            newer = [each for each in known if any(each is one or _is_same(each, one) for one in known[:i])]
            if above and not self._fills(read, tensor, newer):
                return above[0], older
        is_cut = len(known) == len(sources) and all(_is_cut(read, each) for each in known)
        if is_cut and not all(_is_same(known[0], each) for each in known):
            return known[0], known[-1]
        return None

    def _fills(self, read: Pattern, tensor: Tensor, newer: list[Source]) -> bool:
        """Whether these writes fill a box of the tensor on purpose.

        Slices updated in place, an image inside a border, a cache that grows row by row.  The first rows,
        written at once, are rather a tensor that is too small.
        """
        if any(_is_cut(read, each) for each in newer):
            return False
        writes = [each.write for each in newer if each.write is not None]
        boxes = [self._box(read, tensor, writes)] if len(writes) > 1 else []
        if any(boxes):
            return True
        return all(
            box is not None and any(box) for box in (self._box(read, tensor, [each]) for each in writes)
        )

    def _box(self, read: Pattern, tensor: Tensor, writes: list[Write]) -> tuple[int, ...] | None:
        """The first coordinates of these writes in a tensor, if they fill a box or are too large to tell."""
        marks = self._memory.marks(read, writes, tensor.bits)
        return (1,) if marks is None else _first_of_box(_elements(*marks, tensor))

    def _say_padding(self, event: Executing, read: Pattern, tensor: Tensor, source: Source) -> None:
        command, first = self.names.command(event), source.first - read.shift
        buffer = self.names.buffer(first)
        words = messages.padding(
            command, tensor, source, self._base(read), self.names.bytes(first, first + source.size)
        )
        self.report(MEM_PADDING_READ.id, operation=command.place, object=buffer or "", **words)

    def _say(
        self, event: Executing, id: Declaration, read: Pattern, tensor: Tensor, words: dict[str, object]
    ) -> None:
        command = self.names.command(event)
        first, end = read.begin - read.shift, read.end - read.shift
        if "severity" not in words and len(self._suspects) < _SUSPECTS:
            self._suspects.append(Suspect(id.id, read.begin, read.end, tensor, str(command)))
        self.report(
            id,
            operation=command.place,
            object=self.names.buffer(first) or "",
            ranges=(self.names.bytes(first, end),),
            **words,  # type: ignore[arg-type]
        )


def _relation(write: Write, written: Tensor, read: Tensor, *, is_all: bool) -> tuple[Relation, bool]:
    """The relation of the two, and whether it is a mistake; bits without a type may be of any."""
    if not write.is_typeless or is_same_kind(written.data_type, read.data_type):
        relation = relate(written, read, is_all=is_all)
        return relation, relation.is_mistake
    if written.bits != read.bits:
        return Relation.SAME, False
    return relate(written._replace(data_type=read.data_type), read, is_all=is_all), False


def _used(writes: Iterable[Write]) -> None:
    """Somebody has read a part of these."""
    for each in writes:
        each.author.use.is_over = True


def _writes(reached: Reached, author: Author, dispatch: _Dispatch | None) -> list[Write]:
    """The writes that accesses make; their numbers are still to come."""
    made = []
    for pattern, operand in reached.patterns:
        if pattern.access & WRITE:
            tensor = _tensor(pattern, author.operand(operand), dispatch)
            made.append(Write(author, operand, pattern.begin, pattern.end, pattern, tensor, 0))
    return made


def _padding(reached: Reached, author: Author, dispatch: _Dispatch | None) -> list[Write]:
    """The bytes after the last element of an output; nobody needs to read them."""
    author.use.is_over = True
    made = []
    for pattern, operand in reached.patterns:
        known = None if dispatch is None else dispatch.tensors.get(author.operand(operand))
        if known is not None:
            tensor = known[0].at(pattern.struct.address - known[1])
            made.append(
                Write(author, operand, pattern.begin, pattern.end, pattern, tensor, 0, is_padding=True)
            )
    return made


def _span(pattern: Pattern) -> Range:
    return pattern.begin, pattern.end


def _spans_read(reached: Reached) -> list[Range]:
    """Where what is read comes from: nothing else decides what is found."""
    return [_span(pattern) for pattern, _ in reached.patterns if pattern.access & READ]


def _meet(a: Pattern, b: Pattern) -> bool:
    return a.begin < b.end and b.begin < a.end


def _any_meet(read: Sequence[Pattern], writes: Sequence[Write]) -> bool:
    """Whether bytes that are read are written, too."""
    spans = sorted((each.begin, each.end) for each in writes)
    begins, ends = [begin for begin, _ in spans], list(accumulate((end for _, end in spans), max))
    places = ((each, bisect_left(begins, each.end)) for each in read)
    return any(before and ends[before - 1] > each.begin for each, before in places)


def _is_beneath(older: Source, newer: Source) -> bool:
    """Whether the newer write was made over a part of the older one."""
    a, b = older.write, newer.write
    return a is not None and b is not None and a.begin < b.end and b.begin < a.end


def _is_same(older: Source, newer: Source) -> bool:
    """Whether both are of one write, a part of which was copied away and back."""
    a, b = older.write, newer.write
    return a is not None and b is not None and a.is_of_the_same(b)


def _is_patch(source: Source) -> bool:
    """Whether a command changed a few words to numbers of its own."""
    opcode = _opcode(source)
    return opcode is not None and opcode.effects.immediate


def _is_upload(source: Source) -> bool:
    """Whether the CPU wrote it, and the program has not declared what it is."""
    write = source.write
    if write is None or (write.tensor is not None and not write.tensor.is_array):
        return False
    author = write.author
    while author.before is not None:
        author = author.before
    return author.commands is None


def _is_blank(source: Source) -> bool:
    """Whether it was only cleared or filled with a number, or the CPU wrote it."""
    command = _command(source)
    is_fill = command is not None and "FILL_VALUE_CONSTANT" in command.name
    return is_fill or _opcode(source) is Opcode.CLEAR_UAV or _is_upload(source)


def _opcode(source: Source) -> Opcode | None:
    """Of the command that wrote it; None: the CPU did, or the list is gone."""
    command = _command(source)
    return None if command is None else command.opcode


def _command(source: Source) -> Command | None:
    return None if source.write is None else source.write.author.command


def _is_undeclared(write: Write) -> bool:
    """Whether only bytes were brought there, or an array that is no more than that."""
    is_bytes = write.tensor is None or write.tensor.is_array
    return is_bytes and write.author.is_copy_or_host


def _is_cut(read: Pattern, source: Source) -> bool:
    """Whether a read reaches only a part of what was written."""
    write = source.write
    return write is not None and (write.begin < read.begin or write.end > read.end)


def _elements(marks: _Marks, unit: int, tensor: Tensor) -> _Marks:
    """Which elements of a tensor begin with a mark; the first mark is for its first byte."""
    axes = [
        (size, stride * (tensor.bits // 4) // unit) if stride else (1, 0)
        for size, stride in zip(tensor.sizes, tensor.strides, strict=True)
    ]
    sizes, strides = [size for size, _ in axes], [stride for _, stride in axes]
    return np.lib.stride_tricks.as_strided(marks, sizes, strides, writeable=False)


def _first_of_box(elements: _Marks) -> tuple[int, ...] | None:
    """The first coordinates of the marked elements, if they are a box."""
    count, first = 1, []
    for axis in range(elements.ndim):
        others = tuple(i for i in range(elements.ndim) if i != axis)
        there = np.flatnonzero(elements.any(axis=others))
        if not len(there):
            return None
        first.append(int(there[0]))
        count *= int(there[-1]) - int(there[0]) + 1
    return tuple(first) if count == np.count_nonzero(elements) else None


def _only_moves(event: Executing, dispatch: _Dispatch | None) -> bool:
    """Whether a kernel moves elements without looking at them; an initializer's are looked at later."""
    is_initializer = dispatch is not None and dispatch.is_initializer
    return not is_initializer and _kernel(event) in _MOVING


def _kernel(event: Executing) -> str:
    return kernels.name(KERNEL.unpack_from(event.packet)[0])


def _tensor(pattern: Pattern, path: str, dispatch: _Dispatch | None) -> Tensor | None:
    """The tensor that the footprint is, or a part of."""
    known = None if dispatch is None else dispatch.tensors.get(path)
    if known is None:
        return None
    (tensor, size), struct = known, pattern.struct
    if struct.end - struct.address == size:
        return tensor.at(struct.address)
    sizes, strides = tuple(struct.sizes[0 : struct.rank]), tuple(struct.strides[0 : struct.rank])
    return Tensor(path, tensor.data_type, sizes, strides, struct.address)


def _whole(path: str, desc: BufferTensorDesc) -> tuple[Tensor, int]:
    tensor = Tensor(path, desc.data_type, tuple(desc.sizes), desc.effective_strides, 0)
    return tensor, desc.extent_in_bytes


CHECKS = (WhoseBytes,)
