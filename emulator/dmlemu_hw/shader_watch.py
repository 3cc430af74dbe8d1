"""Watches a dispatch of a shader: what its threads do wrong to each other, and which bytes they touch.

The checked code of a shader tells ``dmlk_shader_call.watch`` of each access, barrier and wave operation
(``kernels_c/shaders/watch.h``).  The groups of a watched dispatch run one after another, or first on several
threads to see whether there is anything to find.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .kernels import ffi, lib

__all__ = ["Finding", "Pattern", "Side", "Watch", "Watched", "WatchedView"]

MOST_FINDINGS = 100
MOST_BYTES = 4 << 30
MOST_PATTERNS = 4096
"""Of a footprint: of more, the first ones are told."""

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
    it reads.  Of a barrier, ``later`` is a thread that waits at it, ``earlier`` one that does not, and
    ``offset`` has a bit for each lane of the wave of ``later`` that waits (WAIT_IN_VAIN: 0, all do).

    Kinds of another run (:mod:`.group_orders`): ``"ORDER"``: a number differs if groups run in the reverse
    order; ``earlier`` has written it last, ``later`` in the reverse order, and ``values`` are its bytes in
    both.  ``"ORDER_COUNTER"``: so does the counter of a view.  ``"ORDER_ENDLESS"``: the dispatch does not
    end in ``seconds``.
    """

    kind: str
    later: Side
    earlier: Side
    offset: int
    opcode: int
    count: int  # type: ignore[assignment]  # not the method of tuples
    values: tuple[bytes, bytes] = (b"", b"")
    seconds: float = 0


class Pattern(NamedTuple):
    """``count`` parts of ``width`` bytes each, ``stride`` bytes apart, the first one at byte ``begin``."""

    begin: int
    width: int
    stride: int
    count: int  # type: ignore[assignment]  # not the method of tuples


class Watch:
    """The analysis of one dispatch; ``pointer`` is what ``dmlk_shader_call.watch`` is set to.

    ``threads`` of a group, ``lanes`` of a wave and ``shared_bytes`` are those of the shader.  Of memory for
    the analysis, ``most_bytes`` are taken; accesses to further bytes are counted in :attr:`unchecked`.
    ``in_parts``: groups may run on several threads; then :attr:`doubtful` says what that was worth.
    """

    def __init__(
        self,
        threads: int,
        lanes: int,
        shared_bytes: int,
        *,
        most_findings: int = MOST_FINDINGS,
        most_bytes: int = MOST_BYTES,
        in_parts: bool = False,
    ) -> None:
        options = {
            "threads": threads,
            "lanes": lanes,
            "shared_bytes": shared_bytes,
            "most_findings": most_findings,
            "most_bytes": most_bytes,
            "in_parts": in_parts,
        }
        pointer = lib.dmlk_shader_watch_new(ffi.new("dmlk_shader_watch_options *", options))
        if pointer == ffi.NULL:
            raise MemoryError(
                f"No watch of {threads} threads in waves of {lanes}, with {shared_bytes} bytes."
            )
        self.pointer = ffi.gc(pointer, lib.dmlk_shader_watch_free)
        self._result = ffi.new("dmlk_shader_watch_result *")

    def finish(self) -> list[Finding]:
        """After the dispatch, once: :attr:`findings`."""
        lib.dmlk_shader_watch_finish(self.pointer, self._result)
        return self.findings

    @property
    def findings(self) -> list[Finding]:
        """In the order in which they were made; known after :meth:`finish`."""
        return [_finding(self._result.findings[i]) for i in range(self._result.count)]

    @property
    def dropped(self) -> int:
        """Findings that were not kept; known after :meth:`finish`."""
        return int(self._result.dropped)

    @property
    def unchecked(self) -> int:
        """Accesses that were not compared with others, for lack of memory; known after :meth:`finish`."""
        return int(self._result.unchecked)

    @property
    def has_atomics(self) -> bool:
        """Whether threads accessed buffers atomically; known after :meth:`finish`."""
        return bool(self._result.has_atomics)

    @property
    def bytes(self) -> int:
        """Of memory that the analysis takes; known after :meth:`finish`."""
        return int(self._result.bytes)

    def last_writer(self, host: int) -> Side | None:
        """Who was the last to write the byte, or to change it atomically; None: it is not known."""
        found = ffi.new("dmlk_shader_side *")
        return _side(found) if lib.dmlk_shader_last_writer(self.pointer, host, found) else None

    @property
    def doubtful(self) -> bool:
        """Whether nothing is known, and the dispatch is to be run once more, not in parts, on the memory as
        it was; known after :meth:`finish`."""
        return bool(self._result.is_doubtful)

    def read(self, host: int, size: int) -> list[Pattern]:
        """The bytes of [host, host + size) that were read before the dispatch wrote them."""
        return self._footprint(host, size, False)

    def written(self, host: int, size: int) -> list[Pattern]:
        """The bytes of [host, host + size) that were written."""
        return self._footprint(host, size, True)

    def _footprint(self, host: int, size: int, written: bool) -> list[Pattern]:
        room = 256
        while True:
            found = ffi.new("dmlk_shader_bytes[]", room)
            count = int(lib.dmlk_shader_footprint(self.pointer, host, size, written, found, room))
            if count <= room or count > MOST_PATTERNS:
                shown = found[0 : min(count, room)]
                return [Pattern(each.begin, each.width, each.stride, each.count) for each in shown]
            room = count


class WatchedView(NamedTuple):
    """A view of a watched dispatch.

    ``operand``: the index of its range in the program; ``register``: counted from the range's first one;
    ``address``: of its first byte, 0: root constants; ``size`` in bytes; ``stride``: of an element;
    ``number``: the type of its numbers, such as ``"FLOAT32"``, UINT32 where the shader does not say one.
    """

    operand: int
    register: int
    address: int
    size: int
    stride: int
    number: str = "UINT32"


class Watched(NamedTuple):
    """Event: a watched dispatch of a shader has ended; places are those of :class:`.events.Executed`.

    ``program``: the serial number of what ran.  ``views``: those that findings name, by id.  ``dropped``
    findings are not kept; ``unchecked`` accesses were not compared with others.
    """

    queue: int
    ticket: int
    list_serial: int
    command: int
    program: int
    findings: tuple[Finding, ...]
    views: dict[int, WatchedView]
    dropped: int
    unchecked: int


def _side(side: Any) -> Side:
    group = (side.group[0], side.group[1], side.group[2])
    return Side(group, side.thread, side.line, _ACCESSES[side.kind], side.view, side.bytes)


def _finding(finding: Any) -> Finding:
    kind = _KINDS[finding.kind]
    later, earlier = _side(finding.later), _side(finding.earlier)
    return Finding(kind, later, earlier, finding.offset, finding.opcode, finding.count)
