"""The sessions in ``docs/guide/dxdispatch.md`` are what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dmlemu import d3d12
from dmlemu.cli import main

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "dxdispatch.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"^```\n\$ dmlemu (.*)\n((?:.*\n)*?)```$", GUIDE, re.MULTILINE)


@pytest.mark.parametrize(("command", "expected"), SESSIONS)
def test_session(
    command: str, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(d3d12, "create_adapter_list", lambda: [d3d12.Adapter()])
    main(shlex.split(command))
    printed = capsys.readouterr()
    assert without_times(printed.out + printed.err) == without_times(expected)


def without_times(text: str) -> str:
    return re.sub(r"[\d.]+(?= ms)", "#", text)


def test_there_are_sessions() -> None:
    assert len(SESSIONS) == 2
