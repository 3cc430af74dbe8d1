"""Reads the pages of docs/reference that name every rule and its tests."""

from __future__ import annotations

import re
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"


def rows(page: str) -> list[list[str]]:
    """The cells of every row that is about a rule: id, rule, tests."""
    lines = [line for line in (REFERENCE / page).read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("id", "---")]


def known_tests(folder: Path) -> set[str]:
    """The names of the test functions in the folder's files."""
    found: set[str] = set()
    for path in folder.glob("test_*.py"):
        found |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    return found
