"""What certainly cannot begin, against all orders in which queues may run."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from dmlemu.checks.analysis.blocked_queues import holds
from dmlemu_hw.gpu import Gpu, QueueKind
from thorough import part_of

QUEUES, FENCES = 3, 2
HOST = QUEUES

Step = tuple[int, str, int, int]  # queue or host, kind, fence, value
State = tuple[tuple[int, ...], tuple[int, ...]]  # what the queues have done, and the values of the fences


class Orders:
    """All states that the GPU may be in, by the definition; ``farthest`` each queue may ever have come."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[str, int, int]]] = [[] for _ in range(QUEUES)]
        self.states: set[State] = {((0,) * QUEUES, (0,) * FENCES)}
        self.farthest = [0] * QUEUES

    def take(self, step: Step) -> None:
        who, kind, fence, value = step
        if who == HOST:
            self.states = {(done, _set(values, fence, value)) for done, values in self.states}
        else:
            self.rows[who].append((kind, fence, value))
        self._run()

    def _run(self) -> None:
        new = list(self.states)
        while new:
            done, values = new.pop()
            for queue, row in enumerate(self.rows):
                self.farthest[queue] = max(self.farthest[queue], done[queue])
                if done[queue] == len(row):
                    continue
                kind, fence, value = row[done[queue]]
                if kind == "wait" and values[fence] < value:
                    continue
                after = (
                    _set(done, queue, done[queue] + 1),
                    _set(values, fence, value) if kind == "signal" else values,
                )
                if after not in self.states:
                    self.states.add(after)
                    new.append(after)


def _set(row: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    return (*row[:at], value, *row[at + 1 :])


def farthest(steps: Sequence[Step]) -> tuple[list[int], list[int]]:
    """How far each queue may ever have come, as :func:`holds` tells after each step, and in truth."""
    gpu = Gpu(name="test", memory_bytes=1 << 24)
    orders = Orders()
    told = [0] * QUEUES
    try:
        queues = [gpu.create_queue(QueueKind.COMPUTE) for _ in range(QUEUES)]
        fences = [gpu.create_fence(0) for _ in range(FENCES)]
        for step in steps:
            who, kind, fence, value = step
            if who == HOST:
                fences[fence].signal(value)
            elif kind == "signal":
                queues[who].signal(fences[fence], value)
            else:
                queues[who].wait(fences[fence], value)
            orders.take(step)
            held = holds(gpu)
            for i, queue in enumerate(queues):
                hold = held.get(queue.serial)
                told[i] = max(told[i], queue.submitted if hold is None else hold.ticket - 1)
    finally:
        gpu.close()
    return told, orders.farthest


def steps(values: st.SearchStrategy[int]) -> st.SearchStrategy[list[Step]]:
    who = st.integers(0, HOST)
    kinds = st.sampled_from(["signal", "wait", "wait"])
    return st.lists(st.tuples(who, kinds, st.integers(0, FENCES - 1), values), max_size=9).map(_raised)


def _raised(drawn: list[Step]) -> list[Step]:
    """Without the host's steps back."""
    highest, kept = [0] * FENCES, []
    for step in drawn:
        if step[0] != HOST or step[3] >= highest[step[2]]:
            kept.append(step)
        if step[0] == HOST:
            highest[step[2]] = max(highest[step[2]], step[3])
    return kept


@settings(max_examples=part_of(300))
@given(steps(st.integers(0, 3)))
def test_what_may_begin_is_never_said_to_be_held(drawn: list[Step]) -> None:
    told, truth = farthest(drawn)

    assert all(a >= b for a, b in zip(told, truth, strict=True))


@settings(max_examples=part_of(300))
@given(steps(st.just(1)))
def test_what_is_held_is_said_exactly(drawn: list[Step]) -> None:
    """Fences that never go back."""
    told, truth = farthest(drawn)

    assert told == truth
