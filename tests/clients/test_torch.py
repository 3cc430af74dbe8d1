"""PyTorch with torch_directml under ``dmlemu exec``: programs, and torch's own database of operators.

DMLEMU_CLIENT_TORCH names the Python of an environment that setup_torch.sh has made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import processes

HERE = Path(__file__).parent
PYTHON = os.environ.get("DMLEMU_CLIENT_TORCH")
KNOWN = HERE / "torch_opinfo.txt"

pytestmark = [
    pytest.mark.skipif(
        PYTHON is None, reason="DMLEMU_CLIENT_TORCH names no Python: setup_torch.sh makes one"
    ),
    pytest.mark.timeout(3600),
]

PROGRAMS = {"cnn": 9000, "workers_fork": 1900, "workers_spawn": 1900, "lstm": 900, "transformer": 900}
"""And the fewest dispatches of each on the device."""

# What strict reports about programs that are right.
EXPLAINED = {
    "RES_STATE_IGNORED",  # the package creates buffers in a state other than COMMON; Windows warns, too
}


def _run(script: str, *arguments: object, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script of this folder under ``dmlemu exec``, which needs no options."""
    assert PYTHON is not None
    command = [sys.executable, "-m", "dmlemu", "exec", PYTHON, HERE / script, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **variables}
    return processes.run(command, timeout=3000, cwd=folder, env=environment)


def _dispatches(trace: Path) -> int:
    events = json.loads(trace.read_text())["traceEvents"]
    return sum(each["ph"] == "X" and each["name"].startswith("Dispatch of") for each in events)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_values_of_the_cpu(name: str, tmp_path: Path) -> None:
    """And our own timeline counts what ran on the device."""
    done = _run("torch_programs.py", name, folder=tmp_path, DMLEMU_TRACE="trace.json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["differences"] == []
    assert found["fell"] == []  # the package would announce what it computes on the CPU
    assert _dispatches(tmp_path / "trace.json") >= PROGRAMS[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_check_reports_a_program(name: str, tmp_path: Path) -> None:
    variables = {"DMLEMU_STRICTNESS": "strict", "DMLEMU_REPORT": "reports.jsonl"}
    done = _run("torch_programs.py", name, folder=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["differences"] == []
    lines = (tmp_path / "reports.jsonl").read_text().splitlines()
    assert _serious(json.loads(each) for each in lines) <= EXPLAINED


RUNS = {  # of the operators, by their heads in KNOWN
    "float32": [],
    "float16": ["--dtype", "float16"],
    "int64": ["--dtype", "int64", "--samples", "2"],
    "int32": ["--dtype", "int32", "--samples", "2"],
    "uint8": ["--dtype", "uint8", "--samples", "2"],
    "bool": ["--dtype", "bool", "--samples", "2"],
}


@pytest.mark.parametrize("run", RUNS)
def test_what_differs_in_torchs_operators_is_known(run: str, tmp_path: Path) -> None:
    """Under strict.  A sample that is not in the table may not differ, nor one that is in it be right."""
    out = tmp_path / "out.jsonl"
    done = _run("torch_opinfo.py", out, *RUNS[run], folder=tmp_path, DMLEMU_STRICTNESS="strict")
    assert done.returncode == 0, done.stderr
    rows = [row for row in map(json.loads, out.read_text().splitlines()) if "outcome" in row]
    outcomes = Counter(row["outcome"] for row in rows)
    assert outcomes["right"] > len(rows) / 2, outcomes
    found, known = _differences(rows), _table()[run]
    stale = {("reported", *each[1:]) for each in known if each[0] == "stale"}
    assert sorted(found - known - stale) == []
    assert sorted(each for each in known - found if each[0] != "stale") == []


def _differences(rows: list[dict[str, Any]]) -> set[tuple[str, str, int]]:
    """(outcome, operator, sample); ``reported`` is a right sample about which a check says something."""
    found = set()
    for row in rows:
        outcome = row["outcome"]
        if outcome in ("right", "random", "fallback"):
            if not _serious(row["reports"]):
                continue
            outcome = "reported"
        found.add((outcome, row["op"], row["sample"]))
    return found


def _serious(reports: Iterable[dict[str, Any]]) -> set[str]:
    """The ids of errors and warnings."""
    return {each["id"] for each in reports if each["severity"] not in ("INFO", "MESSAGE")}


def _table() -> dict[str, set[tuple[str, str, int]]]:
    """KNOWN: lines ``OUTCOME OPERATOR SAMPLES: REASON``, below the head of their run in brackets."""
    runs: dict[str, set[tuple[str, str, int]]] = {}
    for line in KNOWN.read_text().splitlines():
        if line.startswith("["):
            rows = runs.setdefault(line.strip("[]"), set())
        elif line and not line.startswith("#"):
            outcome, operator, samples = line.partition(":")[0].split()
            for part in samples.split(","):
                first, _, last = part.partition("-")
                rows |= {(outcome, operator, each) for each in range(int(first), int(last or first) + 1)}
    return runs


def test_the_table_has_a_reason_in_each_row() -> None:
    for line in KNOWN.read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            assert line.partition(": ")[2], line
