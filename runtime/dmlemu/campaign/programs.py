"""Programs of users: Python tests, and whatever ``dmlemu exec`` runs."""

from __future__ import annotations

import inspect
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, BinaryIO, ClassVar, NamedTuple
from urllib.parse import unquote

from hypothesis import Phase, given, settings
from hypothesis.database import InMemoryExampleDatabase

from ..checks import catalogue
from ..errors import Error, shorten
from ..files import write_file
from ..frontends.usage import UsageError
from ..recording import RecordError, diff, read, reduce, write
from ..reporting import defaults, on_created
from ..testing import LayoutError, stable
from ..testing.stability import repeated
from .model import Failure, Outcome, Spec, digest_of
from .subjects import (
    Reduced,
    Subject,
    Unusable,
    failure_of_exception,
    hung,
    line_in,
    with_cases,
)

__all__ = ["NativeProgram", "PythonTest"]

_BYTES = 2048  # of random bytes that a case of layouts is drawn from
_TRIES = 20
_MOST_OUTPUT = 2000  # characters in a message
_LONGEST_RUN = 30.0  # seconds, of a program that is reduced
_REDUCTION = 120.0  # seconds, until arguments stay as they are
_OWN_DEVICE = "it must create one itself, on an adapter without a policy"
_NO_DEVICE = "dmlemu: 0 devices were created"  # the last line of ``dmlemu exec``


class PythonTest(Subject):
    """``FILE.py::FUNCTION``: a test of :func:`dmlemu.testing.layouts`, of which each case is one layout; or a
    function without parameters, which runs under chaos as :func:`dmlemu.testing.stable` runs it."""

    DIMENSIONS: ClassVar[frozenset[str]] = frozenset({"layouts", "seeds", "strictness"})

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._function = _function_of(spec.what)
        self._path, _, self._name = spec.what.rpartition("::")
        code: Any = getattr(getattr(self._function, "test", self._function), "__code__", None)
        is_here = code is not None and code.co_filename == self._path
        self._line = f"{self._path}:{code.co_firstlineno}" if is_here else ""

    @classmethod
    def planned(cls, spec: Spec) -> Spec:
        """The digest is that of the file and the name; what it imports must be the same everywhere."""
        path, _, name = spec.what.rpartition("::")
        place = Path(path).absolute()
        digest = f"{name}:{digest_of(place)}"
        what = f"{place}::{name}"
        function = _function_of(what)
        if _is_of_layouts(function):
            if spec.seeds:
                raise UsageError(
                    f"{name} is a test of layouts: it takes --layouts; chaos is for functions that make "
                    "their device themselves"
                )
            return with_cases(spec, what, digest, max(1, spec.layouts or 100))
        if spec.layouts:
            raise UsageError(f"{name} does not use @dmlemu.testing.layouts: it takes --seeds")
        return with_cases(spec, what, digest, max(1, spec.seeds or 100))

    def check(self, limit: float) -> None:
        """A function that runs under chaos succeeds without, on a device of its own."""
        if _is_of_layouts(self._function):
            return
        devices: list[Any] = []
        on_created.append(devices.append)
        try:
            difference = repeated(self._function)
        except _failing() as error:
            text = f"{type(error).__name__}: {error}"
            raise Unusable(f"{self._name} fails without chaos, too: {text}") from None
        finally:
            on_created.remove(devices.append)
        if all(each.context.gpu.chaos is not None for each in devices):
            raise Unusable(f"{self._name} makes no device that chaos could change: {_OWN_DEVICE}")
        if difference:
            raise Unusable(
                f"{self._name} itself is not deterministic: without chaos the second run returns something "
                f"else ({difference}). Let it return what does not change, and seed its random numbers"
            )

    def run(self, index: int, limit: float) -> Outcome:
        """A failure is of the test, by the check that it raises."""
        try:
            if _is_of_layouts(self._function):
                draw, tries = self._function.hypothesis.fuzz_one_input, range(_TRIES)
                return Outcome(is_drawn=any(draw(self._bytes(index, each)) is not None for each in tries))
            else:
                stable(self._function, [self._seed(index)])
        except _failing() as error:
            return Outcome([self._failure(index, error)])
        return Outcome()

    def _failure(self, index: int, error: BaseException) -> Failure:
        if isinstance(error, LayoutError):
            failure = self._of_layout(index, error)
        else:
            failure = failure_of_exception(index, error, self._name)
        return failure._replace(place=line_in(error, self._path) or failure.place or self._line)

    def _bytes(self, index: int, attempt: int) -> bytes:
        return Random(self.spec.random(index, f"layout {attempt}")).randbytes(_BYTES)

    def _seed(self, index: int) -> int:
        return self.spec.seed + index % self.spec.cases

    def _of_layout(self, index: int, error: LayoutError) -> Failure:
        report = error.report
        kind = "another number"
        if "never written" in report.message or "poison" in report.message:
            kind = "never written"
        elif report.given == "nan":
            kind = "NaN"
        size = sum(each.element_count for each in error.layouts.values())
        return Failure(index, f"{self._name}, {error.tensor}", report.id, kind, str(error), size)

    def describe(self, index: int) -> str:
        """The call that repeats a case of chaos."""
        if _is_of_layouts(self._function):
            return f"layout {index % self.spec.cases} of {self.spec.what}, seed {self.spec.seed}"
        return f"dmlemu.testing.stable({self._name}, [{self._seed(index)}]) of {self.spec.what}"

    def reduce(self, failure: Failure, stem: Path) -> Reduced:
        """Hypothesis finds the smallest layout; a program repeats it by ``replay``."""
        index, path = failure.index, self.spec.what.rpartition("::")[0]
        head = [f'"""{self._name}: {failure.rule}.  Made by ``dmlemu campaign``."""', "", "import runpy", ""]
        call = f'runpy.run_path({path!r})["{self._name}"]'
        if not _is_of_layouts(self._function):
            lines = ["from dmlemu.testing import stable", "", f"stable({call}, [{self._seed(index)}])", ""]
            text = failure.message
        else:
            found = self._smallest(failure)
            replay = None if found is None else _replay_of(found)
            if found is None or replay is None:
                return Reduced(failure.message)
            text = str(found)
            lines = [f"{call}{replay}", ""]
        program = stem.with_name(f"{stem.name}.py")
        write_file(program, "\n".join([*head, *lines]))
        return Reduced(text, (program,))

    def _smallest(self, failure: Failure) -> Exception | None:
        """What the smallest layout raises that fails for the same cause."""
        found: list[Exception] = []

        @settings(
            self._function._hypothesis_internal_use_settings,
            database=InMemoryExampleDatabase(),
            derandomize=False,
            phases=[Phase.reuse, Phase.shrink],
        )
        @given(layouts=self._function.cases)
        def only_this_cause(layouts: Any) -> None:
            try:
                self._function.hypothesis.inner_test(layouts=layouts)
            except Exception as error:
                if self._failure(0, error).cause == failure.cause:
                    found.append(error)
                    raise

        test: Any = only_this_cause
        with suppress(Exception):
            for attempt in range(_TRIES):
                drawn = test.hypothesis.fuzz_one_input(self._bytes(failure.index, attempt))
                if drawn is not None:
                    return None
        with suppress(Exception):
            test()
        return found[-1] if found else None


