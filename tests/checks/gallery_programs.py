"""Runs programs of the gallery, for their tests and for the pictures of the checks' pages."""

from __future__ import annotations

import gc
import importlib
from functools import partial
from types import ModuleType

from dmlemu.diagnostics.report import Report
from dmlemu.testing.stage import Stage

__dmlemu_helper__ = True  # reports name lines of what it runs


def load(name: str) -> ModuleType:
    return importlib.import_module(f"gallery.{name}")


def run(program: ModuleType, fixed: bool) -> tuple[list[str], list[Report]]:
    """The texts of all reports of a run, in order: raised and stored, those at the device's end too; and the
    reports that have a picture."""
    stage = Stage(**getattr(program, "ADAPTER", {}))
    texts, reports = stage.reports_of(partial(program.run, fixed=fixed))
    del stage
    gc.collect()
    return texts, [report for report in reports if report.picture is not None]


def pictures(name: str) -> list[str]:
    """The pictures of a wrong program's reports."""
    return [report.svg() for report in run(load(name), fixed=False)[1]]
