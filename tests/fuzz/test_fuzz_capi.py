"""The fuzzer of C calls, for a short time; ``make fuzz`` runs it for longer."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from processes import run
from thorough import FUZZ_SECONDS

SCRIPT = Path(__file__).with_name("fuzz_capi.py")


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
@pytest.mark.timeout(600)
def test_random_c_calls_find_no_crash() -> None:
    command = [sys.executable, str(SCRIPT), "--seconds", str(FUZZ_SECONDS), "--seed", "1"]
    done = run(command, timeout=500)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    assert "no finding" in done.stdout
