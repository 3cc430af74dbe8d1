"""Which bytes of mapped memory the CPU has written.

What is stored through :class:`dmlemu.d3d12.MappedMemory` itself is known.  Stores through a pointer or an
array are seen by nobody.  Where Map says that the CPU will not read (an empty ``read_range``), bytes that
nobody has written yet are filled with random ones: what still holds them when the memory becomes visible to
the GPU was not written.  Elsewhere everything that was handed out counts as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw.events import READ, Accesses, Submitted
from dmlemu_hw.kernels import ffi
from dmlemu_hw.shadow import Shadow

from ..d3d12.events import HostAccessed, HostMapped, HostUnmapped

if TYPE_CHECKING:
    from ..d3d12.resource import Resource

__all__ = ["HostWrites"]

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_TILE = 1 << 16
_BACKDROP = np.random.default_rng(0xD31).integers(0, 256, 2 * _TILE, np.uint8)  # any bytes, always the same
_SURE = 8  # as many untouched bytes in a row are no accident


@dataclass
class _Map:
    """A mapped buffer: the spans [begin, end) of its addresses that were handed out, and how."""

    resource: Resource
    write_only: bool
    handed_out: list[tuple[int, int]] = field(default_factory=list)


class HostWrites:
    """Follows maps; marks in ``shadow`` what the CPU wrote and tells ``note`` of each range.

    ``patterned``: some mapped memory holds bytes that are not its own.
    """

    def __init__(self, shadow: Shadow, note: Callable[[int, int], None]) -> None:
        self._shadow = shadow
        self._note = note
        self._range = ffi.new("dmlk_footprint *", {"bits": 8, "rank": 1, "strides": [1]})
        self._maps: dict[int, _Map] = {}

    @property
    def patterned(self) -> bool:
        return any(each.write_only and each.handed_out for each in self._maps.values())

    def on_event(self, event: HostMapped | HostAccessed | HostUnmapped | Submitted) -> None:
        """What happened at the API."""
        if isinstance(event, HostMapped):
            self._map(event)
        elif isinstance(event, HostAccessed):
            self._access(event)
        elif isinstance(event, HostUnmapped):
            self._unmap(event)
        else:
            for each in self._maps.values():
                self._see(each, each.resource._address, each.resource._address + each.resource._width)

    def before_read(self, accesses: Accesses) -> None:
        """The GPU is about to read: what nobody wrote holds zeros again."""
        for access in accesses:
            if access.access & READ:
                begin, end = access.footprint.byte_range
                for each in self._maps.values():
                    start = each.resource._address
                    if each.write_only and begin < start + each.resource._width and start < end:
                        self._wipe(each, max(begin, start), min(end, start + each.resource._width))

    # --- inside ---

    def _map(self, event: HostMapped) -> None:
        resource = event.resource
        write_only = event.read[0] == event.read[1]
        known = self._maps.get(resource._address)
        if known is None:
            self._maps[resource._address] = _Map(resource, write_only)
        elif known.write_only and not write_only:  # from now on the CPU may read
            self._see(known, resource._address, resource._address + resource._width)
            self._wipe(known, resource._address, resource._address + resource._width)
            known.write_only = False

    def _access(self, event: HostAccessed) -> None:
        known = self._maps.get(event.resource._address)
        if known is None or not event.writes or event.begin == event.end:
            return
        begin, end = known.resource._address + event.begin, known.resource._address + event.end
        if not event.reads:
            self._wrote(begin, end)
            return
        if (begin, end) not in known.handed_out:
            known.handed_out.append((begin, end))
            if known.write_only:
                self._fill(known, begin, end)

    def _unmap(self, event: HostUnmapped) -> None:
        known = self._maps.get(event.resource._address)
        if known is None:
            return
        start = known.resource._address
        self._see(known, start + event.written[0], start + event.written[1])
        if event.maps == 0:
            self._wipe(known, start, start + known.resource._width)
            del self._maps[start]

    def _see(self, known: _Map, begin: int, end: int) -> None:
        """What was handed out of [begin, end) becomes visible."""
        for first, last in known.handed_out:
            first, last = max(first, begin), min(last, end)
            if first >= last:
                continue
            if not known.write_only:
                self._wrote(first, last)
                continue
            for start, stop in list(self._unwritten(first, last)):
                for low, high in _touched(self._bytes(known, start, stop), start):
                    self._wrote(low, high)

    def _wrote(self, begin: int, end: int) -> None:
        span = self._range
        span.address, span.end, span.sizes[0] = begin, end, end - begin
        self._shadow.mark_written(span)
        self._note(begin, end)

    def _fill(self, known: _Map, begin: int, end: int) -> None:
        for start, stop in list(self._unwritten(begin, end)):
            for at, backdrop in _backdrop(start, stop):
                self._bytes(known, at, at + len(backdrop))[:] = backdrop

    def _wipe(self, known: _Map, begin: int, end: int) -> None:
        if known.write_only and known.handed_out:
            for start, stop in list(self._unwritten(begin, end)):
                for first, last in known.handed_out:
                    low, high = max(first, start), min(last, stop)
                    if low < high:
                        self._bytes(known, low, high)[:] = 0

    def _unwritten(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        for start, stop in self._shadow.written_runs(begin, end - begin):
            if begin < start:
                yield begin, start
            begin = stop
        if begin < end:
            yield begin, end

    def _bytes(self, known: _Map, begin: int, end: int) -> _Bytes:
        allocation = known.resource._allocation
        start = begin - allocation.address
        return np.frombuffer(allocation.buffer()[start : start + end - begin], np.uint8)


def _backdrop(begin: int, end: int) -> Iterator[tuple[int, _Bytes]]:
    """The bytes that belong at each address, in pieces."""
    while begin < end:
        first = begin % _TILE
        count = min(end - begin, 2 * _TILE - first)
        yield begin, _BACKDROP[first : first + count]
        begin += count


def _may_be_untouched(piece: _Bytes, backdrop: _Bytes) -> bool:
    """Is a word as it was filled?  As many bytes in a row as are sure hold a whole one.  The quick look."""
    words = len(piece) // 4 * 4
    same = piece[:words].view(np.uint32) == backdrop[:words].view(np.uint32)
    return bool(same.any()) or words < len(piece)


def _touched(memory: _Bytes, begin: int) -> Iterator[tuple[int, int]]:
    """The parts of filled memory that no longer are as they were filled."""
    for at, backdrop in _backdrop(begin, begin + len(memory)):
        piece = memory[at - begin : at - begin + len(backdrop)]
        if not _may_be_untouched(piece, backdrop):
            yield at, at + len(piece)
            continue
        edges = np.flatnonzero(np.diff((piece == backdrop).astype(np.int8), prepend=0, append=0))
        last = 0
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if stop - start >= _SURE:
                if start > last:
                    yield at + last, at + start
                last = stop
        if last < len(piece):
            yield at + last, at + len(piece)
