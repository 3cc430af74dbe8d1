"""What a campaign may be about: each kind of subject makes a case from an index and runs it."""

from __future__ import annotations

import os
import shutil
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from ..diagnostics.reporting.ci_output import places
from ..errors import Severity, quote
from ..frontends.usage import UsageError
from .model import Configuration, Failure, Outcome, Spec

__all__ = ["Reduced", "Request", "Subject", "Unusable", "open_subject", "plan"]


class Unusable(Exception):
    """The subject cannot be tried, here or anywhere; the text is for the user."""


@dataclass(frozen=True)
class Request:
    """What the user asks for.  ``layouts``, ``seeds`` and ``oracles``: None where the option was not
    given."""

    what: str
    layouts: int | None = None
    seeds: int | None = None
    seed: int = 0
    configurations: tuple[Configuration, ...] = (Configuration(),)
    arguments: tuple[str, ...] = ()
    oracles: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Reduced:
    """A reduced failure: its text, the files that repeat it, and a picture (SVG), where there is one;
    ``place``: ``FILE:LINE`` of the program, where only the reduction knows it."""

    text: str
    files: tuple[Path, ...] = ()
    picture: str = ""
    place: str = ""


class Subject(ABC):
    """Cases by index.  A case depends on the spec and its index alone: it can be repeated anywhere.

    ``DIMENSIONS``: the options that it takes of ``layouts``, ``seeds``, ``strictness``, ``arguments``,
    ``oracles``. ``DEFAULTS``: how many layouts and seeds there are where no option says it.
    """

    DIMENSIONS: ClassVar[frozenset[str]] = frozenset()
    DEFAULTS: ClassVar[Mapping[str, int]] = {}

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @classmethod
    @abstractmethod
    def planned(cls, spec: Spec) -> Spec:
        """With its digest and the number of cases.  UsageError: it cannot be found, or is none."""

    @classmethod
    def oracles(cls, names: tuple[str, ...] | None) -> tuple[str, ...]:
        """What judges the cases besides what they are compared with anyway, by name and version; None: all
        that there are.  UsageError: one is not installed."""
        return ()

    def check(self, limit: float) -> None:
        """Raises ``Unusable`` where every case would fail for one reason that is none of its own, such as a
        test that fails also without chaos.  Runs once in each process, before its first case."""
        return

    @abstractmethod
    def run(self, index: int, limit: float) -> Outcome:
        """Runs a case, which may take ``limit`` seconds."""

    @abstractmethod
    def describe(self, index: int) -> str:
        """What the case is, in words."""

    def reduce(self, failure: Failure, stem: Path) -> Reduced:
        """Makes the failed case as small as it can be, and writes files that begin with ``stem``."""
        return Reduced(failure.message)


_PLACES = {
    "operators": ("operators", "Operators"),
    "float-math": ("float_math", "FloatMath"),
    "model": ("models", "ModelRuns"),
    "record": ("models", "Replays"),
    "test": ("programs", "PythonTest"),
    "program": ("programs", "NativeProgram"),
}
_MOST_CASES = 1 << 62  # an index is a whole number of SQLite
_OPTIONS = {
    **{name: f"--{name}" for name in ("layouts", "seeds", "strictness", "oracles")},
    "arguments": "--args",
}


def _class_of(kind: str) -> type[Subject]:
    """UsageError: it needs a package that is not installed."""
    module, name = _PLACES[kind]
    try:
        found: type[Subject] = getattr(import_module(f".{module}", __package__), name)
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise UsageError("its cases are drawn by hypothesis: pip install 'hypothesis>=6.100'") from None
    return found


def open_subject(spec: Spec) -> Subject:
    """The subject of a spec, in a process that runs its cases."""
    return _class_of(spec.kind)(spec)


