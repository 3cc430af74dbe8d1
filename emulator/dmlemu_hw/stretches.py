"""Stretches: packets of a list of which it is known before the first one runs what all of them access."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import packets
from .events import Stretch
from .footprints import PIECES
from .kernels import ffi, lib
from .memory import Memory

_MOST = 512  # packets of a stretch
_CAPACITY = 8 * _MOST  # footprints
_KEPT = 128  # stretches, and contents that were seen once
_FOOTPRINT_SIZE = ffi.sizeof("dmlk_footprint")
_ADDRESS = np.dtype({"names": ["address"], "formats": ["<u8"], "offsets": [0], "itemsize": _FOOTPRINT_SIZE})

assert ffi.offsetof("dmlk_footprint", "address") == 0


class Finder:
    """Finds how far it is known what packets access; see dmlk_find_stretch.

    ``addresses``: of the first elements of the ``footprints``.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.footprints = ffi.new("dmlk_footprint[]", _CAPACITY)
        self.content = ffi.buffer(self.footprints)
        self.addresses = np.frombuffer(self.content, _ADDRESS)["address"]
        self._counts = ffi.new("uint32_t[]", _MOST)
        self.counts: list[int] = []

    def find(self, data: bytes, base: Any, start: int) -> int:
        """The number of packets from byte ``start`` of a list on."""
        segments, count = self._memory.segments()
        found: int = lib.dmlk_find_stretch(
            base + start,
            len(data) - start,
            segments,
            count,
            PIECES,
            self.footprints,
            _CAPACITY,
            self._counts,
            _MOST,
        )
        self.counts = ffi.unpack(self._counts, found)
        return found


class Stretches:
    """Finds stretches.  One is made when its packets are seen for the second time: many lists run once."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._finder: Finder | None = None  # much memory
        self._seen: set[int] = set()
        self._known: dict[int, Stretch] = {}
        self._by_place: dict[tuple[int, int], Stretch] = {}

    def find(self, serial: int, data: bytes, base: Any, start: int) -> tuple[Stretch | None, int]:
        """The stretch that begins at byte ``start`` of a list, and where it ends, also if none was made."""
        if self._finder is None:
            self._finder = Finder(self._memory)
        found = self._finder.find(data, base, start)
        if found < 2:
            return None, start + packets.HEADER.unpack_from(data, start)[1]
        content = self._finder.content[: sum(self._finder.counts) * _FOOTPRINT_SIZE]
        known = self._by_place.get((serial, start))
        if known is None or not known.has(data, start, found, content):
            known, end = self._look_up(data, start, content, self._finder.counts)
            if known is None:
                return None, end
            if len(self._by_place) >= _KEPT:
                self._by_place.clear()
            self._by_place[serial, start] = known
        return known, start + known.offsets[-1]

    def _look_up(
        self, data: bytes, start: int, content: bytes, counts: list[int]
    ) -> tuple[Stretch | None, int]:
        offsets = [0]
        for _ in counts:
            offsets.append(packets.skip(data, start + offsets[-1], 1) - start)
        end = start + offsets[-1]
        part, follows = data[start:end], packets.is_joined(data, end)
        key = hash((part, content, follows))
        known = self._known.get(key)
        if known is not None and known.has(data, start, len(counts), content):
            return known, end
        if key not in self._seen:
            if len(self._seen) >= _KEPT:
                self._seen.clear()
            self._seen.add(key)
            return None, end
        if len(self._known) >= _KEPT:
            self._known.clear()
            self._by_place.clear()
        known = self._known[key] = Stretch(part, content, counts, offsets, follows)
        return known, end
