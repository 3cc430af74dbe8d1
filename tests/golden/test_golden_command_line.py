"""What the command line prints, line for line.

A case is a file of this folder: its first line is the command, the rest what it prints; errors stand
behind ``[stderr]``, an exit code that is not 0 behind ``[exit]``.  Times and places in Python files are
replaced by ``#``.
``DMLEMU_UPDATE_GOLDEN=1 pytest tests/golden`` writes the files anew: look at the difference.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from dmlemu import d3d12
from dmlemu.cli import main
from dmlemu.dml import OperatorType
from dmlemu.dml.declared import definition

HERE = Path(__file__).parent
MODELS = HERE.parent / "programs" / "dxdispatch" / "models"
CASES = sorted(HERE.glob("*/*.txt"))


def normalised(text: str, tmp_path: Path) -> str:
    text = re.sub(r"\d+\.\d+(?= ms)", "#", text)
    text = re.sub(r"(?<= at )\S+\.py:\d+", "#", text)
    return text.replace(str(tmp_path), "/tmp")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_golden(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, expected = case.read_text(encoding="utf-8").partition("\n")
    monkeypatch.chdir(MODELS)
    # An adapter has one device as long as it lives; cases must not share it.
    monkeypatch.setattr(d3d12, "create_adapter_list", lambda: [d3d12.Adapter()])
    if case.stem == "explain_not_emulated":
        assert definition.definition_class(OperatorType.ROI_POOLING)
        monkeypatch.delitem(definition._DEFINED, OperatorType.ROI_POOLING)
    program, *arguments = shlex.split(command.removeprefix("$ ").replace("/tmp", str(tmp_path)))
    assert program == "dmlemu"
    code = run(arguments)
    printed = capsys.readouterr()
    got = printed.out
    got += f"[stderr]\n{printed.err}" if printed.err else ""
    got += f"[exit] {code}\n" if code else ""
    got = normalised(got, tmp_path)
    if os.environ.get("DMLEMU_UPDATE_GOLDEN"):
        case.write_text(f"{command}\n{got}", encoding="utf-8")
    assert got == expected


def run(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as leave:  # argparse
        return int(leave.code or 0)