def kind_of(what: str) -> str:
    """Which kind of subject the words are about; UsageError: none."""
    if what == "operators" or what.startswith("operators:"):
        return "operators"
    if what.startswith("float-math:"):
        return "float-math"
    suffix = Path(what).suffix.lower()
    if suffix in (".json", ".dmlrec"):
        return {".json": "model", ".dmlrec": "record"}[suffix]
    if "::" in what:
        return "test"
    if suffix == ".py":
        raise UsageError(f"{what}: name the function too, {what}::FUNCTION")
    if suffix == ".onnx":
        raise UsageError(
            f"{what}: a campaign takes no ONNX model; record it (dmlemu run {what} --record FILE.dmlrec) "
            "and give the record"
        )
    path = shutil.which(what)
    if path is not None and os.path.isfile(path):
        return "program"
    raise UsageError(
        f"{quote(what)} is nothing that a campaign can be about: give a model (.json), a record (.dmlrec), a "
        "Python test (FILE.py::FUNCTION), operators or operators:PATTERN, float-math:FUNCTION, or a program"
    )


def plan(request: Request) -> Spec:
    """The spec of a campaign.  UsageError: there is no such subject, or it has not this dimension."""
    kind = kind_of(request.what)
    cls = _class_of(kind)
    given = {
        "layouts": request.layouts,
        "seeds": request.seeds,
        "strictness": any(each.strictness for each in request.configurations) or None,
        "arguments": request.arguments or None,
        "oracles": request.oracles,
    }
    for name, value in given.items():
        if value is not None and name not in cls.DIMENSIONS:
            has = ", ".join(_OPTIONS[each] for each in sorted(cls.DIMENSIONS)) or "none"
            raise UsageError(
                f"{request.what}: {_OPTIONS[name]} is not for this kind of subject, which takes "
                f"--isa, --threads and, of the others, {has}"
            )
    counts = {
        name: cls.DEFAULTS.get(name, 0) if value is None else value
        for name, value in (("layouts", request.layouts), ("seeds", request.seeds))
    }
    spec = cls.planned(
        Spec(
            kind,
            request.what,
            digest="",
            seed=request.seed,
            configurations=request.configurations,
            arguments=request.arguments,
            oracles=cls.oracles(request.oracles),
            **counts,
        )
    )
    if spec.total > _MOST_CASES:
        raise UsageError(f"{request.what}: these are {spec.total} cases; at most {_MOST_CASES} are possible")
    return spec


def with_cases(spec: Spec, what: str, digest: str, cases: int | None = None) -> Spec:
    """A planned spec; by default a case for each layout with each seed."""
    count = max(1, spec.layouts) * max(1, spec.seeds) if cases is None else cases
    return replace(spec, what=what, digest=digest, cases=count)


def failures_of_reports(
    index: int, reports: Any, subject: str, least: Severity = Severity.WARNING
) -> list[Failure]:
    """A failure for each check that reported something as severe."""
    found: dict[tuple[str, str], Failure] = {}
    for each in reports:
        if each.severity <= least:
            name = each.operation or subject
            text = each.text() if hasattr(each, "text") else str(each)
            failure = Failure(
                index, name, each.id, "reported", text, place=place_of(each.context, each.created_at)
            )
            found.setdefault((name, each.id), failure)
    return list(found.values())


def place_of(context: Iterable[str], created_at: str = "") -> str:
    """``FILE:LINE``: the first line of a program that a report names; "": none is known."""
    found = places({"context": tuple(context), "created_at": created_at})
    return f"{found[0].file}:{found[0].line}" if found else ""


def line_in(error: BaseException, file: str) -> str:
    """``FILE:LINE``: where an exception left the file, or came through it last; "": nowhere."""
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    return f"{file}:{lines[-1]}" if lines and lines[-1] else ""


def hung(index: int, subject: str, limit: float, more: str = "") -> Failure:
    """A case that took too long."""
    text = f"It takes longer than {limit:g} seconds.{more}"
    return Failure(index, subject, "ends within its limit", "hang", text)


def failure_of_exception(index: int, error: BaseException, subject: str) -> Failure:
    """What a case raised."""
    report = getattr(error, "report", None)
    if report is not None:
        place = place_of(report.context, report.created_at)
        return Failure(index, subject, report.id, "raised", str(error), place=place)
    return Failure(index, subject, type(error).__name__, "raised", f"{type(error).__name__}: {error}")


def plan_again(spec: Spec) -> None:
    """UsageError: the subject of a spec that has travelled is another one on this machine, or is missing."""
    found = _class_of(spec.kind).planned(spec)
    if found.digest != spec.digest:
        raise UsageError(
            f"{spec.what} has other contents here than where the campaign was started "
            f"({found.digest}, expected {spec.digest})"
        )
