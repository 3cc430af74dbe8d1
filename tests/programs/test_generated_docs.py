"""What ``docs`` makes of declarations and programs: operators' programs and pictures, groups, the manual."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from test_tutorial import ROOT

sys.path.insert(0, str(ROOT / "docs"))

import gallery_page
import operator_index
import operator_pictures
import operator_programs

from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import definition_of
from dmlemu.frontends.check_examples import examples

OPERATORS = operator_index.operators()
POISON = 0xCBCBCBCB


@pytest.fixture(scope="module")
def programs() -> dict[str, str]:
    return operator_programs.programs(OPERATORS)


def flat(values: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Each array by its name; those of a list by their numbers, too."""
    return {
        f"{name}{i}": np.asarray(each)
        for name, value in values.items()
        for i, each in enumerate(value if isinstance(value, list) else [value])
    }


def test_programs_of_operators_run(programs: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """As they are shown; what they compute is what the reference does."""
    assert len(programs) == len(declared())
    for name, program in programs.items():
        assert max(map(len, program.splitlines())) <= 88, name
        names: dict[str, Any] = {}
        exec(compile(program, name, "exec"), names)
        printed = capsys.readouterr().out
        given, desc = names["inputs"], names["desc"]
        found = flat(names["evaluate"](desc, **given))
        expected = flat(definition_of(desc).reference(given))
        assert found.keys() == expected.keys() and printed, name
        for each, array in found.items():
            known = array.astype(float) != POISON  # rows past the count of NONZERO_COORDINATES
            np.testing.assert_allclose(
                array[known].astype(float),
                expected[each][known].astype(float),
                rtol=2e-3,
                atol=2e-3,
                err_msg=name,
            )


def test_every_operator_is_in_one_group() -> None:
    groups = operator_index.groups()
    listed = [desc.TYPE.name for descs in groups.values() for desc in descs]
    assert sorted(listed) == [desc.TYPE.name for desc in OPERATORS]
    assert all(len(descs) > 2 for descs in groups.values())


def test_the_gallery_has_every_program(programs: dict[str, str]) -> None:
    page = gallery_page.page(programs, {"operators/pictures/gather.svg"})
    assert (
        page.count('<div class="card">') == page.count("```python") == len(programs) + len(list(examples()))
    )
    assert page.count("![An example of ") == 1
    assert all(program in page for program in programs.values())
    assert all(each.listing() in page for each in examples())


@pytest.mark.parametrize("name", ["GATHER", "CONVOLUTION", "PADDING"])
def test_a_picture_says_what_its_colours_mean(name: str) -> None:
    desc = next(each for each in OPERATORS if each.TYPE.name == name)
    drawn = operator_pictures.picture(desc)
    assert drawn is not None
    texts = [each.text for each in ElementTree.fromstring(drawn[0]).iter("{http://www.w3.org/2000/svg}text")]
    meanings = {
        "GATHER": ["same colour: the same element, at its new place", "made anew, or an index"],
        "CONVOLUTION": [
            "OutputTensor[0, 0, 0, 0] and what it depends on",
            "OutputTensor[0, 0, 2, 3] and what it depends on",
            "what both depend on",
        ],
        "PADDING": ["same colour: the same element, at its new place"],
    }
    assert texts[-len(meanings[name]) :] == meanings[name]
    assert ("made anew, or an index" in texts) is (name == "GATHER")


def test_the_manual_page_is_one() -> None:
    """Every command has its section, and groff finds nothing wrong."""
    text = (ROOT / "docs" / "dmlemu.1").read_text(encoding="utf-8")
    for command in ("run", "exec", "step", "reduce", "explain"):
        assert f".SH COMMAND \\fI\\,'dmlemu {command}'" in text
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and "warning: macro" not in done.stderr
    assert "step through what the GPU did" in done.stdout
