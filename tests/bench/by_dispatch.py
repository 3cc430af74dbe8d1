"""Where a run of an ONNX model takes its time: ``python tests/bench/by_dispatch.py MODEL``.

``MODEL``: a file, or a part of the name of one of ``model_cases.models()``.  A row is a dispatch of the
emulated GPU, with those that run fused with it: kernels, sizes of the first one's tensors, the least time of
the runs, its share.  Then the sums of each kernel, and what a run takes in all.  ``OMP_NUM_THREADS`` sets the
number of threads.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import onnx

import model_cases
from dmlemu import Strictness, d3d12, dml
from dmlemu.dml.lowering.compile import Call
from dmlemu.graph import CompiledGraph
from dmlemu.onnx import InferenceSession
from dmlemu.onnx.points import Point
from dmlemu_hw import kernels, processor
from dmlemu_hw.processor import Processor


@contextmanager
def timed(spans: list[tuple[int, float]]) -> Iterator[None]:
    """Appends for each piece of work that is executed how many packets it has, and its seconds."""

    def run(self: Any, *arguments: Any) -> None:
        begin = time.perf_counter()
        run_many(self, *arguments)
        spans.append((self._fault.ran, time.perf_counter() - begin))

    run_many = Processor._run_many
    with mock.patch.object(Processor, "_run_many", run), mock.patch.object(processor, "_AT_ONCE", 0):
        yield


def compiled(session: InferenceSession, feeds: model_cases.Feeds) -> Iterator[CompiledGraph]:
    """The graphs of a session that has run with these inputs alone."""
    point: Point | None = session._start(feeds)
    while point is not None:
        [segment] = point.segments
        if segment.compiled is not None:
            yield segment.compiled
        point = segment.next


def measure(session: InferenceSession, feeds: model_cases.Feeds, runs: int) -> tuple[list[Any], float]:
    """Groups of calls with their least seconds; the least seconds of a run that is not divided."""
    session.run(None, feeds)
    whole, all_spans = [], []
    for _ in range(runs):
        begin = time.perf_counter()
        session.run(None, feeds)
        whole.append(time.perf_counter() - begin)
        spans: list[tuple[int, float]] = []
        with timed(spans):
            session.run(None, feeds)
        all_spans.append(spans)
    calls = [call for each in compiled(session, feeds) for call in each.operator.calls]
    groups, at = [], 0
    for same in zip(*all_spans, strict=True):
        count = same[0][0]
        groups.append((calls[at : at + count], min(seconds for _, seconds in same)))
        at += count
    return groups, min(whole)


def described(calls: list[Call]) -> tuple[str, str]:
    """The kernels of calls that run together, and the sizes of the first one's tensors."""
    names = "+".join(kernels.name(call.kernel) for call in calls)
    sizes = " ".join("x".join(map(str, each.sizes)) or "-" for each in calls[0].operands)
    return names, sizes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--top", type=int, default=40, help="so many dispatches, the slowest ones")
    arguments = parser.parse_args()
    loaded = _model(arguments.model)
    feeds = model_cases.feeds_of(loaded)
    with d3d12.create_device(strictness=Strictness.RUNTIME) as device:
        session = InferenceSession(loaded, device=dml.create_device(device))
        groups, whole = measure(session, feeds, arguments.runs)
    total = sum(seconds for _, seconds in groups)
    kinds: dict[str, list[float]] = defaultdict(list)
    rows = []
    for number, (calls, seconds) in enumerate(groups):
        names, sizes = described(calls)
        kinds[names].append(seconds)
        rows.append((seconds, f"{number:>4}  {names:<44} {sizes}"))
    for seconds, text in sorted(rows, reverse=True)[: arguments.top]:
        print(f"{seconds * 1e3:8.3f} ms {100 * seconds / total:5.1f} %  {text}")
    print()
    for names, times in sorted(kinds.items(), key=lambda item: -sum(item[1])):
        print(f"{sum(times) * 1e3:8.3f} ms {100 * sum(times) / total:5.1f} %  {len(times):>4} x {names}")
    print(f"\n{total * 1e3:.2f} ms in {len(groups)} pieces of work; a run takes {whole * 1e3:.2f} ms in all")


def _model(name: str) -> onnx.ModelProto:
    if Path(name).is_file():
        return onnx.load(name)
    known = model_cases.models()
    found = [name] if name in known else [each for each in known if name in each]
    if len(found) != 1:
        raise SystemExit(f"MODEL is {name!r}; expected a file, or a part of one of {', '.join(known)}.")
    return known[found[0]].load()


if __name__ == "__main__":
    main()
