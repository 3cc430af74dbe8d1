"""The fuzzer of interrupts, for a short time; ``make fuzz`` runs it for longer."""

from __future__ import annotations

import sys
from pathlib import Path

from processes import run
from thorough import FUZZ_SECONDS


def test_interrupts_leave_everything_usable() -> None:
    script = Path(__file__).with_name("fuzz_interrupts.py")
    command = [sys.executable, str(script), "--seconds", str(FUZZ_SECONDS), "--seed", "1"]
    done = run(command, timeout=100)
    assert done.returncode == 0, done.stderr
