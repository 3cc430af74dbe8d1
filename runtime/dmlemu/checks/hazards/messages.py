"""Messages on hazards, useless barriers and races with the CPU."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from dmlemu_hw.events import READ, UNDEFINE, WRITE
from dmlemu_hw.kernels import ffi, lib

from ...diagnostics.declaration import Declaration
from ...errors import Severity, shorten, spell_site
from ...pictures import Tensor as Drawn
from ..analysis.access_history import Access, Kind, Pattern
from ..analysis.happens_before import FenceValue
from ..framework.names import NamedCommand, Names, Work
from .rows import BARRIER_ELSEWHERE, HAZARD_ALIAS, HAZARD_QUEUE

if TYPE_CHECKING:
    from ...d3d12.memory.resource import Resource

__all__ = [
    "Finding",
    "Race",
    "Side",
    "apart",
    "barrier",
    "between",
    "no_more_accidents",
    "rise",
    "same",
    "shares_all",
    "signals",
    "useless",
    "wait",
    "waits",
]

_COUNTED = 4096  # bytes of a range that are compared one by one
_VERBS = {READ: "reads", WRITE: "writes", READ | WRITE: "updates", UNDEFINE: "uses"}


class Side(NamedTuple):
    """One of two conflicting accesses: it shares bytes [first, end) of ``buffer``, or some of them."""

    command: NamedCommand
    operand: str
    verb: str
    is_uav: bool
    buffer: Resource | None
    first: int
    end: int
    elements: str
    drawn: Drawn | None  # in physical memory; None: a part of what goes through tiles
    start: int  # of the buffer there

    @staticmethod
    def of(access: Access, buffer: Resource | None, shared: range) -> Side:
        """``shared``: the first and last physical byte that the other side accesses too."""
        pattern, command, operand = access.pattern, access.command, access.touch[2]
        names = command.command.operands
        start = pattern.place.address + pattern.shift
        name = command.command.name
        is_operator = name.startswith("Dispatch ") and not name.startswith("Dispatch of pipeline state ")
        is_tensor = is_operator and not pattern.access & UNDEFINE
        name = names[operand] if operand < len(names) else ""
        verb = "may overwrite" if access.kind == Kind.TAIL else _VERBS.get(pattern.access, "uses")
        drawn = _drawn(pattern, f"{name or 'operand'} (command {command.number} {verb})", is_tensor)
        return Side(
            command,
            name,
            verb,
            access.kind <= Kind.TAIL,
            buffer,
            shared[0] - start,
            shared[-1] + 1 - start,
            _elements(pattern, shared) if is_tensor else "",
            drawn if pattern.clip is None else None,
            start,
        )

    @property
    def title(self) -> str:
        """``buffer 'act'``."""
        return "a released buffer" if self.buffer is None else self.buffer.title()

    @property
    def place(self) -> str:
        """``bytes [0, 64) of buffer 'act'``."""
        if self.buffer is None:
            return f"{_bytes(self.first, self.end)} of {self.title}"
        return self.buffer.part(self.first, self.end)

    @property
    def argument(self) -> str:
        """``'act'``: the buffer in a hint."""
        return (
            f"'{shorten(self.buffer.name)}'" if self.buffer is not None and self.buffer.name else self.title
        )

    @property
    def line(self) -> str:
        """A context line with the operand, bytes and elements."""
        elements = f", {self.elements}" if self.elements else ""
        return f"{self.operand or 'operand'} of command {self.command.number}: {self.place}{elements}"


class Finding(NamedTuple):
    """Two unordered accesses.  ``is_whole``: they share every byte from the first to the last."""

    check: Declaration
    before: Side
    after: Side
    is_whole: bool
    is_one_list: bool

    @property
    def message(self) -> str:
        """The sentence of the report."""
        before, after = self.before, self.after
        on = f" on {after.command.queue}" if self.check is HAZARD_QUEUE else ""
        other = f", the same memory as {self._bytes(before)}" if before.buffer is not after.buffer else ""
        return (
            f"{after.command.command.name}{on} {after.verb} {self._bytes(after)}{other}, "
            f"which {self._other} {before.verb}{self._too}, and {self._missing}."
        )

    @property
    def cause(self) -> Hashable:
        """Findings with the same lines, commands, operands and buffers are reported as one."""
        return tuple(
            (each.command.command.site, each.command.command.name, each.operand, each.title)
            for each in (self.before, self.after)
        )

    @property
    def hint(self) -> str:
        """The missing barrier, if it is certain which one."""
        before, after = self.before, self.after
        if self.check is HAZARD_ALIAS or before.buffer is not after.buffer:
            call = f"ALIASING({before.argument}, {after.argument})"
        elif self.check is not HAZARD_QUEUE and before.is_uav and after.is_uav:
            call = f"UAV({after.argument})"
        else:
            return ""
        if self.is_one_list:
            return f"ResourceBarrier({call}) between command {before.command.number} and {after.command.number} of {after.command.list}"
        return (
            f"ResourceBarrier({call}) after command {before.command.number} of {before.command.list}, "
            f"or before command {after.command.number} of {after.command.list}"
        )

    def fields(self, *context: str) -> dict[str, Any]:
        """The other fields of the report."""
        before, after = self.before, self.after
        return {
            "object": after.title if after.buffer is None else after.buffer,
            "operation": after.command.place,
            "ranges": (before.line, after.line),
            "context": (before.command.context, after.command.context, *context),
            "hint": self.hint,
            "properties": {
                "buffer": after.title,
                "bytes": f"{after.first}-{after.end - 1}",
                "command": str(after.command.number),
                "other_buffer": before.title,
                "other_command": str(before.command.number),
                "other_list": before.command.list,
            },
            **picture(before, after),
        }

    def _bytes(self, side: Side) -> str:
        some = "" if self.is_whole else "some of the "
        return f"{some}{side.place}"

    @property
    def _other(self) -> str:
        command = self.before.command
        if self.is_one_list:
            return str(command.command)
        on = f" on {command.queue}" if self.check is HAZARD_QUEUE else ""
        return f"{command.command.within} (command {command.command.number} of {command.list}){on}"

    @property
    def _too(self) -> str:
        return " too" if self.before.verb == self.after.verb else ""

    @property
    def _missing(self) -> str:
        if self.check is BARRIER_ELSEWHERE:
            return "the two are ordered here only because a barrier on another resource comes between"
        missing = {HAZARD_QUEUE.id: "no fence", HAZARD_ALIAS.id: "no aliasing barrier"}
        return f"{missing.get(self.check.id, 'no barrier')} orders the two"


def apart(first: Access, then: Access) -> tuple[Access, Access]:
    """Distinguishes two lists of one name by where they were executed."""
    works = first.touch[0], then.touch[0]
    if works[0].list != works[1].list or works[0].executed_at == works[1].executed_at:
        return first, then
    named = (work._replace(list=f"{work.list} executed at {spell_site(work.executed_at)}") for work in works)
    return (
        first._replace(touch=(next(named), *first.touch[1:])),
        then._replace(touch=(next(named), *then.touch[1:])),
    )


def between(named: list[Resource | None]) -> str:
    """The barriers that happen to order two accesses."""
    which = " and ".join("an unnamed resource" if each is None else each.title() for each in named)
    return f"The barriers between them name {which}"


def signals(names: Names, queue: int, signal: FenceValue | None) -> str:
    """The queue's signal after the executed list."""
    signalled = f"sets {names.fence(signal.fence)} to {signal.value}" if signal else "has signalled no fence"
    return f"{names.queue(queue)} {signalled} after that list"


