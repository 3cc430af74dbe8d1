"""``dmlemu checks``, and what ``dmlemu run`` does with reports; the text of each check is derived."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dmlemu import d3d12
from dmlemu.checks import catalogue
from dmlemu.checks.framework.describe import describe
from dmlemu.cli import main

MODELS = Path(__file__).parents[1] / "programs" / "dxdispatch" / "models"


def test_list_has_a_line_for_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in lines if line.startswith("  ")]
    assert sorted(row[0] for row in rows) == sorted(catalogue())
    assert all(len(row) > 2 for row in rows) and all(len(line) <= 115 for line in lines)


def test_a_pattern_lists_what_matches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks", "hazard_r*"]) == 0
    heading, line = capsys.readouterr().out.splitlines()
    assert heading == "What barriers and fences must order" and line.split()[:2] == ["HAZARD_RAW", "ERROR"]


@pytest.mark.parametrize("id", ["OP_SHAPE", "hazard_raw"])
def test_page_of_a_check(id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks", id]) == 0
    text = capsys.readouterr().out
    description = describe(catalogue()[id.upper()])
    assert text.startswith(f"{description}\n\n## ")  # the wrong programs follow
    assert f" {id.upper()}" in text[len(description) :]  # with their reports
    assert f"{id.upper()} (ERROR, when " in text and "\n\nFix: " in text
    assert ("It cannot be suppressed" in text) == (id == "OP_SHAPE")
    assert max(map(len, description.splitlines())) <= 100


def test_an_unknown_check_has_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checks", "hazard_rav"]) == 1
    assert capsys.readouterr().err == (
        "dmlemu: error: no check is called HAZARD_RAV; did you mean HAZARD_RAW?\n"
    )


@pytest.mark.dmlemu(expect=["HAZARD_WAW"])
def test_reports_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two dispatches write one buffer: an error at strictness strict, no matter at debug."""
    monkeypatch.setattr(d3d12, "create_adapter_list", lambda: [d3d12.Adapter()])
    path = tmp_path / "reports.jsonl"
    model = str(MODELS / "add.json")
    arguments = ["run", model, "-r", "2", "--post_dispatch_barriers", "none", "--report", str(path)]
    assert main([*arguments, "--strictness", "debug"]) == 0
    assert path.read_text() == "" and capsys.readouterr().err == ""
    assert main([*arguments, "--strictness", "runtime"]) == 0
    assert capsys.readouterr().err == (
        "dmlemu: no checks ran at strictness runtime; strict looks for mistakes.\n"
    )

    assert main(arguments) == 1  # strict is the default
    (line,) = path.read_text().splitlines()
    report = json.loads(line)
    assert (report["id"], report["severity"]) == ("HAZARD_WAW", "ERROR")
    printed = capsys.readouterr().err
    assert printed.count("HAZARD_WAW [") == 1, "what was raised is not told twice"
    assert "While dispatching 'add' ($.commands[1])" in printed and " at dmlemu:" not in printed


def test_a_model_has_no_lines_in_python_however_the_command_is_started() -> None:
    arguments = ["run", str(MODELS / "add.json"), "-r", "2", "--post_dispatch_barriers", "none"]
    command = [sys.executable, "-m", "dmlemu", *arguments, "--strictness", "strict"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "HAZARD_WAW" in done.stderr
    assert "runpy" not in done.stderr and " at dmlemu:" not in done.stderr


def test_refusals_of_a_model_are_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(d3d12, "create_adapter_list", lambda: [d3d12.Adapter()])
    path = tmp_path / "reports.txt"
    assert main(["run", str(MODELS / "malformed" / "shape.json"), "--report", str(path)]) == 1
    assert path.read_text().strip() == capsys.readouterr().err.strip()
    assert "OP_SHAPE" in path.read_text()


def test_a_report_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none" / "x.jsonl"
    assert main(["run", str(MODELS / "add.json"), "--report", str(path)]) == 1
    told = f"dmlemu: error: the reports cannot be written to '{path}': No such file or directory\n"
    assert capsys.readouterr().err.endswith(told)


def test_remarks_are_told_when_something_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Strides in the order of NHWC reach past the buffer: the remark says why."""
    monkeypatch.setattr(d3d12, "create_adapter_list", lambda: [d3d12.Adapter()])
    tensor = {"DataType": "FLOAT32", "Sizes": [1, 3, 2, 2]}
    image = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 12, "value": 1}}
    copy = {
        "type": "ELEMENT_WISE_IDENTITY",
        "desc": {"InputTensor": {**tensor, "Strides": [12, 6, 3, 1]}, "OutputTensor": tensor},
    }
    bindings = {"InputTensor": "image", "OutputTensor": "planes"}
    model = {
        "resources": {"image": image, "planes": image},
        "dispatchables": {"copy": copy},
        "commands": [{"type": "dispatch", "dispatchable": "copy", "bindings": bindings}],
    }
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    assert main(["run", str(path), "--debug"]) == 1
    first, second = capsys.readouterr().err.strip().split("\n\n")
    assert "INFO TENSOR_LAYOUT_GUESS" in first and "ERROR BIND_SIZE_SMALL" in second
    assert second.startswith("dmlemu: 2 reports have pictures; --report FILE.html draws them.\n")

    copy["desc"]["InputTensor"] = {**tensor, "Strides": [12, 1, 6, 3]}  # type: ignore[index]
    path.write_text(json.dumps(model))
    assert main(["run", str(path), "--debug"]) == 0 and capsys.readouterr().err == ""
