"""Which dispatches of a network gain from threads.

``python tests/bench/dispatches.py [NETWORK] [threads ...]``: the beginning of a case of network_cases.py
(default: ResNet-50 u8*s8), and two numbers (default: 1, and all).  Each dispatch runs by itself and is timed.
Those of the same kernel and sizes share a row: microseconds of all of them with the first and with the second
number of threads, the gain, and with the second number how often each enters the pool of threads and with how
many parts altogether.  Rows are sorted by their time with the second number: what keeps the network from
becoming faster comes first.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter, defaultdict
from typing import Any

import cases
import network_cases
from dmlemu import Strictness, d3d12
from dmlemu_hw import kernels, packets, processor
from dmlemu_hw.processor import Processor

ROUNDS = 9
Key = tuple[str, str]


def key_of(packet: packets.Packet) -> Key:
    """Kernel, and the sizes of its inputs and outputs."""
    if not isinstance(packet, packets.DispatchPacket):
        return type(packet).__name__, ""
    shapes = ("x".join(map(str, each.sizes)) for each in packet.tensors if each.slot != packets.SLOT_NONE)
    return kernels.name(packet.kernel), " ".join(shapes)


def pool_counts() -> tuple[int, int]:
    """How often kernels have entered the pool of threads, and the parts that they gave to it."""
    counts = kernels.ffi.new("int64_t[2]")
    kernels.lib.dmlk_pool_counts(counts, counts + 1)
    return counts[0], counts[1]


class Clock:
    """Times each dispatch, by running one at a time."""

    def __init__(self) -> None:
        self._keys: dict[bytes, Key] = {}
        self._now: Counter[Key] = Counter()
        self.given: dict[Key, tuple[int, int]] = {}
        run = Processor._run_many

        def timed(gpu: Processor, data: bytes, base: Any, start: int, *rest: Any) -> None:
            before, begin = pool_counts(), time.perf_counter()
            run(gpu, data, base, start, *rest)
            spent, after = time.perf_counter() - begin, pool_counts()
            packet = data[start : packets.skip(data, start, 1)]
            if packet not in self._keys:
                self._keys[packet] = key_of(gpu._decode(data, start))
            self._now[self._keys[packet]] += spent
            self.given[self._keys[packet]] = after[0] - before[0], after[1] - before[1]

        processor._AT_ONCE = 0
        Processor._run_many = timed  # type: ignore[method-assign]

    def rounds(self, batch: cases.Batch) -> dict[Key, float]:
        """Median seconds of each dispatch."""
        found: defaultdict[Key, list[float]] = defaultdict(list)
        for _ in range(ROUNDS):
            self._now.clear()
            batch.call()
            for key, seconds in self._now.items():
                found[key].append(seconds)
        return {key: statistics.median(each) for key, each in found.items()}


def main() -> None:
    numbers = [int(each) for each in sys.argv[1:] if each.isdigit()] or [1, kernels.threads()]
    name = next((each for each in sys.argv[1:] if not each.isdigit()), "ResNet-50 u8*s8")
    with d3d12.create_device(strictness=Strictness.RUNTIME) as device:
        case = next(each for each in network_cases.network_cases(device) if each.name.startswith(name))
        batch = case.ours if isinstance(case.ours, cases.Batch) else case.ours()
        clock = Clock()
        times = []
        for threads in numbers:
            kernels.lib.dmlk_set_threads(threads)
            batch.call()
            times.append(clock.rounds(batch))
    few, many = times[0], times[-1]
    print(f"{case.name}: microseconds with {numbers[0]} and {numbers[-1]} threads\n")
    for key in sorted(many, key=lambda each: -many[each]):
        gain = few[key] / many[key]
        entered, parts = clock.given[key]
        given = f"{entered:>3}, {parts:>3}"
        print(f"{few[key] * 1e6:>9.0f} {many[key] * 1e6:>9.0f} {gain:>6.1f}x {given}  {key[0]:<24} {key[1]}")
    total = sum(few.values()), sum(many.values())
    print(f"{total[0] * 1e6:>9.0f} {total[1] * 1e6:>9.0f} {total[0] / total[1]:>6.1f}x           all")


if __name__ == "__main__":
    main()
