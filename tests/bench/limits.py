"""The machine's limits, measured in the same run as what is compared with them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Limits(NamedTuple):
    """Operations per second of register-only loops on all threads; 0: the CPU, or a compiler, is missing."""

    int8: float
    float32: float


@cache
def limits(threads: int) -> Limits:
    """Peak rates of integer dot products and of fused multiply-adds."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return Limits(0.0, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "limits"
        source = Path(__file__).with_name("limits.c")
        subprocess.run([compiler, "-O2", "-fopenmp", str(source), "-o", str(program)], check=True)
        output = subprocess.run([program, str(threads)], check=True, capture_output=True, text=True).stdout
    int8, float32 = (1e9 * float(part) for part in output.split())
    return Limits(int8, float32)


def copy_bandwidth() -> float:
    """Bytes read and written per second by a large memory copy."""
    source = np.ones(1 << 27, np.uint8)
    target = np.empty_like(source)
    best = min(timed(lambda: np.copyto(target, source)) for _ in range(5))
    return 2 * source.nbytes / best


def timed(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
