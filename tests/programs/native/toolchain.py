"""Compiling and running C++ programs, for the tests of this folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DMLEMU = [sys.executable, "-m", "dmlemu"]
HEADERS = os.environ.get("DMLEMU_DIRECTX_HEADERS")  # the folder include of current DirectX-Headers

needs_compiler = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
    pytest.mark.skipif(
        not Path("/usr/include/directx/d3d12.h").exists(), reason="directx-headers-dev is not installed"
    ),
]


@cache
def capi(option: str) -> tuple[str, ...]:
    """What ``dmlemu capi`` prints."""
    done = subprocess.run([*DMLEMU, "capi", option], capture_output=True, text=True, check=True)
    return tuple(done.stdout.split())


def compiled(
    source: str | Path,
    program: Path,
    *flags: str,
    compiler: str = "g++",
    headers: str | None = None,
    libraries: bool = True,
) -> Path:
    """Compiles a source of this folder to ``program``; ``headers``: instead of Debian's."""
    command = [
        compiler,
        *("-std=c++17", "-g", "-O1", "-Wall", "-Wextra", "-Wno-ignored-attributes", "-pthread"),
        f"-I{HERE}",
        *([f"-I{headers}", f"-I{headers}/wsl/stubs", "-Wno-unknown-pragmas"] if headers else []),
        *capi("--cflags"),
        *(str(HERE / source), *flags, "-o", str(program)),
        *(capi("--libs") if libraries else ()),
    ]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return program


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without the variables of dmlemu."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("DMLEMU_")}
    return {**own, **variables}


def start(*command: str | Path, **variables: str) -> subprocess.Popen[str]:
    """Starts a command; its output is read by ``communicate``."""
    return subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**variables),
    )


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment(**variables), timeout=110
    )


def marked_lines(source: str) -> dict[str, list[int]]:
    """The lines of a source that end with a comment ``// NAME``, by that name."""
    found: dict[str, list[int]] = {}
    for number, text in enumerate((HERE / source).read_text(encoding="utf-8").splitlines(), 1):
        code, _, comment = text.rpartition("// ")
        if code.strip():
            for name in comment.split(", "):
                found.setdefault(name, []).append(number)
    return found
