"""The guide "Ten thousand layouts overnight", run as it is printed, with fewer layouts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from processes import run

GUIDES = Path(__file__).resolve().parents[3] / "docs" / "guide"
PAGE = (GUIDES / "ten-thousand-layouts.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = next(text for language, text in BLOCKS if language == "python")
    (tmp_path / "net_test.py").write_text(program)
    return tmp_path


def test_the_command_prints_what_is_shown(folder: Path) -> None:
    pytest.importorskip("distributed")
    shown = [text.rstrip() for language, text in BLOCKS if language == "text"]
    options = ["net_test.py::test_add_bias", "--layouts", "20", "--workers", "1"]
    found = run([sys.executable, "-m", "dmlemu", "campaign", *options], cwd=folder, timeout=100)

    assert found.returncode == 1
    assert shown[0] in found.stdout.replace(f"{folder}/", "")
    (name,) = re.findall(r"^python (campaign-failures/.*\.py)$", PAGE, re.MULTILINE)
    alone = run([sys.executable, name], cwd=folder, timeout=60)
    assert alone.returncode == 1 and "LayoutError" in alone.stderr


def test_python_prints_what_is_shown(folder: Path) -> None:
    shown = [text for language, text in BLOCKS if language == "text"]
    programs = [text for language, text in BLOCKS if language == "python"]
    program = programs[1].replace("layouts=100", "layouts=20")
    found = run([sys.executable, "-c", program], cwd=folder, timeout=100)

    assert found.stdout == shown[1], found.stderr


def test_programs_for_clusters_are_python() -> None:
    """Their packages need a cluster."""
    page = GUIDES / "campaigns-on-a-cluster.md"
    programs = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        compile(program, page.name, "exec")
