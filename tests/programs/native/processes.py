"""What tests of C++ programs share: compiling one, and running it with only the variables that are given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DMLEMU = [sys.executable, "-m", "dmlemu"]
FLAGS = ["-std=c++17", "-g", "-O1", "-Wall", "-Wextra", "-Wno-ignored-attributes", "-pthread"]

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or not Path("/usr/include/directx/d3d12.h").exists(),
    reason="g++ or directx-headers-dev is not installed",
)

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@cache
def capi(option: str) -> list[str]:
    """The words that ``dmlemu capi`` prints."""
    done = subprocess.run([*DMLEMU, "capi", option], capture_output=True, text=True, check=True)
    return done.stdout.split()


def libraries() -> str:
    """The folder of the three libraries."""
    return capi("--libdir")[0]


def build(source: Path, program: Path, *options: str, compiler: str = "g++") -> Path:
    """Compiles a program; ``options`` come last."""
    flags = [*FLAGS, f"-I{HERE}", *capi("--cflags")]
    command = [compiler, *flags, str(source), "-o", str(program), *capi("--libs"), "-ldl", *options]
    subprocess.run(command, check=True)
    return program


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


def run(*command: str | Path, timeout: float = 110, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that finds our libraries; a variable set to "" is not there."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DMLEMU_")}
    environment |= {"LD_LIBRARY_PATH": libraries(), **variables}
    environment = {name: value for name, value in environment.items() if value}
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, timeout=timeout
    )
