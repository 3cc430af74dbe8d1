"""Barrier epochs: one queue's calls, the commands of the current call, and the barriers between them.

A command's phase is a number that rises along the queue: the commands of the call that begins with ticket
``t`` have phases ``t << SHIFT``, ``(t << SHIFT) + 1`` and so on, so that clocks, which count tickets, compare
with phases too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from typing import NamedTuple

from ..framework.names import NamedCommand, Work
from .access_history import Accessed, Part, Place, Touched
from .happens_before import NOTHING, Clock
from .order import ALIASING, UAV_BARRIER, Done, Order, union, with_one

__all__ = ["SHIFT", "Advice", "BarrierEpochs", "Mark"]

SHIFT = 40


class Advice:
    """Barriers of one line and one resource: have they ever been the first to order a conflict?"""

    def __init__(self, command: NamedCommand, barrier: str) -> None:
        self.command = command
        self.barrier = barrier
        self.is_useful = False
        self.is_told = False  # to the program, as useless


class Mark(NamedTuple):
    """Barrier ``number`` of a call, behind ``at`` commands.  Addresses are of resources; 0: any resource.

    ``gives``: for an unproven barrier, the commands that it makes later commands with views wait for.
    """

    number: int
    at: int
    kind: int
    before: int
    after: int
    advice: Advice | None
    gives: Done = (0, 0)


Postponed = tuple[int, int, Work, list[Part]]
"""A command ordered behind all before it in its call: its phase, the call's phase, its list, its packets."""


