"""dmlemu.h, in a program that runs on dmlemu and in one that does not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from toolchain import DMLEMU, FLAGS, HERE, NOTHING, Built, capi, marked_lines, needs_compiler, run, run_alone

pytestmark = needs_compiler


def test_what_a_program_says_is_in_its_reports(built: Built, tmp_path: Path) -> None:
    timeline = tmp_path / "run.json"
    done = run(*DMLEMU, "exec", "--strict", "--trace", timeline, built("additions"))
    assert (done.stdout.splitlines()[0], done.stdout.splitlines()[-1]) == ("0", "1 1 0"), done
    assert done.returncode == 0  # it is a warning
    assert "D3D12 WARNING LAYOUT_HANDOVER" in done.stderr
    assert "'image'" in done.stderr
    assert "expected FLOAT32 [1, 1, 2, 3] with strides [8, 8, 4, 1]" in done.stderr
    marks = [each for each in json.loads(timeline.read_text())["traceEvents"] if each["ph"] == "i"]
    (mark,) = [each for each in marks if each["name"] == "before the dispatch"]
    (line,) = marked_lines("additions.cpp")["mark"]
    assert mark["args"]["marked at"].startswith(f"additions.cpp:{line} in run, through dmlemu.h:")


def test_wrong_arguments_are_reported_and_ignored(built: Built) -> None:
    done = run(*DMLEMU, "exec", "--strict", built("additions"), "w")
    found = re.findall(r"^\w+ ERROR (\w+) \[(dmlemu_\w+)\]", done.stderr, re.MULTILINE)
    assert sorted(found) == [
        *(("API_NULL_POINTER", name) for name in ("dmlemu_expect", "dmlemu_expect")),
        *(("API_NULL_POINTER", name) for name in ("dmlemu_mark", "dmlemu_name", "dmlemu_name")),
        ("ARGUMENT_RANGE", "dmlemu_expect"),
        ("OP_FIELD_RANGE", "dmlemu_expect"),
    ], done.stderr
    assert "at additions.cpp:" in done.stderr
    assert done.stdout.splitlines()[-1] == "8 1 0"
    assert done.returncode == 1
    quiet = run(*DMLEMU, "exec", built("additions"), "w")
    assert quiet.stdout.splitlines()[-1] == "0 0 0"
    assert quiet.returncode == 0


def test_without_checks_nothing_is_said(built: Built) -> None:
    done = run(*DMLEMU, "exec", built("additions"))
    assert (done.stderr, done.returncode) == (NOTHING, 0)


@pytest.mark.parametrize("mode", ["direct", "isolated"])
def test_libraries_that_only_a_library_has_loaded_are_found(built: Built, mode: str) -> None:
    """As extension modules load them: their symbols are not those of the process."""
    code = f"import ctypes; ctypes.CDLL({str(built('additions.so'))!r}).run(0)"
    done = run(*DMLEMU, "exec", "--strict", sys.executable, "-c", code, DMLEMU_CAPI_MODE=mode)
    assert done.stdout.splitlines()[-1] == "1 1 0", done.stderr


@pytest.mark.parametrize("mode", ["direct", "isolated"])
def test_the_status_of_a_python_program(built: Built, mode: str) -> None:
    """Whichever of the two Pythons knows of the reports, the one of the program ends the process."""
    code = f"import ctypes, sys; ctypes.CDLL({str(built('additions.so'))!r}).run(ord(sys.argv[1]))"
    variables = {"DMLEMU_CAPI_MODE": mode, "DMLEMU_STRICTNESS": "strict", "DMLEMU_EXIT_CODE": "report"}
    for how, status in (("w", 1), ("r", 0)):
        assert run_alone(sys.executable, "-c", code, how, **variables).returncode == status


@pytest.mark.parametrize("flags", [[], ["-DAS_ON_WINDOWS"]], ids=["Linux", "Windows"])
def test_a_library_is_found_and_not_kept(flags: list[str], tmp_path: Path) -> None:
    """A call counts the library no longer than it takes: the program can unload it."""
    (tmp_path / "stand_in.c").write_text("""
unsigned dmlemu_report_count(const char *id, unsigned *count) { *count = id ? 1 : 7; return 0; }
""")
    library = tmp_path / "libd3d12.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "stand_in.c"], check=True)
    source = [HERE / "found.cpp", "-o", tmp_path / "found", "-ldl"]
    subprocess.run(["g++", *FLAGS, *flags, *capi("--cflags"), *source], check=True)
    done = run(tmp_path / "found", LD_LIBRARY_PATH=str(tmp_path))
    assert (done.stdout, done.stderr, done.returncode) == ("0 7 1 0\n", "", 0)


def test_the_functions_do_nothing_without_dmlemu(tmp_path: Path) -> None:
    """Nor must its libraries be linked: one run has no libd3d12, the other one that lacks them."""
    program, library = tmp_path / "absent", tmp_path / "libd3d12.so"
    source = [HERE / "absent.cpp", "-o", program, "-ldl"]
    subprocess.run(["g++", *FLAGS, *capi("--cflags"), *source], check=True)
    (tmp_path / "empty.c").write_text("int D3D12CreateDevice(void) { return 1; }\n")
    subprocess.run(["gcc", "-shared", "-o", library, tmp_path / "empty.c"], check=True)
    for preload in ("", str(library)):
        done = run(program, LD_PRELOAD=preload)
        assert (done.stdout, done.stderr, done.returncode) == ("0 0\n", "", 0)
