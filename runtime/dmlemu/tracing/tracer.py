"""Tracing: a subscriber of devices' event streams that writes a timeline."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from time import perf_counter_ns
from typing import Any, NamedTuple

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor
from dmlemu_hw.events import (
    READ,
    WRITE,
    Access,
    Allocated,
    Barrier,
    Decided,
    Executed,
    Executing,
    Freed,
    HostResumed,
    HostWaiting,
    Queued,
    Recorded,
    Signalled,
    Submitted,
    Subscription,
    Waited,
)
from dmlemu_hw.packets import Opcode

from .. import d3d12, dml
from ..checks.framework.names import NamedCommand, Names
from ..d3d12.core.events import CallBegun, DescriptorsWritten, Marked
from ..d3d12.memory.resource import HostMapped, HostUnmapped
from ..d3d12.types.enums import ResourceBarrierType as BarrierType
from ..d3d12.types.enums import ResourceStates
from ..diagnostics.spelling import spell
from ..errors import spell_site
from ..files import Output, as_output
from ..reporting import Stored
from ..watching import Watching
from .data_flow import LastWriters
from .timeline import Place, Timeline, Track

__all__ = ["LIMIT", "Trace", "trace"]

LIMIT = 1_000_000
"""Events that are kept by default."""

_MOST_OPERANDS = 16  # that a slice lists
_SHORT = 0.1  # microseconds of slices that stand for a moment
_MOST_ARROWS = 8  # to the writers of what one command reads


def trace(
    device: d3d12.Device | dml.Device | None = None,
    path: str | os.PathLike[str] | Output | None = None,
    *,
    limit: int = LIMIT,
) -> Trace:
    """Traces ``device`` while the ``with`` block runs, or every device that is created in it (None).

    ``path``: the JSON file that is written at the end; https://ui.perfetto.dev and chrome://tracing show it.
    It has a track for each host thread, command list and queue, slices for commands with their operands,
    arrows for submissions, fences and data, counters for memory and descriptors that show memory, reports as
    instants; the queues once more in virtual time, on which queues run side by side.  ``limit``: events
    that are kept; a warning says how many are left out.
    """
    return Trace(device, path, limit=limit)


class Trace(Watching["_Watch"]):
    """The context manager of :func:`trace`."""

    def __init__(
        self,
        device: d3d12.Device | dml.Device | None,
        path: str | os.PathLike[str] | Output | None,
        *,
        limit: int = LIMIT,
    ) -> None:
        super().__init__(device)
        if limit < 0:
            raise ValueError(f"limit ({limit}) is negative.")
        self.timeline = Timeline(limit)
        self._path = path
        self._output: Output | None = None
        self._about: dict[str, str] = {}
        self._start = perf_counter_ns()

    def __enter__(self) -> Trace:
        if self._path is not None:
            self._output = as_output(self._path)  # a file that cannot be written fails before the run
        self.start()
        return self

    def finish(self) -> None:
        if self.timeline.left_out:
            text = f"The trace leaves out {self.timeline.left_out} events beyond its limit."
            self._about["left out"] = text
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        if self._output is not None:
            self._output.write(self.timeline.text(self._about))

    def now(self) -> float:
        """Microseconds since the trace began."""
        return (perf_counter_ns() - self._start) / 1000

    def watch(self, device: d3d12.Device) -> _Watch:
        context = device.context
        self._about[str(device)] = f"strictness {context.strictness.value}, policy {context.adapter.policy}"
        return _Watch(self, device)


class _Range(NamedTuple):
    """Bytes that a command accesses."""

    access: Access
    begin: int
    end: int


class _Running(NamedTuple):
    """The command that a queue runs."""

    begin: float
    ranges: list[_Range]


class _Watch:
    """Traces one device.  Events of the hardware are handled one at a time."""

    def __init__(self, trace: Trace, device: d3d12.Device) -> None:
        self._line, self._now = trace.timeline, trace.now
        self._device = weakref.ref(device)
        self._names = Names(device)
        self._process = self._line.process(str(device))
        self._virtual = self._line.process(f"{device}, virtual time")
        self._tracks: dict[tuple[str, int | str], Track] = {}
        self._running: dict[int, _Running] = {}  # by queue
        self._recording: dict[int, tuple[float, float, int]] = {}  # begin, end and commands, by list
        self._submitted: dict[tuple[int, int], Place] = {}  # by queue and ticket
        self._latest: dict[int, tuple[tuple[int, int], int]] = {}  # the latest command of each queue's ticket
        self._signals: dict[int, list[tuple[int, Place]]] = {}  # values set, by fence
        self._writers: LastWriters[Place] = LastWriters()
        self._blocked_since: dict[int, float] = {}  # by host thread
        self._memory = 0
        self._descriptors: set[int] = set()  # GPU handles of those that show memory
        self._reports = device.reports
        self._reports.add_sink(self._report, reads=False)
        self._subscriptions: list[Subscription] = []
        for callback, kind in (
            (self._called, CallBegun),
            (self._marked, Marked),
            (self._recorded, Recorded),
            (self._submit, Submitted),
            (self._queued, Queued),
            (self._before, Executing),
            (self._after, Executed),
            (self._barrier, Barrier),
            (self._signalled, Signalled),
            (self._waited, Waited),
            (self._blocked, HostWaiting),
            (self._resumed, HostResumed),
            (self._decided, Decided),
            (self._mapped, HostMapped),
            (self._unmapped, HostUnmapped),
            (self._allocated, Allocated),
            (self._freed, Freed),
            (self._described, DescriptorsWritten),
        ):
            device.events.subscribe(callback, kind, kept=self._subscriptions)

    def close(self) -> None:
        for each in self._subscriptions:
            each.close()
        self._subscriptions.clear()  # a cycle would keep the device alive until garbage is collected
        self._reports.remove_sink(self._report)

    # --- tracks ---

    def _track(self, kind: str, number: int | str, name: str, process: int | None = None) -> Track:
        track = self._tracks.get((kind, number))
        if track is None:
            track = self._line.track(process or self._process, name)
            self._tracks[kind, number] = track
        return track

    def _host(self) -> Track:
        thread = threading.current_thread()
        return self._track("host", threading.get_ident(), f"host thread {thread.name}")

    def _queue(self, serial: int) -> Track:
        """The track of a queue; 0: of the host thread."""
        return self._track("queue", serial, self._names.queue(serial)) if serial else self._host()

    # --- the host ---

    def _called(self, event: CallBegun) -> None:
        self._line.instant(self._host(), event.operation, self._now())

    def _marked(self, event: Marked) -> None:
        about = {"marked at": spell_site(event.site)} if event.site else None
        self._line.instant(self._host(), event.text, self._now(), about)

    def _recorded(self, event: Recorded) -> None:
        now = self._now()
        begin, _, count = self._recording.get(event.list_serial, (now, now, 0))
        self._recording[event.list_serial] = begin, now, count + 1

    def _submit(self, event: Submitted) -> None:
        place = Place(self._host(), self._now())
        self._line.slice(place.track, "ExecuteCommandLists", place.at, place.at + _SHORT)
        for ticket, serial in zip(range(event.ticket, -1, -1), reversed(event.lists), strict=False):
            self._submitted[event.queue, ticket] = place
            found = self._recording.pop(serial, None)
            if found is not None:
                name = self._list_name(serial)
                begin, end, count = found
                self._line.slice(self._track("list", name, name), "recorded", begin, end, {"commands": count})

    def _list_name(self, serial: int) -> str:
        device = self._device()
        recording = None if device is None else device.context.recordings.get(serial)
        return f"list {serial}" if recording is None else recording.owner

    def _queued(self, event: Queued) -> None:
        what = Opcode(event.opcode).name
        fence = f" {self._names.fence(event.fence)} = {event.value}" if event.fence else ""
        about = {"queue": self._names.queue(event.queue)}
        self._line.instant(self._host(), f"queued: {what}{fence}", self._now(), about)

    def _mapped(self, event: HostMapped) -> None:
        name = f"mapped: {event.resource}"
        self._line.period(self._host(), name, id(event.resource), self._now(), begins=True)

    def _unmapped(self, event: HostUnmapped) -> None:
        name = f"mapped: {event.resource}"
        self._line.period(self._host(), name, id(event.resource), self._now(), begins=False)

    def _report(self, stored: Stored) -> None:
        report = stored.report
        name = f"{report.severity.name} {report.id}"
        self._line.instant(
            self._host(), name, self._now(), {"message": report.message, "text": report.text()}
        )

    # --- the queues ---

    def _before(self, event: Executing) -> None:
        ranges = [_Range(each, *each.footprint.byte_range) for each in event.accesses]
        self._running[event.queue] = _Running(self._now(), ranges)

    def _after(self, event: Executed) -> None:
        end = self._now()
        running = self._running.pop(event.queue, None)
        if running is None:
            return  # its begin was before that of the trace
        command = self._names.command(event)
        name, queue = command.command.name, self._queue(event.queue)
        arguments = {**self._arguments(command, running.ranges), "begin": event.start, "end": event.end}
        virtual = self._track("virtual", event.queue, self._names.queue(event.queue), self._virtual)
        self._line.slice(queue, name, running.begin, end, arguments)
        self._line.slice(virtual, name, event.start, event.end, arguments)
        self._order(event, queue, running.begin)
        self._follow(Place(queue, running.begin), running.ranges)

    def _arguments(self, command: NamedCommand, ranges: list[_Range]) -> dict[str, Any]:
        """What a slice says about its command."""
        found: dict[str, Any] = {"list": command.list, "command": command.number}
        if command.command.site is not None:
            found["recorded at"] = spell_site(command.command.site)
        for number, each in enumerate(ranges[:_MOST_OPERANDS]):
            operand = command.operand(each.access) or f"operand {each.access.operand}"
            how = {READ: "reads", WRITE: "writes"}.get(each.access.access, "uses")
            found[f"{number} {how} {operand}"] = self._names.bytes(each.begin, each.end)
        if len(ranges) > _MOST_OPERANDS:
            found["further operands"] = len(ranges) - _MOST_OPERANDS
        return found

    def _order(self, event: Executed, queue: Track, begin: float) -> None:
        """The arrow from ExecuteCommandLists to the first command; commands that run before earlier ones."""
        key = event.queue, event.ticket
        submitted = self._submitted.pop(key, None)
        if submitted is not None:
            self._line.arrow("submitted", submitted, Place(queue, begin))
            self._latest.pop(event.queue, None)
        latest = self._latest.get(event.queue, (key, -1))
        if latest[0] == key and event.command < latest[1]:
            text = "runs before an earlier command"
            self._line.instant(queue, text, begin, {"command": event.command, "earlier": latest[1]})
        self._latest[event.queue] = key, max(event.command, latest[1] if latest[0] == key else -1)

    def _follow(self, place: Place, ranges: list[_Range]) -> None:
        """Arrows from what wrote the bytes that a command reads."""
        writers: list[Place] = []
        for each in ranges:
            if each.access.access & READ:
                writers += [found for found in self._writers.of(each.begin, each.end) if found not in writers]
        for writer in writers[:_MOST_ARROWS]:
            self._line.arrow("data", writer, place)
        for each in ranges:
            if each.access.access & WRITE:
                self._writers.write(each.begin, each.end, place)

    def _barrier(self, event: Barrier) -> None:
        command = self._names.work(event).command(event.command)
        where = "any resource" if event.address == 0 else self._names.byte(event.address)
        kind = BarrierType(event.kind)
        states = {"before": spell(ResourceStates(event.before)), "after": spell(ResourceStates(event.after))}
        about = {"resource": where, "list": command.list}
        if kind is BarrierType.TRANSITION:
            about |= states
        self._line.instant(self._queue(event.queue), f"barrier {kind.name}", self._now(), about)

    # --- fences ---

    def _signalled(self, event: Signalled) -> None:
        place = self._fence_slice(event, "signal")
        self._signals.setdefault(event.fence, []).append((event.value, place))

    def _waited(self, event: Waited) -> None:
        place = self._fence_slice(event, "wait done")
        signals = self._signals.get(event.fence, [])
        signal = next((each for value, each in signals if value >= event.value), None)
        if signal is not None:
            self._line.arrow("fence", signal, place)

    def _fence_slice(self, event: Signalled | Waited, what: str) -> Place:
        place = Place(self._queue(event.queue), self._now())
        name = f"{what} {self._names.fence(event.fence)} = {event.value}"
        self._line.slice(place.track, name, place.at, place.at + _SHORT)
        return place

    def _blocked(self, event: HostWaiting) -> None:
        self._blocked_since[threading.get_ident()] = self._now()

    def _resumed(self, event: HostResumed) -> None:
        """The slice of a host thread that was blocked."""
        begin = self._blocked_since.pop(threading.get_ident(), None)
        if begin is not None:
            fences = ", ".join(f"{self._names.fence(fence)} = {value}" for fence, value in event.fences)
            self._line.slice(self._host(), f"blocked until {fences}", begin, self._now())

    def _decided(self, event: Decided) -> None:
        self._line.instant(
            self._queue(event.queue), f"chaos {event.mode}", self._now(), {"decision": event.what}
        )

    # --- counters ---

    def _allocated(self, event: Allocated) -> None:
        self._count(event, event.size)

    def _freed(self, event: Freed) -> None:
        self._count(event, -event.size)
        gone = [each for each in self._descriptors if 0 <= each - event.address < event.size]
        if gone:  # it was a descriptor heap
            self._descriptors.difference_update(gone)
            self._count_descriptors()

    def _count(self, event: Allocated | Freed, change: int) -> None:
        if event.kind == "heap":  # placed and reserved resources lie in heaps
            self._memory += change
            self._line.counter(self._process, "bytes of heaps", self._now(), self._memory)

    def _described(self, event: DescriptorsWritten) -> None:
        for at in range(0, len(event.after), DESCRIPTOR_SIZE):
            if _shows_memory(event.after[at : at + DESCRIPTOR_SIZE]):
                self._descriptors.add(event.place + at)
            else:
                self._descriptors.discard(event.place + at)
        self._count_descriptors()

    def _count_descriptors(self) -> None:
        self._line.counter(self._process, "descriptors in use", self._now(), len(self._descriptors))


def _shows_memory(content: bytes) -> bool:
    """Whether a descriptor is written and no null descriptor."""
    try:
        return Descriptor.decode(content).address != 0
    except ValueError:  # it was copied from memory that the program has overwritten
        return True
