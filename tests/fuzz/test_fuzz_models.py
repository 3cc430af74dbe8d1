"""Hostile models, for a short time; what the fuzzer complains of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fuzz_models import complaints, make_world, outside

from processes import run
from thorough import FUZZ_SECONDS

GOOD = "DxDispatch ERROR MODEL_JSON [model.json]\nmodel.json is empty.\n"


def test_hostile_models() -> None:
    script = Path(__file__).with_name("fuzz_models.py")
    command = [sys.executable, str(script), "--seconds", str(FUZZ_SECONDS), "--seed", "0"]
    done = run(command, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MODEL_" in done.stdout and " ran" in done.stdout


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ((2, "", GOOD, ""), "exit code 2"),
        ((1, "", "", ""), "without a word"),
        ((1, "", "Traceback (most recent call last):", ""), "stderr begins with"),
        ((1, "", "dmlemu: error: [Errno 2] No such file", ""), "stderr begins with"),
        ((0, "Resource 'a\x1b': 1\n", "", ""), "stdout has the control character"),
        ((1, "", GOOD + "\u202e", ""), "stderr has the control character"),
        ((1, "", GOOD, "\x9b"), "the report has the control character"),
        ((0, "x" * 200_000, "", ""), "stdout has 200000 characters"),
        ((1, "", GOOD + "x" * 200_000, ""), "stderr has"),
    ],
)
def test_what_is_wrong_with_an_answer(answer: tuple[int, str, str, str], complaint: str) -> None:
    assert any(complaint in each for each in complaints(*answer))


@pytest.mark.parametrize(
    "answer",
    [
        (0, "Running on 'dmlemu Virtual GPU'\nResource 'Out': " + "1, " * 100_000 + "1\n", "", ""),
        (1, "", GOOD, ""),
        (
            1,
            "",
            "dmlemu: error: the reports cannot be written to 'pipe': no program reads from it\n" + GOOD,
            "",
        ),
    ],
)
def test_nothing_is_wrong(answer: tuple[int, str, str, str]) -> None:
    assert not list(complaints(*answer))


@pytest.mark.parametrize("name", ["elsewhere/new.dat", "elsewhere/secret.dat", "new.dat"])
def test_what_is_written_outside_is_noticed(tmp_path: Path, name: str) -> None:
    make_world(tmp_path)
    before = outside(tmp_path)
    (tmp_path / "model" / "new.dat").write_bytes(b"its own")
    assert outside(tmp_path) == before
    (tmp_path / name).write_bytes(b"not its own")
    assert outside(tmp_path) != before
