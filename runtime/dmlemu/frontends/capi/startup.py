"""Start and end of the Python side, in the process of a C++ program."""

from __future__ import annotations

import atexit
import os
import sys

from dmlemu_hw import signals

from ...diagnostics import spelling
from ...reporting import end_run
from . import calls, d3d12_list, dml_objects, objects, reports, settings, sites  # noqa: F401
from ._capi import lib
from .d3d12_device import ID3D12Device  # noqa: F401
from .exports import Exports
from .objects import Interface

__all__ = ["finish", "start"]


_LONGEST_CALL = 1000  # milliseconds that the end of a host waits for its threads that are inside of calls


def start(table: int, *, is_host: bool) -> None:
    """Fills in the functions of the libraries; called by the first export of the process.

    ``is_host``: this Python is the program's own, which ends it.  ValueError: of :func:`settings.apply`.
    """
    reports.note("started")
    settings.apply()
    reports.install()
    sites.install()
    spelling.speak(spelling.C)
    calls.attach([Interface, *_subclasses(Interface), Exports])
    if is_host:
        atexit.register(_finish_in_host)  # runs before what the settings have registered
    exports = lib.capi_fill(table)
    if lib.capi_blocks_signals():
        signals.let_in = lib.capi_let_signals_in
    objects.publish(exports, Exports())


def _subclasses(kind: type) -> list[type]:
    direct: list[type] = kind.__subclasses__()
    return [each for found in direct for each in (found, *_subclasses(found))]


def _finish_in_host() -> None:
    """The host ends its Python: from now on calls fail in C, without it.

    A thread that is still inside of one would be ended by Python, in the middle of the program's functions.
    """
    if not lib.capi_lives():  # a forked process
        return
    try:
        _end_run()
    finally:
        lib.capi_end()
        lib.capi_wait_for_calls(_LONGEST_CALL)


def finish() -> None:
    """The process ends: what Python would do at its own end, without ending it."""
    try:
        _end_run()
    finally:
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _end_run() -> None:
    end_run()
    if os.environ.get("DMLEMU_EXEC"):
        _summarize()


def _summarize() -> None:
    text = reports.summary()
    if text:
        print(text, file=sys.stderr)
    if Interface.keeps_released and sys.stderr is not None:
        objects.leave_alive(all_listed=os.environ.get("DMLEMU_ALL_OBJECTS") == "1")
