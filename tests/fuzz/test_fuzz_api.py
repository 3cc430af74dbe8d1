"""The fuzzer of API calls, for a short time; ``make fuzz`` runs it for longer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from processes import run
from thorough import FUZZ_SECONDS

SCRIPT = Path(__file__).with_name("fuzz_api.py")


@pytest.mark.timeout(600)
def test_random_calls_leave_nothing_but_errors() -> None:
    command = [sys.executable, str(SCRIPT), "--seconds", str(FUZZ_SECONDS), "--seed", "1"]
    done = run(command, timeout=500)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    assert "no finding" in done.stdout


def test_a_finding_is_told_with_its_seed(tmp_path: Path) -> None:
    """A method that lets an exception of its own out, as a mistake of ours would."""
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import runpy, sys\n"
        "from dmlemu import d3d12\n"
        "def get_node_count(self):\n"
        "    raise KeyError('inside')\n"
        "d3d12.Device.get_node_count = get_node_count\n"
        f"sys.argv = ['fuzz_api.py', '--seconds', '60', '--seed', '5']\n"
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
    )
    done = run([sys.executable, str(broken)], timeout=200)
    assert done.returncode == 1
    assert "KeyError: 'inside'" in done.stdout
    assert "failed with --seed " in done.stdout
