"""Python programs that load the libraries, as extension modules of PyTorch and TensorFlow do: host.py."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest
from hosts import PYTHONS, python_of
from toolchain import DMLEMU, HERE, Built, compiled, marked_lines, needs_compiler, run, run_alone

pytestmark = needs_compiler

WAYS = {  # to end, and the status
    "ends": 0,
    "exits": 3,
    "exits_at_once": 3,
    "a_thread_exits": 3,
    "raises": 1,
    "exits_in_c": 3,
    "daemons_call": 3,
    "a_daemon_waits": 3,
    "forks": 3,
    "signals_arrive": 3,
}
DURING = {  # a call: what signals do
    "a_signal_ends_a_wait": -signal.SIGALRM,
    "a_handler_runs_during_a_wait": 3,
    "a_thread_takes_signals": 3,
    "signals_arrive_during_a_list": 3,
}
SOME = ("exits_in_c", "daemons_call", "forks")


def _host(
    library: object, way: str, *arguments: str, python: str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    return run_alone(python, HERE / "host.py", str(library), way, *arguments, **variables)


def _ends(done: subprocess.CompletedProcess[str], way: str) -> None:
    assert done.returncode == (WAYS | DURING)[way], done.stderr
    assert not re.search("Fatal|terminate|dmlemu:", done.stderr), done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_end(built: Built, way: str) -> None:
    _ends(_host(built("hosted.so"), way), way)


@pytest.mark.parametrize("way", DURING)
def test_signals_arrive_during_a_call(built: Built, way: str) -> None:
    """They are blocked in the place of a worker, and let in while the call takes long."""
    _ends(_host(built("hosted.so"), way), way)


@pytest.mark.parametrize(
    "way", [way if way in SOME else pytest.param(way, marks=pytest.mark.long) for way in WAYS]
)
def test_every_way_to_end_with_the_libraries_in_the_same_python(built: Built, way: str) -> None:
    _ends(_host(built("hosted.so"), way, DMLEMU_CAPI_MODE="direct"), way)


@pytest.mark.long
@pytest.mark.parametrize("version", PYTHONS)
def test_a_host_of_each_version(built: Built, version: str) -> None:
    """Which has no dmlemu."""
    python = python_of(version)
    for way in WAYS:
        _ends(_host(built("hosted.so"), way, python=python), way)
    done = _host(built("hosted.so"), "threads", "5", python=python)
    assert (done.stdout, done.returncode) == ("0 wrong\n", 3), done.stderr


def test_a_handler_that_ends_its_thread_ends_the_process(built: Built) -> None:
    """It is inside of a call, which cannot be unwound."""
    done = _host(built("hosted.so"), "a_handler_ends_its_thread")
    assert done.returncode == -signal.SIGABRT
    assert "or a handler of a signal) threw an exception or ended its thread. It must return." in done.stderr


def _threads(library: Path, seconds: int, **variables: str) -> None:
    done = _host(library, "threads", str(seconds), **variables)
    assert (done.stdout, done.stderr, done.returncode) == ("0 wrong\n", "", 3)


def test_a_thread_waits_for_others_with_the_lock_of_its_python(built: Built) -> None:
    """With a Python that they share, they would wait for each other; its lines need no lock."""
    _threads(built("hosted.so"), 2)
    _threads(built("hosted.so"), 2, DMLEMU_STRICTNESS="strict")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_thread_waits_for_others_for_a_minute_ten_times(built: Built) -> None:
    for _ in range(10):
        _threads(built("hosted.so"), 60)


def test_a_report_names_the_lines_of_the_library(built: Built) -> None:
    """And the environment is that of the host at its first call."""
    done = _host(built("hosted.so"), "makes_a_mistake")
    (line,) = marked_lines("hosted.cpp")["the mistake"]
    assert re.search(
        rf"^  - While calling CopyBufferRegion at .*, through hosted\.cpp:{line} in make_mistake",
        done.stderr,
        re.M,
    )


@pytest.mark.parametrize("mode", ["direct", ""])
def test_many_objects_left_are_counted_by_kind(built: Built, mode: str) -> None:
    """Packages of Python keep them to the end.  A list is for who asks."""
    host = (sys.executable, HERE / "host.py", built("hosted.so"), "leaves_fences")
    done = run(*DMLEMU, "exec", "--strict", *host, DMLEMU_CAPI_MODE=mode)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "still alive" in line]
    kinds = re.fullmatch(
        r"(\d+) objects are still alive \(dmlemu exec --list-objects lists them\): (.*)", line
    )
    assert kinds, line
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) ([^,]+)", kinds[2])}
    assert (counts["device"], counts["fences"]) == (1, 22)  # the program's own fences are two
    assert sum(counts.values()) == int(kinds[1])
    done = run(*DMLEMU, "exec", "--strict", "--list-objects", *host, DMLEMU_CAPI_MODE=mode)
    (number,) = re.findall(r"^(\d+) objects are still alive:$", done.stderr, re.M)
    assert number == kinds[1]
    assert len(re.findall(r"^  .*\bcreated at .*, references: \d+$", done.stderr, re.M)) == int(number)


@pytest.mark.parametrize("mode", ["direct", ""])
def test_options_of_exec(built: Built, tmp_path: Path, mode: str) -> None:
    """Their files name the lines of the script."""
    files = {name: tmp_path / f"run.{name}" for name in ("jsonl", "dmlrec", "json")}
    options = ("--report", files["jsonl"], "--record", files["dmlrec"], "--trace", files["json"])
    host = (sys.executable, HERE / "host.py", built("hosted.so"), "makes_a_mistake")
    done = run(*DMLEMU, "exec", "--strict", "--chaos", "5", *options, *host, DMLEMU_CAPI_MODE=mode)
    assert done.returncode == 1, done.stderr
    reports = [json.loads(line) for line in files["jsonl"].read_text().splitlines()]
    (report,) = [each for each in reports if each["id"] == "COPY_RANGE"]
    assert report["created_at"].startswith("host.py:") and "at host.py:" in report["context"][0]
    args = [event.get("args", {}) for event in json.loads(files["json"].read_text())["traceEvents"]]
    sites = [each["recorded at"] for each in args if "recorded at" in each]
    assert sites and all(each.startswith("host.py:") for each in sites), sites
    for command in (["replay"], ["diff", "--reference"]):
        compared = run(*DMLEMU, *command, files["dmlrec"])
        assert re.fullmatch(r"\d dispatches were .*: no output differs.\n", compared.stdout), compared
    with ZipFile(files["dmlrec"]) as archive:
        assert b'"site": "host.py:' in archive.read("manifest.json")


def test_packages_of_the_host_are_not_those_of_the_core(built: Built, tmp_path: Path) -> None:
    """Nor is its home: both variables are of the program's Python alone, a virtual environment, too."""
    for name in ("numpy", "cffi", "dmlemu"):
        (tmp_path / f"{name}.py").write_text("__version__ = '0.1 of the host'\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    variables = {"PYTHONPATH": str(tmp_path), "VIRTUAL_ENV": str(tmp_path / "venv")}
    for python, home in ((f"{tmp_path}/venv/bin/python", ""), (sys.executable, sys.base_prefix)):
        done = _host(built("hosted.so"), "has_packages", python=python, PYTHONHOME=home, **variables)
        assert (done.stdout, done.stderr) == ("0.1 of the host 0.1 of the host\n", ""), done.stderr


def test_a_library_that_calls_while_it_is_loaded(tmp_path: Path) -> None:
    """The second Python cannot be loaded then: it says so, instead of waiting for ever."""
    (tmp_path / "early.cpp").write_text(
        "#include <dlfcn.h>\n"
        "static unsigned made = reinterpret_cast<unsigned (*)(void *, void *)>(\n"
        '    dlsym(dlopen("libdxcore.so", RTLD_NOW), "DXCoreCreateAdapterFactory"))(nullptr, nullptr);\n'
        'extern "C" unsigned result() { return made; }\n'
    )
    library = compiled(tmp_path / "early.cpp", tmp_path / "early.so", "-shared", "-fPIC")
    code = f"import ctypes; print(hex(ctypes.CDLL({str(library)!r}).result() & 0xFFFFFFFF))"
    done = run_alone(sys.executable, "-c", code)
    assert (done.stdout, done.returncode) == ("0x887a002d\n", 0)
    assert "it is called while a library is loaded, by one of its constructors" in done.stderr


def test_a_sanitizer_is_refused_with_what_to_do(tmp_path: Path) -> None:
    program = compiled("identity.cpp", tmp_path / "identity", "-fsanitize=address")
    done = run_alone(program, DMLEMU_CAPI_MODE="isolated", ASAN_OPTIONS="detect_leaks=0")
    assert done.returncode == 2
    assert "AddressSanitizer and ThreadSanitizer bear no second C library" in done.stderr
    assert "set DMLEMU_CAPI_MODE=direct" in done.stderr


def test_a_python_that_others_cannot_see(built: Built) -> None:
    """Of a program that has loaded libpython with RTLD_LOCAL: the second one is beside it."""
    library = f"{sysconfig.get_config_var('LIBDIR')}/{sysconfig.get_config_var('INSTSONAME')}"
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        pytest.skip("this Python has no shared library")
    done = run_alone(built("embeds"), library, PYTHONHOME=sys.base_prefix)
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)


def test_a_program_without_a_python_may_ask_for_isolation(built: Built) -> None:
    """Reports and what is left alive are the same."""
    for program in ("mistakes", "unwinding"):
        outcomes = [
            run(*DMLEMU, "exec", "--strict", built(program), DMLEMU_CAPI_MODE=mode)
            for mode in ("direct", "isolated")
        ]
        first, second = [(done.stdout, done.stderr, done.returncode) for done in outcomes]
        assert first == second
