"""Programs of shaders by hand: the native code in ``shader_programs.c``, as a compiler would return it."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from dmlemu.shaders import CompiledShader, Range
from dmlemu_hw.kernels import ffi, lib

HERE = Path(__file__).parent
HEADERS = HERE.parent / "kernels_c"

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled programs, one library for all tests of a process."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "programs.so")
        flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1"]
        includes = [f"-I{HEADERS / 'shaders'}", f"-I{HEADERS / 'include'}"]
        subprocess.run(
            ["gcc", *flags, *includes, HERE / "shader_programs.c", "-o", made], check=True, timeout=60
        )
        found = ctypes.CDLL(str(made))
    stopped = int(ffi.cast("uintptr_t", ffi.addressof(lib, "dmlk_shader_stopped")))
    ctypes.c_void_p.in_dll(found, "shader_stopped").value = stopped
    return found


def address(name: str) -> int:
    """Where the native code of a program is."""
    found = ctypes.cast(getattr(library(), name), ctypes.c_void_p).value
    assert found is not None
    return found


CONSTANTS = Range("b", "cbuffer", 0, 0, bytes=8, name="Scale")
INPUT = Range("t", "structured", 0, 0, stride=4, name="x")
OUTPUT = Range("u", "structured", 0, 0, stride=4, name="y")
SCALE = (CONSTANTS, INPUT, OUTPUT)


class Code(NamedTuple):
    """What the compiler made."""

    address: int
    frame_bytes: int = 0


def shader(
    name: str, ranges: Sequence[Range], *, threads: tuple[int, int, int] = (4, 1, 1), uses_heap: bool = False
) -> CompiledShader:
    """A program as a compiled shader."""
    return CompiledShader(
        name,
        threads,
        4,
        tuple(ranges),
        uses_heap,
        64,
        name.encode().ljust(32, b"\0"),
        code=Code(address(name), 64),
    )
