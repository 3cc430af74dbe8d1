"""``dmlemu exec``: its status, its files, and what it can be put in front of."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from io import FileIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from toolchain import (
    DMLEMU,
    HERE,
    NO_DEVICE,
    NOTHING,
    Built,
    capi,
    compiled,
    marked_lines,
    needs_compiler,
    run,
    run_alone,
    start,
)

from processes import started

pytestmark = needs_compiler


@pytest.fixture
def program(built: Built) -> Path:
    """A program that copies out of range, and does what its first argument says."""
    return built("ends")


def test_status_is_the_programs_own_unless_an_error_was_reported(program: Path) -> None:
    assert run(*DMLEMU, "exec", "--strict", program, "right").returncode == 0
    assert run(*DMLEMU, "exec", "--strict", program, "wrong").returncode == 1
    assert run(*DMLEMU, "exec", program, "wrong").returncode == 0  # at runtime nothing is reported
    assert run(*DMLEMU, "exec", "--strict", program, "wrong", "5").returncode == 5
    assert run(*DMLEMU, "exec", "--strict", program, "abort").returncode == 128 + signal.SIGABRT


CAUSES = {
    "right": NOTHING,
    "closed": r"dmlemu: CopyBufferRegion failed \(E_INVALIDARG\): The 100 bytes at offset 0 run 36 bytes .*"
    "; --strict looks for the cause.\n",
    "removed": r"dmlemu: a device was removed \(DXGI_ERROR_INVALID_CALL\): .* is executed while it is open"
    "; --strict looks for the cause.\n",
}


@pytest.mark.parametrize("does", CAUSES)
def test_the_last_line_says_that_no_checks_ran(program: Path, does: str) -> None:
    """And what failed, whose cause the program may have ignored."""
    done = run(*DMLEMU, "exec", program, does)
    assert done.returncode == 0
    assert re.fullmatch(CAUSES[does], done.stderr), done.stderr


@pytest.mark.parametrize("strictness", ["debug", "strict"])
def test_no_last_line_says_so_where_checks_ran(program: Path, strictness: str) -> None:
    assert "no checks ran" not in run(*DMLEMU, "exec", "--strictness", strictness, program, "closed").stderr


def test_the_last_line_says_that_there_was_no_device(program: Path) -> None:
    """A program that falls back to the CPU looks like one in which nothing is wrong."""
    assert run(*DMLEMU, "exec", "true").stderr == NO_DEVICE
    done = run(*DMLEMU, "exec", "--strict", program, "nothing")
    assert (done.returncode, done.stderr) == (0, "dmlemu: 0 devices were created.\n")
    done = run(*DMLEMU, "exec", program, "nothing", "refused")
    assert re.fullmatch(
        r"dmlemu: 0 devices were created: D3D12CreateDevice failed \(E_\w+\): .*\.\n", done.stderr
    ), done.stderr
    assert run(*DMLEMU, "exec", "sh", "-c", "kill -TERM $$").stderr == ""


def test_warnings_are_errors_on_request(program: Path) -> None:
    for options, does, status in (
        ([], "warning", 0),
        (["--werror"], "warning", 1),
        (["--werror"], "right", 0),
        (["--werror"], "nothing", 1),
        (["--werror", "--suppress", "RES_STATE_IGNORED=on purpose"], "warning", 0),
    ):
        done = run(*DMLEMU, "exec", "--strict", *options, program, does)
        assert done.returncode == status, done.stderr


ALONE = {  # the value of DMLEMU_EXIT_CODE, what the program does, its own status, and how it ends
    ("", "wrong", 0): 0,
    ("report", "wrong", 0): 1,
    ("report", "wrong", 5): 5,
    ("report", "right", 0): 0,
    ("report", "warning", 0): 0,
    ("warning", "warning", 0): 1,
    ("warning", "right", 0): 0,
}


@pytest.mark.parametrize("mode", ["direct", "isolated"])
def test_the_status_of_a_program_that_runs_by_itself(program: Path, mode: str) -> None:
    """Functions of the program at exit still run, and its output is whole."""
    for (code, does, own), status in ALONE.items():
        variables = {"DMLEMU_EXIT_CODE": code, "DMLEMU_STRICTNESS": "strict", "DMLEMU_CAPI_MODE": mode}
        done = run_alone(program, does, str(own), "at-exit", **variables)
        assert (done.returncode, done.stdout) == (status, "at exit\n"), (code, does, own, done.stderr)


def test_the_last_line_is_of_programs_that_used_a_device(program: Path) -> None:
    assert run(*DMLEMU, "exec", "sh", "-c", f"{program} right; {program} right").stderr == NOTHING


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on(program: Path, number: signal.Signals) -> None:
    """The program ends by them, and nothing of it is left."""
    with start(*DMLEMU, "exec", program, "wait") as process:
        assert process.stdout is not None and process.stdout.readline() == "waiting\n"
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("", NOTHING)  # at the end of all that could write
        assert process.returncode == 128 + number


def test_a_program_may_handle_signals(tmp_path: Path) -> None:
    script = "trap 'echo got it; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    with start(*DMLEMU, "exec", "sh", "-c", script) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.communicate(timeout=60) == ("got it\n", NO_DEVICE)
        assert process.returncode == 7


COUNTING = """
import signal, sys, time

