"""What campaigns cost: pieces beside the bare loop, and Dask's scheduler with up to 1,000 simulated workers.

The workers are those of distributed in this process; a piece sleeps as long as it would work.  So scheduler,
client, workers and database share one lock of Python, and what is printed is a lower bound.
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from dmlemu.campaign import campaign, executors
from dmlemu.campaign.database import Database
from dmlemu.campaign.model import Identity, Piece, PieceResult, Spec, identity


def cpu_seconds() -> float:
    """Of what this process has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Cost(NamedTuple):
    """Seconds: of CPU time of all processes, and on the clock."""

    cpu: float
    wall: float


def cost_of(folder: Path, workers: int, layouts: int) -> Cost:
    """A campaign of so many layouts of some operators, in a new file."""
    command = [sys.executable, "-m", "dmlemu", "campaign", "operators:ACTIVATION_*", "--oracles", "none"]
    options = ["--layouts", str(layouts), "--workers", str(workers), "--output", ""]
    with TemporaryDirectory(dir=folder) as name:
        before, start = cpu_seconds(), time.perf_counter()
        done = subprocess.run(
            [*command, *options, "--database", f"{name}/a.db"], capture_output=True, text=True, cwd=folder
        )
        if done.returncode:
            sys.exit(f"the campaign exits with {done.returncode}:\n{done.stderr}")
        return Cost(cpu_seconds() - before, time.perf_counter() - start)


def overhead(turns: int, many: int) -> None:
    """The same cases in the bare loop, by one worker and by two, in turns: the least of each, less the start,
    which few cases measure.  ``many``: layouts of each operator."""
    few = 2
    least: dict[tuple[int, int], Cost] = {}
    with TemporaryDirectory() as name:
        for _ in range(turns):
            for key in ((w, n) for w in (0, 1, 2) for n in (few, many)):
                cost = cost_of(Path(name), *key)
                least[key] = Cost(*map(min, cost, least.get(key, cost)))
    bare, one, two = (
        Cost(*(b - a for a, b in zip(least[w, few], least[w, many], strict=True))) for w in (0, 1, 2)
    )
    for what, cost in (("bare loop", bare), ("one worker", one), ("two workers", two)):
        print(
            f"{what}: {cost.cpu:.2f} s of CPU time ({100 * (cost.cpu / bare.cpu - 1):+.1f} %), "
            f"{cost.wall:.2f} s on the clock ({one.wall / cost.wall:.2f} times one worker)",
            flush=True,
        )


def simulate(workers: int, length: float, seconds: float) -> None:
    """Prints how much of the workers' time was work."""

    def sleep(spec: Spec, who: Identity, piece: Piece, limit: float) -> PieceResult:
        time.sleep(length)
        return PieceResult(piece, seconds=length, machine="simulated")

    real, executors.run_piece = executors.run_piece, sleep  # type: ignore[assignment]
    try:
        with TemporaryDirectory() as name:
            path = Path(name) / "campaign.db"
            spec = Spec("operators", "operators", "simulated", cases=10**9)
            with Database(path, spec, identity()) as database:
                cluster = executors.Cluster(spec, identity(), 60, None, workers, print)
                while not cluster.room():  # the workers are not all there
                    cluster.results(1.0)
                loop: Any = campaign._Loop(spec, database, seconds, length, None)  # its time begins now
                loop.schedule.done = lambda result: None  # pieces stay as they are: of one case
                written = 0.0
                add = database.add

                def timed(results: Any) -> None:
                    nonlocal written
                    start = time.perf_counter()
                    add(results)
                    written += time.perf_counter() - start

                database.add = timed  # type: ignore[method-assign]
                start, cpu = time.perf_counter(), time.process_time()
                loop.run(cluster)
                wall, used = time.perf_counter() - start, time.process_time() - cpu
                cluster.close()
            with sqlite3.connect(path) as connection:
                (pieces,) = connection.execute("SELECT count(*) FROM pieces").fetchone()
    finally:
        executors.run_piece = real
    efficiency = pieces * length / (workers * wall)
    print(
        f"| {workers} | {length:g} | {pieces} | {100 * efficiency:.0f} % | "
        f"{1e3 * used / max(1, pieces):.2f} | {1e3 * written / max(1, pieces):.3f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of each simulation")
    parser.add_argument("--turns", type=int, default=3, help="of what a worker costs; 0: only simulate")
    parser.add_argument("--layouts", type=int, default=128, help="of what a worker costs")
    parser.add_argument("--workers", type=int, nargs="*", default=[10, 100, 300, 1000], help="to simulate")
    parsed = parser.parse_args()
    if parsed.turns:
        overhead(parsed.turns, parsed.layouts)
    print("| workers | seconds of a piece | pieces | efficiency | CPU ms a piece | ms in the database |")
    print("| --- | --- | --- | --- | --- | --- |")
    for workers in parsed.workers:
        for length in sorted({1.0, max(1.0, workers / 50)}):  # of a second, and as campaigns make them
            simulate(workers, length, max(parsed.seconds, 3 * length))


if __name__ == "__main__":
    main()
