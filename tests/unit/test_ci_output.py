"""What ``run`` and ``--report`` give to continuous integration: SARIF, annotations of GitHub, Code Quality
of GitLab.

With DMLEMU_SARIF_MULTITOOL set to the program of the npm package @microsoft/sarif-multitool-linux, a log is
checked by the rules of SARIF and of GitHub, too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dmlemu import Report, Severity, d3d12
from dmlemu.cli import main
from dmlemu.diagnostics.location import note_source, source_of
from dmlemu.diagnostics.reporting.ci_output import annotation, code_quality_issue, places, result
from dmlemu.reporting import ReportFile, Stored

MODELS = Path(__file__).parents[1] / "programs" / "dxdispatch" / "models"
HERE = Path(__file__).name
TWO_PLACES = Report(
    "HAZARD_RAW",
    "B reads what A writes.",
    context=(f"A was recorded at {HERE}:11 as command 1", f"B was recorded at {HERE}:14 as command 2"),
    created_at=f"{HERE}:10",
    hint="ResourceBarrier(UAV('act')) between the two",
)


def sarif(path: Path) -> Any:
    """The only run of a log."""
    log = json.loads(path.read_text())
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    assert run["tool"]["driver"]["name"] == "dmlemu"
    return run


@pytest.fixture(autouse=True)
def sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    for line in (10, 11, 14):
        note_source(HERE, __file__, line)


@pytest.mark.parametrize(
    ("name", "uri"), [(os.fsdecode(b"\xff <.py"), "%FF%20%3C.py"), ("\ud800.py", "%3F.py")]
)
def test_a_name_of_a_file_need_not_be_text(name: str, uri: str, tmp_path: Path) -> None:
    """Bytes that are no UTF-8 stay those bytes."""
    for end in (".sarif", ".codequality.json", ".html", ".txt", ".jsonl"):
        file = ReportFile(tmp_path / f"{os.fsdecode(bytes([255]))}{end}", program=name)
        file(Stored(Report("HAZARD_RAW", f"{name} </script>\0", severity=Severity.ERROR)))
        file.close()
    (found,) = sarif(next(tmp_path.glob("*.sarif")))["results"]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    assert "</script>" not in next(tmp_path.glob("*.html")).read_text()


def test_a_result_has_its_other_places_and_its_hint() -> None:
    found = result(json.loads(Stored(TWO_PLACES).json()))
    assert found["message"]["text"] == f"{TWO_PLACES.message}\nhint: {TWO_PLACES.hint}"
    uri = f"tests/unit/{HERE}"
    location = {"artifactLocation": {"uri": uri}, "region": {"startLine": 11}}
    assert found["locations"] == [{"physicalLocation": location}]
    related = [
        (each["physicalLocation"]["region"]["startLine"], each["message"]["text"])
        for each in found["relatedLocations"]
    ]
    assert related == [(14, TWO_PLACES.context[1]), (10, f"created at {HERE}:10")]
    assert {each["physicalLocation"]["artifactLocation"]["uri"] for each in found["relatedLocations"]} == {
        uri
    }


def test_a_report_without_a_line_is_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """GitHub refuses a whole file in which one result has no place."""
    row = json.loads(Stored(Report("AN_ID", "It is wrong.")).json())
    for script, program in (("Makefile", "Makefile"), ("-c", os.path.realpath(sys.executable))):
        monkeypatch.setattr(sys, "argv", [script])
        (location,) = result(row)["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"].removeprefix("file://") == program
        assert code_quality_issue(row)["location"] == {"path": program, "lines": {"begin": 1}}
    assert annotation(row) == "::error title=AN_ID::It is wrong."
    assert places({**row, "file": "model.json"}) == [("model.json", 1, "")]


def test_an_annotation_is_escaped() -> None:
    row = json.loads(Stored(Report("AN_ID", "100 %\nof it", hint="do")).json())
    row["file"] = "a,b:c.json"
    assert annotation(row) == "::error file=a%2Cb%3Ac.json,line=1,title=AN_ID::100 %25%0Aof it%0Ahint: do"


def test_paths_are_those_in_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever in it the program runs, as in the build folder of CMake; CI may name a checkout."""
    source, build = tmp_path / "checkout" / "module" / "a.cpp", tmp_path / "checkout" / "module" / "build"
    build.mkdir(parents=True)
    source.touch()
    monkeypatch.chdir(build)
    row = {**json.loads(Stored(Report("AN_ID", "It is wrong.")).json()), "file": "../a.cpp"}

    def shown() -> list[str]:
        found = re.search("file=([^,]*)", annotation(row))
        uri = result(row)["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        return [found[1] if found else "", uri, code_quality_issue(row)["location"]["path"]]

    assert shown() == ["../a.cpp"] * 3
    (source.parent / ".git").touch()
    assert shown() == ["a.cpp"] * 3
    for variable in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, str(tmp_path / "checkout"))
            assert shown() == ["module/a.cpp"] * 3
            monkeypatch.chdir(tmp_path)
            row["file"] = str(source)
            assert shown() == ["module/a.cpp"] * 3
    assert shown() == ["checkout/module/a.cpp"] * 3
    monkeypatch.chdir("/proc")
    assert shown() == [str(source), f"file://{source}", str(source)]


