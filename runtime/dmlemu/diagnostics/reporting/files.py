"""Report output: files, the terminal, and a summary."""

from __future__ import annotations

import atexit
import errno
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from ..report import RULE_LINE, Severity, loading
from ..spelling import elide, printable
from .stored import Stored

__all__ = ["ReportFile", "print_reports", "print_text", "summarize"]


_HEAD = """\
<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width"><title>Reports of dmlemu</title>
<body style="font: 14px system-ui, sans-serif; margin: 2em">
<h1>Reports of dmlemu</h1>
"""


class ReportFile:
    """A sink that writes to a file, which is emptied first: a JSON line; text if it ends in ``.txt``, and
    a page with the pictures of reports if it ends in ``.html``.

    A report is written when it first occurs, so that it survives a crash; :meth:`close`, at the latest
    the end of the program, rewrites the file if counts have changed.  Into a pipe everything is written
    at the end.  Reports of a forked process are not written.

    OSError, raised at creation or by :meth:`close`: the file cannot be written.  Adding a
    report never fails.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._kind = os.path.splitext(os.fspath(path))[1]
        self._path = path
        self._file = open(path, "w", encoding="utf-8", opener=_open_now)  # noqa: SIM115
        self._is_pipe = not self._file.seekable()
        self._problem: OSError | None = None
        self._stored: dict[int, Stored] = {}
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._begin()
        atexit.register(self._close_at_exit)

    def __repr__(self) -> str:
        state = "closed" if self._file.closed else f"{len(self._stored)} reports"
        return f"<ReportFile {elide(repr(os.fspath(self._path)), 100)}, {state}>"

    def __call__(self, stored: Stored) -> None:
        with self._lock:
            if self._is_open() and id(stored) not in self._stored:
                self._stored[id(stored)] = stored
                if not self._is_pipe:
                    with self._failing_later():
                        self._write(stored)
                        self._file.flush()

    def _is_open(self) -> bool:
        return not self._file.closed and self._process == os.getpid()

    def _begin(self) -> None:
        if self._kind == ".html":
            self._file.write(_HEAD)

    def _write(self, stored: Stored) -> None:
        if self._kind == ".html":
            self._file.write(stored.html())
        else:
            self._file.write(stored.text() + "\n\n" if self._kind == ".txt" else stored.json() + "\n")

    def close(self) -> None:
        """Completes the file; may be called repeatedly.  OSError: not all reports have been written."""
        with self._lock:
            if self._is_open():
                with self._failing_later():
                    self._complete()
                    self._file.close()
            problem, self._problem = self._problem, None
        atexit.unregister(self._close_at_exit)
        if problem is not None:
            raise problem

    def _complete(self) -> None:
        if not self._is_pipe:
            if all(stored.count == 1 for stored in self._stored.values()):
                return
            self._file.seek(0)
            self._file.truncate()
            self._begin()
        for stored in self._stored.values():
            self._write(stored)

    @contextmanager
    def _failing_later(self) -> Iterator[None]:
        """An OSError closes the file, and is raised by :meth:`close`."""
        try:
            yield
        except OSError as error:
            self._problem = error
            with suppress(OSError):  # its buffer cannot be written
                self._file.close()

    def _close_at_exit(self) -> None:
        try:
            self.close()
        except OSError as error:
            path = printable(os.fspath(self._path))
            print(f"dmlemu: the reports cannot be written to '{path}': {error.strerror}", file=sys.stderr)


def _open_now(path: str, flags: int) -> int:
    """Opens a file; OSError for a pipe without a reader, on which opening would block."""
    try:
        handle = os.open(path, flags | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "no program reads from it", path) from None
        raise
    os.set_blocking(handle, True)
    return handle


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
    """A line for each report, and for each reason of suppressed ones; empty without any."""
    with loading():
        from textwrap import shorten

    severities: Counter[Severity] = Counter()
    suppressed: Counter[tuple[str, str]] = Counter()
    lines = []
    for stored in reports:
        report = stored.report
        if stored.suppressed:
            suppressed[report.id, stored.suppressed] += stored.count
            continue
        severities[report.severity] += 1
        line = f"{report.severity.name} {report.id}{_times(stored.count)}: {report.spelled().message}"
        lines.append("  " + printable(shorten(line, 160, placeholder=" ...")))
    lines += [f"  suppressed {id}{_times(n)}: {reason}" for (id, reason), n in suppressed.items()]
    heading = [f"{severities[each]} {each.name}" for each in Severity if severities[each]]
    if suppressed:
        heading.append(f"{suppressed.total()} suppressed")
    return "\n".join([", ".join(heading), *lines]) if lines else ""


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
