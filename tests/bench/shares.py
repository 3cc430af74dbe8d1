"""How evenly kernels divide their work: ``python tests/bench/shares.py [threads ...]``.

Each case runs on so many threads, which may be more than the machine has CPUs, and the CPU time of
each is read from Linux.  Printed are how many threads did something (a fiftieth of the mean) and what the
busiest did, relative to an even share: with 1.00 the work can become as many times faster as there are
threads.
The thread that submits is one of them, so the share of the busiest includes what is not divided.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CASES = {
    "convolution_cases": (
        "conv 3x3 64>64 56x56 f32*f32",
        "conv 3x3 256>256 14x14 u8*s8",
        "depthwise 3x3 s2 96 112x112 u8*s8",
    ),
    "product_cases": ("gemm 1024 cubed f32 NN", "gemm 1x4096x4096 f32 NN"),
    "element_wise_cases": ("add 1e6 float32 packed",),
    "line_cases": ("reduce SUM f32 1000x1000", "softmax f32 1000x1000"),
    "pooling_cases": ("pooling max 3x3 s2 64 112x112 f32", "pooling average of all 2048 7x7 f32"),
}
SECONDS = 0.5


def thread_times() -> dict[str, int]:
    """Nanoseconds on a CPU of each thread of this process."""
    return {
        task.name: int((task / "schedstat").read_text().split()[0])
        for task in Path("/proc/self/task").iterdir()
    }


def measure() -> None:
    """In a process of its own, as the number of threads is read once."""
    import time

    import cases
    import line_cases
    import pooling_cases
    from dmlemu import Strictness, d3d12

    threads = int(os.environ["OMP_NUM_THREADS"])
    with d3d12.create_device(strictness=Strictness.RUNTIME) as device:
        for table, names in CASES.items():
            module = next(each for each in (cases, line_cases, pooling_cases) if hasattr(each, table))
            for case in getattr(module, table)(device):
                title = f"{case.name} {case.layout}"
                if not title.startswith(names):
                    continue
                ours = case.ours if isinstance(case.ours, cases.Batch) else case.ours()
                ours.call()
                before, end = thread_times(), time.perf_counter() + SECONDS
                while time.perf_counter() < end:
                    ours.call()
                spent = sorted(time - before.get(name, 0) for name, time in thread_times().items())[-threads:]
                even = sum(spent) / threads
                working = sum(time > even / 50 for time in spent)
                print(
                    f"{threads:>3} threads: {working:>3} work, the busiest {spent[-1] / even:5.2f}   {title}",
                    flush=True,
                )


def main() -> None:
    if sys.argv[1:] == ["--here"]:
        measure()
        return
    for threads in sys.argv[1:] or ["1", "2", "4", "8", "16", "32", "64"]:
        waiting = {"OMP_NUM_THREADS": threads, "OMP_WAIT_POLICY": "passive"}
        subprocess.run([sys.executable, __file__, "--here"], env=os.environ | waiting, check=True)


if __name__ == "__main__":
    main()
