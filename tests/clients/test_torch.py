"""PyTorch with torch_directml under ``dmlemu exec``: programs, and torch's own database of operators.

DMLEMU_CLIENT_TORCH names the Python of an environment that setup_torch.sh has made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Client, Done

HERE = Path(__file__).parent
KNOWN = HERE / "torch_opinfo.txt"

pytestmark = pytest.mark.timeout(3600)

PROGRAMS = {"cnn": 9000, "workers_fork": 1900, "workers_spawn": 1900, "lstm": 900, "transformer": 900}
"""And the fewest dispatches of each on the device."""

# What strict reports about programs that are right.
EXPLAINED = {
    "RES_STATE_IGNORED",  # the package creates buffers in a state other than COMMON; Windows warns, too
}


def _run(client: Client, script: str, *arguments: str, **options: Any) -> Done:
    """A script of this folder."""
    one = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return client.run(HERE / script, *arguments, timeout=3000, **one, **options)


def _dispatches(trace: Path) -> int:
    events = json.loads(trace.read_text())["traceEvents"]
    return sum(each["ph"] == "X" and each["name"].startswith("Dispatch of") for each in events)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_values_of_the_cpu(torch: Client, name: str) -> None:
    """And our own timeline counts what ran on the device."""
    done = _run(torch, "torch_programs.py", name, DMLEMU_TRACE="trace.json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["differences"] == []
    assert found["fell"] == []  # the package would announce what it computes on the CPU
    assert _dispatches(torch.folder / "trace.json") >= PROGRAMS[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_check_reports_a_program(torch: Client, name: str) -> None:
    done = _run(torch, "torch_programs.py", name, strictness="strict", DMLEMU_REPORT="reports.jsonl")
    assert done.status == 0, done.err
    assert json.loads(done.out)["differences"] == []
    lines = (torch.folder / "reports.jsonl").read_text().splitlines()
    assert _serious(json.loads(each) for each in lines) <= EXPLAINED


RUNS = {  # of the operators, by their heads in KNOWN
    "float32": [],
    "gradients of float32": ["--gradients", "--samples", "2"],
    "float16": ["--dtype", "float16"],
    "int64": ["--dtype", "int64", "--samples", "2"],
    "int32": ["--dtype", "int32", "--samples", "2"],
    "uint8": ["--dtype", "uint8", "--samples", "2"],
    "bool": ["--dtype", "bool", "--samples", "2"],
}

MAY = {"stale": "reported", "rounds": "different"}
"""Words of KNOWN for samples that may have an outcome, or be right."""


@pytest.mark.parametrize("run", RUNS)
def test_what_differs_in_torchs_operators_is_known(torch: Client, run: str) -> None:
    """Under strict.  A sample that is not in the table may not differ, nor one that is in it be right."""
    out = torch.folder / "out.jsonl"
    done = _run(torch, "torch_opinfo.py", str(out), *RUNS[run], strictness="strict")
    # The script's own words: after refusals dmlemu exec ends with status 1.
    assert done.out.endswith("status 0\n"), done.err
    rows = [row for row in map(json.loads, out.read_text().splitlines()) if "outcome" in row]
    outcomes = Counter(row["outcome"] for row in rows)
    assert outcomes["right"] > len(rows) * 0.4, outcomes
    found, known = _differences(rows), _table()[run]
    may = {(MAY[each[0]], *each[1:]) for each in known if each[0] in MAY}
    assert sorted(found - known - may) == []
    assert sorted(each for each in known - found if each[0] not in MAY) == []


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
