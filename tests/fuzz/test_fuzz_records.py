"""Hostile records, for a short time."""

from __future__ import annotations

import sys
from pathlib import Path

from processes import run
from thorough import FUZZ_SECONDS


def test_hostile_records() -> None:
    script = Path(__file__).with_name("fuzz_records.py")
    command = [sys.executable, str(script), "--seconds", str(FUZZ_SECONDS), "--seed", "0"]
    done = run(command, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not read" in done.stdout and "not run again" in done.stdout
