"""Reports of a program that runs Python name the lines of its scripts: lines.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import PYTHONS, python_of
from toolchain import DMLEMU, HERE, Built, capi, compiled, needs_compiler, run

pytestmark = needs_compiler

SCRIPT = HERE / "lines.py"
LINES = {
    name: f"lines.py:{number}"
    for number, text in enumerate(SCRIPT.read_text(encoding="utf-8").splitlines(), 1)
    for name in re.findall(r"\S  # (\w+)$", text)
}
THROUGH = r", through hosted\.cpp:\d+ in make_mistake"
MAIN = LINES["main"]


def at(line: str, function: str, *callers: str) -> str:
    """A pattern of a call site: the line and function that called, and what called it."""
    called = re.escape(f" (called from {', '.join(callers)})") if callers else ""
    return re.escape(f"{line} in {function}" if function else line) + THROUGH + called


EXPECTED = {
    "plain": [at(LINES["plain"], "plain", MAIN)],
    "with_the_lock": [at(LINES["with_the_lock"], "with_the_lock", MAIN)],
    "in_a_thread": [at(LINES["plain"], "plain")],
    "on_a_thread_without_python": [r"hosted\.cpp:\d+ in make_mistake.*, on a thread that runs no Python"],
    "in_größe": [at(LINES["in_größe"], "in_größe", MAIN)],
    "在中文": [at(LINES["在中文"], "在中文", MAIN)],
    "in_a_method": [
        rf"{LINES['in_a_method']} in (Network\.)?forward{THROUGH} "
        rf"\(called from {LINES['calls_a_method']} in in_a_method, {MAIN}\)"
    ],
    "in_a_recursion": [at(LINES["deepest"], "deep", *2 * [f"{LINES['deeper']} in deep"])],
    "in_generated_code": [
        at(f"{name}:3", "", f"{LINES['generated']} in in_generated_code", MAIN)
        for name in ("<first one>", "<other one>")
    ],
    "in_a_generator": [rf"{LINES['generator']} in .*generate{THROUGH} \(called from {LINES['next']} in .*"],
    "in_a_coroutine": [rf"{LINES['coroutine']} in .*work{THROUGH}"],
    "in_a_package": [at(LINES["package"], "in_a_package", MAIN)],
    "under_another_name": [at("Ωmega.py:1", "", f"{LINES['renamed']} in under_another_name", MAIN)],
}


def _report(library: Path, python: str, *kinds: str, **variables: str) -> subprocess.CompletedProcess[str]:
    done = run(*DMLEMU, "exec", "--debug", python, SCRIPT, library, *kinds, **variables)
    assert done.returncode == 1, done.stderr
    return done


def _name_their_lines(library: Path, python: str, **variables: str) -> None:
    done = _report(library, python, *EXPECTED, **variables)
    found = re.findall("^  - While calling CopyBufferRegion at (.*)$", done.stderr, re.M)
    expected = [pattern for patterns in EXPECTED.values() for pattern in patterns]
    assert len(found) == len(expected), done.stderr
    for text, pattern in zip(found, expected, strict=True):
        assert re.fullmatch(pattern, text), text


@pytest.mark.parametrize("mode", ["direct", "isolated"])
def test_lines_of_a_python_program(built: Built, mode: str) -> None:
    """With and without the lock of its Python, on threads of all kinds; of its files, not of packages."""
    _name_their_lines(built("hosted.so"), sys.executable, DMLEMU_CAPI_MODE=mode)


@pytest.mark.long
@pytest.mark.parametrize("version", PYTHONS)
def test_lines_of_each_version(built: Built, version: str) -> None:
    _name_their_lines(built("hosted.so"), python_of(version))


def test_objects_and_sentences_name_the_line(built: Built) -> None:
    done = _report(built("hosted.so"), sys.executable, "plain")
    created = re.escape(f"created at {LINES['plain']}")
    assert re.search(rf"past the end of buffer #\d+ \({created}\)", done.stderr), done.stderr
    assert re.search(rf"^  object: buffer #\d+, {created} in plain, through ", done.stderr, re.M), done.stderr


def test_a_library_without_symbols_is_not_named(tmp_path: Path, built: Built) -> None:
    """But its exported functions are."""
    library = compiled("hosted.cpp", tmp_path / "hosted.so", "-shared", "-fPIC", "-g0", *capi("--libs"))
    subprocess.run(["strip", library], check=True)
    done = _report(library, sys.executable, "plain")
    line = re.escape(f"{LINES['plain']} in plain")
    assert re.search(rf"{line}, through make_mistake\+0x\w+ \(hosted\.so\) ", done.stderr), done.stderr
    assert "hosted.so+0x" not in done.stderr


def test_an_unusual_python_is_told_once(built: Built) -> None:
    """Its frames are not read; the lines of the library are named as before."""
    done = _report(built("hosted.so"), sys.executable, "is_unusual", "plain", "with_the_lock")
    assert done.stderr.count("dmlemu: reports name no lines of Python: this build of Python 3.") == 1
    found = re.findall("^  - While calling CopyBufferRegion at (.*)$", done.stderr, re.M)
    assert len(found) == 2 and all(each.startswith("hosted.cpp:") for each in found), found
    assert "lines.py" not in done.stderr
