"""Pictures of what the threads of a shader do: of what a finding knows, and nothing else."""

from __future__ import annotations

from itertools import groupby

from dmlemu_hw.programs import WatchedCode
from dmlemu_hw.shader_watch import Finding, Side

from ...diagnostics.spelling import shorten
from ...pictures import Cells
from ...pictures.cells_model import SOMEWHERE, Mark, Row, Ruler
from .messages import Shader, View, number

__all__ = ["cells"]

_LABELS = {"read": "reads", "write": "writes", "atomic": "atomic"}
_KINDS = {"read": "read", "write": "write", "atomic": "both"}
_LONGEST = 60  # characters of a view's name
_KNOWN = 1 << 32  # from here on an offset in groupshared memory says no more than outside


def cells(shader: Shader, found: Finding, view: View | None, code: WatchedCode) -> Cells | None:
    """The picture; ``view`` None: groupshared memory.  None: there is nothing to draw."""
    kind = found.kind
    if kind == "ORDER_ENDLESS":
        return None
    if kind == "WAIT_OF_SOME_LANES":
        return _wave_at_barrier(shader, found, code)
    if kind.startswith("WAIT"):
        return _group_at_barrier(shader, found, code)
    if kind.startswith("LANE"):
        return _lanes(shader, found, code.lanes)
    if kind.startswith("ORDER"):
        return None if view is None else _order(shader, found, view)
    memory = View("groupshared memory", 0, code.shared_bytes, "") if view is None else view
    if "RACE" in kind:
        return _race(shader, found, memory)
    if kind == "SHARED_UNWRITTEN":
        return _unwritten(shader, found, memory)
    return _outside(shader, found, memory)


class _Part:
    """Bytes [offset, offset + size) of a view, in cells of ``step`` bytes."""

    def __init__(self, view: View, offset: int, size: int) -> None:
        whole = view.size | offset | size
        self.view = view
        self.step = min(8 if size == 8 else 4, whole & -whole)
        self.begin, self.end = offset // self.step, (offset + size) // self.step

    @property
    def name(self) -> str:
        return "the view" if self.view.number else self.view.name

    def mark(self, label: str, kind: str) -> tuple[Mark, ...]:
        return (Mark(self.begin, self.end, label, kind, is_red=True),)

    def access(self, shader: Shader, side: Side) -> Row:
        """A thread with what it does to the bytes."""
        marks = self.mark(_LABELS[side.access], _KINDS[side.access])
        return Row(f"{shader.thread(side)}{_line(side)}", marks)

    def drawn(self, rows: tuple[Row, ...], *notes: str, is_hatched: bool = False) -> Cells:
        view = self.view
        elements = f", elements of {view.stride} bytes" if view.stride else ""
        rulers = [Ruler("element", 0, self.step, view.stride)] if view.stride else []
        return Cells(
            f"{shorten(view.name, _LONGEST)}: {view.size} bytes{elements}",
            self.name,
            view.size // self.step,
            (Ruler("byte", 0, self.step), *rulers),
            rows,
            (self.begin, self.end) if is_hatched else (0, 0),
            notes,
        )


def _line(side: Side) -> str:
    return f", line {side.line}" if side.line else ""


def _race(shader: Shader, found: Finding, view: View) -> Cells:
    part = _Part(view, found.offset, min(4, found.later.bytes, found.earlier.bytes))
    rows = (part.access(shader, found.earlier), part.access(shader, found.later))
    return part.drawn(rows, "red: both access these bytes, and nothing orders them")


def _unwritten(shader: Shader, found: Finding, view: View) -> Cells:
    part = _Part(view, found.offset, found.later.bytes)
    rows = (part.access(shader, found.later),)
    return part.drawn(rows, "hatched: no thread of the group has written it before", is_hatched=True)


def _outside(shader: Shader, found: Finding, view: View) -> Cells:
    part = _Part(view, found.offset, min(4, found.later.bytes))
    note = f"hatched: outside of {part.name}"
    if found.kind == "SHARED_OUTSIDE" and found.offset >= _KNOWN:
        part = _Part(view, 0, found.later.bytes)
        part.begin, part.end = SOMEWHERE, SOMEWHERE + 1
        note = "hatched: past the end of an array"
    return part.drawn((part.access(shader, found.later),), note)


def _order(shader: Shader, found: Finding, view: View) -> Cells:
    part, rows = _Part(view, found.offset, len(found.values[0])), []
    for order, side, data in zip(
        ("one order", "the reverse one"), (found.earlier, found.later), found.values, strict=True
    ):
        who = f"{shader.thread(side)}{_line(side)}" if side.access else "nobody writes there"
        marks = part.mark(str(number(data, view.number)), _KINDS.get(side.access, ""))
        rows.append(Row(f"{order}: {who}", marks))
    return part.drawn(tuple(rows), "red: what is there at the end of each run")


def _wave_at_barrier(shader: Shader, found: Finding, code: WatchedCode) -> Cells:
    """The lanes of one wave; ``found.offset`` has a bit for each that waits."""
    first = found.later.thread // code.lanes * code.lanes
    x, y, z = code.threads
    count = min(code.lanes, x * y * z - first)
    waiting, missing = [], []
    for waits, lanes in groupby(range(count), lambda lane: found.offset >> lane & 1):
        run = list(lanes)
        if waits:
            waiting.append(Mark(run[0], run[-1] + 1, "waits", "read"))
        else:
            missing.append(Mark(run[0], run[-1] + 1, "absent", is_red=True))
    return Cells(
        f"a wave of group {found.later.group}, with threads {first} to {first + count - 1}",
        "the wave",
        count,
        (Ruler("SV_GroupIndex", first),),
        (
            Row(f"at the barrier{_line(found.later)}", tuple(waiting)),
            Row("not at this barrier", tuple(missing)),
        ),
    )


def _group_at_barrier(shader: Shader, found: Finding, code: WatchedCode) -> Cells:
    """The waves of a group: those of two threads, which came with all their lanes to other barriers."""
    x, y, z = code.threads
    threads = x * y * z
    here, other = (side.thread // code.lanes for side in (found.later, found.earlier))
    if found.kind == "WAIT_ELSEWHERE":
        row = Row(f"at the barrier{_line(found.earlier)}", (Mark(other, other + 1, "waits", "read", True),))
    else:
        row = Row("ended, or at fewer barriers", (Mark(other, other + 1, "absent", is_red=True),))
    return Cells(
        f"group {found.later.group}: {threads} threads in waves of {code.lanes}",
        "the group",
        -(-threads // code.lanes),
        (Ruler("wave"), Ruler("its first SV_GroupIndex", 0, code.lanes)),
        (Row(f"at the barrier{_line(found.later)}", (Mark(here, here + 1, "waits", "read"),)), row),
    )


def _lanes(shader: Shader, found: Finding, lanes: int) -> Cells:
    """A wave, the lane of a thread, and the lane that it reads."""
    side, read = found.later, found.offset
    own, is_inside = side.thread % lanes, read < lanes
    return Cells(
        f"the wave of {shader.thread(side)}: {lanes} lanes",
        "the wave",
        lanes,
        (Ruler("lane"),),
        (
            Row(f"{shader.thread(side)}{_line(side)}", (Mark(own, own + 1, "reads", "read"),)),
            Row("the lane that it reads", (Mark(read, read + 1, "?", is_red=True),)),
        ),
        (read, read + 1) if is_inside else (0, 0),
        ("hatched: not active",) if is_inside else (f"hatched: the wave has {lanes} lanes",),
    )