def waits(names: Names, queue: int, awaited: FenceValue | None) -> str:
    """The queue's last wait."""
    until = f"for {names.fence(awaited.fence)} to reach {awaited.value}" if awaited else "for any"
    return f"{names.queue(queue)} has {'' if awaited else 'not '}waited {until} before"


def wait(names: Names, signal: FenceValue, later: Access) -> str:
    """The missing wait."""
    work = later.touch[0]
    at = f" at {spell_site(work.executed_at)}" if work.executed_at else ""
    return (
        f"Wait({names.fence(signal.fence)}, {signal.value}) on {work.queue} "
        f"before ExecuteCommandLists{at}, or a wait of the CPU before that call"
    )


def rise(names: Names, awaited: FenceValue) -> str:
    """The wait is there, for a value that the fence had twice."""
    return (
        f"Signal and await a value that {names.fence(awaited.fence)} never had before: "
        f"it had reached {awaited.value} before it was set back, which may have ended that wait"
    )


def same(source: Side, target: Side, is_whole: bool) -> dict[str, Any]:
    """The fields of a report on a copy whose source and destination overlap."""
    command, some = target.command, "" if is_whole else "some of the "
    return {
        "message": f"{command.command.name} copies {some}{source.place} "
        f"onto {target.place}, which are the same memory.",
        "object": target.title if target.buffer is None else target.buffer,
        "operation": command.place,
        "ranges": (source.line, target.line),
        "context": (command.context,),
        "properties": {"command": str(command.number)},
        **picture(source, target),
    }


def picture(before: Side, after: Side) -> dict[str, Any]:
    """The elements of both, in the buffer of the second; empty if one goes through tiles."""
    if before.drawn is None or after.drawn is None:
        return {}
    start = min(after.start, before.drawn.offset)  # in buffers that share memory, one may begin before
    layouts = tuple(each._replace(offset=each.offset - start) for each in (before.drawn, after.drawn))
    return {"layouts": layouts, "faulty_byte": after.first + after.start - start}


