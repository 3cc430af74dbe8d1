"""What becomes of the reports of a device: filtered, suppressed, counted, stored, raised or printed.

Checks find things while the GPU runs or in the middle of a call, where raising would tear something
apart: they hand a report in, and the call that set the check off raises it when its work is done.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from enum import Enum

from .errors import Error, HResult, Report, Severity

__all__ = ["Reporter", "Response", "Stored"]


class Response(str, Enum):
    """What a report of severity CORRUPTION or ERROR does: leave the call as an exception, warn, or wait."""

    RAISE = "raise"
    WARN = "warn"
    COLLECT = "collect"


@dataclass
class Stored:
    """A report, how often its cause came up, and why it is not shown (empty: it is)."""

    report: Report
    count: int = 1
    suppressed: str = ""


class Reporter:
    """Takes every report of one device; one per cause is kept, with a count."""

    limit = 1024

    def __init__(self, response: Response) -> None:
        self.response = response
        self._stored: dict[Hashable, Stored] = {}
        self._suppressed: dict[str, str] = {}
        self._sinks: list[Callable[[Report], None]] = []
        self._pending: list[Report] = []

    def __iter__(self) -> Iterator[Stored]:
        """What is stored, oldest first."""
        return iter(list(self._stored.values()))

    def suppress(self, id: str, reason: str) -> None:
        """Reports of the check ``id`` are counted, but not shown; ``reason`` is printed instead."""
        self._suppressed[id] = reason

    def add_sink(self, sink: Callable[[Report], None]) -> None:
        """Calls ``sink`` with the first report of each cause."""
        self._sinks.append(sink)

    def add(self, report: Report, cause: Hashable = None) -> None:
        """Takes a report.  Those of one ``cause`` (None: of one text) are one report with a count."""
        key = (report.id, report.text() if cause is None else cause)
        stored = self._stored.get(key)
        if stored is not None:
            stored.count += 1
            return
        if len(self._stored) >= self.limit:
            return
        stored = self._stored[key] = Stored(report, suppressed=self._suppressed.get(report.id, ""))
        if stored.suppressed:
            return
        for sink in self._sinks:
            sink(report)
        if report.severity <= Severity.ERROR:
            if self.response is Response.RAISE:
                self._pending.append(report)
            elif self.response is Response.WARN:
                warnings.warn(report.text(), RuntimeWarning, stacklevel=2)

    def raise_pending(self) -> None:
        """Raises the first report that is to be raised; the others stay stored."""
        if self._pending:
            report, self._pending = self._pending[0], []
            raise Error(HResult.DXGI_ERROR_INVALID_CALL, report)
