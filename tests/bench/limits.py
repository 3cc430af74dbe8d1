"""The machine's limits, measured in the same run as what is compared with them."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import shutil
import subprocess
import tempfile
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from cases import LIST_SECONDS, Batch

STEPS = 2_000_000  # of loops in registers: some milliseconds
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
    for spin in (library.limits_int8, library.limits_float32):
        spin.argtypes, spin.restype = [ctypes.c_long], ctypes.c_double
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
    buffers = [[_buffer(part) for _ in range(1 + is_copy)] for _ in range(threads)]

    def call(way: int, repeats: int) -> None:
        function = library.limits_copy if is_copy else library.limits_read
        more = ctypes.c_size_t(part), ctypes.c_long(repeats), way
        _in_threads([partial(function, *map(ctypes.byref, own), *more) for own in buffers])

    def repeated(way: int) -> Batch:
        few = 1 + 1_000_000 // size
        repeats = 1 + int(few * LIST_SECONDS / _least(partial(call, way, few), 3))
        return Batch(partial(call, way, repeats), repeats)

    return min((repeated(way) for way in (0, 1)), key=lambda each: _least(each.call, 3) / each.count)


@cache
def transfer_rate(limit: str, threads: int, size: int) -> float:
    """Bytes read and written per second, best of several rounds; 0 without a compiler."""
    batch = transfer(limit, threads, size)
    return 0 if batch is None else size * batch.count / _least(batch.call, ROUNDS)


def _peak(spin: Callable[[int], float], threads: int) -> float:
    total = threads * spin(STEPS)
    return total / _least(partial(_in_threads, [partial(spin, STEPS)] * threads), 5)


def _least(call: Callable[[], None], rounds: int) -> float:
    """Seconds."""
    return min(timeit.repeat(call, number=1, repeat=rounds))


def _in_threads(calls: list[Callable[[], object]]) -> None:
    """At the same time; C code runs without Python's lock."""
    others = [_pool(len(calls)).submit(call) for call in calls[1:]]
    calls[0]()
    for other in others:
        other.result()


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def _buffer(size: int) -> ctypes.Array[ctypes.c_char]:
    """Filled, and in large pages if it has as much, as buffers of the GPU are."""
    memory = mmap.mmap(-1, size + LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= LARGE_PAGE:
        with contextlib.suppress(OSError):  # of a host without large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % LARGE_PAGE
    buffer = (ctypes.c_char * size).from_buffer(memory, start)
    ctypes.memset(buffer, 1, size)
    return buffer


@cache
def _library() -> ctypes.CDLL | None:
    """limits.c, compiled; None: there is no compiler, or it fails."""
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