def count(*_):
    global interrupts
    interrupts += 1
    print("interrupted", flush=True)

interrupts = 0
signal.signal(signal.SIGINT, count)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(interrupts))
print("ready", flush=True)
while True:
    time.sleep(10)
"""


def test_an_interrupt_of_the_terminal_arrives_once() -> None:
    """The terminal sends it to the program, too: exec passes it on to nobody."""
    ours, theirs = pty.openpty()
    command = [*DMLEMU, "exec", sys.executable, "-c", COUNTING]
    with (
        started(command, on_terminal=True, stdin=theirs, stdout=theirs, stderr=theirs) as process,
        open(ours, "r+b", buffering=0) as terminal,
    ):
        os.close(theirs)
        _read_to(terminal, b"ready")
        terminal.write(b"\x03")
        _read_to(terminal, b"interrupted")
        process.terminate()  # exec handles it after the interrupt
        assert process.wait(60) == 1


def _read_to(terminal: FileIO, text: bytes) -> None:
    said = b""
    while text not in said:
        said += terminal.read(1000)


IGNORING = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_the_status_where_sigchld_is_ignored() -> None:
    """It is ignored in the program, too."""
    shows = "import signal, sys; sys.exit(3 + (signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN))"
    done = run(sys.executable, "-c", IGNORING, *DMLEMU, "exec", sys.executable, "-c", shows)
    assert (done.returncode, done.stderr) == (4, NO_DEVICE)


def test_open_files_are_those_of_exec() -> None:
    command = " ".join(map(str, DMLEMU))
    done = run("bash", "-c", f"{command} exec bash -c 'read -u 5 line; echo $line' 5<<<'a line'")
    assert (done.stdout, done.stderr, done.returncode) == ("a line\n", NO_DEVICE, 0)


BROKEN = """
import importlib.abc, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "dmlemu.frontends.capi.startup":
            from dmlemu import d3d12

            def broken(self, initial_value, flags):
                raise ZeroDivisionError("broken on purpose")

            d3d12.Device.create_fence = broken

sys.meta_path.insert(0, Finder())
"""


def test_a_bug_of_ours_gives_70_and_one_traceback(program: Path, tmp_path: Path) -> None:
    """In an environment whose modules are this one's, where a method raises what it never should."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    (packages,) = tmp_path.glob("lib/python*/site-packages")
    (packages / "broken.py").write_text(BROKEN)
    real = [each for each in sys.path if each.endswith("site-packages")]
    lines = [f"import site; site.addsitedir({each!r})" for each in real]
    (packages / "all.pth").write_text("\n".join([*lines, "import broken"]))
    done = run(tmp_path / "bin" / "python", "-m", "dmlemu", "exec", program, "right")
    assert done.returncode == 70, done.stderr
    assert done.stderr.count("Traceback (most recent call last)") == 1
    assert "a bug of dmlemu in ID3D12Device::CreateFence, which returns E_FAIL" in done.stderr


