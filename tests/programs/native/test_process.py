"""C++ programs: what the first call finds and leaves, threads, every way to end, and forked processes."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toolchain import (
    DMLEMU,
    HERE,
    Built,
    copy_installation,
    libraries,
    needs_compiler,
    reported,
    run,
    run_alone,
)

pytestmark = needs_compiler

# --- the end ---

WAYS = {
    "return": 3,
    "exit": 3,
    "_exit": 3,
    "thread": 3,
    "quick": 3,
    "abort": 134,
    "fork": 3,
    "fork-exit": 3,
    "dlclose": 3,
}
COUNTED = WAYS.keys() - {"_exit", "abort"}  # where something of ours runs at the end


def _end(program: Path, way: str, busy: int, report: Path) -> None:
    """Status and output are the program's own, and the report is in the file."""
    done = run(*DMLEMU, "exec", "--strictness", "debug", "--report", report, program, way, str(busy))
    assert (done.stdout, done.returncode) == ("ends\n", WAYS[way]), done.stderr
    assert done.stderr.count("D3D12 ERROR ") == 1
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    assert len(rows) == 1
    if way in COUNTED:
        assert rows[0]["count"] == 2


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_end(built: Built, way: str, tmp_path: Path) -> None:
    """With static objects released afterwards, threads inside of calls, and calls in a forked child."""
    _end(built("exits"), way, 4, tmp_path / "report")


@pytest.mark.long
@pytest.mark.parametrize("busy", [0, 4])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_end_many_times(built: Built, way: str, busy: int, tmp_path: Path) -> None:
    for i in range(20):
        _end(built("exits"), way, busy, tmp_path / f"report {i}")


# --- the start ---


