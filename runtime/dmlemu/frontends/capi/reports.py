"""What a C++ program gets to see: refused calls and the reports of checks, on stderr, each once.

``dmlemu exec`` says by DMLEMU_EXEC to which file the process notes what its status and last line depend on.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

from ... import d3d12
from ...d3d12.core.info_queue import category_of
from ...d3d12.core.rows import DEVICE_REMOVED
from ...errors import Error, HResult, Report, Severity, Strictness, shorten
from ...reporting import (
    Reporter,
    Sink,
    Stored,
    defaults,
    how_to_see,
    on_created,
    print_annotation,
    print_reports,
    summarize,
)
from ._capi import lib
from .sites import spell_text

__all__ = [
    "DebugSettings",
    "bug",
    "count",
    "found",
    "install",
    "mark",
    "no_effect",
    "note",
    "on_refused",
    "refused",
    "remark",
    "removed",
    "settings",
    "summary",
]

_MOST_CAUSE = 300  # characters of a message in the last line of exec
_ANSWERS = (HResult.DXGI_ERROR_NOT_FOUND, HResult.DXGI_ERROR_UNSUPPORTED)  # no mistake: programs ask so
_printed: set[tuple[str, str]] = set()  # id and message
_infos: dict[int, Stored] = {}  # printed at the end, if something was wrong
_bugs: set[str] = set()
_said: set[str] = set()  # settings without effect
FAILING = {"report": ("error", "bug"), "warning": ("error", "bug", "warning")}
"""Values of DMLEMU_EXIT_CODE: the notes after which the process ends with 1 where its own status is 0."""
failing: tuple[str, ...] = ()
stops = False  # --break: the thread of a new report stops before its call returns
_refusals: dict[tuple[str, str], Stored] = {}  # of no device, by id and message
_noted: set[str] = set()
_found: dict[int, Stored] = {}  # all that was found, by its id: devices may be gone
sinks: list[Sink] = []
"""Take refused calls, too, which are not reports of a device."""
on_refused: list[Callable[[Error], None]] = []
"""Called with each refused call, at every strictness."""


class DebugSettings:
    """What the program has set by the debug interfaces of one device; the sink of the device's reports.

    ``breaks``: where its thread stops: severities, categories and D3D12_MESSAGE_IDs, by the method that set
    them.  ``parameters``: the bytes of ID3D12DebugDevice2::SetDebugParameter, by type.
    """

    def __init__(self) -> None:
        self.is_muted = False
        self.is_dml_muted = False
        self.breaks: set[tuple[str, int]] = set()
        self.parameters: dict[int, bytes] = {}

    def __call__(self, stored: Stored) -> None:
        report = stored.report
        _take(stored, is_muted=self.is_muted or (self.is_dml_muted and report.api == "DML"))
        if not stored.suppressed:
            self.stop_at(report)

    def stop_at(self, report: Report) -> None:
        """Stops the thread before its call returns, if the program wants to stop at such a message."""
        if not self.breaks:
            return
        kinds = {
            ("Severity", int(report.severity)),
            ("ID", report.d3d12_id),
            ("Category", int(category_of(report))),
        }
        if not kinds.isdisjoint(self.breaks):
            sys.stderr.flush()
            lib.capi_stop()


_settings: WeakKeyDictionary[d3d12.Device, DebugSettings] = WeakKeyDictionary()
settings = _settings.__getitem__  # of a device


def install() -> None:
    """Takes the reports of all devices that are created from here on."""
    if _watch not in on_created:
        on_created.append(_watch)


def _watch(device: d3d12.Device) -> None:
    _settings[device] = DebugSettings()
    device.reports.add_sink(_settings[device])
    _note_once("watched" if device.context.has_layer else "unwatched")


def found() -> list[Stored]:
    """Everything that was reported, the oldest first."""
    return list(_found.values())


def count(id: str | None) -> int:
    """How many reports of a check there were that are not suppressed; None: of all, but for INFO."""
    return sum(
        not each.suppressed
        and (each.report.severity <= Severity.WARNING if id is None else each.report.id == id)
        for each in found()
    )


def mark(text: str) -> None:
    """Marks this moment on all devices."""
    for device in list(_settings):
        device.mark(text)


def summary() -> str:
    """What ``dmlemu exec`` says at the end, after it has printed the INFOs where something was wrong: one of
    them may be the cause.  Without an ERROR or WARNING it says only what is suppressed."""
    all_of_them = [each for each in found() if each.report.severity <= Severity.INFO]
    if any(each.report.severity <= Severity.WARNING and not each.suppressed for each in all_of_them):
        infos = {(each.report.id, each.report.spelled().message): each for each in _infos.values()}
        print_reports(infos.values())
        draws = os.environ.get("DMLEMU_REPORT", "").endswith(".html")
        return "\n".join(filter(None, (summarize(all_of_them), "" if draws else how_to_see(all_of_them))))
    return summarize(each for each in all_of_them if each.report.severity <= Severity.WARNING)


def refused(error: Error, reporter: Reporter | None) -> None:
    """A call of the program was refused.  At strictness runtime that is only an HRESULT.

    ``reporter``: of the device; None: there is no device yet.
    """
    if error.hresult in _ANSWERS:
        return
    for each in on_refused:
        each(error)
    if error.is_stored:
        return
    if defaults.strictness is Strictness.RUNTIME and error.hresult is not HResult.E_NOTIMPL:
        # A consequence of what is noted already; a question that devices answer so.
        if error.report.id != DEVICE_REMOVED.id and error.report.operation != "CheckFeatureSupport":
            operation = error.report.operation or "a call"
            _note_cause("failed", f"{operation} failed ({error.hresult.name})", error.report)
        return
    error.is_stored = True
    if reporter is not None:
        reporter.add(error.report, hresult=error.hresult)
        return
    report = error.report.spelled()
    stored = _refusals.setdefault((report.id, report.message), Stored(report, 0, hresult=error.hresult))
    stored.count += 1
    for sink in [_take, *sinks]:
        sink(stored)


def removed(reason: HResult, cause: Report) -> None:
    """A device was removed: at strictness runtime nobody else says so, and few programs ask."""
    is_wanted = cause.id == DEVICE_REMOVED.id  # RemoveDevice
    if defaults.strictness is Strictness.RUNTIME and not is_wanted:
        _note_cause("removed", f"a device was removed ({reason.name})", cause)


def _note_cause(kind: str, what: str, cause: Report) -> None:
    if kind not in _noted:
        message = shorten(cause.spelled().message.splitlines()[0], _MOST_CAUSE).rstrip(".")
        _note_once(kind, f"{what}: {message}")


def remark(error: Error, reporter: Reporter | None) -> None:
    """A call did something else than it seems to, which only a debug layer says."""
    if reporter is not None and defaults.strictness is not Strictness.RUNTIME:
        reporter.add(replace(error.report, severity=Severity.WARNING))


def _take(stored: Stored, *, is_muted: bool = False) -> None:
    report = stored.report
    _found[id(stored)] = stored
    if stored.suppressed or report.severity > Severity.WARNING:
        if not stored.suppressed and report.severity is Severity.INFO and not is_muted:
            _infos[id(stored)] = stored
        return
    key = (report.id, report.spelled().message)
    if key in _printed:
        return
    _printed.add(key)
    is_error = report.severity <= Severity.ERROR and stored.hresult is not HResult.E_NOTIMPL
    note("error" if is_error else "warning")
    if not is_muted:
        print_reports([stored])
        print_annotation(stored)
    if stops:
        sys.stderr.flush()
        lib.capi_stop()


def bug(error: BaseException, operation: str) -> None:
    """An exception that no call should raise: its traceback is printed once."""
    text = "".join(traceback.format_exception(error))
    if text not in _bugs:
        _bugs.add(text)
        note("bug")
        print(
            spell_text(f"dmlemu: a bug of dmlemu in {operation}, which returns E_FAIL:\n{text}"),
            file=sys.stderr,
            flush=True,
        )


def no_effect(operation: str, why: str) -> None:
    """Says once that a setting of the program does nothing."""
    if operation not in _said:
        _said.add(operation)
        print(f"dmlemu: {operation} has no effect: {why}.", file=sys.stderr, flush=True)


def _note_once(kind: str, text: str = "") -> None:
    if kind not in _noted:
        _noted.add(kind)
        note(f"{kind} {text}")


def note(what: str) -> None:
    """Tells ``dmlemu exec``: what happened, and why."""
    if what.partition(" ")[0] in failing:
        lib.capi_fail_at_exit()
    path = os.environ.get("DMLEMU_EXEC")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{what}\n")