def test_reports_in_a_file_and_a_summary_with_the_objects_left(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "reports.json"
    done = run(*DMLEMU, "exec", "--strict", "--report", file, program, "leak")
    (report,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (report["id"], report["severity"], report["count"]) == ("COPY_RANGE", "ERROR", 2)
    assert "ends.cpp" in " ".join(report["context"])
    assert done.returncode == 1
    assert "\n1 ERROR\n  ERROR COPY_RANGE (2 times): " in done.stderr
    alive = done.stderr.partition(" objects are still alive:\n")[2]
    assert re.search(
        r"  buffer 'left behind', created at .*ends\.cpp:\d+ in main\), references: 1\n", alive
    ), alive


def test_reports_as_sarif_and_as_annotations(program: Path, tmp_path: Path) -> None:
    """Also of a program that crashes; with the path of its source."""
    for name in ("reports.sarif", "reports.xml"):
        done = run_alone(program, "right", DMLEMU_REPORT=str(tmp_path / name))
        assert done.returncode == (0 if name == "reports.sarif" else 2), done.stderr
    assert "dmlemu: Direct3D cannot start: DMLEMU_REPORT is wrong: " in done.stderr
    file = tmp_path / "reports.sarif"
    done = run(*DMLEMU, "exec", "--strict", "--report", file, program, "wrong", GITHUB_ACTIONS="true")
    source = HERE / "ends.cpp"
    (copies,) = marked_lines("ends.cpp")["copies"]
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("::")]
    where = os.path.relpath(source) if source.is_relative_to(Path.cwd()) else source
    assert line.startswith(f"::error file={where},line={copies},title=COPY_RANGE::")
    (found,) = json.loads(file.read_text())["runs"][0]["results"]
    assert found["occurrenceCount"] == 2
    location = found["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"].endswith("tests/programs/native/ends.cpp")
    assert location["region"] == {"startLine": copies}


@pytest.mark.parametrize("option", ["--report", "--record", "--trace", "--html"])
def test_a_full_disk_at_the_end_is_one_line(program: Path, option: str) -> None:
    done = run(*DMLEMU, "exec", "--strict", option, "/dev/full", program, "early")
    what = {"--report": "the reports", "--record": "the record", "--trace": "the timeline"}
    what["--html"] = "the page"
    said = f"dmlemu: {what[option]} cannot be written to '/dev/full': No space left on device\n"
    assert done.stderr.endswith(said) and "Traceback" not in done.stderr
    assert done.returncode == 1
    assert run(*DMLEMU, "exec", "--trace", "/dev/full", program, "right").returncode == 1


def test_suppressed_checks_are_no_errors(program: Path) -> None:
    suppress = ["--suppress", "READBACK_EARLY=the values are not used"]
    assert run(*DMLEMU, "exec", "--strict", program, "early").returncode == 1
    done = run(*DMLEMU, "exec", "--strict", *suppress, program, "early")
    assert done.returncode == 0, done.stderr
    assert "READBACK_EARLY [Map] is suppressed: the values are not used" in done.stderr
    for wrong in ("READBACK_EARLY", "NO_SUCH_CHECK=reason", "COPY_RANGE=a refusal"):
        done = run(*DMLEMU, "exec", "--suppress", wrong, program, "right")
        assert done.returncode == 2, wrong
        assert wrong.partition("=")[0] in done.stderr
        assert "Traceback" not in done.stderr


def test_what_only_a_debug_layer_refuses_can_be_suppressed(built: Built) -> None:
    """The call has its effect, as without checks; what Windows always refuses stays an error."""
    suppress = ["--suppress", "BIND_ALIAS=the sum is computed in place"]
    done = run(*DMLEMU, "exec", "--strict", *suppress, built("consequences"))
    assert "in place 2\n" in done.stdout
    assert "BIND_ALIAS [RecordDispatch] is suppressed: the sum is computed in place\n" in done.stderr
    assert not re.search(r"ERROR BIND_ALIAS \[.*\]$", done.stderr, re.MULTILINE), done.stderr
    assert "ERROR COPY_RANGE" in done.stderr


def test_scripts_and_debuggers_keep_status_and_libraries(program: Path) -> None:
    done = run(*DMLEMU, "exec", "--strict", "sh", "-c", f'"{program}" wrong && "{program}" right')
    assert (done.returncode, done.stderr.count("D3D12 ERROR COPY_RANGE")) == (1, 1)
    assert run(*DMLEMU, "exec", "--strict", "sh", "-c", f'"{program}" wrong; exit 4').returncode == 4
    done = run(*DMLEMU, "exec", "--strict", "true")  # linked with nothing of ours
    assert (done.returncode, done.stdout, done.stderr) == (0, "", NO_DEVICE)
    if shutil.which("gdb") is not None:
        gdb = ["gdb", "-q", "-batch", "-return-child-result", "-ex", "run", "--args"]
        done = run(*DMLEMU, "exec", "--strict", *gdb, program, "wrong", "5")
        assert done.returncode == 5, done.stdout + done.stderr
        assert "COPY_RANGE" in done.stderr


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [(["right"], 0, ""), (["wrong", "5"], 5, "COPY_RANGE"), (["beyond"], 9, "Invalid read of size 1")],
)
def test_under_valgrind(program: Path, arguments: list[str], status: int, said: str) -> None:
    """With our suppressions it is silent about right programs, and still finds what is wrong in others."""
    (suppressions,) = capi("--valgrind-suppressions")
    valgrind = ["valgrind", "-q", "--error-exitcode=9", f"--suppressions={suppressions}"]
    done = run(*DMLEMU, "exec", "--strict", *valgrind, program, *arguments, timeout=280)
    assert (done.returncode, bool(done.stderr)) == (status, bool(said)), done.stderr
    assert said in done.stderr