def _surroundings(
    built: Built, *arguments: object, library: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    found = Path(libraries()) / "libd3d12.so" if library is None else library
    program = built("surroundings")
    return run(program, found, *map(str, arguments), **{"LD_LIBRARY_PATH": "", **variables})


@pytest.mark.parametrize(("scope", "kind"), [("global", "plain"), ("local", "odd"), ("local", "coroutine")])
def test_the_first_call_leaves_the_process_as_it_was(built: Built, scope: str, kind: str) -> None:
    """Files, signals, locale, variables, folder, floating-point mode; also from a coroutine's stack."""
    done = _surroundings(built, scope, 0, 256, kind)
    assert (done.stdout, done.stderr, done.returncode) == ("1 right\n", "", 0)


@pytest.mark.parametrize("stack", [64, 8192])
def test_the_first_call_by_eight_threads_at_once(built: Built, stack: int) -> None:
    done = _surroundings(built, "local", 8, stack)
    assert (done.stdout, done.stderr, done.returncode) == ("9 right\n", "", 0)


def test_variables_of_other_pythons_are_ignored(built: Built, tmp_path: Path) -> None:
    (tmp_path / "os.py").write_text("raise RuntimeError('not this one')")
    variables = {"PYTHONHOME": "/nonexistent", "PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": "/nonexistent"}
    done = _surroundings(built, "local", 0, 256, HOME="", **variables)
    assert (done.stdout, done.stderr) == ("1 right\n", "")


def test_another_folder_and_a_link(built: Built, tmp_path: Path) -> None:
    """The library is found by its real path."""
    (tmp_path / "link.so").symlink_to(Path(libraries()) / "libd3d12.so")
    command = ["env", "-C", tmp_path, "-i", built("surroundings"), "./link.so", "local", "0", "256"]
    done = run(*command)
    assert (done.stdout, done.stderr) == ("1 right\n", "")


def test_a_copied_library_says_what_to_set(built: Built, tmp_path: Path) -> None:
    copy = tmp_path / "libd3d12.so"
    shutil.copy(Path(libraries()) / "libd3d12.so", copy)
    done = _surroundings(built, "local", 0, 256, library=copy, PATH="/nonexistent")
    assert done.stdout == "0 right\n"
    assert done.stderr.count("dmlemu: set DMLEMU_PYTHON to a Python 3.10 or newer") == 1
    done = _surroundings(built, "local", 0, 256, library=copy, DMLEMU_PYTHON=sys.executable)
    assert (done.stdout, done.stderr) == ("1 right\n", "")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the first python3 on it has dmlemu
    for kind in ("plain", "odd"):  # which ignores SIGCHLD
        done = _surroundings(built, "local", 0, 256, kind, library=copy, PATH=path)
        assert (done.stdout, done.stderr) == ("1 right\n", "")


def test_a_prefix_that_is_not_ascii(built: Built, tmp_path: Path) -> None:
    """A virtual environment in a folder with an umlaut, in a process whose locale is C."""
    prefix = tmp_path / "ünï"
    copy_installation(prefix)
    done = _surroundings(built, "local", 0, 256, DMLEMU_PYTHON=str(prefix), LC_ALL="C")
    assert (done.stdout, done.stderr) == ("1 right\n", "")


def test_closed_standard_files_stay_closed(built: Built) -> None:
    """What the program writes to its output later goes into no file of ours."""
    library = Path(libraries()) / "libd3d12.so"
    command = f"'{built('surroundings')}' '{library}' local 0 256 "
    for redirected, expected in (("<&- 2>&-", "1 right\n"), ("<&- >&- 2>&-", "")):
        done = run_alone("sh", "-c", command + redirected)
        assert (done.stdout, done.stderr, done.returncode) == (expected, "", 0)


# --- small stacks ---


@pytest.mark.parametrize("strictness", ["runtime", "strict"])
def test_threads_with_64_kib_of_stack(built: Built, strictness: str) -> None:
    """The main thread, too.  Threads of ours serve them."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, resource.RLIM_INFINITY))

    done = subprocess.run(
        [built("threads"), "8", "5", "60"],
        capture_output=True,
        text=True,
        env={**os.environ, "LD_LIBRARY_PATH": libraries(), "DMLEMU_STRICTNESS": strictness},
        preexec_fn=limit,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("0 wrong of 40\n", "", 0)


def test_reports_of_small_threads_name_their_lines(built: Built) -> None:
    done = run_alone("sh", "-c", f"ulimit -S -s 64; exec '{built('mistakes')}'", DMLEMU_STRICTNESS="strict")
    source = (HERE / "mistakes.cpp").read_text().splitlines()
    number = next(i for i, text in enumerate(source, 1) if "a copy beyond the end" in text)
    assert f"at mistakes.cpp:{number} in main\n" in done.stderr


# --- memory ---


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("times", [100, pytest.param(100_000, marks=pytest.mark.long)])
def test_created_and_released_objects_leave_nothing(built: Built, times: int) -> None:
    """Each kind of object; the count of each ends at 0."""
    done = run_alone(built("pairs"), str(times), timeout=3500)
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


# --- references ---


def test_the_last_reference_goes_and_comes_back_on_many_threads(built: Built) -> None:
    """Nobody's Release is taken for one on a released object; the device is gone in the end."""
    for strictness in ("runtime", "debug"):
        done = run(*DMLEMU, "exec", "--strictness", strictness, built("references"), "300")
        assert (done.stdout, done.returncode) == ("done\n", 0)
        assert reported(done.stderr) == ""


def test_calls_on_a_released_object_are_reported(built: Built) -> None:
    """From debug on; at runtime they fail as well, and exec says which one was the first."""
    answers = "QueryInterface 0x80070057, NULL\nAddRef 0, Release 0\ndone\n"
    done = run(*DMLEMU, "exec", built("references"), "0", "released")
    assert (done.stdout, done.returncode) == (answers, 0)
    assert done.stderr.startswith(
        "dmlemu: QueryInterface failed (E_INVALIDARG): QueryInterface gets a pointer (0x"
    )
    done = run(*DMLEMU, "exec", "--strictness", "debug", built("references"), "0", "released")
    assert done.stdout == answers
    for name in ("QueryInterface", "AddRef", "Release"):
        assert done.stderr.count(f"\n{name} is called on fence #1 ") == 1


# --- what the fuzzer has found ---


def test_bad_input_gives_hresults(built: Built) -> None:
    done = run_alone(built("bad_input"))
    assert (done.stdout, done.returncode) == ("done\n", 0)
    assert "a bug of dmlemu" not in done.stderr
