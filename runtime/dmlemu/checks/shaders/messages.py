"""Messages on what the threads of a shader do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dmlemu_hw.shader_watch import Finding, Side

from ...errors import capital

__all__ = [
    "Shader",
    "View",
    "barrier",
    "endless",
    "lane",
    "number",
    "order",
    "outside",
    "race",
    "shared_outside",
    "unchecked",
    "unwritten",
]

_VERBS = {"read": "reads", "write": "writes", "atomic": "atomically changes"}
_AFTER = {"read": "reads them", "write": "writes them", "atomic": "atomically changes them"}


class Shader(NamedTuple):
    """``name``: in messages; ``threads`` of a group, along x, y and z."""

    name: str
    threads: tuple[int, int, int]

    def thread(self, side: Side) -> str:
        """``thread (5, 0, 0) of group (1, 0, 0)``: SV_GroupThreadID and SV_GroupID."""
        x, y, _ = self.threads
        index = side.thread
        return f"thread {(index % x, index // x % y, index // (x * y))} of group {side.group}"


class View(NamedTuple):
    """A view, in words.

    ``name``: ``"u0 'values'"``, with its index in an array.  ``stride``: bytes of an element, or 0.
    ``size``: its bytes.  ``number``: the type of its numbers, ``"FLOAT32"``.
    """

    name: str
    stride: int
    size: int
    number: str

    def part(self, offset: int, size: int) -> str:
        """``bytes [40, 44) of u0 'values' (element 10)``."""
        element = f" (element {offset // self.stride})" if self.stride else ""
        return f"{_bytes(offset, size)} of {self.name}{element}"


def _bytes(offset: int, size: int) -> str:
    return f"byte {offset}" if size == 1 else f"bytes [{offset}, {offset + size})"


def _line(side: Side) -> str:
    return f" in line {side.line}" if side.line else ""


def _others(found: Finding, what: str = "more") -> str:
    return f"; {found.count - 1} {what} like it" if found.count > 1 else ""


def race(shader: Shader, found: Finding, view: View | None) -> str:
    """``view`` None: groupshared memory."""
    later, earlier = found.later, found.earlier
    size = min(4, later.bytes, earlier.bytes)
    place = (
        f"{_bytes(found.offset, size)} of groupshared memory"
        if view is None
        else view.part(found.offset, size)
    )
    same = ", the same value" if found.kind.endswith("_SAME") else ""
    between = (
        "no barrier that waits and covers this memory is between them"
        if later.group == earlier.group
        else "no barrier orders two groups"
    )
    return (
        f"{capital(shader.thread(earlier))} {_VERBS[earlier.access]} {place}{_line(earlier)}, and "
        f"{shader.thread(later)} {_AFTER[later.access]}{_line(later)}{same}: {between}{_others(found)}."
    )


def order(shader: Shader, found: Finding, view: View) -> str:
    """A number that depends on the order of groups."""
    size = len(found.values[0])
    place = capital(view.part(found.offset, size))
    verb = "is" if size == 1 else "are"
    others = found.count - 1
    more = f"; {others} more {'number differs' if others == 1 else 'numbers differ'}" if others else ""
    once, again = (_number(each, view.number) for each in found.values)
    return (
        f"{place} {verb} {once} in one order of the groups, and {again} in the reverse one: "
        f"{_writer(shader, found.earlier)} in the one, and {_writer(shader, found.later)} in the other{more}."
    )


def _number(data: bytes, type: str) -> str:
    """The number in words; atomic sums of floats are said to be UINT32."""
    value = number(data, type)
    if value.dtype == np.uint32 and 1e-9 < abs(float(value.view(np.float32))) < 1e9:
        return f"{value} ({value.view(np.float32)} as a float)"
    return str(value)


def number(data: bytes, type: str) -> np.generic:
    """The bytes as a number of that type, or else as an integer."""
    dtype = np.dtype(type.lower())
    value: np.generic = np.frombuffer(data, dtype if dtype.itemsize == len(data) else f"<u{len(data)}")[0]
    return value


def _writer(shader: Shader, side: Side) -> str:
    """Of an atomic operation it is not known whether it has changed the number."""
    if not side.access:
        return "nobody writes there"
    what = "does the last atomic operation there" if side.access == "atomic" else "writes there last"
    return f"{shader.thread(side)} {what}{_line(side)}"


def endless(found: Finding) -> str:
    """A dispatch that waits for the order in which groups happened to run."""
    return (
        f"The dispatch ends in one order of the groups, and in the reverse one it did not within "
        f"{found.seconds:.1f} seconds: a group waits for another, and no document promises that this one runs."
    )


def outside(shader: Shader, found: Finding, view: View) -> str:
    """An access outside of a view."""
    side = found.later
    instead = {"read": "it reads 0", "write": "nothing is written", "atomic": "nothing is changed"}[
        side.access
    ]
    size = min(4, side.bytes)
    return (
        f"{capital(shader.thread(side))} {_VERBS[side.access]} {view.part(found.offset, size)}{_line(side)}, "
        f"a view of {view.size} bytes: {instead}{_others(found)}."
    )


def shared_outside(shader: Shader, found: Finding, size: int) -> str:
    """An access outside of groupshared memory of ``size`` bytes."""
    side = found.later
    known = found.offset < 1 << 32
    place = f"{_bytes(found.offset, side.bytes)} of groupshared memory" if known else "groupshared memory"
    return (
        f"{capital(shader.thread(side))} {_VERBS[side.access]} {place} past the end of an array{_line(side)}; "
        f"the shader has {size} bytes of it{_others(found)}."
    )


def unwritten(shader: Shader, found: Finding) -> str:
    """A read of groupshared memory that the group has not written."""
    side = found.later
    return (
        f"{capital(shader.thread(side))} {_VERBS[side.access]} {_bytes(found.offset, side.bytes)} of groupshared "
        f"memory{_line(side)}, which no thread of its group has written before{_others(found)}."
    )


def barrier(shader: Shader, found: Finding) -> str:
    """Of threads that wait, and others that do not."""
    waits = f"{capital(shader.thread(found.later))} waits at the barrier{_line(found.later)}"
    other = shader.thread(found.earlier)
    if found.kind == "WAIT_ELSEWHERE":
        return f"{waits}, and {other} at another one{_line(found.earlier)}{_others(found)}."
    why = (
        "does not come to it"
        if found.kind == "WAIT_OF_SOME_LANES"
        else "has ended, or comes to fewer barriers"
    )
    return f"{waits}, and {other} {why}{_others(found)}."


def lane(shader: Shader, found: Finding, lanes: int) -> str:
    """A lane that is not there, or not active."""
    side = found.later
    reads = f"{capital(shader.thread(side))} reads lane {found.offset} of its wave{_line(side)}"
    if found.kind == "LANE_OUTSIDE":
        return f"{reads}; a wave has {lanes} lanes here{_others(found)}."
    return f"{reads}, which is not active{_others(found)}."


def unchecked(shader: str, dropped: int, accesses: int) -> str:
    """What was too much."""
    parts = []
    if dropped:
        parts.append(f"{dropped} more findings are not told")
    if accesses:
        parts.append(f"{accesses} accesses were not compared with others")
    return f"Of {shader}, {' and '.join(parts)}."