def _drawn(pattern: Pattern, name: str, is_tensor: bool) -> Drawn:
    """The elements of a footprint; their data type is not known here."""
    struct = pattern.struct
    if not is_tensor and struct.rank == 1 and struct.bits == 8 and struct.strides[0] == 1:
        return Drawn.of_bytes(name, struct.address, struct.end - struct.address)
    rank, bits = max(1, struct.rank), struct.bits
    return Drawn(
        name,
        f"{bits}-bit",
        bits,
        tuple(struct.sizes[0:rank]) if struct.rank else (1,),
        tuple(struct.strides[0:rank]) if struct.rank else (1,),
        struct.address,
        struct.end - struct.address,
    )


def shares_all(a: Pattern, b: Pattern, shared: range) -> bool:
    """Whether both contain every byte of the range."""
    if len(shared) <= _COUNTED:
        return all(lib.dmlk_footprint_holds(each.struct, byte) == 1 for each in (a, b) for byte in shared)
    return a.is_dense and b.is_dense


def _bytes(first: int, end: int) -> str:
    return f"byte {first}" if end - first == 1 else f"bytes [{first}, {end})"


def _elements(pattern: Pattern, shared: range) -> str:
    """``elements (0, 0) to (3, 15)``: the elements of the first and the last byte."""
    rank, found = pattern.struct.rank, []
    for byte in (shared[0], shared[-1]):
        index = ffi.new("uint64_t[8]")
        if lib.dmlk_footprint_index(pattern.struct, byte, index) == 1:
            found.append(f"({', '.join(map(str, index[0:rank]))})")
    return f"element {found[0]}" if len(set(found)) == 1 else f"elements {' to '.join(found)}"


# --- races with the CPU ---


class Race(NamedTuple):
    """The CPU changed ``bytes_changed`` bytes of [begin, end) that a command uses, the first at ``changed``.

    ``shown``: the mapped buffer with that byte, and the byte's offset in it; None: the same buffer.
    ``since``: what the queue was waiting for before; "" if nothing.
    """

    command: NamedCommand
    access: int
    buffer: Resource
    begin: int
    end: int
    changed: int
    bytes_changed: int
    shown: tuple[Resource, int] | None
    since: str

    @property
    def message(self) -> str:
        """The sentence of the report."""
        start = self.buffer.address
        verb = _VERBS.get(self.access, "uses")
        touched = (
            f"{self.command.command.name} {verb} {self.buffer.part(self.begin - start, self.end - start)}"
        )
        byte = f"byte {self.changed - start}"
        if self.shown is not None:
            byte += f" ({self.shown[0].part(self.shown[1], self.shown[1] + 1)})"
        changed = byte if self.bytes_changed == 1 else f"{self.bytes_changed} of them, {byte} first,"
        return (
            f"{touched}, and the CPU changed {changed} "
            f"after {self.since or 'ExecuteCommandLists'}, before it knew that the command was done."
        )

    @property
    def cause(self) -> Hashable:
        """Changes under the same command of one line are reported as one."""
        return self.command.command.site, self.command.command.name, self.buffer.title()

    def fields(self, hint: str) -> dict[str, Any]:
        """The other fields of the report."""
        start = self.buffer.address
        return {
            "object": self.buffer,
            "operation": self.command.place,
            "context": (self.command.context,),
            "hint": hint,
            "properties": {
                "buffer": self.buffer.title(),
                "bytes": f"{self.begin - start}-{self.end - start - 1}",
                "first_changed": str(self.changed - start),
                "changed": str(self.bytes_changed),
                "command": str(self.command.command.number),
            },
        }


# --- useless barriers ---


def barrier(resource: Resource | None) -> str:
    """``UAV barrier on buffer 'act'``."""
    return f"UAV barrier on {resource.title()}" if resource else "UAV barrier on all resources"


def no_more_accidents(work: Work) -> dict[str, Any]:
    """The fields of a report on a check that gives up for the rest of a call."""
    return {
        "message": f"The call that executes {work.list} has so many commands that it is no longer checked for barriers "
        "on other resources. The next call to ExecuteCommandLists is.",
        "severity": Severity.INFO,
        "operation": work.queue,
    }


def useless(command: NamedCommand, barrier: str) -> dict[str, Any]:
    """The fields of a report on a barrier."""
    return {
        "message": f"The {barrier} orders nothing: no two accesses that conflict depend on it.",
        "operation": command.place,
        "context": (command.context,),
        "properties": {"barrier": barrier, "command": str(command.command.number)},
    }
