"""`make bench`: our operators beside what a user would pick instead, in one run.

Each row: a case, a memory layout, our time per dispatch, and every peer's time with the ratio of both
(below 1: we are faster); also the share of what the machine's arithmetic or memory allows, measured in the
same run.  Times of dispatches are those of a command list with many of them, a barrier after each, from
submission to fence, divided by their number; one that is submitted alone is a row of its own.  Weights are
OWNED_BY_DML, as an inference session's are.  Times are medians of rounds that alternate between all sides,
so that a machine that changes its speed changes all; +- is half the interquartile range of our rounds.
The last rows show what the API costs around a kernel, and what the checks of strictness ``strict`` cost
beside ``runtime``, in which all rows before are measured.  They do not count for the worst ratio.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import cases
import families
import index_cases
import line_cases
import model_cases
import network_cases
import normalization_cases
import overheads
import peers
import pooling_cases
import resampling_cases
import scaling
import sequence_cases
from cases import PER_UNIT, Batch, Case, Work
from dmlemu import Strictness, d3d12
from dmlemu_hw import kernels
from limits import peaks, transfer, transfer_rate

TABLES: tuple[Callable[[d3d12.Device], Iterator[Case]], ...] = (
    cases.nonzero_cases,
    cases.element_wise_cases,
    cases.function_cases,
    cases.copy_cases,
    cases.cast_cases,
    cases.movement_cases,
    index_cases.indexing_cases,
    line_cases.line_cases,
    normalization_cases.normalization_cases,
    resampling_cases.resampling_cases,
    cases.quantization_cases,
    cases.convolution_cases,
    cases.transposed_cases,
    cases.product_cases,
    pooling_cases.pooling_cases,
    sequence_cases.sequence_cases,
    network_cases.network_cases,
    model_cases.model_cases,
    *(overheads.dispatch_cases, overheads.start_cases, overheads.subscriber_cases),
    *(overheads.check_cases, overheads.rewrite_cases, overheads.thread_cases, overheads.abi_cases),
)
PLOTS = (scaling.size_cases, scaling.copy_order_cases, scaling.convolution_order_cases)


@dataclass
class Row:
    """Seconds of one piece of work, or bytes; ``share``: of the limit that is named."""

    case: str
    layout: str
    ours: float
    spread: float
    peers: dict[str, float]
    overhead: bool
    share: float | None
    limit: str
    unit: str = "ms"


CALM = 0.02  # seconds before a turn: until then, threads of OpenMP spin after the turn of another library
# (A CPU that has slept is slower at first, by half where a dispatch takes 10 us: a table of several
# numbers of threads pauses with one thread, too.)
WARM_CALLS = 5  # of large operands, before a turn: a cache may not take them at once


def threads() -> int:
    """Those that the kernels use."""
    return kernels.threads()


def cpu() -> str:
    """Its name, as Linux tells it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def machine() -> str:
    """What the numbers are worth."""
    return (
        f"{cpu()}, {threads()} thread{'s' * (threads() > 1)}; Python {platform.python_version()}, "
        f"{peers.versions()}; kernels use {kernels.instructions()}. {measured_limits()}"
    )


def measured_limits() -> str:
    most = peaks(threads())
    if not most.float32:
        return "Limits were not measured: limits.c could not be compiled."
    copies, reads = (
        ", ".join(
            f"{transfer_rate(limit, threads(), size << 20) / 1e9:.0f} GB/s in {size} MiB"
            for size in (1, 16, 512)
        )
        for limit in ("copy", "read")
    )
    rates = f"int8 {most.int8 / 1e9:.0f} GOP/s, float32 {most.float32 / 1e9:.0f} GFLOP/s"
    return f"Measured limits: {rates}, copies (bytes read and written) {copies}, reads {reads}."


