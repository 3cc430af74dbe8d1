"""Makes docs/speed_results.md and its plots of what bench.py measured with one thread and with all."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt

from cases import PER_UNIT
from scaling import CONVOLUTION_ORDERS, COPY_ORDERS

Run = dict[str, Any]  # machine, threads, rows: what bench.py --results wrote
OURS, PEERS = "tab:blue", {"numpy": "tab:orange", "torch": "tab:red"}


def pair(values: Iterable[float], pattern: str) -> str:
    """``0.31 / 0.16``: one thread, all threads."""
    return " / ".join(pattern.format(value) for value in values)


def label(run: Run) -> str:
    return f"dmlemu, {run['threads']} thread" + "s" * (run["threads"] > 1)


def rows_of(run: Run, case: str) -> list[dict[str, Any]]:
    return [row for row in run["rows"] if row["case"] == case]


def table(runs: list[Run]) -> Iterator[str]:
    yield "| case | layout | ms (or MiB) | spread, % | share of the limit | beside: the same, ratio |"
    yield "| --- " * 6 + "|"
    for rows in zip(*(run["rows"] for run in runs), strict=True):
        ours = [row["ours"] for row in rows]
        shares = [100 * row["share"] for row in rows if row["share"] is not None]
        beside, scale = [], PER_UNIT[rows[0]["unit"]]
        for name in rows[0]["peers"]:
            peer = [row["peers"][name] for row in rows]
            ratios = (a / b for a, b in zip(ours, peer, strict=True))
            beside.append(f"{name} {pair((scale * p for p in peer), '{:.3g}')}, {pair(ratios, '{:.2g}')}")
        cells = [
            *(rows[0]["case"], rows[0]["layout"]),
            pair((scale * each for each in ours), "{:.3g}"),
            pair((50 * row["spread"] for row in rows), "{:.0f}"),
            f"{pair(shares, '{:.0f}')} % of {rows[0]['limit']}" if shares else "",
            "; ".join(beside),
        ]
        yield f"| {' | '.join(cells)} |"


def page(runs: list[Run]) -> str:
    """Runs of the same cases, by threads."""
    lines = [
        "# Speed: results",
        "",
        "Written by `make bench`; [speed.md](speed.md) says how it measures and what the numbers mean.  Each",
        "cell has two numbers: on one thread / on all.  A ratio below 1 says that we are faster.",
        "",
        *(f"- {run['machine']}" for run in runs),
        "",
        *table(runs),
        "",
    ]
    return "\n".join(lines)


def plot_sizes(runs: list[Run], path: Path) -> None:
    """Elements per second against the number of elements."""
    names = list(dict.fromkeys(row["case"] for row in runs[0]["rows"] if row["layout"].isdigit()))
    figure, axes = plt.subplots(1, len(names), figsize=(13, 4), sharex=True)
    for axis, name in zip(axes, names, strict=True):
        for run, style in zip(runs, ("--", "-"), strict=True):
            rows = rows_of(run, name)
            sizes = [int(row["layout"]) for row in rows]
            rates = [size / row["ours"] for size, row in zip(sizes, rows, strict=True)]
            axis.plot(sizes, rates, style, color=OURS, marker="o", label=label(run))
            limits = [rate / row["share"] for rate, row in zip(rates, rows, strict=True) if row["share"]]
            axis.plot(sizes[: len(limits)], limits, style, color="grey", label="copies of as many bytes")
        numpy = [size / row["peers"]["numpy"] for size, row in zip(sizes, rows, strict=True)]
        axis.plot(sizes, numpy, color=PEERS["numpy"], marker="s", label="numpy")
        axis.set(title=name, xscale="log", yscale="log", xlabel="elements")
    axes[0].set_ylabel("elements per second")
    axes[0].legend(fontsize=8)
    save(figure, path)


def plot_orders(runs: list[Run], path: Path) -> None:
    """Every order of the axes, as bars; lower is better."""
    figure, (copies, convolutions) = plt.subplots(2, 1, figsize=(13, 7))
    bars(copies, runs, COPY_ORDERS, ["numpy", "torch"])
    bars(convolutions, runs, CONVOLUTION_ORDERS, [])
    copies.set(title="copy of float32 64x64x56x56 from NCHW into each order of its axes", yscale="log")
    copies.yaxis.set_major_formatter("{x:.0f}")
    copies.yaxis.set_minor_formatter("{x:.0f}")
    convolutions.set_title("convolution 3x3 64>64 56x56 u8*s8: input and result in each order of the axes")
    save(figure, path)


def bars(axis: Any, runs: list[Run], case: str, peers: list[str]) -> None:
    colors = ("lightsteelblue", OURS)
    groups = [(label(run), color, [row["ours"] for row in rows_of(run, case)])
              for run, color in zip(runs, colors, strict=True)]  # fmt: skip
    rows = rows_of(runs[-1], case)
    for name in peers:
        if name in rows[0]["peers"]:
            groups.append((name, PEERS[name], [row["peers"][name] for row in rows]))
    places, width = range(len(rows)), 0.8 / len(groups)
    for i, (name, color, seconds) in enumerate(groups):
        heights = [1e3 * each for each in seconds]
        axis.bar([place + i * width for place in places], heights, width, color=color, label=name)
    axis.set_xticks(
        [place + 0.4 - width / 2 for place in places], [row["layout"] for row in rows], fontsize=8
    )
    axis.set_ylabel("ms")
    axis.legend(fontsize=8)


def plot_threads(runs: list[Run], path: Path) -> None:
    """How many times faster all threads are than one."""
    rows = [both for both in zip(*(run["rows"] for run in runs), strict=True) if not both[0]["overhead"]]
    figure, axis = plt.subplots(figsize=(13, 0.19 * len(rows) + 1))
    names = [f"{one['case']}, {one['layout']}" for one, _ in rows]
    axis.barh(names, [one["ours"] / both["ours"] for one, both in rows], color=OURS)
    axis.axvline(runs[-1]["threads"], color="grey", linewidth=1)
    axis.invert_yaxis()
    axis.tick_params(axis="y", labelsize=7)
    axis.margins(y=0.01)
    axis.set_title(f"time on one thread / time on {runs[-1]['threads']} threads")
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="folder with tables-1.json, tables-all.json, scaling-...")
    parser.add_argument("docs", type=Path, help="where the page and pictures/ are")
    arguments = parser.parse_args()
    matplotlib.use("Agg")
    tables, scaling = (
        [json.loads((arguments.results / f"{kind}-{threads}.json").read_text()) for threads in ("1", "all")]
        for kind in ("tables", "scaling")
    )
    (arguments.docs / "speed_results.md").write_text(page(tables))
    plot_sizes(scaling, arguments.docs / "pictures" / "speed_sizes.png")
    plot_orders(scaling, arguments.docs / "pictures" / "speed_orders.png")
    plot_threads(tables, arguments.docs / "pictures" / "speed_threads.png")


if __name__ == "__main__":
    main()
