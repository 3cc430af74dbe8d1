"""The variables of the environment that a C++ program is run with; ``dmlemu exec`` sets them.

docs/reference/environment.md lists all variables.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from warnings import catch_warnings, simplefilter

from dmlemu_hw.chaos import chaos

from ...dml.enums import ExecutionFlags
from ...dml.lowering.fusion import may_fuse
from ...environment import check_variables
from ...errors import Strictness, printable, shorten
from ...reporting import Reporter, defaults, open_report_file
from . import reports
from ._capi import lib
from .exports import set_strictness
from .sites import want_frames
from .work import write_work

__all__ = ["apply", "check_suppression"]

_AT_THE_END = ("DMLEMU_RECORD", "DMLEMU_TRACE", "DMLEMU_HTML", "DMLEMU_RUN")  # files that are written there


def apply() -> None:
    """Reads all variables.  ValueError, which begins with the name of the variable: a value is wrong."""
    check_variables()
    strictness = _read("DMLEMU_STRICTNESS")
    if strictness and strictness not in [each.value for each in Strictness]:
        raise _wrong("DMLEMU_STRICTNESS", "runtime, debug or strict")
    set_strictness(strictness)
    if seed := _read("DMLEMU_CHAOS"):
        try:
            defaults.policy = chaos(int(seed))
        except ValueError:
            raise _wrong("DMLEMU_CHAOS", "a whole number, the seed") from None
    for row in _read("DMLEMU_SUPPRESS").splitlines():
        id, _, reason = row.partition("=")
        try:
            check_suppression(id, reason)
        except ValueError as error:
            raise _wrong("DMLEMU_SUPPRESS", f"lines ID=REASON: {error}") from None
        defaults.suppressions[id] = reason
    if code := _read("DMLEMU_EXIT_CODE"):
        if code not in reports.FAILING:
            raise _wrong("DMLEMU_EXIT_CODE", " or ".join(reports.FAILING))
        if not lib.capi_knows_status():
            raise ValueError("DMLEMU_EXIT_CODE needs the GNU C library; use dmlemu exec, with --werror.")
        reports.failing = reports.FAILING[code]
    for switch in ("DMLEMU_BREAK", "DMLEMU_ALL_OBJECTS"):
        if _read(switch) not in ("", "0", "1"):
            raise _wrong(switch, "0 or 1")
    reports.stops = _read("DMLEMU_BREAK") == "1"
    may_fuse(ExecutionFlags.NONE)  # else the first CompileOperator would fail
    _open_files()


def check_suppression(id: str, reason: str) -> None:
    """ValueError: no check that can be suppressed has that id, or there is no reason."""
    from ...checks import catalogue

    known = Reporter(refuses=False)
    known.declared = dict(catalogue())
    known.suppress(id, reason)


def _open_files() -> None:
    file = open_report_file()
    if file is not None:
        reports.sinks.append(file)
        atexit.register(_finish, "the reports", _read("DMLEMU_REPORT"), file.close)
    if path := _read("DMLEMU_RECORD"):
        atexit.register(_finish, "the record", path, _start_record(path))
    if path := _read("DMLEMU_TRACE"):
        from ...tracing import trace

        with _writing("DMLEMU_TRACE"):
            entered = trace(None, path).__enter__()
        want_frames()
        atexit.register(_finish, "the timeline", path, partial(entered.__exit__, None, None, None))
    for name, what in (("DMLEMU_HTML", "the page"), ("DMLEMU_RUN", "the run")):
        if path := _read(name):
            from . import runs

            with _writing(name):
                write = runs.write_page(path) if name == "DMLEMU_HTML" else runs.keep_run(path)
            atexit.register(_finish, what, path, write)
    if any(map(_read, _AT_THE_END)):
        lib.capi_keep_files()
    if path := _read("DMLEMU_WORK"):
        with _writing("DMLEMU_WORK"):
            write_work(path)


def _start_record(path: str) -> Callable[[], None]:
    """Records all devices; returns what ends and writes the record."""
    from ...recording import LIMIT, RecordWarning, record

    limit = _read("DMLEMU_RECORD_LIMIT")
    if limit and not (limit.isascii() and limit.isdecimal()):
        raise _wrong("DMLEMU_RECORD_LIMIT", "a whole number, the bytes of elements")
    recording = record(
        None, path, only=_read("DMLEMU_RECORD_ONLY") or "*", limit=int(limit) if limit else LIMIT
    )
    with _writing("DMLEMU_RECORD"):
        recording.__enter__()
    want_frames()  # of each dispatch

    def end() -> None:
        with catch_warnings():
            simplefilter("ignore", RecordWarning)  # printed below
            recording.__exit__(None, None, None)
        for note in recording.record.notes:
            print(f"dmlemu: the record is not complete: {printable(note)}", file=sys.stderr)

    return end


def _finish(what: str, path: str, write: Callable[[], None]) -> None:
    """At the end of the process."""
    try:
        write()
    except OSError as error:
        reports.note("error")
        print(f"dmlemu: {what} cannot be written to '{shorten(path)}': {error.strerror}", file=sys.stderr)


@contextmanager
def _writing(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _wrong(name, f"a file that can be written ({error.strerror})") from None
    except ValueError as error:
        raise ValueError(f"{name} is wrong: {error}.") from None


def _read(name: str) -> str:
    return os.environ.get(name, "")


def _wrong(name: str, expected: str) -> ValueError:
    return ValueError(f"{name} is {shorten(repr(_read(name)))}; expected {expected}.")
