"""What the pool of threads costs, and what it gives: ``python tests/bench/pool.py [threads ...]``.

For each number of threads (1, 2, 4, 8 and 16 without arguments): microseconds of an empty parallel call; of
one in which all threads meet, spinning before or after 1 ms of sleep; of team sizes in turn; of two phases,
as two calls and as one; how many parts another thread runs than in the call before; and of dispatches, from
a list of many, how often each enters the pool and with how many parts altogether, and how often these made
threads and woke them.  Medians, and the slowest of ten in parentheses.  Threads can only meet where each has
a CPU.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parents[2] / "kernels_c"
DEVICE = ("parallel.c", "threads.c", "cancellation.c", "checked.c")
CASES = {
    "convolution_cases": (
        "conv 3x3 64>64 56x56 u8*s8",
        "conv 3x3 64>64 56x56 f32*f32",
        "conv 3x3 256>256 14x14 u8*s8",
        "depthwise 3x3 s2 96 112x112 u8*s8",
        "depthwise 3x3 s2 96 112x112 f32*f32",
    ),
    "element_wise_cases": ("add 1e6 float32 packed",),
    "line_cases": ("reduce SUM f32 1000x1000 axis 0", "softmax f32 1000x1000"),
    "pooling_cases": ("pooling max 3x3 s2 64 112x112 f32", "pooling average of all 2048 7x7 f32"),
    "product_cases": ("gemm 1024 cubed f32 NN",),
    "network_cases": ("ResNet-50 u8*s8",),
}
SLEEP = 1_000_000  # nanoseconds: longer than threads spin
ROUNDS = 25


@cache
def _library() -> ctypes.CDLL:
    """pool.c, compiled; CalledProcessError without a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "pool.so"
        sources = [Path(__file__).with_name("pool.c"), *(KERNELS / "device" / name for name in DEVICE)]
        headers = [f"-I{KERNELS / folder}" for folder in ("device", "include")]
        flags = ["-O2", "-fPIC", "-shared", "-pthread", "-Wl,-z,nodelete"]
        subprocess.run(["cc", *flags, *headers, *sources, "-o", library], check=True)
        loaded = ctypes.CDLL(str(library))
        number, time = ctypes.c_int, ctypes.c_double
        loaded.pool_measure_phases.argtypes = [number, time, time, number, number, ctypes.POINTER(time)]
        loaded.pool_measure_moved.argtypes = [number, time, time, number]
        loaded.pool_measure_moved.restype = time
        return loaded


def calls(parts: int, others: int, meet: bool, sleep: int, rounds: int) -> list[float]:
    """Seconds of each call."""
    times = (ctypes.c_double * rounds)()
    _library().pool_measure(parts, others, int(meet), ctypes.c_int64(sleep), rounds, times)
    return list(times)


def phases(parts: int, first: float, second: float, together: bool, rounds: int) -> list[float]:
    """Seconds of each time that two phases take, whose parts take ``first`` and ``second`` seconds."""
    times = (ctypes.c_double * rounds)()
    _library().pool_measure_phases(parts, first, second, together, rounds, times)
    return list(times)


def show(name: str, times: list[float], more: str = "") -> None:
    slow = sorted(times)[len(times) * 9 // 10]
    print(f"  {name:<46} {statistics.median(times) * 1e6:>10.2f} ({slow * 1e6:.2f}) us{more}", flush=True)


def measure_calls(threads: int) -> None:
    calls(threads, threads, False, 0, 200)
    show("empty", calls(threads, threads, False, 0, 2000))
    for first, second in (0, 0), (1e-6, 2e-6), (3e-6, 10e-6):
        title = f"phases of {first * 1e6:.0f} and {second * 1e6:.0f} us"
        show(f"{title}, two calls", phases(threads, first, second, False, 2000))
        show(f"{title}, one call", phases(threads, first, second, True, 2000))
    moved = [100 * _library().pool_measure_moved(threads, 8e-6, gap, 2000) for gap in (1e-6, 5e-6)]
    print(f"  {'parts of 8 us that moved':<46} {moved[0]:>10.2f} %, after 5 us {moved[1]:.2f} %")
    if threads > len(os.sched_getaffinity(0)):
        print("  there are fewer CPUs than threads: they cannot meet")
        return
    show("all meet", calls(threads, threads, True, 0, 2000))
    show("all meet, after 1 ms of sleep", calls(threads, threads, True, SLEEP, 100))
    show("empty, after 1 ms of sleep", calls(threads, threads, False, SLEEP, 100))
    if threads >= 4:
        show("2 threads meet, after 1 ms of sleep", calls(2, 2, True, SLEEP, 100))
        show("4 and 2 threads meet in turn, 50 rounds", calls(4, 2, True, 0, 100))


def measure_dispatches() -> None:
    import cases
    import line_cases
    import network_cases
    import pooling_cases
    from dispatches import pool_counts
    from dmlemu import Strictness, d3d12

    with d3d12.create_device(strictness=Strictness.RUNTIME) as device:
        for table, names in CASES.items():
            modules = cases, line_cases, network_cases, pooling_cases
            module = next(each for each in modules if hasattr(each, table))
            for case in getattr(module, table)(device):
                title = f"{case.name} {case.layout}"
                if title.startswith(names):
                    batch = case.ours if isinstance(case.ours, cases.Batch) else case.ours()
                    before = pool_counts()
                    batch.call()
                    given = [(b - a) / batch.count for a, b in zip(before, pool_counts(), strict=True)]
                    times = [_seconds(batch) for _ in range(ROUNDS)]
                    show(title, times, f"; enters {given[0]:.0f}, parts {given[1]:.0f}")


def _seconds(batch: Any) -> float:
    start = time.perf_counter()
    batch.call()
    return (time.perf_counter() - start) / batch.count


def show_threads() -> None:
    tasks = [task for task in Path("/proc/self/task").iterdir() if "dmlemu" in (task / "comm").read_text()]
    woken = [
        int(line.split()[1])
        for task in tasks
        for line in (task / "status").read_text().splitlines()
        if line.startswith("voluntary_ctxt_switches")
    ]
    print(f"  {len(tasks)} threads were made, and woken {sum(woken)} times")


def main() -> None:
    if sys.argv[1:2] == ["--here"]:  # the number of threads is read once for each process
        measure_dispatches()
        show_threads()
        measure_calls(int(os.environ["OMP_NUM_THREADS"]))
        return
    for threads in sys.argv[1:] or ["1", "2", "4", "8", "16"]:
        print(f"{threads} threads", flush=True)
        environment = os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        subprocess.run([sys.executable, __file__, "--here"], env=environment, check=True)


if __name__ == "__main__":
    main()
