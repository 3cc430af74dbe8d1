"""The pytest plugin: reports of emulated devices are part of the outcome of a test.

``--dmlemu=strict`` (or ``debug``, ``runtime``) is the strictness of devices that are created without
one.  At ``strict`` and ``debug`` a test fails when a device reported an ERROR or CORRUPTION that the
test did not expect, even if the exception was swallowed; WARNINGs are listed at the end, and with
``--dmlemu-werror`` they fail the test, too.  A refused call fails it as well when the program swallows the
exception; ``pytest.raises`` and ``assertRaises`` expect it, and an HRESULT that is an answer rather than a
mistake (E_OUTOFMEMORY, DXGI_ERROR_UNSUPPORTED, ...) is for the program.  ``--dmlemu-report=FILE`` writes
every report as a JSON line with the test's node id, into a ``.sarif`` file, or a ``.codequality.json`` for
GitLab, those that no test expects; JUnit files have them as properties, and GitHub Actions show them beside
their lines.  ``--dmlemu-chaos=SEED`` runs
every device under ``dmlemu.chaos(SEED)``.  ``--dmlemu-record=FILE.dmlrec`` records what the devices dispatch
that are created meanwhile, ``--dmlemu-trace=FILE.json`` writes a timeline of them; a worker of pytest-xdist
adds its name to the file's.

``@pytest.mark.dmlemu(expect=[id, ...], suppress={id: reason})``: an expected check must report; a pattern
such as ``HAZARD_*`` only may.  What is suppressed is not raised and fails no test.

Nothing of dmlemu is imported before an option or a mark needs it.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..errors import Error
    from ..files import Output
    from ..reporting import Stored

_MARK = "dmlemu(expect=[id, ...], suppress={id: reason})"
_KEPT = 100  # reports stored per check and test
_NAMED = 3  # tests named in the summary for each check


_UNEXPECTED = "A device reported what the test does not expect"


@dataclass
class _Summarized:
    """A line of the summary: the first message of one test, and the number of messages."""

    message: str
    count: int = 0


def _advice(unexpected: list[Stored]) -> str:
    """How a test declares that it expects these."""
    ids = ", ".join(f'"{id}"' for id in sorted({stored.report.id for stored in unexpected}))
    marked = f"A test that causes this on purpose is marked @pytest.mark.dmlemu(expect=[{ids}])"
    refused = any(stored.hresult is not None for stored in unexpected)
    return f"{marked}{', or awaits a refused call with pytest.raises' if refused else ''}."


def _end_at_program(error: BaseException | None) -> None:
    """Removes the frames of dmlemu from the tracebacks of its errors."""
    report = sys.modules.get("dmlemu.diagnostics.report")
    while report is not None and error is not None:
        if isinstance(error, report.Error):
            report.end_at_program(error)
        error = error.__cause__ or error.__context__


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dmlemu", "emulated Direct3D 12 and DirectML devices (dmlemu)")
    group.addoption(
        "--dmlemu",
        choices=["strict", "debug", "runtime"],
        help="strictness of devices created without one; strict, debug: what they report fails the test",
    )
    group.addoption("--dmlemu-werror", action="store_true", help="their warnings fail the test, too")
    group.addoption(
        "--dmlemu-report",
        metavar="FILE",
        help="write what they report as JSON lines, as .sarif, or as .codequality.json for GitLab",
    )
    group.addoption("--dmlemu-record", metavar="FILE", help="write what they dispatch, for dmlemu diff")
    group.addoption("--dmlemu-trace", metavar="FILE", help="write a timeline of them, for Perfetto")
    group.addoption("--dmlemu-chaos", metavar="SEED", type=int, help="run them under dmlemu.chaos(SEED)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_MARK}: what the devices of the test may report")
    config.pluginmanager.register(_Watch(config), "dmlemu-watch")


def _output(config: pytest.Config, option: str) -> Output | None:
    """The file of an option; one for each worker."""
    given: str | None = config.getoption(option)
    if given is None:
        return None
    path = Path(given).absolute()
    worker: dict[str, str] = getattr(config, "workerinput", {})
    from ..files import Output

    try:
        return Output(path.with_stem(f"{path.stem}-{worker['workerid']}") if worker else path)
    except OSError as error:
        raise pytest.UsageError(f"--{option.replace('_', '-')}: {error}") from None


class _Test:
    """The reports of the devices of one test, and those it expects."""

    def __init__(self, item: pytest.Item) -> None:
        self._stored: dict[int, Stored] = {}
        self._kept: Counter[str] = Counter()
        self.judged = 0  # the first so many are judged
        self.has_run = False
        self.expected: list[str] = []
        self.suppressions: dict[str, str] = {}
        self.mistake = ""  # in its marks
        for mark in item.iter_markers("dmlemu"):
            try:
                self._read(*mark.args, **mark.kwargs)
            except TypeError:
                self.mistake = f"The mark is {_MARK}, not {mark.args} {mark.kwargs}."

    def _read(self, *, expect: list[str] | None = None, suppress: dict[str, str] | None = None) -> None:
        if not isinstance(expect, list | tuple | None) or not isinstance(suppress, dict | None):
            raise TypeError
        suppressed = suppress or {}
        if not all(isinstance(each, str) for each in (*(expect or ()), *suppressed, *suppressed.values())):
            raise TypeError
        self.expected += expect or []
        self.suppressions.update(suppressed)

    @property
    def stored(self) -> list[Stored]:
        return list(self._stored.values())

    def take(self, stored: Stored) -> None:
        """A sink; stores a limited number of reports per check."""
        if id(stored) not in self._stored and self._kept[stored.report.id] < _KEPT:
            self._kept[stored.report.id] += 1
            self._stored[id(stored)] = stored

    def unexpected(self, severities: tuple[str, ...]) -> list[Stored]:
        """Reports not judged yet that fail the test."""
        new, self.judged = self.stored[self.judged :], len(self.stored)
        return [
            stored
            for stored in new
            if stored.report.severity.name in severities
            and not stored.suppressed
            and not self.expects(stored)
        ]

    def expects(self, stored: Stored) -> bool:
        return any(fnmatchcase(stored.report.id, pattern) for pattern in self.expected)

    def refuse(self, refused: Stored, *, is_mistake: bool) -> None:
        """A call raised; errors raised for a report are already stored."""
        is_wanted = is_mistake or self.expects(refused)
        if is_wanted and all(each.report is not refused.report for each in self.stored):
            self.take(refused)

    def missing(self) -> list[str]:
        """Expected checks that did not report."""
        seen = {stored.report.id for stored in self.stored}
        return [id for id in self.expected if id not in seen and not set(id) & set("*?[")]


class _Rows:
    """The file of ``--dmlemu-report``: JSON lines, which are written as tests end, or a file for CI at the
    end of the run.
    """

    def __init__(self, path: str) -> None:
        from ..files import Output

        suffix = Path(path).suffix.lower()
        if suffix not in ("", ".json", ".jsonl", ".sarif"):
            raise pytest.UsageError(
                f"--dmlemu-report: '{path}' ends in {suffix}; expected .json or .jsonl for JSON lines, "
                ".sarif, or .codequality.json for GitLab"
            )
        from ..diagnostics.reporting.forms import CODE_QUALITY

        self._for_ci = suffix == ".sarif" or path.lower().endswith(CODE_QUALITY)
        self._is_sarif = suffix == ".sarif"
        self._late: list[str] = []  # lines for what is not a regular file
        try:
            self._output = Output(path)
            if self._output.place is not None and not self._for_ci:
                self._output.write("")
        except OSError as error:
            raise pytest.UsageError(f"--dmlemu-report: {error}") from None

    def add(self, lines: list[str]) -> None:
        """Adds the reports of a test."""
        if self._for_ci or not lines:
            return
        if self._output.place is None:
            self._late += lines
            return
        from ..files import naming

        with naming(self._output.path), open(self._output.place, "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def close(self, unexpected: list[dict[str, Any]]) -> None:
        """The run has ended."""
        if self._for_ci:
            from ..diagnostics.reporting.ci_output import code_quality, sarif

            path = self._output.path
            self._output.write(sarif(unexpected, path) if self._is_sarif else code_quality(unexpected))
        elif self._output.place is None:
            self._output.write("".join(f"{line}\n" for line in self._late))


class _Watch:
    """Subscribes to all devices while the tests run."""

    def __init__(self, config: pytest.Config) -> None:
        self._strictness: str | None = config.getoption("dmlemu")
        self._root = config.rootpath
        self._werror: bool = config.getoption("dmlemu_werror")
        self._chaos: int | None = config.getoption("dmlemu_chaos")
        self._report: str | None = config.getoption("dmlemu_report")
        self._fatal: tuple[str, ...] = (
            ("CORRUPTION", "ERROR") if self._strictness in ("strict", "debug") else ()
        )
        if self._werror:
            self._fatal = ("CORRUPTION", "ERROR", "WARNING")
        is_worker = hasattr(config, "workerinput")  # of pytest-xdist: the reports go to its controller
        self._rows = None if is_worker or not self._report else _Rows(self._report)
        self._record = _output(config, "dmlemu_record")
        self._trace = _output(config, "dmlemu_trace")
        self._recordings: list[Any] = []  # and traces
        self._reporting: Any = None
        self._refusals: Any = None
        self._test: _Test | None = None
        self._unexpected: list[dict[str, Any]] = []  # reports as JSON
        self._unwritten: list[OSError] = []  # files
        self._summary: dict[tuple[str, str], dict[str, _Summarized]] = {}  # by heading and reason, by test
        if self._header():
            self._subscribe()

    def _subscribe(self) -> Any:
        """Imports ``dmlemu.reporting`` and subscribes to it."""
        if self._reporting is None:
            from .. import reporting
            from ..errors import Strictness
            from .refusals import Refusals

            self._reporting = reporting
            self._refusals = Refusals(self._refuse)
            self._refusals.start()
            self._before = reporting.defaults.strictness, reporting.defaults.policy
            self._suppressions: dict[str, str] = reporting.defaults.suppressions
            reporting.defaults.sinks.append(self._take)
            if self._strictness is not None:
                reporting.defaults.strictness = Strictness(self._strictness)
            if self._record is not None:
                from ..recording import Recording

                self._recordings.append(Recording(None, self._record))
            if self._trace is not None:
                from ..tracing import Trace

                self._recordings.append(Trace(None, self._trace))
            for each in self._recordings:
                each.__enter__()
            if self._chaos is not None:
                from dmlemu_hw.chaos import chaos

                reporting.defaults.policy = chaos(self._chaos)
        return self._reporting

    def _take(self, stored: Stored) -> None:
        if self._test is not None:
            self._test.take(stored)

    def _refuse(self, error: Error, is_mistake: bool) -> None:
        if self._test is not None:
            refused = self._reporting.Stored(error.report, hresult=error.hresult)
            self._test.refuse(refused, is_mistake=is_mistake)

    # --- one test ---

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        self._test = test = _Test(item)
        if self._reporting is not None or test.expected or test.suppressions:
            reporting = self._subscribe()
            for reporter in list(reporting.living):
                reporter.clear()  # reports of a device that outlives its test belong to that test
            self._suppress(test)
        try:
            result = yield
        except BaseException as error:
            self._failed(error)
            raise
        if test.mistake:
            pytest.fail(test.mistake, pytrace=False)
        return result

    def _suppress(self, test: _Test) -> None:
        defaults = self._reporting.defaults
        self._suppressions = defaults.suppressions
        if not test.suppressions:
            return
        from ..checks import catalogue

        known = self._reporting.Reporter()
        known.declared = catalogue()
        for id, reason in test.suppressions.items():
            try:
                known.check_suppression(id, reason)
            except ValueError as error:
                test.mistake = str(error)
                return
        defaults.suppressions = {**defaults.suppressions, **test.suppressions}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        result = yield from self._checked_phase()
        if self._test is not None:
            self._test.has_run = True
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        test = self._test
        try:
            result = yield from self._checked_phase()
        finally:
            if self._reporting is not None:
                self._reporting.defaults.suppressions = self._suppressions
        if test is not None and test.has_run and test.missing():
            pytest.fail(
                f"{', '.join(test.missing())} was expected, and no device reported it.", pytrace=False
            )
        return result

    def _checked_phase(self) -> Generator[None, object, object]:
        """A phase of a test fails for the reports made in it."""
        test = self._test
        result: object = None
        skipped: BaseException | None = None
        try:
            result = yield
        except pytest.skip.Exception as error:
            skipped = error
        except BaseException as error:
            self._failed(error)
            raise
        if self._refusals is not None:
            self._refusals.look()
        unexpected = [] if test is None else test.unexpected(self._fatal)
        if unexpected:
            texts = "\n\n".join(stored.text() for stored in unexpected)
            pytest.fail(f"{_UNEXPECTED}:\n\n{texts}\n\n{_advice(unexpected)}", pytrace=False)
        if skipped is not None:
            raise skipped
        return result

    def _failed(self, error: BaseException) -> None:
        """The test has failed by itself: earlier reports do not fail it again."""
        if self._refusals is not None:
            self._refusals.seen(error)
            self._refusals.look()
        if self._test is not None:
            self._test.judged = len(self._test.stored)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        if call.excinfo is not None:
            _end_at_program(call.excinfo.value)
        report = yield
        test = self._test
        if test is None or self._reporting is None:
            return report
        if report.failed:
            self._explain(report, test, call)
        if report.when == "teardown":
            file, line, _ = item.location
            place = {"test": item.nodeid, "file": file, "line": (line or 0) + 1}
            lines = [each.json(**place, is_expected=test.expects(each)) for each in test.stored]
            report.dmlemu_reports = lines  # type: ignore[attr-defined]  # pytest-xdist carries it along
            from ..diagnostics.reporting.ci_output import junit_property

            report.user_properties += [junit_property(json.loads(each)) for each in lines]
            self._test = None
        return report

    def _explain(self, report: pytest.TestReport, test: _Test, call: pytest.CallInfo[None]) -> None:
        """Adds the other reports of the devices, and how to repeat the failure."""
        from ..errors import Error

        error = None if call.excinfo is None else call.excinfo.value
        raised = error.report if isinstance(error, Error) else None
        if isinstance(error, Error) and all(each.report is not raised for each in test.stored):
            test.take(self._reporting.Stored(raised, hresult=error.hresult))
            test.judged = len(test.stored)
        shown = str(report.longrepr)
        others = [
            each.text() for each in test.stored if each.report is not raised and each.text() not in shown
        ]
        if others:
            report.sections.append(("Reports of dmlemu", "\n\n".join(others)))
        if self._chaos is not None:
            report.sections.append(("Chaos", f"--dmlemu-chaos={self._chaos} repeats this run."))

    # --- the run ---

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        lines: list[str] = getattr(report, "dmlemu_reports", [])
        rows = [json.loads(line) for line in lines]
        for row in rows:
            self._note(row)
        self._unexpected += [
            {**row, "file": str(self._root / row["file"])} for row in rows if not row["is_expected"]
        ]
        if self._rows is not None:
            with self._written():
                self._rows.add(lines)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """A file that cannot be written is reported at the end; the others are written all the same."""
        try:
            yield
        except OSError as error:
            self._unwritten.append(error)

    def _note(self, report: dict[str, Any]) -> None:
        if report["is_expected"]:
            return
        if report["suppressed"]:
            key = (f"suppressed {report['id']}", report["suppressed"])
        elif report["severity"] == "WARNING" and self._fatal:
            key = (f"WARNING {report['id']}", "")
        else:
            return
        here = self._summary.setdefault(key, {}).setdefault(report["test"], _Summarized(report["message"]))
        here.count += report["count"]

    def _header(self) -> list[str]:
        parts = []
        if self._strictness is not None:
            parts.append(f"strictness {self._strictness}")
        if self._werror:
            parts.append("warnings fail")
        if self._chaos is not None:
            parts.append(f"chaos({self._chaos})")
        if self._report:
            parts.append(f"reports in {self._report}")
        if self._record is not None:
            parts.append(f"dispatches in {self._record.path}")
        if self._trace is not None:
            parts.append(f"a timeline in {self._trace.path}")
        return parts

    def pytest_report_header(self) -> list[str]:
        return [f"dmlemu: {', '.join(self._header())}"] if self._header() else []

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if os.environ.get("GITHUB_ACTIONS") == "true":
            from ..diagnostics.reporting.ci_output import annotation

            for row in self._unexpected:
                if not row["suppressed"] and row["severity"] in ("CORRUPTION", "ERROR", "WARNING"):
                    terminalreporter.write_line(annotation(row))
        for error in self._unwritten:
            terminalreporter.write_line(
                f"dmlemu: '{error.filename}' cannot be written: {error.strerror}", red=True
            )
        if not self._summary:
            return
        terminalreporter.section("dmlemu")
        for (heading, reason), tests in sorted(self._summary.items()):
            total = sum(entry.count for entry in tests.values())
            times = f"{total} times" if total > 1 else "once"
            terminalreporter.write_line(f"{heading} ({times}){': ' + reason if reason else ''}")
            for test, entry in list(tests.items())[:_NAMED]:
                terminalreporter.write_line(f"  {test}")
                terminalreporter.write_line(f"    {entry.message}")
            if len(tests) > _NAMED:
                terminalreporter.write_line(f"  and {len(tests) - _NAMED} more tests")
        terminalreporter.ensure_newline()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        while self._recordings:
            with self._written():
                self._recordings.pop().__exit__(None, None, None)
        if self._rows is not None:
            with self._written():
                self._rows.close(self._unexpected)
        if self._unwritten and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_unconfigure(self) -> None:
        reporting = sys.modules.get("dmlemu.reporting")
        if reporting is not None:
            reporting.forget()  # no line after pytest's own says what tests left unread
        if self._reporting is not None:
            defaults = self._reporting.defaults
            defaults.strictness, defaults.policy = self._before
            if self._take in defaults.sinks:
                defaults.sinks.remove(self._take)
            self._refusals.stop()
