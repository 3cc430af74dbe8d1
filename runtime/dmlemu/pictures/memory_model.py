"""What is bound to a buffer over time: its uses, and how long the tensors in it live."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dmlemu_hw.events import Footprint
from dmlemu_hw.footprints import meet

from .tensor import shown

__all__ = ["Command", "Life", "Memory", "Use", "row_label"]

_ROWS = 40  # commands: of more, some are left out


class Command(NamedTuple):
    """What used the memory: a command of a list, or a call of the host."""

    name: str
    place: str  # ``command 3 of command list 'frame'``; ""
    recorded_at: str  # ``file:line``; ""
    is_dispatch: bool


class Use(NamedTuple):
    """Bytes [begin, end) of the pictured buffer, as one operand of a command used them.

    ``command`` is its number in order of execution.  ``buffer``: another buffer that lies over the same
    memory, if that one was bound, else ""; ``place``: the bytes, counted from the start of the one that was.
    """

    command: int
    buffer: str
    operand: str
    begin: int
    end: int
    place: str
    reads: bool
    writes: bool
    footprint: Footprint  # counted from the pictured buffer's memory

    @property
    def verb(self) -> str:
        if self.reads and self.writes:
            return "reads and writes"
        return "reads" if self.reads else "writes" if self.writes else "leaves undefined"

    @property
    def changes(self) -> bool:
        return self.writes or not self.reads

    @property
    def label(self) -> str:
        """``OutputTensor``, ``OutputTensor of buffer 'b'``."""
        return f"{self.operand} of {self.buffer}" if self.buffer else self.operand

    @property
    def key(self) -> tuple[str, int, int]:
        """What is bound again is the same tensor: a range of a buffer."""
        return self.buffer, self.begin, self.end


class Life:
    """A range of a buffer from the command that brought its contents to the last one that used them.

    ``clashes``: bytes that another tensor wrote meanwhile, or that this one wrote while another lived.
    """

    def __init__(self, use: Use, first: int) -> None:
        self.buffer, self.begin, self.end = use.key
        self.first, self.last = first, use.command
        self.uses = [use]
        self.clashes: list[tuple[int, int]] = []

    def __str__(self) -> str:
        of = f" of {self.buffer}" if self.buffer else ""
        return f"the tensor in bytes [{self.begin}, {self.end}){of} lives from {self.first} to {self.last}"

    def add(self, use: Use) -> None:
        self.uses.append(use)
        self.last = use.command

    def is_clash(self, other: Life) -> bool:
        """Whether ``other`` writes elements of this one while it lives."""
        return any(
            use.changes and self.first <= use.command <= self.last and self._holds(use) for use in other.uses
        )

    def _holds(self, use: Use) -> bool:
        return any(meet(own.footprint, use.footprint) is not None for own in self.uses)


class Memory:
    """The uses of a buffer's memory, in order of execution, and the lives of the tensors in it."""

    def __init__(
        self, title: str, size: int, commands: Sequence[Command], uses: Iterable[Use], left_out: int = 0
    ) -> None:
        self.title, self.size, self.left_out = title, size, left_out
        self.uses = list(uses)
        self.numbers = sorted({use.command for use in self.uses})
        self.commands = {number: commands[number] for number in self.numbers}
        self.lives = _lives(self.uses, self.commands)
        _find_clashes(self.lives)

    @property
    def clashing(self) -> list[Life]:
        """The tensors whose elements were overwritten, or that overwrote others', while they lived."""
        return [life for life in self.lives if life.clashes]

    def of(self, number: int) -> list[Use]:
        """The uses of a command."""
        return [use for use in self.uses if use.command == number]

    def is_red(self, use: Use) -> bool:
        """Whether the use belongs to a tensor that shares elements with another."""
        return any(use in life.uses for life in self.clashing)

    def rows(self) -> list[int | None]:
        """The numbers of the commands that are shown; None: some are left out."""
        red = {use.command for life in self.clashing for use in life.uses}
        usual = shown(len(self.numbers), _ROWS, few=8)
        if None not in usual:
            return list(self.numbers)
        kept = {self.numbers[i] for i in usual if i is not None}
        kept |= set(self.numbers[-8:]) | set(sorted(red)[: _ROWS // 2])
        rows: list[int | None] = []
        for number in self.numbers:
            if number in kept:
                rows.append(number)
            elif rows and rows[-1] is not None:
                rows.append(None)
        return rows

    def columns(self, most: int) -> list[int]:
        """The bytes at which columns begin, and the end: where uses begin and end, or equal parts."""
        edges = {0, self.size, *(edge for use in self.uses for edge in (use.begin, use.end))}
        exact = sorted(edge for edge in edges if 0 <= edge <= self.size)
        if len(exact) <= most + 1:
            return exact
        return [self.size * i // most for i in range(most)] + [self.size]

    def notes(self) -> Iterator[str]:
        """What the picture says beside its rows."""
        if not self.uses:
            yield "Nothing used it while the memory was watched."
        for life in self.clashing:
            where = ", ".join(f"[{begin}, {end})" for begin, end in life.clashes)
            yield f"{life}; another one shares bytes {where} meanwhile"
        if self.left_out:
            yield f"{self.left_out} uses of the device are left out beyond the limit"


def row_label(number: int, command: Command) -> str:
    """``3 Dispatch 'add' GEMM``."""
    name = command.name.replace(" of compiled operator ", " ")
    found = re.fullmatch(r"(.*) \(DML_OPERATOR_(\w+)\)", name)
    return f"{number} {name}" if found is None else f"{number} {found[1]} {found[2]}"


# --- lives ---


def _lives(uses: list[Use], commands: dict[int, Command]) -> list[Life]:
    """The lives of all ranges that dispatches bound, in the order in which they began."""
    bound = {use.key for use in uses if commands[use.command].is_dispatch}
    arrivals = [use for use in uses if use.key not in bound and use.changes]
    lives: list[Life] = []
    current: dict[tuple[str, int, int], Life] = {}
    for use in uses:
        if use.key not in bound:
            continue
        life = current.get(use.key)
        is_new = use.changes and not use.reads and (life is None or life.last != use.command)
        if life is None or is_new:
            first = use.command if is_new else _arrival(use, arrivals)
            life = current[use.key] = Life(use, first)
            lives.append(life)
        else:
            life.add(use)
    return lives


def _arrival(use: Use, arrivals: list[Use]) -> int:
    """The last copy or map before ``use`` that wrote into its range; if there is none, the use itself."""
    found = [
        each.command
        for each in arrivals
        if each.command < use.command and each.begin < use.end and use.begin < each.end
    ]
    return max(found, default=use.command)


def _find_clashes(lives: list[Life]) -> None:
    """Marks what two lives share."""
    ordered = sorted(lives, key=lambda life: life.begin)
    for i, a in enumerate(ordered):
        for b in ordered[i + 1 :]:
            if b.begin >= a.end:
                break
            if b.uses[0].key == a.uses[0].key:
                continue  # one range at several times
            if a.is_clash(b) or b.is_clash(a):
                part = max(a.begin, b.begin), min(a.end, b.end)
                for life in (a, b):
                    if part not in life.clashes:
                        life.clashes.append(part)
