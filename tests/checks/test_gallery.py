"""Every program of the gallery: the wrong one gives exactly its report, the corrected one none.

A program is a module of ``gallery`` with the id of its check in ``CHECK`` and a function
``run(stage, fixed)``; what stands under ``if fixed:`` is the correction.  Golden files are written anew
with ``DMLEMU_UPDATE_GOLDEN=1``.
"""

from __future__ import annotations

import gc
import importlib
import os
from pathlib import Path
from types import ModuleType

import pytest
from stage import Stage

from dmlemu import Error, Strictness
from dmlemu.checks import catalogue

__dmlemu_helper__ = True  # reports name lines of what it runs

HERE = Path(__file__).parent
GALLERY = HERE / "gallery"
PROGRAMS = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem != "__init__")


def load(name: str) -> ModuleType:
    return importlib.import_module(f"gallery.{name}")


def reports_of(program: ModuleType, fixed: bool) -> list[str]:
    """All that is said of a run, in order: raised and stored, those at the device's end too."""
    return run(program, fixed)[0]


def run(program: ModuleType, fixed: bool) -> tuple[list[str], list[str]]:
    """The texts of all reports of a run, and the pictures of those that have one."""
    stage = Stage(getattr(program, "STRICTNESS", Strictness.STRICT), **getattr(program, "ADAPTER", {}))
    device = stage.device
    said: list[str] = []
    drawn: list[str] = []
    raised: Error | None = None
    try:
        program.run(stage, fixed)
    except Error as error:
        raised = error
    device.checks.end()
    said += [stored.report.text(stored.hresult) for stored in device.reports]
    drawn += [stored.report.svg() for stored in device.reports]
    if raised is not None and raised.report.text() not in said and str(raised) not in said:
        said.append(str(raised))
        drawn.append(raised.report.svg())
    del stage, device
    gc.collect()
    return said, [picture for picture in drawn if picture]


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_wrong_program_is_reported(name: str) -> None:
    program = load(name)
    said, drawn = run(program, fixed=False)
    assert any(f" {program.CHECK}" in text.splitlines()[0] for text in said), said
    text = "\n\n".join(said) + "\n"
    golden = HERE / "golden" / f"{name}.txt"
    if os.environ.get("DMLEMU_UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
    picture = HERE / "golden" / f"{name}.svg"
    if os.environ.get("DMLEMU_UPDATE_GOLDEN"):
        picture.unlink(missing_ok=True)
        if drawn:
            picture.write_text(drawn[0], encoding="utf-8")
    assert drawn[:1] == ([picture.read_text(encoding="utf-8")] if picture.exists() else [])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_corrected_program_is_silent(name: str) -> None:
    assert reports_of(load(name), fixed=True) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_names_a_declared_check(name: str) -> None:
    assert load(name).CHECK in catalogue()
