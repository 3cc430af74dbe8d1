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
ADVICE = ("LAYOUT_HANDOVER", "WRITTEN_NEVER_READ", "OVERWRITTEN_UNREAD")
NOTHING = "-"
HEAD = """\
# Layout bugs that are found, and those that are not

Each row is a program with one planted bug, such as a stride or an offset. Every byte that it reads was
written, so nothing faults on a GPU. The bug is run in an arena that was cleared, and in one that another
frame had used; without the bug, each program runs without a warning. Tests compare this page with what is
reported (`tests/checks/layout_bugs.py`).

{found} of {all} runs lead to a warning that names who wrote and who reads. {advised} more lead to an INFO
that the right program does not have: in memory, these bugs look like something that may be meant, such as a
view with two axes swapped, or a tensor that nobody reads. What cannot be told from memory alone shows when
results are compared with a reference.

| bug | cleared | used before |
| --- | --- | --- |
"""


def reported(program: Bug, *, wrong: bool, reused: bool) -> tuple[set[str], set[str]]:
    """The ids of warnings and worse, and those of advice on provenance."""
    scene = Scene(reused=reused)
    program(scene, wrong)
    reports = [each.report for each in scene.reports()]
    serious = {each.id for each in reports if each.severity in SERIOUS}
    return serious, {each.id for each in reports if each.id in ADVICE and each.severity is Severity.INFO}


def cell(program: Bug, *, reused: bool) -> str:
    """What leads to the bug; advice only if the right program has none like it."""
    serious, advice = reported(program, wrong=True, reused=reused)
    if serious:
        return ", ".join(sorted(serious))
    advice -= reported(program, wrong=False, reused=reused)[1]
    return ", ".join(f"{each} (INFO)" for each in sorted(advice)) or NOTHING


def row(program: Bug) -> str:
    cells = [cell(program, reused=reused) for reused in (False, True)]
    return f"| {program.__doc__} | {' | '.join(cells)} |"


def page() -> str:
    rows = "\n".join(row(program) for program in BUGS) + "\n"
    found, advised, all = counts(rows)
    return HEAD.format(found=found, advised=advised, all=all) + rows


def counts(rows: str) -> tuple[int, int, int]:
    """How many runs lead to a warning, how many to advice, and how many there are."""
    cells = [cell for line in rows.splitlines() for cell in line.strip("| ").split(" | ")[1:]]
    advised = sum("(INFO)" in each for each in cells)
    return len(cells) - advised - cells.count(NOTHING), advised, len(cells)


@pytest.mark.parametrize("reused", [False, True], ids=["cleared", "reused"])
@pytest.mark.parametrize("program", BUGS, ids=lambda program: program.__name__)
def test_without_the_bug_there_is_no_report(program: Bug, reused: bool) -> None:
    assert reported(program, wrong=False, reused=reused)[0] == set()


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("program", BUGS, ids=lambda program: program.__name__)
def test_what_is_reported(program: Bug) -> None:
    assert row(program) in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_counts() -> None:
    text = PAGE.read_text(encoding="utf-8")
    found, advised, all = counts(text.partition("| --- |")[2].partition("\n")[2])
    assert all == 2 * len(BUGS)
    assert f"{found} of {all} runs" in text
    assert f"{advised} more lead to an INFO" in text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
