"""One queue's course: which accesses its barriers and calls have ordered.

Commands between two points of order have the same phase, and phases rise.  Those of the list with ticket
``t`` begin at ``t << SHIFT``, so that a clock, which counts tickets, tells phases as well.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from .clocks import NOTHING, Clock
from .names import Work
from .windows import Kind, Pattern, Place, Touch, Window

if TYPE_CHECKING:
    from .builtin.hazards import Advice

__all__ = ["SHIFT", "TRANSITION", "UAV_BARRIER", "Mark", "Timeline"]

SHIFT = 24
TRANSITION, ALIASING, UAV_BARRIER = 0, 1, 2  # D3D12_RESOURCE_BARRIER_TYPE


class Mark(NamedTuple):
    """A barrier: what has a lower phase comes before it.  Addresses are of resources, 0 stands for any."""

    phase: int
    kind: int
    before: int
    after: int
    advice: Advice | None

    def orders(self, window: Window, place: Place, kind: int) -> bool:
        """Does it order accesses in the window before one of that kind through ``place``?"""
        first, then = window.place.address, place.address
        if self.kind == ALIASING:
            return self.before in (0, first) and self.after in (0, then)
        if self.kind == UAV_BARRIER and not (window.kind <= Kind.TAIL and kind <= Kind.TAIL):
            return False
        return self.before == 0 or self.before == first == then


class Timeline:
    """``call``: the phase with which the ExecuteCommandLists call under way began.

    ``command``: what the command under way has touched so far.  ``temporary``: of that, the bytes that
    it may use as it likes.  ``unproven``: barriers of the call that have ordered nothing yet, by phase.
    """

    def __init__(self, queue: int) -> None:
        self.queue = queue
        self.clock: Clock = NOTHING
        self.ticket = -1  # of the list under way
        self.work = Work([], "", "")
        self.phase = 0
        self.call = 0
        self.call_end = -1  # its last ticket
        self.mark = 0  # all accesses of a lower phase are ordered before those that come now
        self.uav_mark = 0  # the same of UAV accesses among themselves
        self.aliases: dict[tuple[int, int], int] = {}
        self.marks: list[Mark] = []
        self.unproven: dict[int, Advice] = {}
        self.command: list[tuple[Pattern, Kind, Touch]] = []
        self.told: list[object] = []  # of the command under way: with whom it conflicts
        self.temporary = (0, 0)

    def begin_list(self, ticket: int, work: Work) -> None:
        self.ticket = ticket
        self.work = work
        self.phase = max(self.phase, ticket << SHIFT)

    def begin_call(self, ticket: int, end: int, clock: Clock) -> None:
        """All work of the queue before is done."""
        self.phase = self.call = self.mark = self.uav_mark = ticket << SHIFT
        self.call_end = end
        self.clock = clock
        self.aliases.clear()
        self.marks.clear()
        self.unproven.clear()

    def ordered(self, window: Window, place: Place, kind: int) -> int:
        """What has a lower phase in the window is ordered before an access of that kind through ``place``."""
        both_uav = kind <= Kind.TAIL and window.kind <= Kind.TAIL
        phase = self.uav_mark if both_uav and self.uav_mark > self.mark else self.mark
        if window.place is place:
            phase = max(phase, window.mark, window.uav_mark if both_uav else 0)
        if self.aliases:
            first, then = window.place.address, place.address
            pairs = (first, then), (first, 0), (0, then)
            phase = max(phase, *(self.aliases.get(pair, 0) for pair in pairs))
        return phase

    def pass_barrier(self, kind: int, before: Place | None, addresses: tuple[int, int]) -> int:
        """Returns the barrier's phase.  ``before`` is the place of the first address, if it was accessed."""
        self.phase += 1
        if kind == ALIASING and any(addresses):
            self.aliases[addresses] = self.phase
        elif kind == ALIASING:
            self.mark = self.phase
        elif addresses[0] == 0:
            self.uav_mark = self.phase
        elif before is not None:
            for each in Kind:
                window = before.own.get(self.queue << 2 | each)
                if window is not None and kind == TRANSITION:
                    window.mark = self.phase
                elif window is not None and each <= Kind.TAIL:
                    window.uav_mark = self.phase
        return self.phase

    def first_mark(self, window: Window, place: Place, kind: int, phase: int) -> Mark | None:
        """The first barrier that orders an access of that phase before one through ``place``."""
        start = bisect_right(self.marks, phase, key=_phase)
        return next((mark for mark in self.marks[start:] if mark.orders(window, place, kind)), None)


def _phase(mark: Mark) -> int:
    return mark.phase