def test_an_issue_of_code_quality() -> None:
    row = json.loads(Stored(TWO_PLACES).json())
    issue = code_quality_issue(row)
    assert re.fullmatch("[0-9a-f]{64}", issue.pop("fingerprint"))
    assert issue == {
        "check_name": "HAZARD_RAW",
        "description": f"HAZARD_RAW: {TWO_PLACES.message}\nhint: {TWO_PLACES.hint}",
        "severity": "critical",
        "location": {"path": f"tests/unit/{HERE}", "lines": {"begin": 11}},
    }
    suppressed = code_quality_issue({**row, "suppressed": "a reason"})
    assert suppressed["severity"] == "info" and suppressed["description"].endswith(" (suppressed: a reason)")
    other = code_quality_issue({**row, "test": "test_it.py::test"})
    assert other["fingerprint"] != code_quality_issue(row)["fingerprint"]


def test_a_file_of_code_quality_is_whole_after_each_report(tmp_path: Path) -> None:
    path = tmp_path / "gl.codequality.json"
    file = ReportFile(path)
    assert json.loads(path.read_text()) == []
    for count, id in enumerate(("HAZARD_RAW", "AN_ID"), 1):
        file(Stored(Report(id, "It is wrong.", severity=Severity.WARNING)))
        assert [each["check_name"] for each in json.loads(path.read_text())] == ["HAZARD_RAW", "AN_ID"][
            :count
        ]
    file.close()
    assert {each["severity"] for each in json.loads(path.read_text())} == {"minor"}


@pytest.mark.skipif("DMLEMU_SARIF_MULTITOOL" not in os.environ, reason="names no program that checks SARIF")
def test_the_rules_of_github_for_sarif(tmp_path: Path) -> None:
    file = ReportFile(tmp_path / "reports.sarif")
    for report in (TWO_PLACES, Report("AN_ID", "It is wrong.")):
        file(Stored(report))
    file.close()
    done = subprocess.run(
        [
            os.environ["DMLEMU_SARIF_MULTITOOL"],
            "validate",
            tmp_path / "reports.sarif",
            "--rule-kind",
            "Sarif;Ghas",
        ],
        env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "Analysis completed successfully" in done.stdout, done.stdout + done.stderr
    assert ": error " not in done.stdout, done.stdout


def test_a_line_of_two_files_is_not_known() -> None:
    note_source("twice.py", __file__, 3)
    assert source_of("twice.py", 3) == f"tests/unit/{HERE}"
    note_source("twice.py", os.__file__, 3)
    assert source_of("twice.py", 3) == ""
    note_source("gone.py", "/nowhere/gone.py", 3)
    assert source_of("gone.py", 3) == ""
    note_source("os.py", os.__file__, 3)
    assert source_of("os.py", 3) == os.__file__


def test_a_sarif_file_is_whole_after_each_report(tmp_path: Path) -> None:
    path = tmp_path / "reports.SARIF"
    file = ReportFile(path)
    assert sarif(path)["results"] == []
    assert sarif(path)["automationDetails"] == {"id": "dmlemu/reports/"}
    first, second = Stored(TWO_PLACES), Stored(Report("AN_ID", "text", severity=Severity.INFO))
    for count, each in enumerate((first, second), 1):
        file(each)
        assert len(sarif(path)["results"]) == count
    first.count = 5
    file.close()
    run = sarif(path)
    assert [(each["ruleId"], each["level"], each["occurrenceCount"]) for each in run["results"]] == [
        ("HAZARD_RAW", "error", 5),
        ("AN_ID", "note", 1),
    ]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == ["AN_ID", "HAZARD_RAW"]


@pytest.mark.parametrize("name", ["reports.xml", "reports.jsonl.gz", "reports.log"])
def test_other_names_are_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    with pytest.raises(ValueError, match=r"expected \.json or \.jsonl for JSON lines, \.txt"):
        ReportFile(path)
    for command in (["run", str(MODELS / "add.json")], ["exec"]):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--report", str(path), *(["true"] if command == ["exec"] else [])])
        assert ended.value.code == 2
        assert f"'{path}' ends in {path.suffix}; expected .json or" in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.dmlemu(expect=["HAZARD_WAW"])
def test_a_run_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reports name the model: no line of a program has called."""
    monkeypatch.setattr(d3d12, "create_adapter_list", lambda: [d3d12.Adapter()])
    model = os.path.relpath(MODELS / "add.json")
    command = ["run", model, "-r", "2", "--post_dispatch_barriers", "none", "--strictness", "strict"]
    assert main([*command, "--report", str(tmp_path / "r.sarif")]) == 1
    assert "::" not in capsys.readouterr().err
    (found,) = sarif(tmp_path / "r.sarif")["results"]
    assert found["ruleId"] == "HAZARD_WAW"
    location = found["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": model}, "region": {"startLine": 1}}

    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setattr(d3d12, "create_adapter_list", lambda: [d3d12.Adapter()])
    assert main(command) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("::")]
    assert line.startswith(f"::error file={model},line=1,title=HAZARD_WAW::")
