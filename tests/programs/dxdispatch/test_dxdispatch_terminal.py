"""What reaches the terminal of somebody who runs a stranger's model: short, printable, and all of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from dxdispatch_add import put

from dmlemu import d3d12
from dmlemu.cli import main
from dmlemu.errors import Error, Strictness
from dmlemu.frontends import dxdispatch
from dmlemu.frontends.dxdispatch import Options, read_model
from dmlemu.testing import faults

EVIL = "\x1b[31mred\x07\x7f\x9b2J\r\n\u2028\u202eERROR"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]")
BAD_OFFSET = {"name": "A", "elementOffset": 1}  # 4 is not a multiple of 16
HERE = [sys.executable, "-m", "dmlemu"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.json"


def renamed(model: Any, box: str, old: str, new: str) -> Any:
    """The model with another name of a resource or a dispatchable, everywhere."""
    model[box][new] = model[box].pop(old)
    for command in model["commands"]:
        for place in (command, command.get("bindings", {})):
            for key, value in place.items():
                if value == old:
                    place[key] = new
    return model


def shell(command: str, path: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """``command`` with the model for ``$1``; ``dmlemu`` is that of this environment."""
    line = f'dmlemu() {{ "{sys.executable}" -m dmlemu "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", line, "bash", str(path)], capture_output=True, text=True, timeout=60, **options
    )


# --- control characters ---

MISTAKES: list[tuple[str, Any]] = [
    ("resources.A.sizeInBytes", EVIL),
    ("resources.A.sizeInBytes", 1),
    ("resources.A.initialValuesDataType", EVIL),
    ("resources.A.initialValues", {EVIL: 1}),
    ("resources.A.initialValues", {"sourcePath": EVIL}),
    ("resources.A.initialValues", {"sourcePath": "/" + EVIL}),
    ("resources.A.initialValues", {"sourcePath": EVIL + ".png"}),
    ("resources.A", {EVIL: 1}),
    ("resources.A", {"initialValues": "deferred"}),
    ("dispatchables.add.type", EVIL),
    ("dispatchables.add.dmlCompileType", EVIL),
    ("dispatchables.add.bindings", {EVIL: "A"}),
    ("dispatchables.add.bindings", {"BTensor": "B"}),
    ("dispatchables.add.desc.BTensor.Sizes", [1]),
    ("dispatchables.add.desc.ATensor.Flags", EVIL),
    ("commands.0.bindings.ATensor", EVIL),
    ("commands.0.bindings.ATensor", BAD_OFFSET),
    ("commands.0.dispatchable", EVIL),
    ("commands.1.type", EVIL),
    ("commands.1", {"type": "writeFile", "resource": "Out", "targetPath": EVIL}),
    ("commands.1", {"type": "writeFile", "resource": "Out", "targetPath": "../" + EVIL}),
    ("commands.1", {"type": "writeFile", "resource": "Out", "targetPath": EVIL + ".jpg"}),
    (EVIL, [EVIL]),
]


@pytest.mark.parametrize("strictness", ["runtime", "strict"])
@pytest.mark.parametrize(("place", "value"), MISTAKES)
def test_names_do_nothing_to_the_terminal(
    add: Any,
    path: Path,
    place: str,
    value: Any,
    strictness: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(path.parent)
    put(add, place, value)
    for box, name in (("resources", "Out"), ("resources", "A"), ("dispatchables", "add")):
        renamed(add, box, name, name + EVIL)
    path.write_text(json.dumps(add))
    report = path.with_name("report.txt")
    options = ["--print_commands", "-v", "2", "--strictness", strictness, "--report", str(report)]
    main(["run", str(path), *options])
    told = capsys.readouterr()
    for text in (told.out.replace("\t", ""), told.err, report.read_text()):
        assert not CONTROL.search(text), ascii(text)
        assert "\nERROR" not in text  # no line that the model wrote
    assert EVIL[-4:] in told.out + told.err


@pytest.mark.parametrize(
    "arguments", [["run", EVIL], ["run", f"--{EVIL}"], ["checks", EVIL], ["explain", EVIL]]
)
@pytest.mark.parametrize("more", [[], ["-a", EVIL]])
def test_arguments_do_nothing_to_the_terminal(
    arguments: list[str], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        main([*arguments, *more])
    except SystemExit as leave:
        assert leave.code == 2
    told = capsys.readouterr().err
    assert "ERROR" in told
    assert not CONTROL.search(told), ascii(told)


# --- size ---


@pytest.mark.parametrize(
    ("place", "value", "size"),
    [
        *((place, value, 100_000) for place, value in MISTAKES),
        ("resources.A.sizeInBytes", EVIL, 5_000_000),
        ("commands.0.bindings.ATensor", BAD_OFFSET, 5_000_000),
    ],
)
def test_reports_are_short(
    add: Any, path: Path, place: str, value: Any, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "x" * size
    put(add, place, json.loads(json.dumps(value).replace(json.dumps(EVIL)[1:-1], long)))
    for box, name in (("resources", "A"), ("dispatchables", "add")):
        renamed(add, box, name, name + long)
    path.write_text(json.dumps(add))
    report = path.with_name("report.jsonl")
    main(["run", str(path), "--print_commands", "--report", str(report)])
    told = capsys.readouterr()
    assert len(told.err) < 20_000
    assert len(told.out) < 20_000
    assert report.stat().st_size < 40_000
    if told.err:
        assert re.search(r"x \.\.\. \d+ characters \.\.\. x", told.err)


def test_the_count_of_what_is_left_out(add: Any, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(add, "resources.A.sizeInBytes", "ab" * 500)
    path.write_text(json.dumps(add))
    assert main(["run", str(path)]) == 1
    seven = "ab" * 7
    assert f'given "{seven}a ... 970 characters ... b{seven}"; expected' in capsys.readouterr().err


# --- the file of --report ---


def test_a_full_disk_hides_no_error(add: Any, path: Path) -> None:
    put(add, "commands.0.bindings.ATensor", BAD_OFFSET)
    path.write_text(json.dumps(add))
    result = shell('dmlemu run "$1" --report /dev/full', path)
    assert result.returncode == 1
    assert "the reports cannot be written to '/dev/full': No space left on device" in result.stderr
    assert "DML ERROR BIND_OFFSET_ALIGN" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_report_that_cannot_be_written_fails_a_good_run(
    add: Any, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_text(json.dumps(add))
    assert main(["run", str(path), "--report", str(path.parent / "no" / "folder")]) == 1
    told = capsys.readouterr()
    assert "Resource 'Out': 6, 10, -2" in told.out
    assert "the reports cannot be written to" in told.err
    assert "No such file or directory" in told.err


def test_a_pipe_that_nobody_reads_is_not_waited_for(add: Any, path: Path) -> None:
    put(add, "commands.0.bindings.ATensor", BAD_OFFSET)
    path.write_text(json.dumps(add))
    pipe = path.with_name("pipe")
    os.mkfifo(pipe)
    result = shell(f'dmlemu run "$1" --report "{pipe}"', path)
    assert result.returncode == 1
    assert f"the reports cannot be written to '{pipe}': no program reads from it" in result.stderr
    assert "DML ERROR BIND_OFFSET_ALIGN" in result.stderr


def test_a_pipe_that_is_read(add: Any, path: Path) -> None:
    put(add, "commands.0.bindings.ATensor", BAD_OFFSET)
    path.write_text(json.dumps(add))
    result = shell('dmlemu run "$1" --report >(cat) 2>/dev/null | cat', path)
    line = next(line for line in result.stdout.splitlines() if line.startswith("{"))
    assert json.loads(line)["id"] == "BIND_OFFSET_ALIGN"


# --- streams ---


@pytest.mark.parametrize(
    ("ending", "good"),
    [
        *product(["| head -n 0", ">&-", "2>&-", ">&- 2>&-", ">/dev/full", "2>/dev/full"], [False]),
        *product(["| head -n 0", ">&-", ">/dev/full"], [True]),  # nothing is printed to stderr
    ],
)
def test_closed_and_full_streams(add: Any, path: Path, ending: str, good: bool) -> None:
    if not good:
        put(add, "commands.0.bindings.ATensor", BAD_OFFSET)
    path.write_text(json.dumps(add))
    result = shell(f'dmlemu run "$1" {ending}; echo "left with ${{PIPESTATUS[0]}}"', path)
    for text in (result.stdout, result.stderr):
        assert "Traceback" not in text
        assert "Exception ignored" not in text
    code = int(result.stdout.rpartition("left with ")[2])
    is_unread = ending == "| head -n 0" or ending == ">/dev/full"
    assert code == 1 if not good or ending == ">/dev/full" else code == 0 or is_unread
    if not good and ending == ">&-":
        assert "DML ERROR BIND_OFFSET_ALIGN" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        "explain",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in ("--help", "run --help", "checks", "adapters", "--version")
        ),
    ],
)
@pytest.mark.parametrize("ending", ["| head -n 0", ">&-", ">/dev/full"])
def test_closed_and_full_streams_of_other_commands(path: Path, command: str, ending: str) -> None:
    result = shell(f"dmlemu {command} {ending}", path)
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


# --- removal ---


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [
        (
            "commands.0.bindings.ATensor",
            BAD_OFFSET,
            r"bound at Offset \(4\) of buffer 'A', .* multiple of 16",
        ),
        (
            "commands.0.bindings",
            {"ATensor": "A", "BTensor": "B"},
            "OutputTensor .* needs a buffer of 12 bytes",
        ),
        ("dispatchables.add.bindings", {"BTensor": "B"}, "BTensor .* is not OWNED_BY_DML"),
    ],
)
def test_runtime_names_the_reason_of_a_removal(
    add: Any, path: Path, place: str, value: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put(add, place, value)
    path.write_text(json.dumps(add))
    assert main(["run", str(path), "--strictness", "runtime"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("DML ERROR DEVICE_REMOVED")
    assert re.search(rf"The DirectML device was removed \(E_INVALIDARG\)\. .*{why}", told)


def test_a_removal_of_the_gpu_names_reason_and_command(
    add: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text(json.dumps(add))
    create, devices = d3d12.create_device, []

    def create_and_keep(*arguments: Any, **options: Any) -> d3d12.Device:
        devices.append(create(*arguments, **options))
        return devices[0]

    monkeypatch.setattr(d3d12, "create_device", create_and_keep)
    with ExitStack() as stack, pytest.raises(Error) as caught:

        def listen(line: str) -> None:
            if line.startswith("Running"):
                stack.enter_context(faults.removal(devices[0]))

        options = Options(strictness=Strictness.RUNTIME)
        dxdispatch.run_model(read_model(path), d3d12.Adapter(), options, listen)
    report = caught.value.report
    assert report.message.startswith(
        "The Direct3D 12 device was removed (DXGI_ERROR_DEVICE_HUNG). Fault injection removes the device"
    )
    assert any(
        "queue 'of the model', command list 'of the model', command 0" in line for line in report.context
    )
