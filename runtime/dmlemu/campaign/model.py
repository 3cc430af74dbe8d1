"""What a campaign consists of: a spec that travels, configurations, pieces, outcomes and failures."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import NamedTuple

from ..frontends.usage import UsageError
from ..testing.coverage import Cell

__all__ = [
    "JUDGES",
    "Configuration",
    "Dissent",
    "Failure",
    "Identity",
    "Outcome",
    "Piece",
    "PieceResult",
    "Spec",
    "identity",
]


class Configuration(NamedTuple):
    """What a process that runs cases is started with.

    ``isa``: "" is the best of the CPU; ``threads``: 0 is one, since each CPU has a worker; ``strictness``:
    "" is strict.
    """

    isa: str = ""
    threads: int = 0
    strictness: str = ""

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}" if self.threads else ""
        return ", ".join(part for part in (self.isa, threads, self.strictness) if part)

    def environment(self) -> dict[str, str]:
        """The environment of such a process."""
        ours = {"OMP_NUM_THREADS": str(self.threads or 1), "OPENBLAS_NUM_THREADS": "1"}
        return {**os.environ, **ours, **({"DMLEMU_ISA": self.isa} if self.isa else {})}


@dataclass(frozen=True)
class Spec:
    """A campaign as it travels to workers: names, numbers and the hash of the input, never its content.

    ``what``: as given, with absolute paths; ``digest``: of the subject's files.  ``layouts`` and ``seeds``:
    how many of each; 0 where the dimension is not tried.  Case ``index`` is one of ``cases`` of configuration
    ``index // cases``.  ``oracles``: what judges operators besides their references, each with its version.
    """

    kind: str
    what: str
    digest: str
    seed: int = 0
    layouts: int = 0
    seeds: int = 0
    configurations: tuple[Configuration, ...] = (Configuration(),)
    arguments: tuple[str, ...] = ()
    cases: int = 0
    oracles: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of all cases."""
        return self.cases * len(self.configurations)

    @property
    def key(self) -> str:
        """The same for campaigns that do the same; where the files lie does not matter."""
        same = {**asdict(replace(self, what="" if self.digest else self.what)), "format": 1}
        return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:16]

    def configuration(self, index: int) -> Configuration:
        """That of a case."""
        return self.configurations[index // self.cases]

    def place(self, index: int) -> tuple[int, int]:
        """The layout and the seed of a case, by number, from 0."""
        return divmod(index % self.cases, max(1, self.seeds))

    def random(self, index: int, purpose: str = "") -> int:
        """A number of 64 bits that depends on the seed, the case (in each configuration alike) and the
        purpose alone."""
        text = f"{self.seed}/{index % self.cases}/{purpose}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    def json(self) -> str:
        """For the database."""
        return json.dumps(asdict(self))


class Piece(NamedTuple):
    """A range of cases, all of one configuration."""

    first: int
    count: int  # type: ignore[assignment]  # not the method of tuples

    @property
    def end(self) -> int:
        """The first case after it."""
        return self.first + self.count

    def halves(self) -> tuple[Piece, Piece]:
        """Two pieces of a piece of at least two cases."""
        half = self.count // 2
        return Piece(self.first, half), Piece(self.first + half, self.count - half)


class Failure(NamedTuple):
    """A case that failed.

    ``subject``, ``rule``, ``kind`` name the cause: the operator or program; the id of a check or what was
    compared; what is wrong with the first differing element.  ``size``: how large the case is; of each
    cause the smallest is reduced.
    """

    index: int  # type: ignore[assignment]  # not the method of tuples
    subject: str
    rule: str
    kind: str
    message: str
    size: int = 0
    place: str = ""

    @property
    def cause(self) -> tuple[str, str, str]:
        """Failures of one cause are shown once."""
        return self.subject, self.rule, self.kind


class Dissent(NamedTuple):
    """An oracle that differs from the reference of a case, which the documents decide unless two of them
    agree."""

    index: int  # type: ignore[assignment]  # not the method of tuples
    oracle: str
    message: str


JUDGES = "0123456789abcdefghijklmnopqrstuv"
"""Digits to the base 32, with a bit for each of up to five oracles."""


@dataclass
class Outcome:
    """The result of one case.  ``worst``: an error that is measured, and ``at``, where it was found.

    ``judges``: a bit for each oracle of the spec that judged it; ``dissents``: those that differ from the
    reference. ``is_drawn``: False where hypothesis found no legal case in the random bytes, so that nothing
    was tried.
    """

    failures: list[Failure] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    worst: float | None = None
    at: str = ""
    judges: int = 0
    dissents: list[Dissent] = field(default_factory=list)
    is_drawn: bool = True


@dataclass
class PieceResult:
    """The result of a piece: what its cases found, the seconds they took, the machine.

    ``judges``: for each case a digit of :data:`JUDGES` with the bits of the oracles that judged it;
    ``undrawn``: how many cases were none.
    """

    piece: Piece
    failures: list[Failure] = field(default_factory=list)
    cells: set[Cell] = field(default_factory=set)
    worst: float | None = None
    at: str = ""
    seconds: float = 0.0
    machine: str = ""
    judges: str = ""
    dissents: list[Dissent] = field(default_factory=list)
    undrawn: int = 0

    def add(self, outcome: Outcome) -> None:
        """Adds that of a case."""
        self.failures += outcome.failures
        self.judges += JUDGES[outcome.judges]
        self.dissents += outcome.dissents
        self.undrawn += not outcome.is_drawn
        self.cells.update(outcome.cells)
        if outcome.worst is not None and (self.worst is None or outcome.worst > self.worst):
            self.worst, self.at = outcome.worst, outcome.at


class Identity(NamedTuple):
    """What workers of one campaign have in common."""

    version: str
    build: str
    cpu: str

    def __str__(self) -> str:
        return f"dmlemu {self.version}, build {self.build}, {self.cpu}"


@cache
def identity() -> Identity:
    """Of this process.  ``build``: of the bytes of the kernels' library and the sources of the package."""
    import dmlemu
    import dmlemu_hw._kernels as kernels

    found = hashlib.sha256(Path(kernels.__file__).read_bytes())
    for package in (dmlemu, sys.modules["dmlemu_hw"]):
        for folder in map(Path, package.__path__):
            for path in _sources(folder):
                found.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return Identity(version("dmlemu"), found.hexdigest()[:12], platform.machine())


def _sources(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


def configurations_of(
    isa: tuple[str, ...], threads: tuple[int, ...], strictness: tuple[str, ...]
) -> tuple[Configuration, ...]:
    """All combinations; a dimension that is not given has its default alone."""
    return tuple(map(Configuration._make, product(isa or ("",), threads or (0,), strictness or ("",))))


def digest_of(*paths: Path) -> str:
    """Of the contents of files, in their order."""
    found = hashlib.sha256()
    for path in paths:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from None
        found.update(len(content).to_bytes(8, "little") + content)
    return found.hexdigest()
