"""Which results of a dispatch depend on the order of its groups: those that differ in the reverse one.

A race is found without that (:mod:`.shader_watch`).  What is found here has none: groups exchange values by
atomic operations, and what they compute from them depends on who came first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .kernels import ffi, lib
from .shader_watch import MOST_BYTES, Finding, Side, Watch

if TYPE_CHECKING:
    from .programs import WatchedCode

__all__ = ["Contents", "Interrupted", "Written", "contents", "is_comparable", "order_findings", "restore"]

Spans = Sequence[tuple[int, int]]  # host addresses and sizes in bytes
Contents = Sequence[bytes]

_DEFINED = {"OUTSIDE", "RACE_SAME"}  # findings that leave results defined, or the same in any order
_MOST = 64  # numbers whose writers are compared
_NOBODY = Side((0, 0, 0), 0, 0, "", 0, 0)


class Written(NamedTuple):
    """What a run of the dispatch has written, and its watch."""

    contents: Contents
    watch: Watch


def contents(spans: Spans) -> list[bytes]:
    """Copies of the bytes."""
    return [_bytes_at(host, size)[:] for host, size in spans]


def restore(spans: Spans, kept: Contents) -> None:
    """The opposite, as a whole: what a signal handler raises in the middle is raised at the end."""
    try:
        _write(spans, kept)
    except BaseException:
        _write(spans, kept)
        raise


def _write(spans: Spans, kept: Contents) -> None:
    for (host, size), content in zip(spans, kept, strict=True):
        _bytes_at(host, size)[:] = content


def _holds(spans: Spans, kept: Contents) -> bool:
    return all(_bytes_at(*span) == content for span, content in zip(spans, kept, strict=True))


def is_comparable(findings: Sequence[Finding], watch: Watch) -> bool:
    """Whether a difference were one of the order alone; else what was found says why."""
    return not watch.unchecked and not watch.dropped and all(each.kind in _DEFINED for each in findings)


class Interrupted(Exception):
    """The host has stopped the second run."""


def order_findings(
    call: Any, code: WatchedCode, spans: Spans, before: Contents, first: Written, seconds: float
) -> list[Finding]:
    """Runs a ``_Call`` once more, the last group first, and compares what it writes to ``spans``.

    ``before``: what these held at the start; ``seconds`` that the first run took.  Memory is left as it is.
    A fault in this order, for which the program did not ask, is not told.
    """
    limit = 1 + 10 * seconds
    restore(spans, before)
    status = _run_backwards(call, limit)
    if status == lib.DMLK_STOPPED:
        return [Finding("ORDER_ENDLESS", _NOBODY, _NOBODY, 0, 0, 1, seconds=limit)]
    if status != lib.DMLK_OK or _holds(spans, first.contents):
        return []
    restore(spans, before)
    watch = code.watch(most_bytes=max(0, MOST_BYTES - first.watch.bytes))
    status = _run_backwards(call, 0, watch)
    findings = watch.finish()
    if status != lib.DMLK_OK:
        return []
    if not is_comparable(findings, watch):
        return [each for each in findings if each.kind not in _DEFINED]
    found = _differences(call, spans, first, Written(contents(spans), watch))
    return sorted(found, key=lambda each: (_known(each.earlier, each.later).view, each.kind))


def _run_backwards(call: Any, limit: float, watch: Watch | None = None) -> int:
    """The status; DMLK_STOPPED: it did not end in so many seconds (0: any number)."""
    inner = call.call
    inner.watch = ffi.NULL if watch is None else watch.pointer
    inner.backwards = 1
    status, is_late = call.run(limit)
    inner.backwards = 0
    if status == lib.DMLK_STOPPED and not is_late:
        raise Interrupted
    return int(status)


def _differences(call: Any, spans: Spans, first: Written, reverse: Written) -> Iterator[Finding]:
    """Of each view the first number that differs.

    What the same numbers in another order are, written by other threads, is not told: so does everything
    look that is appended, and whoever reads it knows.
    """
    for (host, _), *both in zip(spans, first.contents, reverse.contents, strict=True):
        data = [np.frombuffer(each, np.uint8) for each in both]
        differs, place = data[0] != data[1], 0
        while differs[place:].any():
            place += int(differs[place:].argmax())
            known = _known(*_writers(host + place, first, reverse))
            if not known.access:  # there was no memory to watch it
                return
            begin, size, kind = _region(call, known.view, host + place)
            if not begin <= host + place < begin + size:  # more instructions than are told apart
                return
            part = slice(begin - host, begin - host + size)
            found = _difference(begin, [each[part] for each in data], known, (first, reverse))
            if found is not None:
                yield found._replace(kind=kind)
            place = part.stop


def _region(call: Any, view: int, address: int) -> tuple[int, int, str]:
    """The first byte of what was written through a view, its size, and the kind of the finding."""
    found = call.view(view)[2]
    base, counter = (int(ffi.cast("uintptr_t", each)) for each in (found.base, found.counter))
    if base <= address < base + found.bytes:
        return base, int(found.bytes), "ORDER"
    return counter, 4, "ORDER_COUNTER"


def _difference(
    address: int, data: Sequence[np.ndarray], writer: Side, runs: tuple[Written, Written]
) -> Finding | None:
    """Of the bytes of one view."""
    width = writer.bytes if writer.access == "atomic" or writer.bytes < 4 else 4
    width = min(width, len(data[0]) & -len(data[0]))
    first, other = (each.view(f"<u{width}") for each in data)
    places = np.flatnonzero(first != other)
    first, other = first[places], other[places]
    at = address + width * places.astype(np.uint64)
    known = range(min(_MOST, len(at)))
    if np.array_equal(np.sort(first), np.sort(other)) and all(
        _has_moved(i, at, first, other, runs) for i in known
    ):
        return None
    values = first[:1].tobytes(), other[:1].tobytes()
    offset = width * int(places[0])
    earlier, later = _writers(address + offset, *runs)
    return Finding("ORDER", later, earlier, offset, 0, len(places), values)


def _has_moved(
    i: int, at: np.ndarray, first: np.ndarray, other: np.ndarray, runs: tuple[Written, Written]
) -> bool:
    """Whether another thread writes number i in the reverse order; or the same one, which then writes what it
    had written here to another place: it appends several."""
    earlier, later = _writers(int(at[i]), *runs)
    if not _is_same_thread(earlier, later):
        return True
    places = at[other == first[i]][:_MOST]
    return any(_is_same_thread(earlier, _writers(int(each), *runs)[1]) for each in places)


def _is_same_thread(a: Side, b: Side) -> bool:
    return a.group == b.group and a.thread == b.thread


def _known(earlier: Side, later: Side) -> Side:
    """One of two writers that is known, if one is."""
    return later if later.access else earlier


def _writers(address: int, first: Written, reverse: Written) -> tuple[Side, Side]:
    one, other = first.watch.last_writer(address), reverse.watch.last_writer(address)
    return one or _NOBODY, other or _NOBODY


def _bytes_at(host: int, size: int) -> Any:
    return ffi.buffer(ffi.cast("uint8_t *", host), size)
