"""docs/reference/environment.md lists the variables that the code reads, and no others."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("runtime", "emulator", "kernels_c")


def read_by_code() -> set[str]:
    """Names in calls that read a variable, and quoted names of our own."""
    found: set[str] = set()
    for path in (each for folder in SOURCES for each in (ROOT / folder).rglob("*.*")):
        if path.suffix not in (".py", ".c", ".h") or "tests" in path.relative_to(ROOT).parts:
            continue
        text = path.read_text(encoding="utf-8")
        found.update(re.findall(r"""(?:getenv|environ\.get)\(\s*["'](\w+)["']""", text))
        found.update(re.findall(r"""["'](DMLEMU_[A-Z_]*[A-Z])["']""", text))
    return found


def test_the_page_lists_what_the_code_reads() -> None:
    page = (ROOT / "docs" / "reference" / "environment.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE))
    assert listed == read_by_code()
