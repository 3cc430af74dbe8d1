"""Runs programs of the gallery, for their tests and for the pictures of the checks' pages."""

from __future__ import annotations

import gc
import importlib
from types import ModuleType

from stage import Stage

from dmlemu import Error, Strictness
from dmlemu.diagnostics.report import Report

__dmlemu_helper__ = True  # reports name lines of what it runs


def load(name: str) -> ModuleType:
    return importlib.import_module(f"gallery.{name}")


def run(program: ModuleType, fixed: bool) -> tuple[list[str], list[Report]]:
    """The texts of all reports of a run, in order: raised and stored, those at the device's end too; and the
    reports that have a picture."""
    stage = Stage(getattr(program, "STRICTNESS", Strictness.STRICT), **getattr(program, "ADAPTER", {}))
    device = stage.device
    raised: Error | None = None
    try:
        program.run(stage, fixed)
    except Error as error:
        raised = error
    device.checks.end()
    texts = [stored.report.text(stored.hresult) for stored in device.reports]
    reports = [stored.report for stored in device.reports]
    if raised is not None and raised.report.text() not in texts and str(raised) not in texts:
        texts.append(str(raised))
        reports.append(raised.report)
    del stage, device
    gc.collect()
    return texts, [report for report in reports if report.layouts]


def pictures(name: str) -> list[str]:
    """The pictures of a wrong program's reports."""
    return [report.svg() for report in run(load(name), fixed=False)[1]]
