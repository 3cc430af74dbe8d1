"""Report output: files, the terminal, and a summary."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from ...files import Output, naming
from ..report import RULE_LINE, Severity, loading
from ..spelling import elide, printable, shorten
from .defaults import defaults
from .forms import form_of
from .stored import Stored
from .unread import end_run

__all__ = [
    "ReportFile",
    "how_to_see",
    "open_report_file",
    "print_annotation",
    "print_reports",
    "print_text",
    "summarize",
]


class ReportFile:
    """A sink that writes to a file, which is emptied first, by the end of its name: JSON lines (``.jsonl``,
    ``.json`` or none), text (``.txt``), a page with the pictures of reports (``.html``), SARIF
    (``.sarif``), or Code Quality of GitLab (``.codequality.json``).

    A report is written when it first occurs, so that it survives a crash; :meth:`close`, at the latest
    the end of the program, replaces the file if counts have changed; a page then has one section for
    reports that differ in their objects alone.  Into what is not a regular file
    everything is written at the end.  Reports of a forked process are not written.  ``program``: the file
    that SARIF names for reports without a line, such as a model.

    ValueError: another name.  OSError, raised at creation or by :meth:`close`: the file cannot be written.
    Adding a report never fails.
    """

    def __init__(self, path: str | os.PathLike[str], program: str = "") -> None:
        self._form = form_of(path, program)
        self._output = Output(path)
        self._problem: OSError | None = None
        self._stored: dict[int, Stored] = {}
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._is_closed = False
        self._file: IO[bytes] | None = None  # a regular one, which grows
        if self._output.place is not None:
            with naming(self._output.path):
                self._file = open(self._output.place, "wb")  # noqa: SIM115
                self._end = self._file.write(self._form.head.encode())
                self._write(self._form.tail([]))
        atexit.register(self._close_at_exit)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{len(self._stored)} reports"
        return f"<ReportFile {elide(repr(self._output.path), 100)}, {state}>"

    def __call__(self, stored: Stored) -> None:
        with self._lock:
            if self._is_open() and id(stored) not in self._stored:
                self._stored[id(stored)] = stored
                if self._file is not None:
                    with self._failing_later():
                        self._append(self._file, stored)

    def _is_open(self) -> bool:
        return not self._is_closed and self._process == os.getpid()

    def _append(self, file: IO[bytes], stored: Stored) -> None:
        """Puts a report and a new end in the place of the end."""
        between = self._form.between if len(self._stored) > 1 else ""
        file.seek(self._end)
        self._end += file.write((between + self._form.entry(stored)).encode())
        self._write(self._form.tail(self._stored.values()))

    def _write(self, tail: str) -> None:
        assert self._file is not None
        self._file.write(tail.encode())
        self._file.flush()

    def close(self) -> None:
        """Completes the file; may be called repeatedly.  OSError: not all reports have been written."""
        with self._lock:
            if self._is_open():
                with self._failing_later():
                    self._complete()
                self._is_closed = True
            problem, self._problem = self._problem, None
        atexit.unregister(self._close_at_exit)
        if problem is not None:
            raise problem

    def _complete(self) -> None:
        if self._file is not None:
            self._file.close()
            if not self._form.grown(self._stored.values()):
                return
        self._output.write(self._form.whole(self._stored.values()))

    @contextmanager
    def _failing_later(self) -> Iterator[None]:
        """An OSError closes the file, and is raised by :meth:`close`."""
        try:
            with naming(self._output.path):
                yield
        except OSError as error:
            self._problem = error
            self._is_closed = True
            if self._file is not None:
                with suppress(OSError):  # its buffer cannot be written
                    self._file.close()

    def _close_at_exit(self) -> None:
        end_run()
        try:
            self.close()
        except OSError as error:
            path = printable(self._output.path)
            print(f"dmlemu: the reports cannot be written to '{path}': {error.strerror}", file=sys.stderr)


_opened: ReportFile | None = None


def open_report_file() -> ReportFile | None:
    """The file that DMLEMU_REPORT names, opened once; a sink of all devices.  None: it names none.

    ValueError: the file cannot be written, or its name ends in another way.
    """
    global _opened
    path = os.environ.get("DMLEMU_REPORT", "")
    if path and _opened is None:
        try:
            _opened = ReportFile(path)
        except OSError as error:
            expected = f"a file that can be written ({error.strerror})"
            raise ValueError(f"DMLEMU_REPORT is {shorten(repr(path))}; expected {expected}.") from None
        except ValueError as error:
            raise ValueError(f"DMLEMU_REPORT is wrong: {error}.") from None
        defaults.sinks.append(_opened)
    return _opened


_COLOURS = {Severity.CORRUPTION: 31, Severity.ERROR: 31, Severity.WARNING: 33}  # red, yellow


def print_reports(reports: Iterable[Stored], file: IO[str] | None = None) -> None:
    """Prints reports (to stderr), a blank line behind each.

    On a terminal the first line is in colour, and the others by rich, if the extra ``cli`` is installed;
    the line of the rule is a link to its page.
    """
    file = sys.stderr if file is None else file
    is_coloured = file.isatty() and not os.environ.get("NO_COLOR")
    for stored in reports:
        first, _, rest = stored.text().partition("\n")
        colour = _COLOURS.get(stored.report.severity) if is_coloured else None
        print(first if colour is None else f"\x1b[1;{colour}m{first}\x1b[0m", file=file)
        print_text(f"{rest}\n", file, stored.report.rule_url if is_coloured else None)


def print_annotation(stored: Stored, program: str = "") -> None:
    """In a workflow of GitHub Actions: prints what shows the report beside its line (to stderr)."""
    if os.environ.get("GITHUB_ACTIONS") == "true" and not stored.suppressed:
        with loading():
            import json

            from .ci_output import annotation

        row = json.loads(stored.json())
        print(annotation({**row, "file": program} if program else row), file=sys.stderr)


def print_text(text: str, file: IO[str], rule_url: str | None = None) -> None:
    """Prints plain text; on a terminal, by rich if it is installed: numbers, names and paths stand out.

    ``rule_url``: what the line of a report's rule links to, on a terminal.
    """
    if file.isatty() and not os.environ.get("NO_COLOR"):
        try:
            from rich.console import Console
        except ImportError:
            if rule_url is not None:
                text = RULE_LINE.sub(lambda line: f"\x1b]8;;{rule_url}\x1b\\{line[0]}\x1b]8;;\x1b\\", text)
        else:
            console = Console(file=file, soft_wrap=True)
            shown = console.render_str(text, markup=False, emoji=False, highlight=True)
            if rule_url is not None:
                shown.highlight_regex(RULE_LINE, f"link {rule_url}")
            console.print(shown)
            return
    print(text, file=file)


def summarize(reports: Iterable[Stored]) -> str:
    """A line for each message, and for each reason of suppressed ones; empty without any."""
    with loading():
        from textwrap import shorten

    severities: Counter[Severity] = Counter()
    suppressed: Counter[tuple[str, str]] = Counter()
    messages: Counter[tuple[str, str, str]] = Counter()  # in their order; several objects may have one
    for stored in reports:
        report = stored.report
        if stored.suppressed:
            suppressed[report.id, stored.suppressed] += stored.count
            continue
        severities[report.severity] += 1
        messages[report.severity.name, report.id, report.spelled().message] += stored.count
    lines = []
    for (severity, id, message), count in messages.items():
        line = f"{severity} {id}{_times(count)}: {message}"
        lines.append("  " + printable(shorten(line, 160, placeholder=" ...")))
    lines += [f"  suppressed {id}{_times(n)}: {reason}" for (id, reason), n in suppressed.items()]
    heading = [f"{severities[each]} {each.name}" for each in Severity if severities[each]]
    if suppressed:
        heading.append(f"{suppressed.total()} suppressed")
    return "\n".join([", ".join(heading), *lines]) if lines else ""


def how_to_see(reports: Iterable[Stored]) -> str:
    """A line about the pictures of printed reports; empty if they have none."""
    count = sum(1 for stored in reports if stored.report.picture is not None and not stored.suppressed)
    what = "1 report has a picture" if count == 1 else f"{count} reports have pictures"
    return f"dmlemu: {what}; --report FILE.html draws {'it' if count == 1 else 'them'}." if count else ""


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
