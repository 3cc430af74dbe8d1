"""Compiling and running C++ programs, for the tests of this folder; fixture ``built`` compiles each once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

import processes

__all__ = [
    "DMLEMU",
    "FLAGS",
    "HEADERS",
    "HERE",
    "NOTHING",
    "NO_DEVICE",
    "Built",
    "capi",
    "compiled",
    "copy_installation",
    "environment",
    "libraries",
    "marked_lines",
    "needs_compiler",
    "needs_headers",
    "precompiled",
    "reported",
    "run",
    "run_alone",
    "start",
]

HERE = Path(__file__).parent
DMLEMU = [sys.executable, "-m", "dmlemu"]
NO_DEVICE = "dmlemu: 0 devices were created: the emulator was not started.\n"  # exec's last line
NOTHING = "dmlemu: no checks ran at strictness runtime; --strict looks for mistakes.\n"  # exec's last line
HEADERS = os.environ.get("DMLEMU_DIRECTX_HEADERS")  # the folder include of current DirectX-Headers
# -Wignored-attributes is about Microsoft's headers.
FLAGS = ["-std=c++17", "-g", "-O0", "-Wall", "-Wextra", "-Wno-ignored-attributes", "-pthread"]

Built = Callable[[str], Path]

needs_compiler = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed"),
    pytest.mark.skipif(
        not Path("/usr/include/directx/d3d12.h").exists(), reason="directx-headers-dev is not installed"
    ),
]
needs_headers = pytest.mark.skipif(
    HEADERS is None, reason="DMLEMU_DIRECTX_HEADERS names no folder with current headers"
)


@cache
def capi(option: str) -> tuple[str, ...]:
    """What ``dmlemu capi`` prints."""
    done = subprocess.run([*DMLEMU, "capi", option], capture_output=True, text=True, check=True)
    return tuple(done.stdout.split())


def libraries() -> str:
    """The folder of the libraries."""
    return capi("--libdir")[0]


def compiled(
    source: str | Path, program: Path, *flags: str, compiler: str = "g++", headers: str | None = None
) -> Path:
    """Compiles a source of this folder to ``program``, without warnings; ``headers``: instead of Debian's.

    ``flags`` come behind the usual ones.  A shared object (``-shared``) is linked with nothing.
    """
    command = [
        *(compiler, *FLAGS, f"-I{HERE}"),
        *([f"-I{headers}", f"-I{headers}/wsl/stubs", "-Wno-unknown-pragmas"] if headers else []),
        *(*capi("--cflags"), str(HERE / source), *flags, "-o", str(program)),
        *(() if "-shared" in flags else (*capi("--libs"), "-ldl")),
    ]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return program


def precompiled(header: Path) -> Path:
    """Compiles program.h to ``header`` for ``-include``, with the flags of :func:`compiled`."""
    common = header.with_name("common.h")
    common.write_text('#include "program.h"\n')
    command = ["g++", *FLAGS, f"-I{HERE}", *capi("--cflags"), "-x", "c++-header", str(common)]
    done = subprocess.run([*command, "-o", str(header)], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return header


def copy_installation(prefix: Path) -> Path:
    """Makes a virtual environment with a copy of what is installed of dmlemu; returns its site-packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    (packages,) = prefix.glob("lib/python3.*/site-packages")
    installed = Path(libraries()).parents[1]
    for each in installed.iterdir():
        if each.name.startswith(("dmlemu", "_editable_skbc_dmlemu")):
            (shutil.copytree if each.is_dir() else shutil.copy)(each, packages / each.name)
    (packages / "others.pth").write_text(str(installed))  # NumPy and cffi
    return packages


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without the variables of dmlemu; one set to "" is not there."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("DMLEMU_")}
    return {name: value for name, value in {**own, **variables}.items() if value}


def reported(stderr: str) -> str:
    """What ``dmlemu exec`` has printed, without the line that no checks ran."""
    return stderr.removesuffix(NOTHING)


@contextmanager
def start(*command: str | Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A command while the block runs; its output is read by ``communicate``."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with processes.started(list(map(str, command)), env=environment(**variables), **pipes) as process:
        yield process


def run(*command: str | Path, timeout: float = 110, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return processes.run(list(map(str, command)), timeout=timeout, env=environment(**variables))


def run_alone(
    *command: str | Path, timeout: float = 110, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program without ``dmlemu exec``; the loader finds our libraries."""
    return run(*command, timeout=timeout, **{"LD_LIBRARY_PATH": libraries(), **variables})


def marked_lines(source: str) -> dict[str, list[int]]:
    """The lines of a source that end with a comment ``// NAME``, by that name."""
    found: dict[str, list[int]] = {}
    for number, text in enumerate((HERE / source).read_text(encoding="utf-8").splitlines(), 1):
        code, _, comment = text.rpartition("// ")
        if code.strip():
            for name in comment.split(", "):
                found.setdefault(name, []).append(number)
    return found
