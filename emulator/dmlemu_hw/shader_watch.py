"""Watches a dispatch of a shader: what its threads do wrong to each other, and which bytes they touch.

The checked code of a shader tells ``dmlk_shader_call.watch`` of each access, barrier and wave operation
(``kernels_c/shaders/watch.h``).  The groups of a watched dispatch run one after another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .kernels import ffi, lib

__all__ = ["Finding", "Side", "Watch", "Watched"]

MOST_FINDINGS = 100
MOST_BYTES = 4 << 30

_PREFIX = "DMLK_FOUND_"
_KINDS: dict[int, str] = {
    number: name.removeprefix(_PREFIX)
    for number, name in ffi.typeof("dmlk_shader_found").elements.items()
    if name.startswith(_PREFIX)
}
_ACCESSES = {
    0: "",
    lib.DMLK_SHADER_READ: "read",
    lib.DMLK_SHADER_WRITE: "write",
    lib.DMLK_SHADER_ATOMIC: "atomic",
}


class Side(NamedTuple):
    """What one thread did (``struct dmlk_shader_side``).

    ``group``: SV_GroupID; ``thread``: SV_GroupIndex; ``line`` of the source, 0: not known; ``access``:
    ``"read"``, ``"write"``, ``"atomic"``, or empty; ``view``: its id in the call; ``bytes`` of the access.
    """

    group: tuple[int, int, int]
    thread: int
    line: int
    access: str
    view: int
    bytes: int


class Finding(NamedTuple):
    """The first of all findings that are alike, and their number (``struct dmlk_shader_finding``).

    ``kind``: a ``dmlk_shader_found`` without its prefix, such as ``"RACE"``.  ``offset``: of the first byte,
    in the view of ``later`` or in groupshared memory; of a wave operation (dx.op ``opcode``) the lane that
    it reads.  Of a barrier, ``later`` is a thread that waits at it, ``earlier`` one that does not.
    """

    kind: str
    later: Side
    earlier: Side
    offset: int
    opcode: int
    count: int  # type: ignore[assignment]  # not the method of tuples


class Watch:
    """The analysis of one dispatch; ``pointer`` is what ``dmlk_shader_call.watch`` is set to.

    ``threads`` of a group, ``lanes`` of a wave and ``shared_bytes`` are those of the shader.  Of memory for
    the analysis, ``most_bytes`` are taken; accesses to further bytes are counted in :attr:`unchecked`.
    """

    def __init__(
        self,
        threads: int,
        lanes: int,
        shared_bytes: int,
        *,
        most_findings: int = MOST_FINDINGS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        options = {
            "threads": threads,
            "lanes": lanes,
            "shared_bytes": shared_bytes,
            "most_findings": most_findings,
            "most_bytes": most_bytes,
        }
        pointer = lib.dmlk_shader_watch_new(ffi.new("dmlk_shader_watch_options *", options))
        if pointer == ffi.NULL:
            raise MemoryError(
                f"No watch of {threads} threads in waves of {lanes}, with {shared_bytes} bytes."
            )
        self.pointer = ffi.gc(pointer, lib.dmlk_shader_watch_free)
        self._result = ffi.new("dmlk_shader_watch_result *")

    def finish(self) -> list[Finding]:
        """After the dispatch: the findings, in the order in which they were made."""
        result = self._result
        lib.dmlk_shader_watch_finish(self.pointer, result)
        return [_finding(result.findings[i]) for i in range(result.count)]

    @property
    def dropped(self) -> int:
        """Findings that were not kept; known after :meth:`finish`."""
        return int(self._result.dropped)

    @property
    def unchecked(self) -> int:
        """Accesses that were not compared with others, for lack of memory; known after :meth:`finish`."""
        return int(self._result.unchecked)

    def read(self, host: int, size: int) -> list[tuple[int, int]]:
        """The bytes of [host, host + size) that were read before the dispatch wrote them, from ``host`` on:
        intervals (begin, end) in ascending order."""
        return self._footprint(host, size, False)

    def written(self, host: int, size: int) -> list[tuple[int, int]]:
        """The bytes of [host, host + size) that were written, from ``host`` on: intervals (begin, end)."""
        return self._footprint(host, size, True)

    def _footprint(self, host: int, size: int, written: bool) -> list[tuple[int, int]]:
        room = 256
        while True:
            found = ffi.new("dmlk_shader_interval[]", room)
            count = int(lib.dmlk_shader_footprint(self.pointer, host, size, written, found, room))
            if count <= room:
                return [(int(found[i].begin), int(found[i].end)) for i in range(count)]
            room = count


class Watched(NamedTuple):
    """Event: a watched dispatch of a shader has ended; see :class:`.events.Executed`.

    ``program``: its serial number.  ``operands``: by the id of a view, the operand of the dispatch to which it
    belongs, and its index there.  ``sizes``: by the id of a view, its bytes.
    """

    queue: int
    ticket: int
    list_serial: int
    command: int
    opcode: int
    packet: bytes
    program: int
    findings: tuple[Finding, ...]
    dropped: int
    unchecked: int


def _side(side: Any) -> Side:
    group = (side.group[0], side.group[1], side.group[2])
    return Side(group, side.thread, side.line, _ACCESSES[side.kind], side.view, side.bytes)


def _finding(finding: Any) -> Finding:
    kind = _KINDS[finding.kind]
    later, earlier = _side(finding.later), _side(finding.earlier)
    return Finding(kind, later, earlier, finding.offset, finding.opcode, finding.count)
