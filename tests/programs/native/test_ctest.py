"""``find_package(dmlemu)`` and ``dmlemu_add_test``: wrong programs fail under CTest, right ones pass."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from toolchain import HERE, capi, environment, needs_compiler, run

pytestmark = [
    *needs_compiler,
    pytest.mark.skipif(
        shutil.which("cmake") is None or shutil.which("ctest") is None, reason="CMake is not installed"
    ),
]

PROJECT = f"""
cmake_minimum_required(VERSION 3.16)
project(tests CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(dmlemu REQUIRED)
enable_testing()
add_executable(ends "{HERE}/ends.cpp")
target_link_libraries(ends PRIVATE dmlemu::dmlemu)
"""
TESTS = """
dmlemu_add_test(right ends STRICT WERROR CHAOS 1 7 ARGS right)
dmlemu_add_test(status ends ARGS right 3)
dmlemu_add_test(unchecked ends ARGS wrong)
dmlemu_add_test(wrong ends STRICT CHAOS 2 ARGS wrong)
dmlemu_add_test(warning ends STRICT ARGS warning)
dmlemu_add_test(warning-is-error ends STRICT WERROR ARGS warning)
dmlemu_add_test(nothing ends WERROR ARGS nothing)
"""
PASSES = {"right": True, "right.chaos-1": True, "right.chaos-7": True, "status": False, "unchecked": True}
PASSES |= {
    "wrong": False,
    "wrong.chaos-2": False,
    "warning": True,
    "warning-is-error": False,
    "nothing": False,
}
MISTAKES = {
    "dmlemu_add_test(a ends STRIC)": "'STRIC' is none of STRICT, WERROR, CHAOS seed..., ARGS",
    "dmlemu_add_test(a end)": "dmlemu_add_test(a): 'end' is no target of this project",
    'dmlemu_add_test(a "ends;b")': "dmlemu_add_test(a): 'ends;b' is no target of this project",
    "add_library(l INTERFACE)\ndmlemu_add_test(a l)": "dmlemu_add_test(a): l is no program (INTERFACE_",
    'dmlemu_add_test(a ends ARGS x "")': "dmlemu_add_test(a): ARGS cannot have an empty argument",
    "dmlemu_add_test(a ends CHAOS)": "dmlemu_add_test(a): CHAOS needs seeds, such as CHAOS 1 2 3",
    "dmlemu_add_test(a ends CHAOS x)": "dmlemu_add_test(a): CHAOS x is not a whole number",
    "set(dmlemu_EXECUTABLE NOTFOUND)\ndmlemu_add_test(a ends)": "the command dmlemu is not on the PATH",
}


def configure(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "CMakeLists.txt").write_text(PROJECT + text)
    return run("cmake", "-S", folder, "-B", folder / "build", f"-Ddmlemu_DIR={capi('--cmake')[0]}")


def test_wrong_programs_fail_and_right_ones_pass(tmp_path: Path) -> None:
    assert configure(tmp_path, TESTS).returncode == 0
    assert run("cmake", "--build", tmp_path / "build").returncode == 0
    done = run("ctest", "--test-dir", tmp_path / "build", "--output-on-failure")
    found = re.findall(r"Test +#\d+: (\S+) \.+ *(Passed|\*\*\*Failed)", done.stdout)
    assert {name: how == "Passed" for name, how in found} == PASSES, done.stdout
    assert "ERROR COPY_RANGE" in done.stdout and "dmlemu: 0 devices were created." in done.stdout
    assert done.returncode == 8


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_told(text: str, tmp_path: Path) -> None:
    done = configure(tmp_path, text)
    assert done.returncode == 1
    assert MISTAKES[text] in re.sub(r"\s+", " ", done.stderr), done.stderr


def test_the_command_is_that_of_the_installation(tmp_path: Path) -> None:
    """Whatever else is on the PATH."""
    other = tmp_path / "bin" / "dmlemu"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    path = f"{other.parent}:{environment()['PATH']}"
    (tmp_path / "CMakeLists.txt").write_text(f'{PROJECT}message("found ${{dmlemu_EXECUTABLE}}")\n')
    cmake = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-Ddmlemu_DIR={capi('--cmake')[0]}"]
    found = re.findall(r"found (.*)", run(*cmake, PATH=path).stderr)
    installed = Path(capi("--libdir")[0]).parents[4] / "bin" / "dmlemu"
    assert [Path(each).resolve() for each in found] == [installed.resolve()]
