"""Planted layout bugs: what is reported of each is what ``docs/reference/layout-bugs.md`` says.

``python tests/checks/test_layout_bugs.py`` writes that page anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

import pytest
from layout_bugs import BUGS, Bug
from layout_scene import Scene

from dmlemu import Severity

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "layout-bugs.md"
SERIOUS = (Severity.WARNING, Severity.ERROR, Severity.CORRUPTION)
NOTHING = "-"
HEAD = """\
# Layout bugs that are found, and those that are not

Each row is a program with one planted bug, such as a stride or an offset. Every byte that it reads was
written, so nothing faults on a GPU. The bug is run in an arena that was cleared, and in one that another
frame had used; without the bug, each program runs without a report. Tests compare this page with what is
reported (`tests/checks/layout_bugs.py`).

{found} of {all} runs lead to a report that names who wrote and who reads. What cannot be told from memory
alone, such as two axes of equal size that are swapped, shows when results are compared with a reference.

| bug | cleared | used before |
| --- | --- | --- |
"""


def serious(program: Bug, *, wrong: bool, reused: bool) -> str:
    """The ids of what is reported, apart from advice."""
    scene = Scene(reused=reused)
    program(scene, wrong)
    found = {each.report.id for each in scene.reports() if each.report.severity in SERIOUS}
    return ", ".join(sorted(found)) or NOTHING


def row(program: Bug) -> str:
    cells = [serious(program, wrong=True, reused=reused) for reused in (False, True)]
    return f"| {program.__doc__} | {' | '.join(cells)} |"


def page() -> str:
    rows = [row(program) for program in BUGS]
    cells = [cell for each in rows for cell in each.strip("| ").split(" | ")[1:]]
    found = sum(cell != NOTHING for cell in cells)
    return HEAD.format(found=found, all=len(cells)) + "\n".join(rows) + "\n"


@pytest.mark.parametrize("reused", [False, True], ids=["cleared", "reused"])
@pytest.mark.parametrize("program", BUGS, ids=lambda program: program.__name__)
def test_without_the_bug_there_is_no_report(program: Bug, reused: bool) -> None:
    assert serious(program, wrong=False, reused=reused) == NOTHING


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("program", BUGS, ids=lambda program: program.__name__)
def test_what_is_reported(program: Bug) -> None:
    assert row(program) in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_counts() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = text.partition("| --- |")[2].splitlines()[1:]
    cells = [cell for line in rows for cell in line.strip("| ").split(" | ")[1:]]
    assert len(cells) == 2 * len(BUGS)
    assert f"{sum(cell != NOTHING for cell in cells)} of {len(cells)} runs" in text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