class BarrierEpochs:
    """``call``: the phase with which the current ExecuteCommandLists call began.

    ``parts``: the packets so far of the current command, which accesses memory through the resources at
    ``addresses``, one of which is 0, for any; ``command``: its accesses, once it is compared.
    ``postponed``: commands still to be entered, in any order; of equal ones only the last.
    ``temporary``: bytes of its temporary resource.  ``behind_all``: operands that are written when all
    commands before are done.  ``done`` and ``proven_done``: commands that have ended when it begins.
    ``is_level``: each command from number ``noted`` on accesses its resources by views and began behind all
    before it, and the first ``level`` commands, all but at most the last one, have ended when another such
    command begins; ``order`` and ``marks`` are not up to date then.
    ``named``: its barriers by what they name.  ``faulty``: places of which a hazard was reported.
    ``unproven``: barriers of the call not yet found useful; ``proven`` is the order without them.
    """

    def __init__(self, queue: int) -> None:
        self.queue = queue
        self.only_queue = {queue}
        self.clock: Clock = NOTHING
        self.ticket = -1  # of the current list
        self.work = Work([], "", "")
        self.call = 0
        self.handed = 0  # number of the host's call
        self.call_end = -1  # last ticket of the call
        self.order = Order()
        self.proven = self.order
        self.commands: list[Accessed] = []
        self.named = NamedBarriers()
        self.faulty: set[Place] = set()
        self.walked = 0  # commands of the call that orders_by_name has looked at
        self.has_given_up = False  # they were too many
        self.marks: list[Mark] = []
        self.unproven: list[Mark] = []
        self.copied: dict[int, tuple[Done, Done]] = {}  # copies of the call: what they began behind
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
        """All earlier work of the queue is done when the call begins."""
        self.handed = handed
        self.call = ticket << SHIFT
        self.call_end = end
        self.clock = clock
        self.order.reset()
        self.proven = self.order
        self.commands.clear()
        self.named = NamedBarriers()
        self.faulty.clear()
        self.walked = 0
        self.has_given_up = False
        self.marks.clear()
        self.unproven.clear()
        self.copied.clear()
        self.is_level = True
        self.level = self.noted = 0

    def pass_level_barrier(self) -> None:
        """A useful UAV barrier on any resource, while ``is_level`` holds."""
        self.level = len(self.commands)

    def _leave_level(self) -> None:
        """From now on the order is tracked command by command."""
        if self.is_level:
            self.is_level = False
            if self.level:
                self.named.pass_barrier(UAV_BARRIER, 0, 0, self.level)
            for number in range(self.noted, len(self.commands)):
                self.order.end(True, self.commands[number].addresses, (number + 1, 0))
                self.named.end(number, self.commands[number])
            self.order.join(0, (self.level, 0))
            if self.level > self.noted:  # one mark stands for all barriers since: the others came before it
                self.marks.append(Mark(len(self.marks), self.level, UAV_BARRIER, 0, 0, None))

    def begin_command(self) -> None:
        """All parts of the current command are known: computes which commands have ended when it begins."""
        self._leave_level()
        self.done = self.proven_done = self.order.begin(self.by_view, self.addresses)
        if self.proven is not self.order:
            self.proven_done = self.proven.begin(self.by_view, self.addresses)

    @property
    def is_behind_all(self) -> bool:
        """Whether useful barriers order the current command behind all commands of the call."""
        return self.proven is self.order and self.done[0] == len(self.commands)

    def postpone(self, key: Hashable, parts: list[Part]) -> None:
        """The next command, whose accesses equal others with that key, is to be entered later."""
        self.postponed[key] = self.call + len(self.commands), self.call, self.work, parts

    def come_behind(self, copy: int) -> None:
        """The current command is a copy that begins behind that one."""
        done, proven = self.copied[copy]
        self.done, self.proven_done = union(self.done, done), union(self.proven_done, proven)

    @property
    def accessed(self) -> Accessed:
        """The places that the current command accesses."""
        reached = [part[0] for part in self.parts]
        if len(reached) == 1 and self.by_view:
            return reached[0].by_views
        read = frozenset().union(*(each.read for each in reached))
        written = frozenset().union(*(each.written for each in reached))
        return Accessed(self.by_view, self.addresses, read, written, bool(self.behind_all))

    def end_command(self) -> None:
        """Ends the current command."""
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
        accessed = self.accessed
        self.named.end(number, accessed)
        self.commands.append(accessed)
        self.parts = []
        self.command = []
        self.behind_all = ()
        self.temporary = (0, 0)

    def pass_barrier(self, kind: int, before: int, after: int, advice: Advice | None) -> None:
        """Passes a barrier; with ``advice``, whether it is useful is tracked."""
        count = len(self.commands)
        if kind != ALIASING:
            after = before
        self._leave_level()
        is_unproven = advice is not None and not advice.is_useful
        if is_unproven and self.proven is self.order:
            self.proven = self.order.copy()
        self.order.pass_barrier(kind, before, after, count)
        self.named.pass_barrier(kind, before, after, count)
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
        """The current command conflicts with that one: the barriers that order the two are useful."""
        way = self._way(number)
        self.credit(self.unproven if way is None else way)
        self.proven_done = with_one(self.proven_done, number)

    def credit(self, marks: list[Mark]) -> None:
        """Marks these barriers as useful."""
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
        """The first barrier behind that command that names the resources of the conflict."""
        behind = bisect_right(self.marks, number, key=lambda mark: mark.at)
        between = (self.marks[i] for i in range(behind, len(self.marks)))
        return next(
            (each for each in between if each.before in (0, address) and each.after in (0, then)), None
        )

    def orders_by_name(self, first: int, start: tuple[int, bool], then: tuple[int, bool]) -> bool:
        """Whether barriers that name the memory order an access of that command before the current command's.

        An access: the address of its place, and whether it writes.  A command writes what it computed from
        what it read: what waits for its writes waits for its reads, and its writes wait for what its reads
        wait for.
        """
        self.walked += len(self.commands) - first
        reached = _Behind(self.commands[first], *start)
        at = bisect_right(self.marks, first, key=lambda mark: mark.at)
        for number in range(first + 1, len(self.commands) + 1):
            while at < len(self.marks) and self.marks[at].at <= number:
                reached.pass_barrier(self.marks[at])
                at += 1
            if number < len(self.commands):
                reached.follow(self.commands[number])
        return reached.holds(self.accessed, *then)

    def ways(self, first: int) -> list[Mark]:
        """The barriers that order the current command behind that one."""
        return self._way(first) or []

    def _way(self, first: int) -> list[Mark] | None:
        """The barriers that order the current command behind that one, each as early as possible.

        None: the two are not ordered by barriers alone.
        """
        touched: dict[tuple[bool, int], int] = {}  # by view, address: the first command ordered behind
        open: dict[
            tuple[bool, int], tuple[Mark, int]
        ] = {}  # barriers that order later commands, and the command each of them awaited
        came: dict[int, tuple[Mark, int] | None] = {}
        at = bisect_right(self.marks, first, key=lambda mark: mark.at)
        for number in range(first, len(self.commands) + 1):
            while at < len(self.marks) and self.marks[at].at <= number:
                _open(self.marks[at], touched, open)
                at += 1
            is_end = number == len(self.commands)
            here = self.commands[number] if not is_end else None
            by_view = self.by_view if here is None else here.by_view
            addresses = self.addresses if here is None else here.addresses
            through = None if number == first else _through(by_view, addresses, open)
            if through is not None or number == first:
                came[number] = through
                for address in addresses:
                    touched.setdefault((by_view, address), number)
        return _back(came, len(self.commands))


