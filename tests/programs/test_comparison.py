"""The page that compares dmlemu with others: what it says of Oclgrind is run, where that is installed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from test_tutorial import ROOT, blocks, same

import processes
from dmlemu.checks import catalogue

PAGE = ROOT / "docs" / "comparison.md"
NEEDED = ("gcc", "oclgrind")


def test_checks_exist() -> None:
    named = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", PAGE.read_text()))
    assert "HAZARD_RAW" in named
    assert named <= set(catalogue())


@pytest.mark.skipif(
    not all(map(shutil.which, NEEDED)) or not Path("/usr/include/CL/cl.h").exists(),
    reason="gcc, oclgrind or OpenCL's headers are not installed",
)
def test_oclgrind_finds_what_the_page_says(tmp_path: Path) -> None:
    command, shown = blocks(PAGE)
    script = command.text.replace("examples/comparison", str(ROOT / "examples" / "comparison"))
    done = processes.run(["bash", "-c", script], cwd=tmp_path, timeout=100)
    assert same(shown.text, done.stdout), done.stdout + done.stderr
