"""The plugin's own tests of operators, file by file; run by test_tensorflow.py, or for the whole table:

tensorflow_suite.py PYTHON [FILE...] [--cpu]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import processes  # noqa: E402

EXEC = [sys.executable, "-m", "dmlemu", "exec"]
_MOST_CRASHES = 40  # after which a file is given up
_LEFT_OUT = ("DMLEMU_", "PYTHON", "TF_CPP_")  # variables; some tests read the adapter's name from the log


@dataclass
class Result:
    """What became of the tests of one file, and what our devices were asked for, by operator."""

    tests: dict[str, str] = field(default_factory=dict)
    """passed, skipped, failed, crashed or not reached."""
    why: dict[str, str] = field(default_factory=dict)
    work: Counter[str] = field(default_factory=Counter)
    """Lines of DMLEMU_WORK."""

    def bad(self) -> set[str]:
        return {test for test, end in self.tests.items() if end not in ("passed", "skipped")}

    def operators(self) -> Counter[str]:
        return Counter(
            {
                line.split()[1].removeprefix("DML_OPERATOR_"): n
                for line, n in self.work.items()
                if line.startswith("operator ")
            }
        )


def files(python: Path) -> list[Path]:
    """Those that setup_tensorflow.sh has put into the environment."""
    return sorted((python.parents[1] / "plugin" / "test" / "ops").glob("*_test*.py"))


def run_file(
    python: Path, file: Path, *, cpu: bool = False, per_test: float = 600, per_file: float = 3600
) -> Result:
    """Runs the tests of a file; after a crash, and after ``per_test`` seconds, those behind that test.

    ``cpu``: without dmlemu.
    """
    result, end = Result(), time.monotonic() + per_file
    with tempfile.TemporaryDirectory() as folder:
        notes, work = Path(folder) / "notes", Path(folder) / "work"
        notes.touch()
        own = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
        command = [
            *([] if cpu else EXEC),
            python,
            HERE / "tensorflow_one_file.py",
            file,
            notes,
            str(per_test),
        ]
        for _ in range(_MOST_CRASHES):
            try:
                done = processes.run(
                    command,
                    env={**own, "DMLEMU_WORK": str(work), "PYTHONHASHSEED": "0"},
                    cwd=file.parent,
                    stdin=subprocess.DEVNULL,
                    timeout=max(end - time.monotonic(), 1),
                )
            except subprocess.TimeoutExpired:
                break
            running = _read(notes, result)
            if not running:
                if done.returncode and not result.bad():  # outside of tests
                    running = "(the file)"
                else:
                    break
            result.tests[running] = "crashed"
            result.why[running] = f"status {done.returncode}: {' '.join(done.stderr.split())[-300:]}"
            if running == "(the file)":
                break
        if work.exists():
            result.work.update(work.read_text(encoding="utf-8", errors="replace").splitlines())
    return result


def _read(notes: Path, result: Result) -> str:
    """Reads what tensorflow_one_file.py has noted; returns the test that has not ended."""
    running = ""
    for line in notes.read_text(encoding="utf-8").splitlines():
        kind, test, why = line.split("\t")
        if test.endswith(".test_session"):  # TensorFlow's own, of every class
            continue
        if kind == "planned":
            result.tests.setdefault(test, "not reached")
        elif kind == "began":
            running = test
        else:
            running = ""
            result.tests[test] = kind
            if kind == "failed":
                result.why[test] = why
    return running if result.tests.get(running) != "crashed" else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", type=Path, help="of the environment that setup_tensorflow.sh has made")
    parser.add_argument("files", nargs="*", help="names of files without .py (default: all)")
    parser.add_argument("--cpu", action="store_true", help="without dmlemu, for comparison")
    arguments = parser.parse_args()
    python = arguments.python.absolute()
    total, operators, refused = Counter[str](), Counter[str](), Counter[str]()
    for file in files(python):
        if arguments.files and file.stem not in arguments.files:
            continue
        result = run_file(python, file, cpu=arguments.cpu)
        ends = Counter(result.tests.values())
        total += ends
        operators += result.operators()
        refused.update({line: n for line, n in result.work.items() if line.startswith("refused ")})
        dispatches = sum(n for line, n in result.work.items() if line.startswith("dispatch "))
        print(f"{file.stem:42} {_spelled(ends)}; {dispatches} dispatches", flush=True)
        for test in sorted(result.bad()):
            print(f"    {result.tests[test]} {test}: {result.why.get(test, '')}", flush=True)
    print(f"\nall: {_spelled(total)}\n")
    for name, count in sorted(operators.items()):
        print(f"{name:42} created {count}")
    for line, count in refused.most_common():
        print(f"{count} x {line}")
    return 0 if set(total) <= {"passed", "skipped"} else 1


def _spelled(ends: Counter[str]) -> str:
    return ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))


if __name__ == "__main__":
    sys.exit(main())
