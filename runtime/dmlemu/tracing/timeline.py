"""Trace events in the JSON form that Perfetto and chrome://tracing read.

The form is described in the Trace Event Format document of the Chromium project: times are microseconds,
a process is a group of tracks, a thread is a track.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..diagnostics.location import spell_late

__all__ = ["Place", "Timeline", "Track"]

_ORDER = "thread_sort_index"


class Track:
    """One track: a thread of a process, in the terms of the format."""

    __slots__ = ("ids",)

    def __init__(self, process: int, thread: int) -> None:
        self.ids = {"pid": process, "tid": thread}


class Place(NamedTuple):
    """Where an arrow begins or ends: inside of a slice."""

    track: Track
    at: float


class Timeline:
    """The events of one file, ``limit`` at most: ``left_out`` counts those beyond."""

    def __init__(self, limit: int) -> None:
        self.events: list[dict[str, Any]] = []
        self.left_out = 0
        self._limit = limit
        self._heads: list[dict[str, Any]] = []
        self._processes = 0
        self._tracks: dict[int, int] = {}
        self._flows = 0

    def process(self, name: str) -> int:
        """A new group of tracks."""
        self._processes += 1
        self._tracks[self._processes] = 0
        self._head("process_name", self._processes, 0, {"name": name})
        return self._processes

    def track(self, process: int, name: str) -> Track:
        """A new track; they are shown in the order in which they are made."""
        self._tracks[process] += 1
        number = self._tracks[process]
        self._head("thread_name", process, number, {"name": name})
        self._head(_ORDER, process, number, {"sort_index": number})
        return Track(process, number)

    def slice(
        self, track: Track, name: str, begin: float, end: float, about: dict[str, Any] | None = None
    ) -> None:
        """What took from ``begin`` to ``end``."""
        self._add(ph="X", name=name, ts=begin, dur=end - begin, args=about or {}, **track.ids)

    def instant(self, track: Track, name: str, at: float, about: dict[str, Any] | None = None) -> None:
        """What happened at one moment."""
        self._add(ph="i", s="t", name=name, ts=at, args=about or {}, **track.ids)

    def period(self, track: Track, name: str, number: int, at: float, *, begins: bool) -> None:
        """Begin or end of a period that may overlap others; ``number`` identifies it."""
        phase = "b" if begins else "e"
        self._add(ph=phase, cat="period", id=number, name=name, ts=at, args={}, **track.ids)

    def counter(self, process: int, name: str, at: float, value: int) -> None:
        """The value of a counter from now on."""
        self._add(ph="C", name=name, ts=at, pid=process, args={name: value})

    def arrow(self, name: str, begin: Place, end: Place) -> None:
        """An arrow between slices: each end lies inside of one."""
        self._flows += 1
        for phase, (track, at) in (("s", begin), ("f", end)):
            self._add(ph=phase, cat=name, bp="e", id=self._flows, name=name, ts=at, **track.ids)

    def text(self, about: dict[str, str]) -> str:
        """The content of the file."""
        document = {"traceEvents": self._heads + self.events, "displayTimeUnit": "ns", "otherData": about}
        return json.dumps(spell_late(document))

    def _head(self, name: str, process: int, thread: int, arguments: dict[str, Any]) -> None:
        self._heads.append({"ph": "M", "name": name, "pid": process, "tid": thread, "args": arguments})

    def _add(self, **event: Any) -> None:
        if len(self.events) < self._limit:
            self.events.append(event)
        else:
            self.left_out += 1
