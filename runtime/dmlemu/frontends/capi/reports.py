"""What a C++ program is told: refused calls and the reports of checks, on stderr, each once.

``dmlemu exec`` says by DMLEMU_EXEC to which file the process notes that something was wrong.
"""

from __future__ import annotations

import os
import sys
import traceback

from ...errors import Error, HResult, Severity, Strictness
from ...reporting import Reporter, Sink, Stored, defaults, print_reports
from ._capi import lib
from .sites import spell_text

__all__ = ["bug", "found", "install", "no_effect", "refused"]

_ANSWERS = (HResult.DXGI_ERROR_NOT_FOUND, HResult.DXGI_ERROR_UNSUPPORTED)  # no mistake: programs ask so
_printed: set[tuple[str, str]] = set()  # id and message
_bugs: set[str] = set()
_said: set[str] = set()  # settings without effect
stops = False  # --break: the thread of a new report stops before its call returns
_refusals: dict[tuple[str, str], Stored] = {}  # of no device, by id and message
_found: dict[int, Stored] = {}  # all that was found, by its id: devices may be gone
sinks: list[Sink] = []
"""Take refused calls, too, which are no reports of a device."""


def install() -> None:
    """Takes the reports of all devices from here on."""
    if _take not in defaults.sinks:
        defaults.sinks.append(_take)


def found() -> list[Stored]:
    """Everything that was reported, the oldest first."""
    return list(_found.values())


def refused(error: Error, reporter: Reporter | None) -> None:
    """A call of the program was refused.  At strictness runtime that is only an HRESULT.

    ``reporter``: of the device; None: there is no device yet.
    """
    if error.is_stored or error.hresult in _ANSWERS:
        return
    if defaults.strictness is not Strictness.RUNTIME or error.hresult is HResult.E_NOTIMPL:
        error.is_stored = True
        if reporter is not None:
            reporter.add(error.report, hresult=error.hresult)
            return
        report = error.report.spelled()
        stored = _refusals.setdefault((report.id, report.message), Stored(report, 0, hresult=error.hresult))
        stored.count += 1
        for sink in [_take, *sinks]:
            sink(stored)


def _take(stored: Stored) -> None:
    report = stored.report
    _found[id(stored)] = stored
    if stored.suppressed or report.severity > Severity.WARNING:
        return
    key = (report.id, report.spelled().message)
    if key in _printed:
        return
    _printed.add(key)
    if report.severity <= Severity.ERROR and stored.hresult is not HResult.E_NOTIMPL:
        _note("error")
    print_reports([stored])
    if stops:
        sys.stderr.flush()
        lib.capi_stop()


def bug(error: BaseException, operation: str) -> None:
    """An exception that no call should raise: its traceback is printed once."""
    text = "".join(traceback.format_exception(error))
    if text not in _bugs:
        _bugs.add(text)
        _note("bug")
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


def _note(what: str) -> None:
    path = os.environ.get("DMLEMU_EXEC")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{what}\n")