class NamedBarriers:
    """The last barriers of a call by what they name, and the last commands by what they access.

    All numbers are counts of commands: those below have been awaited, or have accessed it.
    """

    def __init__(self) -> None:
        self._uav: dict[int, int] = {}
        self._others: dict[tuple[int, int], int] = {}
        self._accessed: dict[int, int] = {}
        self._written: dict[int, int] = {}

    def pass_barrier(self, kind: int, before: int, after: int, commands: int) -> None:
        """Passes a barrier behind that many commands."""
        if kind == UAV_BARRIER:
            self._uav[before] = commands
        else:
            self._others[before, after] = commands

    def end(self, number: int, command: Accessed) -> None:
        """A command has ended."""
        for address in command.addresses[1:]:
            self._accessed[address] = number + 1
        for address in command.written:
            self._written[address] = number + 1

    def awaited(self, first: int, then: int, *, by_views: bool) -> int:
        """Accesses to ``first`` of the commands below this number end before an access to ``then`` begins.

        ``by_views``: both are.
        """
        others = self._others
        found = max(others.get(key, 0) for key in ((first, then), (0, then), (first, 0), (0, 0)))
        if by_views:
            found = max(found, self._uav.get(0, 0), self._uav.get(first, 0) if first == then else 0)
        return found

    def awaits_all(self, command: Accessed) -> bool:
        """Whether all that a command with views of these could conflict with is awaited by their names."""
        for address in command.addresses[1:]:
            last = (self._accessed if address in command.written else self._written).get(address, 0)
            if last and last > self.awaited(address, address, by_views=True):
                return False
        return True


class _Behind:
    """What comes behind one access, by barriers that name what they order."""

    def __init__(self, command: Accessed, address: int, writes: bool) -> None:
        # Accesses that come behind it, or are it: by view, or not; to an address.
        self.ended: dict[bool, set[int]] = {True: set(), False: set()}
        self.ended[command.by_view].add(address)
        if not writes:
            self.ended[command.by_view] |= command.written
        self.open: set[tuple[bool, int]] = set()  # only by views, or any; to an address, 0: to any

    def pass_barrier(self, mark: Mark) -> None:
        """Those that the barrier awaits are awaited by those that it names."""
        only_views = mark.kind == UAV_BARRIER
        kinds = (True,) if only_views else (True, False)
        if any(mark.before in self.ended[kind] or (mark.before == 0 and self.ended[kind]) for kind in kinds):
            self.open.add((only_views, mark.after))

    def _is_open(self, command: Accessed, address: int) -> bool:
        kinds = (False, True) if command.by_view else (False,)
        return any((only_views, each) in self.open for only_views in kinds for each in (address, 0))

    def holds(self, command: Accessed, address: int, writes: bool) -> bool:
        """Whether an access of the command is behind."""
        if command.is_last or self._is_open(command, address):
            return True
        if writes and any(self._is_open(command, each) for each in command.read):
            return True
        # Copies to the same bytes keep their order.
        return writes and not command.by_view and address in self.ended[False]

    def follow(self, command: Accessed) -> None:
        """Adds the accesses of a command that are behind."""
        found = {each for each in command.written if self.holds(command, each, True)}
        found |= {each for each in command.read if self.holds(command, each, False)}
        self.ended[command.by_view] |= found


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
