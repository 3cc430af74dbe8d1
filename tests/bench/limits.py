"""The machine's limits, measured in the same run as what is compared with them."""

from __future__ import annotations

import ctypes
import mmap
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from cases import Batch

STEPS = 2_000_000  # of loops in registers: some milliseconds
MOVED = 100_000_000  # bytes in a call at least, so that starting its threads does not count
ROUNDS = 12
LARGE_PAGE = 1 << 21


class Peaks(NamedTuple):
    """Operations per second of register-only loops on all threads; 0: the CPU, or a compiler, is missing."""

    int8: float
    float32: float


@cache
def peaks(threads: int) -> Peaks:
    """Rates of integer dot products and of fused multiply-adds."""
    library = _library()
    if library is None:
        return Peaks(0, 0)
    library.limits_int8.restype = library.limits_float32.restype = ctypes.c_double
    return Peaks(_peak(library.limits_int8, threads), _peak(library.limits_float32, threads))


def transfer(limit: str, threads: int, size: int) -> Batch | None:
    """``copy``: half of ``size`` bytes to the other half, again and again, so that the cache that holds them
    sets the speed; ``read``: all of them are read.  Of two ways of doing so, the faster one; None without a
    compiler."""
    library = _library()
    if library is None:
        return None
    is_copy = limit == "copy"
    part = -(-size // (1 + is_copy) // threads // 64) * 64
    repeats = 1 + MOVED // (size + 1000)
    buffers = [[_buffer(part) for _ in range(1 + is_copy)] for _ in range(threads)]

    def call(way: int) -> None:
        function = library.limits_copy if is_copy else library.limits_read
        more = ctypes.c_size_t(part), ctypes.c_long(repeats), way
        _in_threads([partial(function, *map(ctypes.byref, own), *more) for own in buffers])

    ways = [partial(call, 0), partial(call, 1)]
    return Batch(min(ways, key=lambda way: min(_seconds(way) for _ in range(4))), repeats)


@cache
def transfer_rate(limit: str, threads: int, size: int) -> float:
    """Bytes read and written per second, best of several rounds; 0 without a compiler."""
    batch = transfer(limit, threads, size)
    return 0 if batch is None else size * batch.count / min(_seconds(batch.call) for _ in range(ROUNDS))


def _peak(spin: Callable[[int], float], threads: int) -> float:
    total = threads * spin(STEPS)
    return total / min(_seconds(lambda: _in_threads([partial(spin, STEPS)] * threads)) for _ in range(5))


def _seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _in_threads(calls: list[Callable[[], object]]) -> None:
    """At the same time; C code runs without Python's lock."""
    others = [_pool().submit(call) for call in calls[1:]]
    calls[0]()
    for other in others:
        other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor()


def _buffer(size: int) -> ctypes.Array[ctypes.c_char]:
    """Filled, and in large pages if it has as much, as buffers of the GPU are."""
    memory = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % LARGE_PAGE
    buffer = (ctypes.c_char * size).from_buffer(memory, start)
    ctypes.memset(buffer, 1, size)
    return buffer


@cache
def _library() -> ctypes.CDLL | None:
    """limits.c, compiled; None: no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = Path(_folder().name) / "limits.so"
    command = [compiler, "-O2", "-fPIC", "-shared", Path(__file__).with_name("limits.c"), "-o", library]
    return ctypes.CDLL(str(library)) if subprocess.run(command).returncode == 0 else None


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Is removed at exit."""
    return tempfile.TemporaryDirectory()
