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
from typing import Any

from dmlemu.campaign import campaign, executors
from dmlemu.campaign.database import Database
from dmlemu.campaign.model import Identity, Piece, PieceResult, Spec, identity


def cpu_seconds() -> float:
    """Of what this process has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def campaign_seconds(folder: Path, workers: int, layouts: int) -> float:
    """CPU time of a campaign, all its processes together."""
    command = [
        sys.executable,
        "-m",
        "dmlemu",
        "campaign",
        "operators:ACTIVATION_*",
        "--layouts",
        str(layouts),
    ]
    options = ["--workers", str(workers), "--database", str(folder / f"{workers}-{layouts}.db")]
    before = cpu_seconds()
    subprocess.run([*command, *options], check=True, capture_output=True, cwd=folder)
    return cpu_seconds() - before


def overhead() -> None:
    """The same cases in the bare loop and by one worker, without the start, which few cases measure."""
    few, many = 2, 14
    with TemporaryDirectory() as name:
        bare, worker = (
            min(campaign_seconds(Path(name) / "", n, many + i) for i in range(2))
            - min(campaign_seconds(Path(name) / "", n, few + i) for i in range(2))
            for n in (0, 1)
        )
    print(
        f"bare loop {bare:.2f} s of CPU time, one worker {worker:.2f} s: {100 * (worker / bare - 1):+.1f} %"
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
            spec = Spec("operators", "operators", "simulated", cases=int(3 * workers * seconds / length))
            with Database(path, spec, identity()) as database:
                cluster = executors.Cluster(spec, identity(), 60, None, workers, print)
                loop: Any = campaign._Loop(spec, database, seconds, length, None)  # its time begins now
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
    parsed = parser.parse_args()
    overhead()
    print("| workers | seconds of a piece | pieces | efficiency | CPU ms a piece | ms in the database |")
    print("| --- | --- | --- | --- | --- | --- |")
    for workers, length in ((10, 1), (100, 1), (300, 1), (1000, 1), (1000, 10)):
        simulate(workers, length, max(parsed.seconds, 3 * length))


if __name__ == "__main__":
    main()
