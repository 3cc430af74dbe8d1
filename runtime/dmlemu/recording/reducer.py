"""Reduce: the smallest program that still shows what a record shows."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from ..checks import catalogue
from ..errors import Error, Severity, Strictness, shorten
from ..files import write_file
from .comparison import diff
from .file import RecordError, read, write
from .forms import (
    model_of,
    program_text,
    run_model_text,
    run_options,
    run_program_text,
    shader_files,
)
from .model import GraphWork, Record, ShaderWork, content_key
from .program import Call, Program, mended, packed, program_of
from .runs import Run, reason_of, run
from .shader_text import drawn_notes
from .shrink import variants

__all__ = ["Progress", "Reduced", "reduce"]

_MOST_SHOWN = 12  # dispatches

Predicate = Callable[[Run], bool]


class Progress(NamedTuple):
    """How far a reduction is: ``runs`` so far; the ``dispatches`` and ``elements`` of the best program, and
    those at the beginning."""

    runs: int
    dispatches: int
    elements: int
    first_dispatches: int
    first_elements: int


@dataclass(frozen=True)
class Reduced:
    """The result of :func:`reduce`.

    ``record``: of the reduced program's run.  ``model``: its DxDispatch JSON, or None; ``text``: the same
    as a Python program.  ``run_options``: those of ``dmlemu run`` for the model.  ``notes``: what is not in
    them, and what was not done.
    """

    what: str
    record: Record
    program: Program
    text: str
    model: str | None
    runs: int
    first_dispatches: int
    first_elements: int
    notes: list[str] = field(default_factory=list)
    is_interrupted: bool = False
    run_options: str = ""

    @property
    def files(self) -> dict[str, bytes]:
        """The containers of shaders, by the names of the files that ``model`` and ``text`` read."""
        return shader_files(self.program)

    def __repr__(self) -> str:
        return f"<Reduced to {len(self.program.calls)} of {self.first_dispatches} dispatches: {self.what}>"

    def __str__(self) -> str:
        calls = self.program.calls
        plural = "dispatch" if self.first_dispatches == 1 else "dispatches"
        lines = [
            f"{len(calls)} of {self.first_dispatches} {plural}, {self.program.element_count} of "
            f"{self.first_elements} elements still show {self.what} ({self.runs} runs)."
        ]
        for call in calls[:_MOST_SHOWN]:
            work = call.work.desc
            groups = f", groups: {work.spelled_groups}" if isinstance(work, ShaderWork) else ""
            lines.append(f"  {call.work.title}{groups}")
            for tensor in call.work.tensors:
                desc = tensor.desc
                after = ", after" if tensor.output and isinstance(work, ShaderWork) else ""
                strides = f" with strides {list(desc.strides)}" if desc.strides is not None else ""
                lines.append(f"    {tensor.path}{after}: {desc.data_type.name} {list(desc.sizes)}{strides}")
        if len(calls) > _MOST_SHOWN:
            lines.append(f"  ... and {len(calls) - _MOST_SHOWN} more")
        return "\n".join([*lines, *self.notes])

    def save(self, stem: str | os.PathLike[str]) -> list[Path]:
        """Writes ``stem`` with ``.dmlrec``, ``.json`` (unless there is no model) and ``.py``, and
        :attr:`files` beside them.

        OSError: a file cannot be written; the others are, and ``__cause__`` is that of another one that
        cannot.
        """
        base = Path(stem)
        made: list[Path] = []
        problem: OSError | None = None
        contents: list[tuple[str, Record | str | bytes | None]] = [
            (base.name + suffix, content)
            for suffix, content in ((".dmlrec", self.record), (".py", self.text), (".json", self.model))
        ]
        for name, content in (*contents, *self.files.items()):
            path = base.with_name(name)
            try:
                if isinstance(content, Record):
                    write(content, path)
                elif content is not None:
                    write_file(path, content)
            except OSError as error:
                error.__cause__, problem = problem, error
            else:
                made += [path] if content is not None else []
        if problem is not None:
            raise problem
        return made


def reduce(
    record: Record | str | os.PathLike[str],
    shows: str | Predicate,
    *,
    strictness: Strictness | str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Reduced:
    """Makes the smallest program that shows what the program of a record shows.

    ``shows``: the id of a check, which reports something, as severely as for the record; ``"diff"``, an
    output differs from the operator's reference; or a function of the :class:`Run` that is called with each
    attempt.  First dispatches are left out; then tensors become smaller, axis by axis, with the order of
    their strides and their padding as far as it matters; then offsets, and numbers become 0 or 1.  What is
    left out counts as uploaded.  An attempt that reports an error of another check does not count.  The
    same record gives the same result.

    Ctrl-C ends the search with the best program so far.

    Raises :class:`RecordError` for a record that does not show it, or cannot be run.
    """
    source = record if isinstance(record, Record) else read(record)
    name = shows if isinstance(shows, str) else getattr(shows, "__qualname__", "the predicate")
    predicate = _predicate(shows) if isinstance(shows, str) else shows
    level = None if strictness is None else Strictness(strictness)
    program, notes = program_of(source)
    if not program.calls:
        raise RecordError(" ".join(["The record has no dispatch that can be run.", *notes]))
    search = _Search(predicate, level, progress, program)
    search.begin(name, notes)
    with search:
        search.leave_out_steps()
        search.shrink()
    return search.result(name, notes)


def _predicate(shows: str) -> Predicate:
    if shows == "diff":
        return _differs
    if shows not in catalogue():
        near = get_close_matches(shows.upper(), catalogue(), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise RecordError(f"No check is called '{shorten(shows)}'{hint}")
    return _Reports(shows)


class _Reports:
    """Whether a run reports a check, as severely as the first one did: advice is not the same mistake."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._severity: Severity | None = None

    def __call__(self, done: Run) -> bool:
        found = min((each.severity for each in done.reports if each.id == self._id), default=None)
        if found is None:
            return False
        self._severity = self._severity or found
        return found <= self._severity


