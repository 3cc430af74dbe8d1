"""A campaign: pieces go to workers, results to the database, until everything is done or the time is over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import Strictness
from ..frontends.usage import UsageError
from .database import Cause, Database, Judged
from .executors import Cluster, Executor, Here
from .model import Failure, Piece, Spec, configurations_of, identity
from .schedule import Schedule
from .subjects import Reduced, Request, plan

__all__ = ["Result", "State", "planned", "run"]

_TICK = 0.2  # seconds
_MOST_PIECES = 50  # a second: of more workers each piece takes longer, since one process hands out all
_REDUCTION = 300.0  # seconds for the reduction of a failure
_MOST_REDUCED = 12  # causes
MOST_SECONDS = 10**9
"""Of a budget, a piece or a case: more than 30 years."""


class State(NamedTuple):
    """How far a campaign is.  ``rate``: cases per second; ``left``: seconds, None: not known yet."""

    done: int
    total: int
    pieces: int
    failures: int
    causes: int
    workers: int
    rate: float
    left: float | None


@dataclass(frozen=True)
class Result:
    """What a campaign has found so far; true where everything was run, something was drawn, and nothing
    failed.

    ``done`` of ``total`` cases were run, in ``seconds`` of all workers together.  ``causes``: the failures by
    cause; ``reduced``: the smallest of each cause, in the same order.  ``worst``: the largest error that was
    measured, and where.  ``undrawn``: of the cases that were run those that tried nothing, since hypothesis
    found nothing legal in their random bytes.  ``judged``: of each oracle how many cases it judged.
    """

    spec: Spec
    done: int
    seconds: float
    causes: list[Cause]
    failures: list[Failure]
    machines: list[str]
    worst: tuple[float, str] | None = None
    is_interrupted: bool = False
    reduced: list[Reduced] = field(default_factory=list)
    undrawn: int = 0
    judged: list[Judged] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of all cases."""
        return self.spec.total

    def __bool__(self) -> bool:
        return self.done == self.total and not self.causes and self.undrawn < self.done

    def __repr__(self) -> str:
        return f"<Campaign {self.spec.what}: {self.done} of {self.total} cases, {len(self.causes)} causes>"


def run(
    what: str,
    *,
    layouts: int | None = None,
    seeds: int | None = None,
    isa: Sequence[str] | str = (),
    threads: Sequence[int] = (),
    strictness: Sequence[Strictness | str] = (),
    seed: int = 0,
    arguments: Sequence[str] = (),
    oracles: Sequence[str] | None = None,
    budget: float | None = None,
    hang: float = 60.0,
    database: str | os.PathLike[str] = "campaign.db",
    workers: int | None = None,
    scheduler: str | None = None,
    reduce_to: str | os.PathLike[str] | None = None,
    piece: float = 1.0,
    progress: Callable[[State], None] | None = None,
    tell: Callable[[str], None] = print,
) -> Result:
    """Runs a campaign, or goes on with one, and returns all that its database has.

    ``what``: a DxDispatch model (``.json``), a record (``.dmlrec``), a Python test (``FILE.py::FUNCTION``),
    ``operators`` or ``operators:PATTERN``, ``float-math:FUNCTION``, or a program, which gets ``arguments``
    (a model: the options of ``dmlemu run``).  ``layouts`` and ``seeds``: how many to try.  ``isa``: names
    of instruction sets, or ``"all"`` that this CPU supports; ``threads``: numbers of threads of the kernels
    (one by default); ``strictness``: levels.  Each combination runs all cases.

    ``oracles``: what judges ``operators`` besides their NumPy references: names of
    :mod:`dmlemu.campaign.oracles`, by default all that are installed.  ``seed``: draws other
    cases.  ``budget``: seconds, after which nothing new begins; ``hang``: seconds that a case may take
    (without effect where ``workers`` is 0).  ``database``: where results go; cases that it has are not run
    again.  ``scheduler``: the address of a Dask scheduler; otherwise ``workers`` run on this machine (one for
    each CPU; 0: the cases run in this process, without Dask).  ``reduce_to``: a folder for the smallest
    failure of each cause. ``piece``: seconds of work that are handed out at once.  ``progress`` is called
    several times a second; ``tell`` with what a person should know.

    Ctrl-C ends it; what is done is in the database.  Raises ``UsageError`` for what cannot be tried.
    """
    _check_seconds(budget=budget, hang=hang, piece=piece)
    if workers is not None:
        _check_count("workers", workers, 0, 1024)
    dimensions: dict[str, Any] = {
        "isa": isa,
        "threads": threads,
        "strictness": strictness,
        "oracles": oracles,
    }
    spec = planned(what, layouts=layouts, seeds=seeds, seed=seed, arguments=arguments, **dimensions)
    who = identity()
    with Database(database, spec, who) as file:
        loop = _Loop(spec, file, budget, piece, progress)
        executor: Executor
        if loop.schedule.left or reduce_to is not None:
            if workers == 0 and scheduler is None:
                executor = Here(spec, hang)
            elif scheduler is None and not loop.schedule.left:
                executor = _Reducer(spec)
            else:
                executor = Cluster(spec, who, hang, scheduler, workers or _cpus(), tell)
            try:
                loop.run(executor)
                reduced = [] if reduce_to is None else loop.reduced(executor, Path(reduce_to))
            finally:
                executor.close()
        else:
            reduced = []
        return loop.result(reduced)


