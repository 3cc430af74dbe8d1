"""Names that do not exist: what is said, and what somebody may have meant."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dmlemu import Error, Strictness, d3d12, environment, recording
from dmlemu.cli import main
from dmlemu.frontends.dxdispatch import ModelError, read_model
from dmlemu.reporting import defaults
from dmlemu.suggestions import nearest, question

ROOT = Path(__file__).parents[2]
TENSOR = {"DataType": "FLOAT32", "Sizes": [4]}
MODEL = {
    "resources": {"A": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3, 4]}},
    "dispatchables": {
        "copy": {
            "type": "DML_OPERATOR_ELEMENT_WISE_IDENTITY",
            "desc": {"InputTensor": TENSOR, "OutputTensor": TENSOR},
        }
    },
    "commands": [],
}


@pytest.mark.parametrize(
    ("name", "names", "found"),
    [
        ("GEM", ["GEMM", "SLICE"], ["GEMM"]),
        ("conv", ["CONVOLUTION_INTEGER", "CONVOLUTION", "CAST"], ["CONVOLUTION", "CONVOLUTION_INTEGER"]),
        ("ADD", ["ELEMENT_WISE_ADD", "PADDING"], ["ELEMENT_WISE_ADD"]),
        ("strickt", ["runtime", "debug", "strict"], ["strict"]),
        ("XYZZY", ["GEMM"], []),
        ("", ["GEMM"], []),
    ],
)
def test_nearest(name: str, names: list[str], found: list[str]) -> None:
    assert nearest(name, names) == found


def test_a_question_has_all_of_them() -> None:
    assert question([]) == ""
    assert question(["A"]) == "did you mean A?"
    assert question(["A", "B", "C"]) == "did you mean A, B or C?"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["explain", "CONV"],
            "no operator, check or rule is called CONV; did you mean CONVOLUTION or CONVOLUTION_INT",
        ),
        (["explain", "HAZARD"], "no operator, check or rule is called HAZARD; did you mean HAZARD_"),
        (
            ["explain", "XYZZY"],
            "no operator, check or rule is called XYZZY; 'dmlemu explain' lists the operators",
        ),
        (["checks", "TILE"], "no check is called TILE; did you mean TILE_"),
        (
            ["run", "py1.py"],
            "py1.py is not a JSON or ONNX model, which 'dmlemu run' runs; try: python py1.py, "
            "or with PyTorch, TensorFlow or PyDirectML: dmlemu exec python py1.py",
        ),
        (
            ["run", "a.dmlrec"],
            "a.dmlrec is not a JSON or ONNX model, which 'dmlemu run' runs; try: dmlemu replay a.dmlrec",
        ),
    ],
)
def test_the_command_line_says_what_may_be_meant(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    assert capsys.readouterr().err.startswith(f"dmlemu: error: {said}")


def test_without_a_command_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr().err
    assert "\n    run       run a DxDispatch JSON model or an ONNX model\n" in said
    assert "\n    checks    list the checks, or explain one\n" in said
    assert said.endswith("\ndmlemu: error: a COMMAND is missing\n")


COMPILE = "compile it with the options of 'dmlemu capi --cflags' and 'dmlemu capi --libs'"


@pytest.mark.parametrize(
    ("name", "content", "mode", "said"),
    [
        ("a.exe", "MZ", 0o755, f"it is a Windows program. With its source: {COMPILE}"),
        ("m.json", "{}", 0o644, "Permission denied. A JSON model is run by: dmlemu run {path}"),
        ("m.cpp", "", 0o644, f"Permission denied. It is a source: {COMPILE}"),
        ("a.out", "\x7fELF", 0o644, "Permission denied; if it is a program: chmod +x {path}"),
        ("missing", None, 0, "No such file or directory"),
    ],
)
def test_exec_says_why_a_program_cannot_be_started(
    name: str, content: str | None, mode: int, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    assert main(["exec", str(path)]) == 127
    assert capfd.readouterr().err == f"dmlemu: error: '{path}' cannot be run: {said.format(path=path)}\n"


def test_exec_says_where_a_program_without_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["exec", "of_nobody"]) == 127
    assert capfd.readouterr().err.endswith(" cannot be run: No such file or directory on the PATH\n")
    Path("of_nobody").touch(0o755)
    assert main(["exec", "of_nobody"]) == 127
    assert capfd.readouterr().err.endswith(" on the PATH; the one of this folder is ./of_nobody\n")


@pytest.mark.dmlemu(expect=["ARGUMENT_RANGE"])
def test_a_strictness_that_does_not_exist() -> None:
    with pytest.raises(Error, match=r"hint: did you mean strict\?"):
        d3d12.create_device(strictness="strickt")  # type: ignore[arg-type]
    said = r"'strickt' is not a strictness; expected runtime, debug or strict \(did you mean strict\?\)"
    with pytest.raises(ValueError, match=said):
        Strictness("strickt")
    with pytest.raises(ValueError, match=said):
        recording.replay(recording.Record(), strictness="strickt")
    with pytest.raises(ValueError, match=said):
        defaults.strictness = "strickt"  # type: ignore[assignment]


CREATE = "from dmlemu import d3d12; d3d12.create_device(); d3d12.create_device(d3d12.Adapter())"


def test_a_misspelt_variable_is_told_once() -> None:
    known = {"DMLEMU_ISA": "generic", "DMLEMU_THOROUGH": ""}
    for given, said in (
        (
            {"DMLEMU_STRICKTNESS": "strict"},
            "DMLEMU_STRICKTNESS is not a variable of dmlemu and is ignored; did you mean DMLEMU_STRICTNESS?",
        ),
        (
            {"DMLEMU_XYZZY": ""},
            "DMLEMU_XYZZY is not a variable of dmlemu and is ignored; its variables are DMLEMU_ALL_OBJECTS, ",
        ),
        ({}, ""),
    ):
        done = subprocess.run(
            [sys.executable, "-c", CREATE],
            env={"PATH": "", **known, **given},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stderr.startswith(f"dmlemu: {said}" if said else "")
        assert done.stderr.count("\n") == bool(said)


def test_the_variables_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    listed = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `DMLEMU_")}
    assert listed == {f"DMLEMU_{each}" for each in environment._OURS}
    tests = "\n".join(each.read_text() for each in (ROOT / "tests").rglob("*.py"))
    assert all(f"DMLEMU_{each}" in tests for each in environment._OF_OUR_TESTS)


def model_with(tmp_path: Path, change: Any) -> Path:
    model = json.loads(json.dumps(MODEL))
    change(model)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    return path


def tensor(model: Any) -> Any:
    return model["dispatchables"]["copy"]["desc"]["InputTensor"]


@pytest.mark.parametrize(
    ("change", "path", "meant"),
    [
        (lambda model: tensor(model).update(Stride=[1]), "InputTensor.Stride", "Strides"),
        (lambda model: tensor(model).update(strides=[1]), "InputTensor.strides", "Strides"),
        (
            lambda model: model["resources"]["A"].update(sizeInByte=64),
            "resources.A.sizeInByte",
            "sizeInBytes",
        ),
        (
            lambda model: model["dispatchables"]["copy"].update(executionFlag=[]),
            ".executionFlag",
            "executionFlags",
        ),
    ],
)
def test_a_misspelt_member_of_a_model_is_refused(change: Any, path: str, meant: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        read_model(model_with(tmp_path, change))
    report = caught.value.report
    assert report.field.endswith(path)
    assert (report.expected, report.hint) == (meant, f"did you mean {meant}?")


def test_other_members_of_a_model_are_comments(tmp_path: Path) -> None:
    def change(model: Any) -> None:
        tensor(model).update(comment="the weights", name="weights", Layout="NCHW")
        model["resources"]["A"]["comment"] = "x"

    read_model(model_with(tmp_path, change))
