"""Programs of real clients in environments of their own; README.md says how to make them.

A test gets a :class:`Client`, whose ``run`` starts the client's Python, or the client, under ``dmlemu exec``
and returns what it printed and the work that our devices were asked for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import processes
from dmlemu.dml.enums import OperatorType

HERE = Path(__file__).parent
EXEC = [sys.executable, "-m", "dmlemu", "exec"]


@dataclass
class Work:
    """What DMLEMU_WORK says, each counted by name without ``DML_OPERATOR_``."""

    operators: Counter[str] = field(default_factory=Counter)
    graphs: Counter[str] = field(default_factory=Counter)
    dispatches: Counter[str] = field(default_factory=Counter)
    initializations: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    """HRESULT, call, check and message of calls that were refused; questions are none."""

    @classmethod
    def read(cls, path: Path) -> Work:
        work = cls()
        kinds = {
            "operator": work.operators,
            "graph": work.graphs,
            "dispatch": work.dispatches,
            "initialize": work.initializations,
            "refused": work.refusals,
        }
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            kind, _, what = line.partition(" ")
            if not re.search(r" CheckFeatureSupport ", what):
                kinds[kind][what.removeprefix("DML_OPERATOR_")] += 1
        unknown = {each for each in work.operators if each not in OperatorType.__members__}
        assert not unknown, unknown
        return work


@dataclass
class Done:
    """A run of a client that has ended."""

    status: int
    out: str
    err: str
    work: Work


@dataclass
class Client:
    """A Python with the packages of a client, or a client of C++; ``folder`` is a new one for the test."""

    program: Path
    folder: Path

    def run(
        self, *arguments: str | Path, strictness: str = "runtime", timeout: float = 600, **variables: str
    ) -> Done:
        """``program ARGUMENTS`` under ``dmlemu exec``, without the variables of the tests' own Python."""
        notes = self.folder / "work"
        notes.unlink(missing_ok=True)
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(("DMLEMU_", "PYTHON"))
        }
        done = processes.run(
            [*EXEC, "--strictness", strictness, self.program, *arguments],
            timeout=timeout,
            env={**own, "DMLEMU_WORK": str(notes), **variables},
            cwd=self.folder,
        )
        return Done(done.returncode, done.stdout, done.stderr, Work.read(notes))

    def cpu(self, *arguments: str | Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """``program ARGUMENTS`` without dmlemu."""
        return processes.run([self.program, *arguments], timeout=timeout, cwd=self.folder)


def _client(name: str, tmp_path: Path) -> Client:
    variable = f"DMLEMU_CLIENT_{name}"
    given = os.environ.get(variable)
    if not given:
        pytest.skip(f"{variable} names no program: tests/clients/setup_{name.lower()}.sh makes one")
    program = Path(given).absolute()
    assert os.access(program, os.X_OK), f"{variable} is {given}, which cannot be run"
    return Client(program, tmp_path)


@pytest.fixture
def torch(tmp_path: Path) -> Client:
    """DMLEMU_CLIENT_TORCH: a Python with torch_directml."""
    return _client("TORCH", tmp_path)


@pytest.fixture
def tensorflow(tmp_path: Path) -> Client:
    """DMLEMU_CLIENT_TENSORFLOW: a Python with tensorflow-directml-plugin."""
    return _client("TENSORFLOW", tmp_path)


@pytest.fixture
def pydirectml(tmp_path: Path) -> Client:
    """DMLEMU_CLIENT_PYDIRECTML: a Python with PyDirectML (``directml``)."""
    return _client("PYDIRECTML", tmp_path)


@pytest.fixture
def dxdispatch(tmp_path: Path) -> Client:
    """DMLEMU_CLIENT_DXDISPATCH: DxDispatch, in a folder beside its sources."""
    return _client("DXDISPATCH", tmp_path)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The reasons of skipped tests, which ``-q`` does not print."""
    reasons = Counter(
        each.longrepr[2]
        for each in terminalreporter.stats.get("skipped", ())
        if isinstance(each.longrepr, tuple)
    )
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason.removeprefix('Skipped: ')}")
