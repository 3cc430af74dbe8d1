"""Programs of users: Python tests, and whatever ``dmlemu exec`` runs."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, BinaryIO, ClassVar

from hypothesis import Phase, given, settings
from hypothesis.database import InMemoryExampleDatabase

from ..errors import shorten
from ..files import write_file
from ..frontends.usage import UsageError
from ..reporting import defaults, on_created
from ..testing import LayoutError, stable
from .model import Failure, Outcome, Spec, digest_of
from .subjects import Reduced, Subject, Unusable, failure_of_exception, hung, with_cases

__all__ = ["NativeProgram", "PythonTest"]

_BYTES = 2048  # of random bytes that a case of layouts is drawn from
_TRIES = 20
_MOST_OUTPUT = 2000  # characters in a message
_OWN_DEVICE = "it must create one itself, on an adapter without a policy"
_NO_DEVICE = "dmlemu: 0 devices were created"  # the last line of ``dmlemu exec``


class PythonTest(Subject):
    """``FILE.py::FUNCTION``: a test of :func:`dmlemu.testing.layouts`, of which each case is one layout; or a
    function without parameters, which runs under chaos as :func:`dmlemu.testing.stable` runs it."""

    DIMENSIONS: ClassVar[frozenset[str]] = frozenset({"layouts", "seeds", "strictness"})

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._function = _function_of(spec.what)
        self._name = spec.what.rpartition("::")[2]

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
            stable(self._function, [])
        except _failing() as error:
            text = f"{type(error).__name__}: {error}"
            raise Unusable(f"{self._name} fails without chaos, too: {text}") from None
        finally:
            on_created.remove(devices.append)
        if all(each.context.gpu.chaos is not None for each in devices):
            raise Unusable(f"{self._name} makes no device that chaos could change: {_OWN_DEVICE}")

    def run(self, index: int, limit: float) -> Outcome:
        """A failure is of the test, by the check that it raises."""
        try:
            if _is_of_layouts(self._function):
                for attempt in range(_TRIES):
                    if self._function.hypothesis.fuzz_one_input(self._bytes(index, attempt)) is not None:
                        break
            else:
                stable(self._function, [self._seed(index)])
        except _failing() as error:
            return Outcome([self._failure(index, error)])
        return Outcome()

    def _failure(self, index: int, error: BaseException) -> Failure:
        if isinstance(error, LayoutError):
            return self._of_layout(index, error)
        return failure_of_exception(index, error, self._name)

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
        self._plain: tuple[int, bytes] = (0, b"")

    @classmethod
    def planned(cls, spec: Spec) -> Spec:
        """The digest is that of the program's own file."""
        path = Path(shutil.which(spec.what) or spec.what).absolute()
        return with_cases(spec, str(path), digest_of(path))

    def _command(self, seed: int | None) -> list[str]:
        chaos = [] if seed is None else ["--chaos", str(seed)]
        return [
            *(sys.executable, "-m", "dmlemu", "exec"),
            *("--strictness", defaults.strictness.value),
            *chaos,
            self.spec.what,
            *self.spec.arguments,
        ]

    def check(self, limit: float) -> None:
        """It succeeds without chaos, on a device: cases are compared with this run."""
        try:
            status, output, reports, last = self._run(None, limit)
        except subprocess.TimeoutExpired:
            raise Unusable(
                f"{self._name} takes longer than {limit:g} seconds without chaos, too (--hang)"
            ) from None
        if last.startswith(_NO_DEVICE):
            raise Unusable(f"{self._name}: {last.removeprefix('dmlemu: ')} Chaos would change nothing.")
        if status:
            why = f": {reports[0]['id']}: {reports[0]['message']}" if reports else f". Its last line: {last}"
            raise Unusable(f"{self._name} ends with status {status} without chaos, too{why}")
        self._plain = status, output

    def run(self, index: int, limit: float) -> Outcome:
        """Compares with the run without chaos, which each process makes once."""
        try:
            status, output, reports, last = self._run(self._seed(index), limit)
        except subprocess.TimeoutExpired:
            return Outcome([hung(index, self._name, limit)])
        failures = {each.cause: each for each in self._reported(index, reports)}
        wanted = self._plain
        if status != wanted[0]:
            text = f"exit status {status} under chaos({self._seed(index)}), {wanted[0]} without"
            failure = Failure(index, self._name, "same exit status under chaos", f"status {status}", text)
            failures[failure.cause] = failure
        elif output != wanted[1]:
            failure = Failure(
                index, self._name, "same output under chaos", "other output", _difference(output, wanted[1])
            )
            failures[failure.cause] = failure
        elif last.startswith(_NO_DEVICE):
            failure = Failure(index, self._name, "makes a device under chaos", "no device", last)
            failures[failure.cause] = failure
        return Outcome(list(failures.values()))

    def _run(self, seed: int | None, limit: float) -> tuple[int, bytes, list[Any], str]:
        """Status, output, reports, and the last line of the other output."""
        command = self._command(seed)
        with TemporaryDirectory(prefix="dmlemu-campaign-") as folder:
            reports = Path(folder) / "reports.jsonl"
            at = command.index("exec") + 1
            with (
                TemporaryFile() as errors,
                subprocess.Popen(
                    [*command[:at], "--report", str(reports), *command[at:]],
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
            found = reports.read_text().splitlines() if reports.exists() else []
        return process.returncode, output, [json.loads(line) for line in found], last

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
        return "dmlemu " + " ".join(self._command(self._seed(index))[3:])

    def reduce(self, failure: Failure, stem: Path) -> Reduced:
        """The command; programs are not made smaller."""
        return Reduced(f"{failure.message}\nTo repeat it: {self.describe(failure.index)}")


def _end_with_parent() -> None:
    """The kernel sends SIGTERM, which ``dmlemu exec`` hands on, when the process that runs cases ends."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _last_line(file: BinaryIO) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_OUTPUT))
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _difference(given: bytes, expected: bytes) -> str:
    lines = [each.decode(errors="replace").splitlines() for each in (given, expected)]
    for number, (one, other) in enumerate(zip(*lines, strict=False), 1):
        if one != other:
            return shorten(f"line {number} is {one!r} under chaos, {other!r} without", _MOST_OUTPUT)
    return f"{len(lines[0])} lines of output under chaos, {len(lines[1])} without"
