"""Runs dispatches of shaders before their turn, watched: which bytes they read and write, and their mistakes.

Subscribers learn what a command accesses before it runs.  What a shader accesses is known when it has run: so
a watched dispatch runs ahead, its writes are taken back, and done at its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .events import MAYBE_READ, READ, WRITE, Access, Footprint, Place
from .faults import GpuFault
from .formats import number_type
from .group_orders import Contents, contents, restore
from .kernels import ffi, lib
from .memory import Memory
from .shader_views import number_type_in
from .shader_watch import MOST_PATTERNS, Finding, Pattern, Watch, Watched, WatchedView

if TYPE_CHECKING:
    from .programs import WatchedCode

__all__ = ["Ahead", "Span", "accesses_of", "spans_of"]

_FEW = 1024  # patterns of an operand that are told apart
_MOST_VIEWS = 4096  # of a range whose views are compared with what is written


class Span(NamedTuple):
    """What a view may access: ``operand``, ``access``, GPU virtual address, bytes, and their host address."""

    operand: int
    access: int
    address: int
    size: int
    host: int


class Ahead:
    """What a command of shaders did when it ran ahead; :meth:`finish` does it for good.

    ``moved``: the number of bytes that stand for its time.  ``program``: the serial number of what ran.
    ``fault`` is raised by :meth:`finish`, after what was written before it.
    """

    def __init__(self, program: int, spans: Iterable[Span]) -> None:
        self.program = program
        self.spans = list(dict.fromkeys(spans))  # dispatches of an ExecuteIndirect mostly have the same
        self.accesses: list[Access] = []
        self.findings: list[Finding] = []
        self.views: dict[int, WatchedView] = {}
        self.dropped = 0
        self.unchecked = 0
        self.moved = 0
        self.fault: GpuFault | None = None
        written = [(each.host, each.size) for each in self.spans if each.access & WRITE]
        self.written = joined_spans(written)
        self._before = contents(self.written)
        self._after: list[bytes] = []
        self._has_run = False

    def before(self) -> Contents:
        """What the memory holds before the next run."""
        contents_now = contents(self.written) if self._has_run else self._before
        self._has_run = True
        return contents_now

    def run(self, call: Any, code: WatchedCode, limit: float, before: Contents) -> tuple[int, bool, Watch]:
        """Runs a ``_Call``, watched: in parts, and if that leaves doubts once more, one group after another.

        ``before``: what the memory holds.  Returns the status, whether it was stopped after ``limit``
        seconds, and what watched it.
        """
        call.set_code(code, code.shared_bytes)
        for number in range(len(call.program.ranges)):
            _mark_read_only(call.ranges[number].views, call.ranges[number].count, self.written)
        status, is_late, watch = _run(call, code, limit, in_parts=True)
        if watch.doubtful and (status != lib.DMLK_STOPPED or is_late):  # the host wants no other run
            del watch  # and its memory
            restore(self.written, before)
            call.fault.kind = 0
            status, is_late, watch = _run(call, code, limit, in_parts=False)
        self._add(watch, call)
        return status, is_late, watch

    def take_back(self) -> None:
        """Keeps what was written, and restores the memory, also where a signal handler raises something."""
        try:
            self._after = contents(self.written)
        finally:
            restore(self.written, self._before)

    def finish(self) -> int:
        """Writes what was kept.  GpuFault.

        Where a signal handler raises something, nothing is written: the command will run once more.
        """
        try:
            restore(self.written, self._after)
        except BaseException:
            restore(self.written, self._before)
            raise
        self._before = self._after = []
        if self.fault is not None:
            raise self.fault
        return self.moved

    def event(self, place: Place) -> Watched:
        found = tuple(self.findings), self.views, self.dropped, self.unchecked
        return Watched(*place, self.program, *found)

    def _add(self, watch: Watch, call: Any) -> None:
        """A dispatch has run; ``call`` is its ``_Call``.  Of several, the first that has findings is told."""
        if not self.findings:
            self.tell(watch.findings, call)
        self.dropped += watch.dropped
        self.unchecked += watch.unchecked
        self.accesses += accesses_of(watch, self.spans)

    def tell(self, findings: list[Finding], call: Any) -> None:
        """Keeps them, and the views that they name: all are of one dispatch."""
        self.findings += findings
        ids = {side.view for each in findings for side in (each.later, each.earlier) if side.access}
        self.views |= {id: self._view(call, id) for id in sorted(ids)}

    def _view(self, call: Any, id: int) -> WatchedView:
        operand, index, view = call.view(id)
        host = int(ffi.cast("uintptr_t", view.base))
        inside = (each.address + host - each.host for each in self.spans if 0 <= host - each.host < each.size)
        ranges = call.program.ranges
        if operand < len(ranges):
            number = number_type_in(ranges[operand], view.format)
        else:
            number = number_type(view.format) or "UINT32"
        return WatchedView(operand, index, next(inside, 0), view.bytes, view.stride, number)


def _run(call: Any, code: WatchedCode, limit: float, *, in_parts: bool) -> tuple[int, bool, Watch]:
    """The status, whether it was stopped after ``limit`` seconds, and what watched it."""
    watch = code.watch(in_parts=in_parts)
    call.call.watch = watch.pointer
    status, is_late = call.run(limit)
    watch.finish()
    return status, is_late, watch


def _mark_read_only(views: Any, count: int, written: Sequence[tuple[int, int]]) -> None:
    """Tells of views whose bytes no view of the dispatch writes: reads of them need not be compared."""
    for i in range(count if count <= _MOST_VIEWS else 0):
        view = views[i]
        host, size = int(ffi.cast("uintptr_t", view.base)), view.bytes
        if not view.flags & lib.DMLK_SHADER_UAV and not any(
            first < host + size and host < first + length for first, length in written
        ):
            view.flags |= lib.DMLK_SHADER_READ_ONLY


def spans_of(touched: Iterable[Access], memory: Memory) -> Iterator[Span]:
    """Where the bytes of accesses to whole views stand on the host."""
    for operand, access, footprint in touched:
        first, end = footprint.byte_range
        if end > first:
            yield Span(operand, access, first, end - first, memory.translate(first, end - first))


def joined_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes, in spans that do not meet."""
    found: list[tuple[int, int]] = []
    for host, size in sorted(spans):
        if found and host <= found[-1][0] + found[-1][1]:
            first = found[-1][0]
            found[-1] = first, max(found[-1][1], host + size - first)
        else:
            found.append((host, size))
    return found


def accesses_of(watch: Watch, spans: Iterable[Span]) -> Iterator[Access]:
    """The bytes of the spans that a dispatch has read before it wrote them, and those that it has written.

    Of more than ``_FEW`` patterns of reads, which bytes are read is said to be not known.
    """
    for operand, access, address, size, host in spans:
        read = watch.read(host, size)
        if len(read) > _FEW:
            yield Access(operand, MAYBE_READ, Footprint(address, 8, (size,), (1,)))
        else:
            yield from (Access(operand, READ, _footprint(address, each)) for each in read)
        if access & WRITE:
            written = watch.written(host, size)[:MOST_PATTERNS]
            yield from (Access(operand, WRITE, _footprint(address, each)) for each in written)


def _footprint(address: int, pattern: Pattern) -> Footprint:
    begin, width, stride, count = pattern
    if count == 1:
        return Footprint(address + begin, 8, (width,), (1,))
    return Footprint(address + begin, 8, (count, width), (stride, 1))
