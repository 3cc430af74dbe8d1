"""Campaigns of native programs: seeds of chaos by ``dmlemu exec``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toolchain import Built, needs_compiler

from dmlemu import campaign
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