def test_a_timeline(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    done = run(*DMLEMU, "exec", "--trace", file, program, "early")
    assert (done.stderr, done.returncode) == (NOTHING, 0)
    text = file.read_text()
    names = {event.get("name") for event in json.loads(text)["traceEvents"]}
    assert {"Map", "CopyBufferRegion"} <= names
    assert not re.search(r"\\ud[b-f]", text)  # characters that stand for call sites
    assert re.search(r"command list #1 \(created at program\.h:\d+\)", text)


def test_a_record_is_used_as_others_are(built: Built, tmp_path: Path) -> None:
    """With checks, it has the line of each dispatch; so has a timeline."""
    file, timeline = tmp_path / "run.dmlrec", tmp_path / "run.json"
    done = run(*DMLEMU, "exec", "--strict", "--record", file, "--trace", timeline, built("identity"))
    assert (done.stderr, done.returncode) == ("", 0)
    with ZipFile(file) as archive:
        sites = [each["site"] for each in json.loads(archive.read("manifest.json"))["dispatches"]]
    args = [event.get("args", {}) for event in json.loads(timeline.read_text())["traceEvents"]]
    traced = [each["recorded at"] for each in args if "recorded at" in each]
    assert (
        sites
        and traced
        and all(re.match(r"(identity\.cpp|program\.h):\d+ in \w+", each) for each in sites + traced)
    )
    compared = "1 dispatch was" if len(sites) == 1 else f"{len(sites)} dispatches were"
    for command in (["diff", "--reference"], ["replay"]):
        done = run(*DMLEMU, *command, file)
        assert done.stdout.startswith(f"{compared} ") and done.stdout.endswith(": no output differs.\n"), done
    assert run(*DMLEMU, "step", "--html", tmp_path / "run.html", file).returncode == 0


def test_a_record_has_a_limit_and_a_filter(built: Built, tmp_path: Path) -> None:
    for option, value in (("--record-limit", "8"), ("--record-only", "nothing*")):
        done = run(*DMLEMU, "exec", "--record", tmp_path / "run.dmlrec", option, value, built("identity"))
        assert re.match(r"dmlemu: the record is not complete: \d+ dispatch", done.stderr), done.stderr
        assert done.returncode == 0


def test_files_are_different_ones(program: Path, tmp_path: Path) -> None:
    done = run(*DMLEMU, "exec", "--record", tmp_path / "file", "--trace", tmp_path / "file", program, "right")
    assert done.returncode == 1
    assert "--record and --trace name one file" in done.stderr


@pytest.mark.parametrize("strictness", ["runtime", "strict"])
def test_the_work_of_a_program(built: Built, program: Path, tmp_path: Path, strictness: str) -> None:
    """Later runs append to the file.  A refused call is written at every strictness, each time."""
    file = tmp_path / "work"
    options = ["--strictness", strictness]
    run(*DMLEMU, "exec", *options, built("own_programs"), "operators", DMLEMU_WORK=str(file))
    run(*DMLEMU, "exec", *options, program, "closed", DMLEMU_WORK=str(file))
    lines = file.read_text().splitlines()
    assert "operator DML_OPERATOR_REDUCE" in lines
    for each in ("graph", "initialize", "dispatch"):
        assert f"{each} graph of 4 nodes" in lines, lines
    assert lines[-1].startswith("refused E_INVALIDARG CopyBufferRegion COPY_RANGE "), lines


def test_work_cannot_be_written(built: Built) -> None:
    """Which is told once, and the program computes on."""
    arguments = (*DMLEMU, "exec", built("own_programs"), "operators")
    right, done = run(*arguments), run(*arguments, DMLEMU_WORK="/dev/full")
    assert (done.stdout, done.returncode) == (right.stdout, right.returncode)
    told = "dmlemu: what is asked of the devices cannot be written to '/dev/full': No space left on device\n"
    assert done.stderr == told + right.stderr


WRONG = {
    "DMLEMU_STRICTNESS": ("stict", "'stict'; expected runtime, debug or strict"),
    "DMLEMU_CHAOS": ("x1", "'x1'; expected a whole number, the seed"),
    "DMLEMU_SUPPRESS": ("HAZARD_RAW", "'HAZARD_RAW'; expected lines ID=REASON: "),
    "DMLEMU_BREAK": ("yes", "'yes'; expected 0 or 1"),
    "DMLEMU_REPORT": ("/nowhere/file", "'/nowhere/file'; expected a file that can be written (No such file "),
    "DMLEMU_TRACE": ("/nowhere/file", "'/nowhere/file'; expected a file that can be written (No such file "),
    "DMLEMU_RECORD": ("/nowhere/file", "'/nowhere/file'; expected a file that can be written (No such file "),
    "DMLEMU_HTML": ("/nowhere/file", "'/nowhere/file'; expected a file that can be written (No such file "),
    "DMLEMU_EXIT_CODE": ("error", "'error'; expected report or warning"),
    "DMLEMU_WORK": ("/nowhere/file", "'/nowhere/file'; expected a file that can be written (No such file "),
    "DMLEMU_ISA": ("avx1024", "'avx1024'; expected one of generic, amx_model, neon, avx2, avx512, "),
    "DMLEMU_FUSION": ("no", "'no'; expected on or off"),
}


@pytest.mark.parametrize("name", WRONG)
def test_variables_with_wrong_values(program: Path, name: str) -> None:
    """One line; the program is told that Direct3D is missing."""
    value, expected = WRONG[name]
    done = run_alone(program, "right", **{name: value})
    assert done.returncode == 2
    ours, *others = [line for line in done.stderr.splitlines() if "887a002d" not in line.lower()]
    assert ours.startswith(f"dmlemu: Direct3D cannot start: {name} is {expected}"), done.stderr
    assert not others


def test_a_wrong_mode(program: Path) -> None:
    done = run_alone(program, "right", DMLEMU_CAPI_MODE="server")
    can_be = "DMLEMU_CAPI_MODE can only be 'direct' or 'isolated', or not set; it is: server."
    assert f"dmlemu: Direct3D cannot start: {can_be}" in done.stderr


def test_static_objects_are_not_left(tmp_path: Path) -> None:
    """Those of the program and of a library are destroyed after Python's end; what one leaks is printed."""
    own = compiled("statics.cpp", tmp_path / "libstatics.so", "-DLIBRARY", "-shared", "-fPIC")
    program = compiled("statics.cpp", tmp_path / "statics", str(own), f"-Wl,-rpath,{tmp_path}")
    done = run(*DMLEMU, "exec", "--strict", program)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    done = run(*DMLEMU, "exec", "--strict", program, "leak")
    lines = {name: number for name, (number, *_) in marked_lines("statics.cpp").items()}
    made = rf"statics\.cpp:{lines['made']} in make_fence \(called from statics\.cpp:{lines['left']} in main\)"
    device = rf"statics\.cpp:{lines['device']} in main"
    assert re.fullmatch(
        rf"2 objects are still alive:\n"
        rf"  device #\d \(created at {device}\), references: 1\n"
        rf"  fence #\d \(created at {made}\), references: 1\n",
        done.stderr,
    ), done.stderr


def test_reports_use_the_words_of_c(built: Built) -> None:
    done = run(*DMLEMU, "exec", "--strictness", "debug", built("nulls"))
    for expected in (
        "\nFeature level (0x1234) is not one of Direct3D 12.\n",
        "\npDesc is NULL.\n  pDesc: given NULL; ",
        "  rule: ID3D12Device::CheckFeatureSupport: FeatureSupportDataSize\n",
        "\nDesc (NULL) is not a DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC.\n",
        "  rule: IDMLDevice::CreateOperator\n",
        "  rule: IDMLDevice::CheckFeatureSupport: FeatureQueryDataSize\n",
        "\nA buffer is copied, and pDstResource is NULL.\n",
        "\nCommandList is NULL.\n  CommandList: given NULL; expected a command list\n",
        "\nD3D12Device is NULL.\n",
    ):
        assert expected in done.stderr, done.stderr
    assert "None" not in done.stderr
    assert not re.search(r"rule: [0-9.]+\n", done.stderr)
