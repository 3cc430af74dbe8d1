"""One queue's course: its calls, the commands of the one under way, and the barriers between them.

A command's phase is a number that rises along the queue: of the call that begins with ticket ``t`` the
commands have ``t << SHIFT``, one more, and so on, so that a clock, which counts tickets, tells phases too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from typing import NamedTuple

from ..framework.names import NamedCommand, Work
from .access_history import Part, Touched
from .happens_before import NOTHING, Clock
from .order import ALIASING, UAV_BARRIER, Done, Order, union, with_one

__all__ = ["SHIFT", "Advice", "BarrierEpochs", "Mark"]

SHIFT = 40


class Advice:
    """Barriers of one line and one resource: have they ever ordered anything?"""

    def __init__(self, command: NamedCommand, barrier: str) -> None:
        self.command = command
        self.barrier = barrier
        self.is_useful = False


class Mark(NamedTuple):
    """Barrier ``number`` of a call, behind so many commands.  Addresses are of resources, 0 stands for any.

    ``gives``: what commands with views of the resource begin behind through it, by barriers with merits.
    """

    number: int
    at: int
    kind: int
    before: int
    after: int
    advice: Advice | None
    gives: Done = (0, 0)


Postponed = tuple[int, int, Work, list[Part]]
"""A command that began behind all before it in its call: its phase, the call's, its list and packets."""


