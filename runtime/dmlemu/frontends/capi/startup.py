"""Start and end of the Python side, in the process of a C++ program."""

from __future__ import annotations

import atexit
import os
import sys

from ...diagnostics import spelling
from ...reporting import end_run
from . import calls, d3d12_list, dml_objects, objects, reports, settings, sites  # noqa: F401
from ._capi import lib
from .d3d12_device import ID3D12Device  # noqa: F401
from .exports import Exports
from .objects import Interface

__all__ = ["finish", "start"]


def start(table: int) -> None:
    """Fills in the functions of the libraries; called by the first export of the process.

    ValueError: of :func:`settings.apply`.
    """
    settings.apply()
    reports.install()
    sites.install()
    spelling.speak(spelling.C)
    calls.attach([Interface, *_subclasses(Interface), Exports])
    objects.publish(lib.capi_fill(table), Exports())


def _subclasses(kind: type) -> list[type]:
    direct: list[type] = kind.__subclasses__()
    return [each for found in direct for each in (found, *_subclasses(found))]


def finish() -> None:
    """The process ends: what Python would do at its own end, without ending it."""
    try:
        end_run()
        if os.environ.get("DMLEMU_EXEC"):
            _summarize()
    finally:
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _summarize() -> None:
    text = reports.summary()
    if text:
        print(text, file=sys.stderr)
    if Interface.keeps_released and sys.stderr is not None:
        objects.leave_alive()
