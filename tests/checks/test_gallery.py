"""Every program of the gallery: the wrong one gives exactly its report, the corrected one none.

A program is a module of ``gallery`` with the id of its check in ``CHECK`` and a function
``run(stage, fixed)``; what stands under ``if fixed:`` is the correction.  Golden files are written anew
with ``DMLEMU_UPDATE_GOLDEN=1``.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gallery_programs import load, run

from dmlemu.checks import catalogue
from dmlemu.checks.shaders.check import Shaders
from dmlemu.diagnostics.report import Report
from dmlemu.frontends.check_examples import read

__dmlemu_helper__ = True  # reports name lines of what it runs

HERE = Path(__file__).parent
GALLERY = HERE / "gallery"
_SHADERS = {each.id for each in Shaders.declarations if not each.no_example}
PROGRAMS = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem != "__init__")


def picture_of(report: Report) -> str:
    """The text of a report's picture.  Its SVG is well-formed; how one looks is seen by
    ``golden/test_golden_pictures.py``."""
    assert ElementTree.fromstring(report.svg()).get("aria-label")
    assert report.picture is not None
    return report.picture.text(100) + "\n"


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_wrong_program_is_reported(name: str) -> None:
    program = load(name)
    said, reports = run(program, fixed=False)
    drawn = [picture_of(report) for report in reports]
    assert any(f" {program.CHECK}" in text.splitlines()[0] for text in said), said
    text = "\n\n".join(said) + "\n"
    golden = HERE / "golden" / f"{name}.txt"
    if os.environ.get("DMLEMU_UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
    picture = HERE / "golden" / f"{name}.picture"
    if os.environ.get("DMLEMU_UPDATE_GOLDEN"):
        picture.unlink(missing_ok=True)
        if drawn:
            picture.write_text(drawn[0], encoding="utf-8")
    assert drawn[:1] == ([picture.read_text(encoding="utf-8")] if picture.exists() else [])


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_page_shows_a_program_that_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is shown, in a file of its own: it prints the report that is shown below it."""
    shown = read(GALLERY / f"{name}.py")
    source = shown.listing()
    assert max(map(len, source.splitlines())) <= 88
    exec(compile(source, shown.file, "exec"), {"__name__": "__main__"})
    assert shown.report
    assert capsys.readouterr().out.endswith(shown.report)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_corrected_program_is_silent(name: str) -> None:
    assert run(load(name), fixed=True)[0] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_names_a_declared_check(name: str) -> None:
    assert load(name).CHECK in catalogue()


def test_every_program_of_a_shader_has_a_picture() -> None:
    shaders = [name for name in PROGRAMS if load(name).CHECK in _SHADERS]
    assert {load(name).CHECK for name in shaders} == _SHADERS
    assert [name for name in shaders if not read(GALLERY / f"{name}.py").picture] == []
