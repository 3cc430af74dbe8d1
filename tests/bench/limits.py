"""The machine's limits, measured in the same run as what is compared with them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Peaks(NamedTuple):
    """Operations per second of register-only loops on all threads; 0: the CPU, or a compiler, is missing."""

    int8: float
    float32: float


@cache
def peaks(threads: int) -> Peaks:
    """Rates of integer dot products and of fused multiply-adds."""
    int8, float32 = (1e9 * rate for rate in _run(threads, 0)) if _program() else (0.0, 0.0)
    return Peaks(int8, float32)


@cache
def copy_rate(threads: int, size: int) -> float:
    """Bytes read and written per second when half of ``size`` bytes are copied to the other half, again and
    again: the speed of the cache that holds them; 0 without a compiler."""
    return 1e9 * _run(threads, size)[0] if _program() else 0.0


@cache
def read_rate(threads: int, size: int) -> float:
    """Bytes read per second when ``size`` bytes are read again and again; 0 without a compiler."""
    return 1e9 * _run(threads, size, "read")[0] if _program() else 0.0


def _run(threads: int, size: int, *more: str) -> list[float]:
    command = [str(_program()), str(threads), str(size), *more]
    return [float(part) for part in subprocess.run(command, check=True, capture_output=True).stdout.split()]


@cache
def _program() -> Path | None:
    """limits.c, compiled; None: no compiler with OpenMP."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    program = Path(_folder().name) / "limits"
    source = Path(__file__).with_name("limits.c")
    command = [compiler, "-O2", "-fopenmp", str(source), "-o", str(program)]
    return program if subprocess.run(command).returncode == 0 else None


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Is removed at exit."""
    return tempfile.TemporaryDirectory()
