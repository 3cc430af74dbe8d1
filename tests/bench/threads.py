"""`make bench-threads`: what more threads give each family of operators, and its best peer.

``python tests/bench/threads.py [threads ...]`` measures with 1, 2, 4, 8 ... threads and with as many as there
are CPUs, unless told otherwise: each number in a process of its own, as kernels read it once.  Then it writes
the page speed_threads.md and its picture.  Cases are those of families.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from families import FAMILIES

Row = dict[str, Any]
BENCH = Path(__file__).with_name("bench.py")
ROOT = Path(__file__).parents[2]


def doubled(most: int) -> list[int]:
    """1, 2, 4 ... and ``most``."""
    return [*(2**k for k in range((most - 1).bit_length())), most]


def measure(threads: int, results: Path, more: list[str]) -> None:
    """Runs bench.py with so many threads."""
    print(f"--- {threads} thread{'s' * (threads > 1)}", flush=True)
    # NumPy's threads must not spin while the next peer is measured.
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "OPENBLAS_THREAD_TIMEOUT": "4",
    }
    command = [sys.executable, str(BENCH), "--families", "--results", str(results), *more]
    subprocess.run(command, env=environment, check=True)


def title(row: Row) -> str:
    return f"{row['case']} {row['layout']}"


def best_peer(row: Row) -> tuple[str, float]:
    """Name and seconds; without peers, ("", nan)."""
    return min(row["peers"].items(), key=lambda each: each[1], default=("", float("nan")))


def by_family(runs: list[dict[str, Any]]) -> dict[str, list[list[Row]]]:
    """Of each family its cases: the same one's rows, by threads."""
    cases = list(zip(*(run["rows"] for run in runs), strict=True))
    return {
        family: [list(case) for case in cases if title(case[0]).startswith(names)]
        for family, names in FAMILIES.items()
    }


def page(runs: list[dict[str, Any]]) -> str:
    numbers = [run["threads"] for run in runs]
    lines = [
        "# Speed: threads",
        "",
        "Written by `make bench-threads`; [speed.md](speed.md) says what the numbers mean.  Milliseconds of",
        "a dispatch by the number of threads; how many times faster the last number is than one thread; and",
        "our time divided by the best peer's with one thread and with the last number.",
        "",
        "![gain by threads](pictures/speed_scaling.png)",
        "",
        *(f"- {run['machine']}" for run in (runs[0], runs[-1])),
    ]
    for family, cases in by_family(runs).items():
        if cases:
            lines += ["", f"## {family.capitalize()}", "", *table(numbers, cases)]
    return "\n".join([*lines, ""])


def table(numbers: list[int], cases: list[list[Row]]) -> list[str]:
    heads = ["case", *map(str, numbers), "gain", "beside, 1", f"beside, {numbers[-1]}"]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for case in cases:
        ours = [row["ours"] for row in case]
        cells = [title(case[0]), *(f"{1e3 * each:.3g}" for each in ours), f"{ours[0] / ours[-1]:.1f}"]
        for row in (case[0], case[-1]):
            name, seconds = best_peer(row)
            cells.append(f"{name} {row['ours'] / seconds:.2g}" if name else "")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def plot(runs: list[dict[str, Any]], path: Path) -> None:
    """Gain against threads: a plot for each family; the best peer's dashed, in the color of the case."""
    import matplotlib  # measuring does not need it

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    numbers = [run["threads"] for run in runs]
    families = {name: cases for name, cases in by_family(runs).items() if cases}
    columns = 4
    rows = -(-len(families) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(16, 3.6 * rows), squeeze=False)
    for axis in axes.flat[len(families) :]:
        axis.set_visible(False)
    for axis, (family, cases) in zip(axes.flat, families.items(), strict=False):
        axis.plot(numbers, numbers, color="lightgrey", linewidth=1)
        for case in cases:
            ours = [case[0]["ours"] / row["ours"] for row in case]
            (line,) = axis.plot(numbers, ours, marker="o", markersize=3, label=title(case[0]))
            peers = [best_peer(row)[1] for row in case]
            axis.plot(numbers, [peers[0] / each for each in peers], "--", color=line.get_color(), linewidth=1)
        axis.set(title=family, xscale="log", yscale="log")
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(matplotlib.ticker.FixedLocator(numbers))
            side.set_major_formatter("{x:.0f}")
            side.set_minor_locator(matplotlib.ticker.NullLocator())
        axis.legend(fontsize=6, loc="upper left", framealpha=0.5)
    figure.suptitle("times faster than one thread, by the number of threads; dashed: the best peer")
    figure.tight_layout()
    figure.savefig(path, dpi=70)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cpus = len(os.sched_getaffinity(0))
    parser.add_argument("threads", type=int, nargs="*", default=doubled(cpus), help="numbers of threads")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains TEXT")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "build/bench/threads", metavar="FOLDER", help="of JSON files"
    )
    parser.add_argument("--no-page", action="store_true", help="measure only")
    parser.add_argument("--page", action="store_true", help="make the page of results that are there")
    arguments = parser.parse_args()
    files = [arguments.results / f"{threads}.json" for threads in arguments.threads]
    if not arguments.page:
        for threads, results in zip(arguments.threads, files, strict=True):
            measure(threads, results, ["--only", arguments.only])
    if not arguments.no_page:
        runs = [json.loads(results.read_text()) for results in files]
        (ROOT / "docs/speed_threads.md").write_text(page(runs))
        plot(runs, ROOT / "docs/pictures/speed_scaling.png")


if __name__ == "__main__":
    main()
