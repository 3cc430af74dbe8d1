"""Removal records: why a device was removed, at which command, and what ran before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby

from dmlemu_hw.faults import Progress

from ...errors import HResult, Report, loading, shorten
from ...frozen import Frozen
from .names import Names
from .recording import Command
from .submissions import Submissions

__all__ = ["Breadcrumb", "QueueRecord", "RemovalRecord", "removal_record"]

_MOST = 16  # breadcrumbs of a queue
_DISPATCH = "Dispatch of "


class Breadcrumb(Frozen):
    """A command: its list, its number in the list, its name, and the line that recorded it."""

    list: str
    command: int
    name: str
    recorded_at: str = ""

    def __str__(self) -> str:
        """``command list 'frame', command 3: CopyBufferRegion (model.py:41)``."""
        at = f" ({self.recorded_at})" if self.recorded_at else ""
        return f"{self.list}, command {self.command}: {self.name}{at}"


class QueueRecord(Frozen):
    """A queue at the moment of the removal.

    ``executed``: the last commands that it completed, oldest first.  ``pending``: the number of lists,
    signals, waits and mappings not completed, including the current one.
    """

    queue: str
    executed: tuple[Breadcrumb, ...]
    pending: int


class RemovalRecord(Frozen):
    """Why a device was removed, kept as long as the device; mirrors the data of DRED
    (``ID3D12DeviceRemovedExtendedData``: breadcrumbs and the address of the page fault).

    ``report`` describes the error.  If a command caused it, ``queue`` and ``command`` identify the command
    and ``operator`` what it dispatched.  ``address`` is the GPU virtual address concerned (0: none),
    ``owner`` the object that is, or was, at that address.  ``queues``: the queues that had received work.
    """

    reason: HResult
    report: Report
    queue: str = ""
    command: Breadcrumb | None = None
    operator: str = ""
    address: int = 0
    owner: str = ""
    queues: tuple[QueueRecord, ...] = ()

    def text(self) -> str:
        """The record as readable text."""
        return "\n".join(self._lines())

    def json(self) -> str:
        """The record as one JSON line."""
        with loading():
            import json

        value = asdict(self)
        value["reason"] = self.reason.name
        value["report"]["severity"] = self.report.severity.name
        return json.dumps(value, default=str)

    def _lines(self) -> Iterator[str]:
        yield f"The device was removed with {self.reason.name}."
        yield shorten(self.report.message, 2000)
        if self.command is not None:
            yield f"  at: {self.queue}, {self.command}"
        elif self.queue:
            yield f"  at: {self.queue}, {self.report.operation}"
        if self.address:
            yield f"  address: {self.address:#x}, {self.owner}"
        for queue in self.queues:
            yield f"  {queue.queue} ({queue.pending} entries not done) last executed:"
            yield from (f"    {each}" for each in queue.executed)
            if not queue.executed:
                yield "    nothing"


def removal_record(names: Names, submissions: Submissions, reason: HResult, report: Report) -> RemovalRecord:
    """The record of a device that has just been removed."""
    fault = names.gpu.fault
    assert fault is not None
    all_queues = [_queue(names, submissions, progress) for progress in fault.progress]
    queues = tuple(each for each in all_queues if each.executed or each.pending)
    if not fault.queue:
        return RemovalRecord(reason, report, queues=queues)
    command = _breadcrumb(names, fault.list_serial, fault.command)
    name = "" if command is None else command.name
    return RemovalRecord(
        reason,
        report,
        fault.queue,
        command,
        name[len(_DISPATCH) :] if name.startswith(_DISPATCH) else "",
        fault.address,
        names.address(fault.address) if fault.address else "",
        queues,
    )


def _breadcrumb(names: Names, serial: int, packet: int) -> Breadcrumb | None:
    recording = names.recordings.get(serial)
    if recording is None or not packet < len(recording.commands):
        return None
    return _spell(recording.owner, recording.commands[packet])


def _spell(owner: str, command: Command) -> Breadcrumb:
    return Breadcrumb(owner, command.number, command.name, command.recorded_at)


def _queue(names: Names, submissions: Submissions, progress: Progress) -> QueueRecord:
    labels = {queue.serial: queue.label for queue in names.gpu.queues}
    crumbs = [_spell(*each) for each in submissions.finished(progress.queue, progress.completed, _MOST)]
    crumbs += [crumb for each in progress.executed if (crumb := _breadcrumb(names, *each)) is not None]
    crumbs = [crumb for crumb, _ in groupby(crumbs)]  # the packets of one dispatch are one command
    name = labels.get(progress.queue, f"queue {progress.queue}")
    return QueueRecord(name, tuple(crumbs[-_MOST:]), progress.pending)
