"""Planted layout bugs lead to a report that names both sides; without the bug there is none."""

from __future__ import annotations

import pytest
from layout_bugs import BUGS, Bug
from layout_scene import Scene

from dmlemu import Severity

SERIOUS = (Severity.WARNING, Severity.ERROR, Severity.CORRUPTION)


def serious(program: Bug, *, wrong: bool, reused: bool) -> list[str]:
    scene = Scene(reused=reused)
    program(scene, wrong)
    return [each.report.text() for each in scene.reports() if each.report.severity in SERIOUS]


@pytest.mark.parametrize("reused", [False, True], ids=["cleared", "reused"])
@pytest.mark.parametrize("program", BUGS, ids=lambda program: program.__name__)
def test_without_the_bug_there_is_no_report(program: Bug, reused: bool) -> None:
    assert serious(program, wrong=False, reused=reused) == []


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("reused", [False, True], ids=["cleared", "reused"])
@pytest.mark.parametrize("program", BUGS, ids=lambda program: program.__name__)
def test_the_bug_is_found(program: Bug, reused: bool) -> None:
    assert serious(program, wrong=True, reused=reused)