def measure(case: Case, seconds: float, calm: float) -> Row:
    """Alternating rounds, each after ``calm`` seconds; each repeats a call for some milliseconds."""
    prepared = {"": case.ours, **case.peers}
    batches = {name: batch if isinstance(batch, Batch) else batch() for name, batch in prepared.items()}
    limit = _transfer(case.work)
    if limit is not None:
        batches["limit"] = limit
    repeats = {name: _repeats(batch) for name, batch in batches.items()}
    times: dict[str, list[float]] = {name: [] for name in batches}
    end = time.perf_counter() + seconds * len(prepared)
    rounds = 0
    while rounds < 5 or (time.perf_counter() < end and rounds < 200):
        for name, batch in batches.items():
            # Peers share operands, which would stay in a large cache for them, but not ours.
            if batch.measured:
                times[name].append(batch.call())
                continue
            if calm:
                time.sleep(calm)
            for _ in range(max(1, WARM_CALLS - repeats[name])):
                batch.call()
            start = time.perf_counter()
            for _ in range(repeats[name]):
                batch.call()
            times[name].append((time.perf_counter() - start) / repeats[name] / batch.count)
        rounds += 1
    medians = {name: statistics.median(values) for name, values in times.items()}
    ours = medians.pop("")
    quartiles = statistics.quantiles(times[""], n=4)
    spread = (quartiles[2] - quartiles[0]) / ours
    transferred = medians.pop("limit", None)
    share = None if case.work is None else _share(case.work, ours, transferred)
    named = "" if case.work is None else case.work.limit
    return Row(case.name, case.layout, ours, spread, medians, case.overhead, share, named, case.unit)


def _repeats(batch: Batch) -> int:
    batch.call()
    if batch.measured:
        return 1
    start = time.perf_counter()
    batch.call()
    return max(1, int(cases.LIST_SECONDS / max(time.perf_counter() - start, 1e-9)))


def _transfer(work: Work | None) -> Batch | None:
    """As many bytes moved as the case moves, beside it: other programs change the speed of memory."""
    if work is None or work.limit not in ("copy", "read"):
        return None
    return transfer(work.limit, threads(), int(work.amount))


def _share(work: Work, seconds: float, transferred: float | None) -> float | None:
    """How much of the limit is reached; None where the limit is not known."""
    if work.limit in ("copy", "read"):
        return None if transferred is None else transferred / seconds
    limit = getattr(peaks(threads()), work.limit)
    return work.amount / seconds / limit if limit else None


def print_row(row: Row) -> None:
    scale, unit = PER_UNIT[row.unit], row.unit
    line = f"{row.case:<46} {row.layout:<21} {row.ours * scale:>10.4f} {unit} +-{row.spread * 50:>3.0f} %"
    share = "" if row.share is None else f"{100 * row.share:.0f} % of {row.limit}"
    beside = (
        f"{name} {peer * scale:.4f} {unit}, ratio {row.ours / peer:.3g}" + _extra(row, name, peer)
        for name, peer in row.peers.items()
    )
    print("   ".join([line, *filter(None, [share, *beside])]), flush=True)


def _extra(row: Row, name: str, peer: float) -> str:
    """What the checks add to a dispatch, and the emulator to a start."""
    if name not in ("checks off", "import numpy"):
        return ""
    more = (row.ours - peer) * 1e6
    return f", {more:+.0f} us each" if name == "checks off" else f", {more / 1e3:+.0f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few cases of each family, short rounds: a minute"
    )
    parser.add_argument("--families", action="store_true", help="the same and networks, longer rounds")
    parser.add_argument("--scaling", action="store_true", help="the cases of the plots instead")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only cases whose name and layout contain TEXT"
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="write them as JSON, too (for page.py)")
    arguments = parser.parse_args()
    peers.use_threads(threads())
    print(machine())
    print(
        "ratio = our time / the peer's time, medians of alternating rounds; +- half the interquartile range\n"
    )
    rows: list[Row] = []
    names = families.QUICK if arguments.quick else families.ALL if arguments.families else ("",)
    calm = CALM if arguments.families or threads() > 1 else 0
    seconds = 0.04 if arguments.quick else 0.1 if arguments.families else 0.5
    with d3d12.create_device(strictness=Strictness.RUNTIME) as device:
        for make in PLOTS if arguments.scaling else TABLES:
            for case in make(device):
                title = f"{case.name} {case.layout}"
                if arguments.only in title and title.startswith(names):
                    rows.append(measure(case, seconds, calm))
                    print_row(rows[-1])
    ratios = [row.ours / peer for row in rows if not row.overhead for peer in row.peers.values()]
    print(f"\nworst ratio of an operator to a peer: {max(ratios, default=0):.2f}")
    if arguments.results is not None:
        arguments.results.parent.mkdir(parents=True, exist_ok=True)
        content = {"machine": machine(), "threads": threads(), "rows": [asdict(row) for row in rows]}
        arguments.results.write_text(json.dumps(content, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
