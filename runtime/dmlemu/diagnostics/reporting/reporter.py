"""``device.reports``: all reports of one device.

Checks find mistakes while the GPU runs or in the middle of a call, where raising would leave an
inconsistent state: they add a report, and the call that caused it raises when its work is done.
Refusals are different: a call that cannot be done raises immediately and has no effect.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Protocol

from ..location import call_site
from ..report import Error, HResult, Report, Severity, Strictness, loading
from .defaults import Response, Sink, defaults
from .files import open_report_file, summarize
from .filters import InfoQueueFilter, desc_of
from .stored import Stored
from .unread import Unread

__all__ = ["ReportWarning", "Reporter", "living", "on_created"]


class ReportWarning(RuntimeWarning):
    """A report under :attr:`Response.WARN`."""


class _Declared(Protocol):
    """What is known of a check; see ``dmlemu.checks.Declaration``."""

    @property
    def refusal(self) -> bool: ...
    @property
    def level(self) -> Strictness: ...


class Reporter:
    """Stores the reports of one device; one report per cause is kept, with a count.

    Iterates over the stored reports, oldest first.  When the program ends and nobody has read any, and one is
    a WARNING or worse, a line on stderr says how many there are.  ``responses`` maps severities to responses:
    CORRUPTION and ERROR are raised, the others only stored.  ``filters`` is a stack whose last entry
    applies.  ``context`` are lines added to every report.  All methods may be called from any thread.
    ``refuses``: calls fail for what only a debug layer finds, too.

    Sinks run on the thread that found the report, as soon as it ``may_call_out``: a sink may take locks
    of the program, which another thread may hold in a call of the device.
    """

    limit = 100  # different causes stored per check

    def __init__(self, response: Response | None = None, *, refuses: bool = True) -> None:
        serious = defaults.response if response is None else Response(response)
        self.responses = {each: serious if each <= Severity.ERROR else Response.COLLECT for each in Severity}
        self.refuses = refuses
        self.filters = [InfoQueueFilter()]
        self.built_in: Callable[[], Mapping[str, _Declared]] = dict  # set by the layer of checks
        self.context: tuple[str, ...] = ()
        self._lock = threading.RLock()  # a finalizer that runs meanwhile may report, too
        self._stored: dict[tuple[str, Hashable], Stored] = {}
        self._causes: dict[str, int] = {}  # number stored of each check
        self._suppressions: dict[str, str] = {}
        self._announced: set[str] = set()
        self._sinks: list[Sink] = []
        self.listeners: list[Callable[[Report], None]] = []  # called at once, whatever locks are held
        self.denied_sinks: list[Sink] = []  # called with what the filters drop, as sinks are with all else
        self._undelivered: deque[tuple[int, Stored, bool]] = deque()  # by which thread, and passed?
        self.may_call_out: Callable[[], bool] = lambda: True
        self._pending: dict[int, tuple[Report, Response]] = {}  # the first of each cause
        self._unread = Unread()
        open_report_file()
        living.add(self)

    def __repr__(self) -> str:
        return f"<Reporter with {len(self._stored)} reports>"

    def __iter__(self) -> Iterator[Stored]:
        self.read()
        return iter(self.kept())

    def kept(self) -> list[Stored]:
        """The stored reports, oldest first, for the layers above: they count as unread still."""
        with self._lock:
            return list(self._stored.values())

    def read(self) -> None:
        """The program reads the reports: no line about them is needed at its end."""
        self._unread.read()

    @cached_property
    def declared(self) -> dict[str, _Declared]:
        """The checks by id.  Most programs name none, and those of all rooms are many."""
        with loading():
            return dict(self.built_in())

    # --- filters ---

    def allow(self, *what: Severity | int | str) -> None:
        """Only these pass from now on: severities, ids of checks, patterns of ids, message numbers."""
        self._check_known(what)
        self.filters[-1] += InfoQueueFilter(allow_list=desc_of(what))

    def deny(self, *what: Severity | int | str) -> None:
        """Drops these from now on."""
        self._check_known(what)
        self.filters[-1] += InfoQueueFilter(deny_list=desc_of(what))

    def suppress(self, id: str, reason: str) -> None:
        """Reports of a check, or of a pattern such as ``HAZARD_*``, are stored and counted, never raised.

        ``reason`` is printed when the first one occurs, and in the summary.  ValueError: no check
        matches, the reason is empty, or only refusals match, which cannot be suppressed.
        """
        self.check_suppression(id, reason)
        self._check_known((id,))
        self._suppressions[id] = reason

    def check_suppression(self, id: str, reason: str) -> None:
        """ValueError: the reason is empty, or the name matches only refusals."""
        _check_type(id, str, "id")
        _check_type(reason, str, "reason")
        if not reason.strip():
            raise ValueError(f"{id} cannot be suppressed without a reason, which is printed in its place.")
        found = [self.declared[each] for each in self.declared if fnmatchcase(each, id)]
        if found and all(map(self._is_refusal, found)):
            raise ValueError(
                f"{id} cannot be suppressed: the call itself refuses, as on Windows, and does nothing. "
                "Change the call, or handle its failure."
            )

    def _is_refusal(self, check: _Declared) -> bool:
        return check.refusal and (self.refuses or check.level is Strictness.RUNTIME)

    def _check_known(self, what: tuple[object, ...]) -> None:
        for each in what:
            known = not isinstance(each, str) or any(fnmatchcase(id, each) for id in self.declared)
            if self.declared and not known:
                with loading():
                    from difflib import get_close_matches

                near = get_close_matches(str(each).upper(), self.declared, 1)
                hint = f"; did you mean {near[0]}?" if near else "; 'dmlemu checks' lists all."
                raise ValueError(f"No check is called {each}{hint}")

    def add_sink(self, sink: Sink, *, reads: bool = True) -> None:
        """Calls ``sink`` with every report that passes the filters, on the thread that found it.

        ``reads``: it shows them, or keeps them where they are looked at.
        """
        if not callable(sink):
            raise TypeError(f"sink must be a function, not {type(sink).__name__}.")
        self._sinks.append(sink)
        if reads:
            self.read()

    def remove_sink(self, sink: Sink) -> None:
        """Removes a sink.  ValueError: there is no such sink."""
        if sink not in self._sinks:
            raise ValueError(f"{sink!r} is not a sink of these reports.")
        self._sinks.remove(sink)

    # --- adding reports ---

    def add(self, report: Report, cause: Hashable = None, *, hresult: HResult | None = None) -> None:
        """Adds a report.  Those of one ``cause`` (None: of one text) are one report with a count.

        ``hresult``: the HRESULT with which the failing call itself raises; then nothing else is raised.
        """
        _check_type(report, Report, "report")
        missing = [line for line in self.context if line not in report.context]
        if missing:
            report = replace(report, context=(*report.context, *missing))
        passes = self.filters[-1].passes(report)
        if not passes and not self.denied_sinks:
            return
        if passes and cause is None:
            cause = report.key()
        if passes:
            for listener in self.listeners:
                listener(report)
        with self._lock:
            stored = self._add(report, cause, hresult) if passes else Stored(report, hresult=hresult)
            self._undelivered.append((threading.get_ident(), stored, passes))
        self.deliver()

    def _add(self, report: Report, cause: Hashable, hresult: HResult | None) -> Stored:
        """Counts, and notes what is to be raised."""
        stored = self._store(report, cause, hresult)
        stored.count += 1
        stored.suppressed = self._reason(report.id)
        response = Response(self.responses[report.severity])
        if stored.count == 1 and not (stored.suppressed or hresult or defaults.sinks):
            self._unread.add(id(stored), stored.report.severity)
        if stored.suppressed:
            self._announce(report, stored.suppressed)
        elif response is not Response.COLLECT and hresult is None:
            self._pending.setdefault(id(stored), (report, response))
        return stored

    def deliver(self) -> None:
        """Calls the sinks with what this thread has found, unless it holds a lock of the device."""
        if not self._undelivered or not self.may_call_out():
            return
        me = threading.get_ident()
        with self._lock:
            mine = [each for each in self._undelivered if each[0] == me]
            self._undelivered = deque(each for each in self._undelivered if each[0] != me)
        for _, stored, passed in mine:
            for sink in [*self._sinks, *defaults.sinks] if passed else list(self.denied_sinks):
                sink(stored)

    def again(self, id: str, cause: Hashable) -> bool:
        """Counts a further occurrence of a stored cause; False: not stored, or to be raised or warned about,
        and must be added as a report."""
        with self._lock:
            stored = self._stored.get((id, cause))
            if stored is None:
                return False
            if not stored.suppressed and self.responses[stored.report.severity] is not Response.COLLECT:
                return False
        self.add(stored.report, cause)
        return True

    def has(self, id: str) -> bool:
        """Whether a report of that check is stored."""
        return id in self._causes

    def _store(self, report: Report, cause: Hashable, hresult: HResult | None) -> Stored:
        """The entry of a cause.  Beyond the limit, one entry stands for all other causes of a check."""
        key: tuple[str, Hashable] = (report.id, cause)
        if key not in self._stored:
            if self._causes.get(report.id, 0) < self.limit:
                self._causes[report.id] = self._causes.get(report.id, 0) + 1
            else:
                with loading():
                    from ..rows import REPORT_LIMIT  # imported late: few programs have so many reports

                key = (REPORT_LIMIT.id, report.id)
                text = f"{self.limit} different reports of {report.id} are stored; further ones are counted."
                report = Report(REPORT_LIMIT.id, text, severity=Severity.MESSAGE, object=report.id)
        return self._stored.setdefault(key, Stored(report, 0, hresult=hresult))

    def _reason(self, id: str) -> str:
        """Why the reports of that check are suppressed; empty if they are not."""
        both = (self._suppressions, defaults.suppressions)
        found = (each[pattern] for each in both for pattern in each if fnmatchcase(id, pattern))
        return next(found, "")

    def _announce(self, report: Report, reason: str) -> None:
        if report.id not in self._announced:
            self._announced.add(report.id)
            print(f"{report.text().splitlines()[0]} is suppressed: {reason}\n", file=sys.stderr)

    def raise_pending(self) -> None:
        """Calls sinks, issues pending Python warnings, then raises the first report that is to be raised."""
        if self._undelivered:
            self.deliver()
        if not self._pending:
            return
        with self._lock:
            pending, self._pending = self._pending, {}
        for key in pending:
            self._unread.remove(key)
        for report, response in pending.values():
            if response is Response.WARN:
                site = call_site()
                file, line = site.line if site is not None else ("dmlemu", 0)
                warnings.warn_explicit(report.text(), ReportWarning, file, line)
        for report, response in pending.values():
            if response is Response.RAISE:
                raise Error(HResult.DXGI_ERROR_INVALID_CALL, report)

    def clear(self) -> None:
        """Removes stored and pending reports."""
        self.read()
        with self._lock:
            self._stored.clear()
            self._causes.clear()
            self._announced.clear()
            self._pending.clear()

    def summary(self) -> str:
        """One line for each stored report, with the reasons of suppressed ones; empty if there are none."""
        return summarize(self)


def _check_type(value: object, kind: type, field: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{field} must be a {kind.__name__}, not {type(value).__name__}.")


living: weakref.WeakSet[Reporter] = weakref.WeakSet()
"""The reporters of all devices of this process."""

on_created: list[Callable[[Any], None]] = []
"""Called with every new device: how the layers above, such as the checks, come to know of it."""