def planned(
    what: str,
    *,
    layouts: int | None,
    seeds: int | None,
    isa: Sequence[str] | str,
    threads: Sequence[int],
    strictness: Sequence[Strictness | str],
    seed: int,
    arguments: Sequence[str],
    oracles: Sequence[str] | None = None,
) -> Spec:
    """The spec of a campaign, as :func:`run` takes its dimensions."""
    for name, value in (("layouts", layouts), ("seeds", seeds)):
        if value is not None:
            _check_count(name, value, 1, 1 << 40)
    _check_count("seed", seed, 0, 1 << 32)
    for each in threads:
        _check_count("threads", each, 1, 1024)
    configurations = configurations_of(_isa(isa), tuple(threads), _strictness(strictness))
    chosen = None if oracles is None else tuple(oracles)
    return plan(Request(str(what), layouts, seeds, seed, configurations, tuple(arguments), chosen))


class _Reducer(Here):
    """Runs no pieces."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec


class _Loop:
    """The state of a campaign that runs."""

    def __init__(
        self,
        spec: Spec,
        database: Database,
        budget: float | None,
        piece: float,
        progress: Callable[[State], None] | None,
    ) -> None:
        self._spec, self._database, self._progress = spec, database, progress
        done = list(database.done())
        self._pieces, self._piece = len(done), piece
        self.schedule = Schedule(spec, done, piece)
        self._begin = time.monotonic()
        self._end = None if budget is None else self._begin + budget
        self._ran = 0
        causes = database.causes()
        self._failures, self._causes = (
            sum(each.count for each in causes),
            {each.smallest.cause for each in causes},
        )
        self._is_interrupted = False

    def run(self, executor: Executor) -> None:
        """Until everything is done or the budget is used up; Ctrl-C ends it."""
        try:
            while True:
                is_late = self._end is not None and time.monotonic() >= self._end
                if not is_late:
                    self._fill(executor)
                if not executor.running() and (is_late or not self.schedule.left):
                    break
                self._take(executor.results(_TICK))
                self._tell(executor)
        except KeyboardInterrupt:
            self._is_interrupted = True

    def _fill(self, executor: Executor) -> None:
        self.schedule.seconds = max(self._piece, executor.workers / _MOST_PIECES)
        pieces = list(islice(iter(self.schedule.take, None), executor.room()))
        if not pieces:
            return
        try:
            executor.submit(pieces)
        except Exception:
            for each in reversed(pieces):
                self.schedule.give_back(each)
            if not isinstance(executor, Cluster):
                raise

    def _take(self, found: Sequence[Any]) -> None:
        """Puts results into the database."""
        results = [each for each in found if not isinstance(each, Piece)]
        for each in found:
            if isinstance(each, Piece):
                self.schedule.give_back(each)
        if results:
            self._database.add(results)
        for each in results:
            self.schedule.done(each)
            self._ran += each.piece.count
            self._pieces += 1
            self._failures += len(each.failures)
            self._causes.update(failure.cause for failure in each.failures)

    def _tell(self, executor: Executor) -> None:
        if self._progress is not None:
            seconds = max(time.monotonic() - self._begin, 1e-6)
            rate, workers = self._ran / seconds, executor.workers
            left = self.schedule.left / rate if rate else None
            if self._end is not None:
                rest = max(0.0, self._end - time.monotonic())
                left = rest if left is None else min(left, rest)
            done = self._spec.total - self.schedule.left
            self._progress(
                State(
                    done,
                    self._spec.total,
                    self._pieces,
                    self._failures,
                    len(self._causes),
                    workers,
                    rate,
                    left,
                )
            )

    def reduced(self, executor: Executor, folder: Path) -> list[Reduced]:
        """The smallest failure of each cause, reduced; of many causes the first ones."""
        found: list[Reduced] = []
        try:
            for number, cause in enumerate(self._database.causes(), 1):
                if self._is_interrupted or number > _MOST_REDUCED:
                    found.append(Reduced(cause.smallest.message))
                    continue
                folder.mkdir(parents=True, exist_ok=True)
                name = "".join(c if c.isalnum() else "-" for c in cause.smallest.subject.rpartition("/")[2])
                stem = folder / f"{number:02}-{name.lower()[:60]}"
                found.append(executor.reduce(cause.smallest, str(stem.absolute()), _REDUCTION))
        except KeyboardInterrupt:
            self._is_interrupted = True
        return found

    def result(self, reduced: list[Reduced]) -> Result:
        """What there is."""
        file = self._database
        return Result(
            self._spec,
            self._spec.total - self.schedule.left,
            file.seconds(),
            file.causes(),
            file.failures(),
            file.machines(),
            file.worst(),
            self._is_interrupted,
            reduced,
            file.undrawn(),
            file.judged(),
        )


# --- dimensions ---


def _isa(given: Sequence[str] | str) -> tuple[str, ...]:
    from dmlemu_hw import kernels

    sets = kernels.instruction_sets()
    supported = [name for name, is_supported in sets.items() if is_supported]
    if given == "all" or list(given) == ["all"]:
        return tuple(supported)
    wanted = tuple(given.split(",")) if isinstance(given, str) and given else tuple(given)
    for each in wanted:
        if each not in supported:
            what = "is not supported by this CPU" if each in sets else "is no instruction set"
            raise UsageError(f"--isa: {each} {what}; expected all or some of {', '.join(supported)}")
    return wanted


def _strictness(given: Sequence[Strictness | str]) -> tuple[str, ...]:
    levels = [each.value for each in Strictness]
    found = []
    for each in [given] if isinstance(given, str) else given:
        value = each.value if isinstance(each, Strictness) else each
        if value not in levels:
            raise UsageError(f"--strictness: {value} is no level; there are {', '.join(levels)}")
        found.append(value)
    return tuple(found)


def _check_count(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(f"--{name} is {value!r}; expected a whole number from {least} to {most}")


def _check_seconds(**numbers: float | None) -> None:
    for name, value in numbers.items():
        if value is not None and not 0 < value <= MOST_SECONDS:  # NaN neither
            raise UsageError(f"--{name} is {value}; expected more than 0 and at most {MOST_SECONDS} seconds")


def _cpus() -> int:
    return len(os.sched_getaffinity(0))
