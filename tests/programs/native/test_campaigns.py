"""Campaigns of native programs: seeds of chaos by ``dmlemu exec``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from toolchain import Built, needs_compiler, run

from dmlemu import campaign
from dmlemu.campaign.report import write_reports
from dmlemu.frontends.usage import UsageError

pytestmark = needs_compiler


@pytest.fixture
def program(built: Built) -> str:
    """A program that does what its first argument says."""
    return str(built("ends"))


@pytest.fixture
def here(tmp_path: Path) -> dict[str, Any]:
    return {"database": tmp_path / "campaign.db", "workers": 0, "tell": lambda text: None, "seeds": 2}


def under_chaos(program: str, does: str) -> list[str]:
    """Arguments of sh: a program that does something else under chaos alone."""
    return ["-c", f'if [ -n "$DMLEMU_CHAOS" ]; then {does}; fi; exec "$0" right', program]


def test_a_right_program_passes(program: str, here: dict[str, Any]) -> None:
    assert campaign.run(program, arguments=["right"], **here)


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("nothing", r"ends: 0 devices were created\. Chaos would change nothing"),
        ("wrong", "ends with status 1 without chaos, too: COPY_RANGE"),
    ],
)
def test_what_no_seed_could_tell_is_refused(
    program: str, here: dict[str, Any], does: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        campaign.run(program, arguments=[does], **here)


def test_a_program_that_is_not_deterministic_is_refused(program: str, here: dict[str, Any]) -> None:
    arguments = ["-c", 'date +%s.%N; exec "$0" right', program]
    with pytest.raises(
        UsageError, match=r"sh itself is not deterministic: without chaos, line 1 is '[0-9.]+' in one"
    ):
        campaign.run("sh", arguments=arguments, **here)


def test_a_failure_is_reduced_to_the_fewest_arguments(
    program: str, here: dict[str, Any], tmp_path: Path
) -> None:
    arguments = [*under_chaos(program, "exit 3"), "--more", "of", "--this"]
    found = campaign.run("sh", arguments=arguments, reduce_to=tmp_path / "out", **here)

    (cause,), (reduced,) = found.causes, found.reduced
    assert cause.smallest.index == 0  # of the seeds that fail
    assert "3 of 6 arguments are not needed." in reduced.text
    (script,) = [path for path in reduced.files if path.suffix == ".sh"]
    assert "--more" not in script.read_text() and "--chaos 0" in script.read_text()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    assert run("sh", script, PATH=path).returncode == 3


def test_a_report_under_chaos_has_its_line(program: str, here: dict[str, Any], tmp_path: Path) -> None:
    arguments = under_chaos(program, 'exec "$0" wrong')
    found = campaign.run("sh", arguments=arguments, reduce_to=tmp_path / "out", **here)

    write_reports(found, sarif=tmp_path / "found.sarif")
    (log,) = json.loads((tmp_path / "found.sarif").read_text())["runs"]
    (result,) = [each for each in log["results"] if each["ruleId"] == "COPY_RANGE"]
    place = result["locations"][0]["physicalLocation"]
    source = (Path(__file__).parent / "ends.cpp").read_text().splitlines()
    assert place["artifactLocation"]["uri"].endswith("ends.cpp")
    assert "// copies" in source[place["region"]["startLine"] - 1]


def test_a_program_that_hangs_without_chaos_is_refused(here: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="sleep takes longer than 2 seconds without chaos, too"):
        campaign.run("sleep", hang=2, arguments=["100"], **here)


@pytest.mark.parametrize(
    ("does", "rule", "kind"),
    [
        ("sleep 100", "ends within its limit", "hang"),
        ("exit 3", "same exit status under chaos", "status 3"),
        ("echo more", "same output under chaos", "other output"),
        ('exec "$0" nothing', "makes a device under chaos", "no device"),
    ],
)
def test_a_program_that_changes_under_chaos_fails(
    program: str, here: dict[str, Any], does: str, rule: str, kind: str
) -> None:
    found = campaign.run("sh", hang=15, arguments=under_chaos(program, does), **{**here, "seeds": 1})

    assert [each.smallest.cause for each in found.causes] == [("sh", rule, kind)]