class BarrierEpochs:
    """``call``: the phase with which the ExecuteCommandLists call under way began.

    ``parts``: the packets so far of the command under way, which touch memory through the resources at
    ``addresses``, one of which is 0, for any; ``command``: what they touch, when it is compared.
    ``postponed``: commands that are still to be entered, oldest first; of those alike only the last.
    ``temporary``: the bytes that it may use as it likes.  ``behind_all``: operands that are written
    when everything before is done.  ``done`` and ``proven_done`` have ended when it begins.
    ``is_level``: each command from number ``noted`` on reaches its resources by views and began behind all
    before it, and the first ``level`` commands, all but at most the last one, have ended when another such
    one begins; ``order`` has still to be told.
    ``unproven``: barriers of the call that have ordered nothing yet; ``proven`` is the order without them.
    """

    def __init__(self, queue: int) -> None:
        self.queue = queue
        self.clock: Clock = NOTHING
        self.ticket = -1  # of the list under way
        self.work = Work([], "", "")
        self.call = 0
        self.handed = 0  # which call of the host it is
        self.call_end = -1  # its last ticket
        self.order = Order()
        self.proven = self.order
        self.commands: list[tuple[bool, tuple[int, ...]]] = []
        self.marks: list[Mark] = []
        self.unproven: list[Mark] = []
        self.copied: dict[int, tuple[Done, Done]] = {}  # copies of the call, with what they began behind
        self.parts: list[Part] = []
        self.command: list[Touched] = []
        self.postponed: dict[Hashable, Postponed] = {}
        self.by_view = False
        self.addresses: tuple[int, ...] = (0,)
        self.behind_all: tuple[int, ...] = ()
        self.done: Done = (0, 0)
        self.proven_done: Done = (0, 0)
        self.temporary = (0, 0)
        self.is_level = False
        self.level = 0
        self.noted = 0

    def begin_list(self, ticket: int, work: Work) -> None:
        self.ticket = ticket
        self.work = work._replace(handed=self.handed)

    def begin_call(self, ticket: int, end: int, clock: Clock, handed: int) -> None:
        """All work of the queue before is done."""
        self.handed = handed
        self.call = ticket << SHIFT
        self.call_end = end
        self.clock = clock
        self.order.reset()
        self.proven = self.order
        self.commands.clear()
        self.marks.clear()
        self.unproven.clear()
        self.copied.clear()
        self.is_level = True
        self.level = self.noted = 0

    def pass_level_barrier(self, advice: Advice | None) -> None:
        """A UAV barrier on any resource, with merits, while all commands are level."""
        count = self.level = len(self.commands)
        self.marks.append(Mark(len(self.marks), count, UAV_BARRIER, 0, 0, advice))

    def _leave_level(self) -> None:
        """From now on the order has to be followed command by command."""
        if self.is_level:
            self.is_level = False
            for number in range(self.noted, len(self.commands)):
                self.order.end(True, self.commands[number][1], (number + 1, 0))
            self.order.join(0, (self.level, 0))

    def begin_command(self) -> None:
        """All parts of the command under way are known: what has ended when it begins?"""
        self._leave_level()
        self.done = self.proven_done = self.order.begin(self.by_view, self.addresses)
        if self.proven is not self.order:
            self.proven_done = self.proven.begin(self.by_view, self.addresses)

    @property
    def is_behind_all(self) -> bool:
        """Has all of the call ended when the command under way begins, by barriers with merits?"""
        return self.proven is self.order and self.done[0] == len(self.commands)

    def postpone(self, key: Hashable, parts: list[Part]) -> None:
        """The next command, which touches the same as others of that key, is to be entered later."""
        postponed = self.postponed
        if key in postponed:
            del postponed[key]  # it becomes the last
        postponed[key] = self.call + len(self.commands), self.call, self.work, parts

    def come_behind(self, copy: int) -> None:
        """The command under way is a copy that begins behind that one."""
        done, proven = self.copied[copy]
        self.done, self.proven_done = union(self.done, done), union(self.proven_done, proven)

    def end_command(self) -> None:
        """The next one may come."""
        number = len(self.commands)
        done = with_one(self.done, number)
        proven = done if self.proven is self.order else with_one(self.proven_done, number)
        if self.behind_all:
            done = proven = number + 1, 0
        self.order.end(self.by_view, self.addresses, done)
        if self.proven is not self.order:
            self.proven.end(self.by_view, self.addresses, proven)
        if not self.by_view:
            self.copied[number] = done, proven
        self.commands.append((self.by_view, self.addresses))
        self.parts = []
        self.command = []
        self.behind_all = ()
        self.temporary = (0, 0)

    def pass_barrier(self, kind: int, before: int, after: int, advice: Advice | None) -> None:
        """A barrier; its merits are of interest if there is advice on it."""
        count = len(self.commands)
        if kind != ALIASING:
            after = before
        self._leave_level()
        is_unproven = advice is not None and not advice.is_useful
        if is_unproven and self.proven is self.order:
            self.proven = self.order.copy()
        self.order.pass_barrier(kind, before, after, count)
        gives = self.proven.viewed(before) if is_unproven else (0, 0)
        mark = Mark(len(self.marks), count, kind, before, after, advice, gives)
        if is_unproven:
            self.unproven.append(mark)
        elif self.proven is not self.order:
            self.proven.pass_barrier(kind, before, after, count)
        self.marks.append(mark)
        if self.proven is self.order and kind == UAV_BARRIER and before == 0:
            self.is_level = self.order.begin(True, (0,)) == (count, 0)
            self.level = self.noted = count

    def prove(self, number: int) -> None:
        """The command under way conflicts with that one: the barriers that order the two have merits."""
        way = self._way(number)
        self.credit(self.unproven if way is None else way)
        self.proven_done = with_one(self.proven_done, number)

    def credit(self, marks: list[Mark]) -> None:
        """These barriers have merits."""
        for mark in marks:
            if mark.advice is not None:
                mark.advice.is_useful = True
        still: list[Mark] = []
        for mark in self.unproven:
            if mark.advice is not None and mark.advice.is_useful:
                self.proven.join(mark.before, mark.gives)
            else:
                still.append(mark)
        self.unproven = still
        self.proven_done = union(self.proven_done, self.proven.begin(self.by_view, self.addresses))

    def first_between(self, number: int, address: int, then: int) -> Mark | None:
        """The first barrier behind that command that names what it and this one conflict on."""
        behind = bisect_right(self.marks, number, key=lambda mark: mark.at)
        between = (self.marks[i] for i in range(behind, len(self.marks)))
        return next(
            (each for each in between if each.before in (0, address) and each.after in (0, then)), None
        )

    def _way(self, first: int) -> list[Mark] | None:
        """The barriers by which the command under way comes behind that one, each as early as can be.

        None: it is not barriers alone that order the two.
        """
        touched: dict[tuple[bool, int], int] = {}  # by views or not, and address: the first that came behind
        open: dict[
            tuple[bool, int], tuple[Mark, int]
        ] = {}  # what lets others come behind, and whom it awaited
        came: dict[int, tuple[Mark, int] | None] = {}
        marks = iter(self.marks)
        mark = next(marks, None)
        for number in range(first, len(self.commands) + 1):
            while mark is not None and mark.at <= number:
                if mark.at > first:
                    _open(mark, touched, open)
                mark = next(marks, None)
            is_end = number == len(self.commands)
            by_view, addresses = (self.by_view, self.addresses) if is_end else self.commands[number]
            through = None if number == first else _through(by_view, addresses, open)
            if through is not None or number == first:
                came[number] = through
                for address in addresses:
                    touched.setdefault((by_view, address), number)
        return _back(came, len(self.commands))


def _open(
    mark: Mark, touched: dict[tuple[bool, int], int], open: dict[tuple[bool, int], tuple[Mark, int]]
) -> None:
    only_views = mark.kind == UAV_BARRIER
    sources = [touched.get((True, mark.before))]
    if not only_views:
        sources.append(touched.get((False, mark.before)))
    known = [each for each in sources if each is not None]
    if known:
        open.setdefault((only_views, mark.after), (mark, min(known)))


def _through(
    by_view: bool, addresses: tuple[int, ...], open: dict[tuple[bool, int], tuple[Mark, int]]
) -> tuple[Mark, int] | None:
    kinds = (False, True) if by_view else (False,)
    keys = [(only_views, address) for address in addresses for only_views in kinds]
    found = [open[key] for key in keys if key in open]
    return min(found, key=lambda each: each[0].number) if found else None


def _back(came: dict[int, tuple[Mark, int] | None], last: int) -> list[Mark] | None:
    if last not in came:
        return None
    way: list[Mark] = []
    while (step := came[last]) is not None:
        way.append(step[0])
        last = step[1]
    return way
