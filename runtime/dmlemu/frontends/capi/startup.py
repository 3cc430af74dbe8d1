"""Start and end of the Python side, in the process of a C++ program.

Variables, which ``dmlemu exec`` sets: DMLEMU_STRICTNESS, DMLEMU_CHAOS, DMLEMU_REPORT, DMLEMU_TRACE,
DMLEMU_SUPPRESS, DMLEMU_BREAK.
"""

from __future__ import annotations

import atexit
import os
import sys

from dmlemu_hw.chaos import chaos

from ...errors import Severity
from ...reporting import ReportFile, defaults, summarize
from . import calls, d3d12_list, dml_objects, objects, reports, sites  # noqa: F401
from ._capi import lib
from .d3d12_device import ID3D12Device  # noqa: F401
from .exports import Exports, set_strictness
from .objects import Interface

__all__ = ["finish", "start"]


def start(table: int) -> None:
    """Fills in the functions of the libraries; called by the first export of the process."""
    set_strictness(os.environ.get("DMLEMU_STRICTNESS"))
    if seed := os.environ.get("DMLEMU_CHAOS"):
        defaults.policy = chaos(int(seed))
    for row in os.environ.get("DMLEMU_SUPPRESS", "").splitlines():
        id, _, reason = row.partition("=")
        defaults.suppressions[id] = reason
    reports.install()
    reports.stops = bool(os.environ.get("DMLEMU_BREAK"))
    if path := os.environ.get("DMLEMU_REPORT"):
        file = ReportFile(path)
        defaults.sinks.append(file)
        reports.sinks.append(file)
        atexit.register(file.close)
    if path := os.environ.get("DMLEMU_TRACE"):
        from ...tracing import trace

        atexit.register(trace(None, path).__enter__().__exit__, None, None, None)
    sites.install()
    calls.attach([Interface, *_subclasses(Interface), Exports])
    objects.publish(lib.capi_fill(table), Exports())


def _subclasses(kind: type) -> list[type]:
    direct: list[type] = kind.__subclasses__()
    return [each for found in direct for each in (found, *_subclasses(found))]


def finish() -> None:
    """The process ends: what Python would do at its own end, without ending it."""
    try:
        if os.environ.get("DMLEMU_EXEC"):
            _summarize()
    finally:
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _summarize() -> None:
    text = summarize(each for each in reports.found() if each.report.severity <= Severity.WARNING)
    if text:
        print(text, file=sys.stderr)
    if Interface.keeps_released and sys.stderr is not None:
        objects.leave_alive()
