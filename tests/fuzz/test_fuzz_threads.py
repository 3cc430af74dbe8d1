"""The fuzzer of threads, for a short time; ``make fuzz`` runs it for longer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from processes import run


def fuzz(seconds: int, *options: str) -> None:
    script = Path(__file__).with_name("fuzz_threads.py")
    command = [sys.executable, str(script), "--seconds", str(seconds), "--seed", "1", *options]
    done = run(command, timeout=115)
    assert done.returncode == 0, done.stderr


def test_threads_that_do_everything_at_once() -> None:
    fuzz(3)


@pytest.mark.long
@pytest.mark.parametrize("policy", ["lazy", "eager", "chaos"])
def test_threads_for_a_minute(policy: str) -> None:
    fuzz(60, "--policy", policy)