def _failing() -> tuple[type[BaseException], ...]:
    """What a test may raise: ``pytest.fail`` and ``pytest.skip`` raise no Exceptions."""
    if "pytest" not in sys.modules:
        return (Exception, SystemExit)
    import pytest

    return (Exception, SystemExit, pytest.fail.Exception, pytest.skip.Exception)


def _replay_of(error: Exception) -> str | None:
    """``.replay(x=...)``: the call that a failure of layouts names, without the function."""
    texts = [getattr(error, "replay", ""), *getattr(error, "__notes__", ())]
    found = [text[text.index(".replay(") :] for text in texts if ".replay(" in text]
    return found[0].splitlines()[0] if found else None


def _is_of_layouts(function: Any) -> bool:
    return hasattr(function, "cases") and hasattr(function, "hypothesis")


def _function_of(what: str) -> Any:
    """The function of a file.  UsageError: there is none, or it takes arguments."""
    path, _, name = what.rpartition("::")
    spec = spec_from_file_location(f"_campaign_{Path(path).stem}", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise UsageError(f"{path} is not a Python file")
    folder = str(Path(path).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from None
    function = getattr(module, name, None)
    if not callable(function):
        there = [key for key, value in vars(module).items() if key.startswith("test") and callable(value)]
        raise UsageError(f"{path} has no function {name}; there are {', '.join(there) or 'no tests'}")
    needed = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.default is inspect.Parameter.empty
        and each.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    ]
    if needed:
        raise UsageError(
            f"{name} takes {', '.join(needed)}: a campaign calls the function itself, without fixtures or "
            "parameters of pytest; write a test without them that calls it"
        )
    return function


class NativeProgram(Subject):
    """A program under ``dmlemu exec``, with other seeds of chaos: its status and what it prints stay."""

    DIMENSIONS: ClassVar[frozenset[str]] = frozenset({"seeds", "strictness", "arguments"})
    DEFAULTS: ClassVar[dict[str, int]] = {"seeds": 100}

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._name = Path(spec.what).name
        self._plain = _Ran(0, b"", [], "")

    @classmethod
    def planned(cls, spec: Spec) -> Spec:
        """The digest is that of the program's own file."""
        path = Path(shutil.which(spec.what) or spec.what).absolute()
        return with_cases(spec, str(path), digest_of(path))

    def _command(self, seed: int | None, arguments: Sequence[str], *options: str) -> list[str]:
        """``options``: more of ``dmlemu exec``."""
        chaos = [] if seed is None else ["--chaos", str(seed)]
        return [
            *(sys.executable, "-m", "dmlemu", "exec"),
            *("--strictness", defaults.strictness.value),
            *chaos,
            *options,
            self.spec.what,
            *arguments,
        ]

    def check(self, limit: float) -> None:
        """It succeeds without chaos, on a device, and prints the same again: cases are compared with this
        run."""
        try:
            first, second = (self._run(None, limit) for _ in range(2))
        except subprocess.TimeoutExpired:
            raise Unusable(
                f"{self._name} takes longer than {limit:g} seconds without chaos, too (--hang)"
            ) from None
        if first.last.startswith(_NO_DEVICE):
            raise Unusable(f"{self._name}: {first.last.removeprefix('dmlemu: ')} Chaos would change nothing.")
        if first.status:
            rows = first.reports
            why = f": {rows[0]['id']}: {rows[0]['message']}" if rows else f". Its last line: {first.last}"
            raise Unusable(f"{self._name} ends with status {first.status} without chaos, too{why}")
        if (first.status, first.output) != (second.status, second.output):
            difference = _difference(first.output, second.output, ("in one run", "in the next"))
            raise Unusable(
                f"{self._name} itself is not deterministic: without chaos, {difference}. Let it print "
                "nothing that changes, such as times and addresses, and seed its random numbers"
            )
        self._plain = first

    def run(self, index: int, limit: float) -> Outcome:
        """Compares with the run without chaos, which each process makes once."""
        try:
            found = self._run(self._seed(index), limit)
        except subprocess.TimeoutExpired:
            return Outcome([hung(index, self._name, limit)])
        return Outcome(self._failures(index, found, self._plain))

    def _failures(self, index: int, found: _Ran, plain: _Ran) -> list[Failure]:
        failures = {each.cause: each for each in self._reported(index, found.reports)}
        if found.status != plain.status:
            text = f"exit status {found.status} under chaos({self._seed(index)}), {plain.status} without"
            failure = Failure(
                index, self._name, "same exit status under chaos", f"status {found.status}", text
            )
            failures[failure.cause] = failure
        elif found.output != plain.output:
            text = _difference(found.output, plain.output)
            failure = Failure(index, self._name, "same output under chaos", "other output", text)
            failures[failure.cause] = failure
        elif found.last.startswith(_NO_DEVICE):
            failure = Failure(index, self._name, "makes a device under chaos", "no device", found.last)
            failures[failure.cause] = failure
        return list(failures.values())

    def _run(
        self, seed: int | None, limit: float, arguments: Sequence[str] | None = None, *options: str
    ) -> _Ran:
        """``arguments``: other ones than the campaign's.  Raises ``subprocess.TimeoutExpired``."""
        given = self.spec.arguments if arguments is None else arguments
        with TemporaryDirectory(prefix="dmlemu-campaign-") as folder:
            reports = Path(folder) / "reports.jsonl"
            with (
                TemporaryFile() as errors,
                subprocess.Popen(
                    self._command(seed, given, "--report", str(reports), *options),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                    preexec_fn=_end_with_parent,
                ) as process,
            ):
                try:
                    output, _ = process.communicate(timeout=limit * 0.9)
                except BaseException:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    raise
                last = _last_line(errors)
            rows = reports.read_text().splitlines() if reports.exists() else []
        return _Ran(process.returncode, output, [json.loads(row) for row in rows], last)

    def _reported(self, index: int, rows: list[Any]) -> list[Failure]:
        return [
            Failure(index, row.get("operation") or self._name, row["id"], "reported", row["message"])
            for row in rows
            if row["severity"] in ("CORRUPTION", "ERROR", "WARNING")
        ]

    def _seed(self, index: int) -> int:
        return self.spec.seed + index % self.spec.cases

    def describe(self, index: int) -> str:
        """The command that repeats it."""
        return self._spelled(self._seed(index), self.spec.arguments)

    def _spelled(self, seed: int, arguments: Sequence[str]) -> str:
        return "dmlemu " + shlex.join(self._command(seed, arguments)[3:])

    def reduce(self, failure: Failure, stem: Path) -> Reduced:
        """The fewest arguments that fail in the same way; then the fewest dispatches of a record of that run,
        where the record shows it."""
        limit, end = _LONGEST_RUN, time.monotonic() + _REDUCTION
        seed, arguments = self._seed(failure.index), list(self.spec.arguments)
        for size in (2, 1):  # an option and its value, then each alone
            at = 0
            while at + size <= len(arguments) and time.monotonic() < end:
                fewer = arguments[:at] + arguments[at + size :]
                if self._fails(failure, seed, fewer, limit):
                    arguments = fewer
                else:
                    at += 1
        command = self._spelled(seed, arguments)
        script = stem.with_name(f"{stem.name}.sh")
        write_file(
            script, f"#!/bin/sh\n# {failure.rule}, {failure.kind}: made by dmlemu campaign\nexec {command}\n"
        )
        less = len(self.spec.arguments) - len(arguments)
        text = f"{failure.message}\nTo repeat it: {command}"
        if less:
            text += f"\n{less} of {len(self.spec.arguments)} arguments are not needed."
        more = self._recorded(failure, stem, seed, arguments, limit)
        place = self._place(failure, seed, arguments, limit)
        return Reduced("\n".join([text, more.text]), (script, *more.files), more.picture, place)

    def _place(self, failure: Failure, seed: int, arguments: list[str], limit: float) -> str:
        """The line of the program that a check names: only its own process knows the file, which it writes
        into SARIF alone."""
        if failure.kind != "reported":
            return ""
        with TemporaryDirectory(prefix="dmlemu-campaign-") as folder:
            path = Path(folder) / "found.sarif"
            try:
                self._run(seed, limit, arguments, "--report", str(path))
                rows = json.loads(path.read_text())["runs"][0]["results"]
            except (subprocess.TimeoutExpired, OSError, ValueError):
                return ""
        for row in rows:
            if row["ruleId"] == failure.rule:
                place = row["locations"][0]["physicalLocation"]
                file = unquote(place["artifactLocation"]["uri"].removeprefix("file://"))
                return f"{file}:{place['region']['startLine']}"
        return ""

    def _fails(self, failure: Failure, seed: int, arguments: list[str], limit: float) -> bool:
        """Whether it fails for the same cause with other arguments, and succeeds with them without chaos."""
        try:
            plain = self._run(None, limit, arguments)
            if plain.status or plain.last.startswith(_NO_DEVICE):
                return False
            found = self._run(seed, limit, arguments)
        except subprocess.TimeoutExpired:
            return False
        return any(each.cause == failure.cause for each in self._failures(failure.index, found, plain))

    def _recorded(
        self, failure: Failure, stem: Path, seed: int, arguments: list[str], limit: float
    ) -> Reduced:
        """What ``reduce`` makes of a record of the failed run; else the first dispatch that differs."""
        with TemporaryDirectory(prefix="dmlemu-campaign-") as folder:
            paths = [Path(folder) / f"{name}.dmlrec" for name in ("plain", "chaos")]
            with suppress(subprocess.TimeoutExpired):
                for path, each in zip(paths, (None, seed), strict=True):
                    self._run(each, limit, arguments, "--record", str(path))
            try:
                plain, found = map(read, paths)
                if failure.kind == "reported" and failure.rule in catalogue():
                    smallest = reduce(found, failure.rule, strictness=defaults.strictness)
                    return Reduced(str(smallest), tuple(smallest.save(stem)))
                difference = diff(plain, found).difference
            except (OSError, RecordError, Error) as error:
                return Reduced(f"No record of it: {shorten(str(error), _MOST_OUTPUT)}")
            record = stem.with_name(f"{stem.name}.dmlrec")
            write(found, record)
        if difference is None:
            return Reduced("All outputs in the records of both runs are the same.", (record,))
        return Reduced(
            f"The first dispatch that differs from the run without chaos:\n{difference}", (record,)
        )


class _Ran(NamedTuple):
    """A run: its status, what it printed, the reports, and the last line of the other output."""

    status: int
    output: bytes
    reports: list[Any]
    last: str


def _end_with_parent() -> None:
    """The kernel sends SIGTERM, which ``dmlemu exec`` hands on, when the process that runs cases ends."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _last_line(file: BinaryIO) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_OUTPUT))
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _difference(given: bytes, expected: bytes, of: tuple[str, str] = ("under chaos", "without")) -> str:
    lines = [each.decode(errors="replace").splitlines() for each in (given, expected)]
    for number, (one, other) in enumerate(zip(*lines, strict=False), 1):
        if one != other:
            return shorten(f"line {number} is {one!r} {of[0]}, {other!r} {of[1]}", _MOST_OUTPUT)
    return f"{len(lines[0])} lines of output {of[0]}, {len(lines[1])} {of[1]}"