def _differs(done: Run) -> bool:
    with suppress(RecordError):
        return not diff(done.record, reference=True)
    return False


class _Search:
    """The best program so far, and the attempts to find a smaller one.  Ends silently at Ctrl-C."""

    def __init__(
        self,
        predicate: Predicate,
        strictness: Strictness | None,
        progress: Callable[[Progress], None] | None,
        program: Program,
    ) -> None:
        self._predicate, self._strictness, self._progress = predicate, strictness, progress
        self.first = self.best = program
        self.done: Run
        self.runs, self.is_interrupted = 0, False
        self._allowed: frozenset[str] = frozenset()
        self._tried: set[str] = set()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.is_interrupted = kind is KeyboardInterrupt
        return self.is_interrupted

    def begin(self, name: str, notes: list[str]) -> None:
        """Runs all of it; RecordError if it does not show what is looked for."""
        done = self._run(self.best)
        if not self._predicate(done):
            ids = ", ".join(sorted(done.ids)) or "none"
            ended = f"; it ended with an error: {reason_of(done.error)}" if done.error else "."
            how = "" if self._strictness is None else f" at strictness {self._strictness.value}"
            raise RecordError(
                f"The record does not show {name} when it is run again{how}; these checks report something: "
                f"{ids}{ended}  "
                "A record has dispatches and what they read; no barriers, fences, descriptors, "
                "declared layouts, shapes of uploaded arrays, uploads that nobody reads or memory "
                "that nobody wrote."
                f"{''.join(f'  {each}' for each in notes)}"
            )
        self.done, self._allowed = done, _errors(done)

    def _run(self, program: Program) -> Run:
        self.runs += 1
        if self._progress is not None:
            first, best = self.first, self.best
            self._progress(
                Progress(
                    self.runs,
                    len(best.calls),
                    best.element_count,
                    len(first.calls),
                    first.element_count,
                )
            )
        return run(program, self._strictness)

    def _take(self, program: Program) -> bool:
        """Makes the program the best one, if it shows the same."""
        key = _fingerprint(program)
        if key in self._tried:
            return False
        self._tried.add(key)
        try:
            done = self._run(program)
        except (ValueError, Error):  # it cannot even be built
            return False
        if _errors(done) - self._allowed or not self._predicate(done):
            return False
        self.best, self.done = program, done
        return True

    def leave_out_steps(self) -> None:
        """Delta debugging: halves, quarters ... and single steps, until none can be left out."""
        size = len(self.best.steps)
        while size:
            before = len(self.best.steps)
            at = before
            while at > 0:
                begin = max(0, at - size)
                steps = self.best.steps
                rest = self.best._replace(steps=steps[:begin] + steps[at:])
                if rest.calls:
                    self._take(mended(packed(rest)))
                at = min(begin, len(self.best.steps))
            if size == 1 and len(self.best.steps) < before:
                continue
            size //= 2

    def shrink(self) -> None:
        """Until no variant is taken."""
        taken = True
        while taken:
            taken = any(self._take(each) for each in variants(self.best))

    def result(self, name: str, notes: list[str]) -> Reduced:
        """With the forms of the program, which are run, too."""
        text = program_text(self.best, name, self._strictness)
        model, missing = model_of(self.best)
        notes = notes + missing
        notes += drawn_notes(self.best)
        if not self._predicate(run_program_text(text, shader_files(self.best))):
            notes.append(f"The Python program does not show {name}.")
        if model is not None and not self._predicate(run_model_text(self.best, model, self._strictness)):
            notes.append(f"The DxDispatch model does not show {name}.")
        if self.is_interrupted:
            notes.append("The search was interrupted: this is the best program so far.")
        for kind, note in (
            (GraphWork, "Graphs were kept as they are: their tensors do not become smaller."),
            (ShaderWork, "The views of compute shaders were kept as they are."),
        ):
            if any(isinstance(each.work.desc, kind) for each in self.best.calls):
                notes.append(note)
        return Reduced(
            name,
            self.done.record,
            self.best,
            text,
            model,
            self.runs,
            len(self.first.calls),
            self.first.element_count,
            notes,
            self.is_interrupted,
            f"{run_options(self.best, self._strictness)}{self._report_option(name)}",
        )

    def _report_option(self, id: str) -> str:
        """``dmlemu run`` prints warnings and errors; advice is in the file of reports."""
        found = [each.severity for each in self.done.reports if each.id == id]
        return " --report reports.txt" if found and min(found) > Severity.WARNING else ""


def _errors(done: Run) -> frozenset[str]:
    return frozenset(each.id for each in done.reports if each.severity <= Severity.ERROR)


def _fingerprint(program: Program) -> str:
    """The same for programs that do the same."""
    parts: list[Any] = [program.buffers, program.slack]
    for step in program.steps:
        if isinstance(step, Call):
            arrays = [None if each is None else content_key(each) for each in step.arrays]
            parts.append((repr(step.work.desc), step.places, arrays))
        else:
            parts.append(step)
    return repr(parts)
