"""Random programs that keep all rules: no check may say a word, and results are those of NumPy, bit by bit.

Every report of severity WARNING or worse is a false positive, or a mistake of the model in ``legal_program``.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from legal_memory import View
from legal_operators import Recipe, recipes
from legal_program import (
    COPY,
    MAX_WIDTH,
    TILE,
    Buffer,
    Illegal,
    Program,
    Queries,
    Recording,
)

import dmlemu
from dmlemu import Severity
from dmlemu.d3d12 import HeapType, Policy
from thorough import part_of

lucks = st.integers(0, 2**32 - 1).map(Random)
WIDTHS = (256, 256, 512, 1000, MAX_WIDTH)


class LegalPrograms(RuleBasedStateMachine):
    """Rules choose what is done next; how, and with what, is drawn from the random numbers they get."""

    policy: Any

    def __init__(self) -> None:
        super().__init__()
        self.program = Program(self.policy, Random(0))

    @initialize(luck=lucks, first=recipes, second=recipes)
    def start(self, luck: Random, first: Recipe, second: Recipe) -> None:
        """Something of everything."""
        program = self.program
        program.random = luck
        for kind in (HeapType.UPLOAD, HeapType.READBACK, HeapType.CUSTOM):
            program.create_committed(kind, 2 * MAX_WIDTH)
        self.kept = list(program.buffers)
        program.create_committed(HeapType.DEFAULT, MAX_WIDTH)
        heap = program.create_heap(HeapType.DEFAULT, 2)
        for width in (256, MAX_WIDTH, TILE + 512):
            program.create_placed(heap, width)
        program.update_tiles(luck.choice(program.queues), program.create_reserved(2, 512), heap)
        for queue in program.queues[::3]:
            program.create_queries(queue.kind, 2)
        operators = [program.create_operator(recipe) for recipe in (first, second)]
        self.record(luck, lambda recording: program.initialize(recording, operators))

    def attempt(self, luck: Random, work: Any, *arguments: Any) -> bool:
        """Does it if it is legal."""
        self.program.random = luck
        try:
            work(*arguments)
        except Illegal:
            return False
        return True

    # --- creating ---

    @rule(luck=lucks)
    def create(self, luck: Random) -> None:
        """A buffer of any kind, queries, or other tiles."""
        program = self.program
        program.random = luck
        if luck.random() < 0.4:
            self._map_tiles(luck)
        elif luck.random() < 0.1 and len(program.queries) < 4:
            program.create_queries(luck.choice(program.queues).kind, luck.randint(1, 4))
        elif len(program.buffers) < 14:
            luck.choice([self._create_committed, self._create_placed, self._create_reserved])(luck)

    def _create_committed(self, luck: Random) -> None:
        kind = luck.choice([HeapType.DEFAULT, HeapType.DEFAULT, HeapType.UPLOAD, HeapType.READBACK])
        self.program.create_committed(kind, luck.choice(WIDTHS), zeroed=luck.random() < 0.7)

    def _create_placed(self, luck: Random) -> None:
        program = self.program
        kind = luck.choice([HeapType.DEFAULT, HeapType.UPLOAD, HeapType.READBACK])
        heap = (
            luck.choice(program.heaps)
            if luck.random() < 0.6
            else program.create_heap(kind, luck.randint(1, 2))
        )
        program.create_placed(heap, luck.choice([*WIDTHS, TILE + 256]))

    def _create_reserved(self, luck: Random) -> None:
        self.program.create_reserved(luck.randint(1, 2), luck.choice(WIDTHS))
        self._map_tiles(luck)

    def _map_tiles(self, luck: Random) -> None:
        program = self.program
        buffers = [each for each in program.buffers if len(each.tiles)]
        heaps = [each for each in program.heaps if each.kind is HeapType.DEFAULT]
        if buffers and heaps:
            program.update_tiles(luck.choice(program.queues), luck.choice(buffers), luck.choice(heaps))

    @precondition(lambda self: len(self.program.operators) < 10)
    @rule(luck=lucks, recipe=recipes)
    def create_operator(self, luck: Random, recipe: Recipe) -> None:
        program = self.program
        program.random = luck
        operator = program.create_operator(recipe)
        if luck.random() < 0.7:
            self.record(luck, lambda recording: program.initialize(recording, [operator]))

    # --- recording ---

    def record(self, luck: Random, *works: Any) -> None:
        """Into a list that is open, or a new one."""
        program = self.program
        program.random = luck
        opened = [each for each in program.recordings if each.is_open and each.list.kind is not COPY]
        if opened and luck.random() < 0.8:
            recording = luck.choice(opened)
        else:
            recording = program.begin(
                luck.choice([each.kind for each in program.queues if each.kind is not COPY])
            )
        for work in works:
            self.attempt(luck, work, recording)
        if luck.random() < 0.3:
            self.run(luck, recording)

    def run(self, luck: Random, *recordings: Recording) -> None:
        program = self.program
        queues = [each for each in program.queues if each.kind is recordings[0].list.kind]
        program.execute(luck.choice(queues), list(recordings))

    @rule(luck=lucks, count=st.integers(1, 4))
    def dispatch(self, luck: Random, count: int) -> None:
        self.record(luck, *[self._dispatch] * count)

    @rule(luck=lucks, count=st.integers(1, 4))
    def dispatch_more(self, luck: Random, count: int) -> None:
        self.record(luck, *[self._dispatch] * count)

    def _dispatch(self, recording: Recording) -> None:
        program = self.program
        claimed = [operator for each in program.recordings for operator in each.makes]
        ready = [each for each in program.operators if each.initialized or each in recording.makes]
        fresh = [each for each in program.operators if not each.initialized and each not in claimed]
        if fresh and (not ready or program.chance(3)):
            chosen = program.random.sample(fresh, program.random.randint(1, len(fresh)))
            program.initialize(recording, chosen)
            ready = chosen
        program.dispatch(recording, program.draw(ready))

    @rule(luck=lucks, count=st.integers(1, 3), on_copy_queue=st.booleans())
    def copy(self, luck: Random, count: int, on_copy_queue: bool) -> None:
        program = self.program
        if not on_copy_queue:
            self.record(luck, *[self._copy] * count)
            return
        program.random = luck
        recording = program.begin(COPY)
        works = [self._copy, self._copy, self._copy, self._query, self._resolve, self._write, self._barrier]
        for _ in range(count):
            self.attempt(luck, luck.choice(works), recording)
        if luck.random() < 0.7:
            self.run(luck, recording)

    def _copy(self, recording: Recording) -> None:
        program, luck = self.program, self.program.random
        target = program.draw([each for each in program.buffers if each.kind is not HeapType.UPLOAD])
        source = program.draw([each for each in program.buffers if each.kind is not HeapType.READBACK])
        most = min(target.width, source.width)
        size = luck.choice([most, luck.randint(1, most), luck.randint(1, min(most, 64))])
        program.copy(recording, self._part(target, size), self._part(source, size))

    def _part(self, buffer: Buffer, size: int, step: int = 1) -> View:
        luck = self.program.random
        last = buffer.width - size
        first = luck.choice(
            [0, luck.randint(0, min(last, 256)), luck.randint(0, last), min(last, TILE - size // 2)]
        )
        return View(buffer, max(first, 0) // step * step, size)

    @rule(luck=lucks, count=st.integers(1, 3))
    def record_others(self, luck: Random, count: int) -> None:
        """Clears, immediate writes, queries, barriers that nobody needs."""
        works = [self._clear, self._write, self._query, self._resolve, self._barrier, self._split]
        self.record(luck, *(luck.choice(works) for _ in range(count)))

    def _clear(self, recording: Recording) -> None:
        program, luck = self.program, self.program.random
        buffer = program.draw([each for each in program.buffers if each.is_uav])
        size = 4 * luck.randint(1, min(buffer.width // 4 - 4, 32))
        program.clear(recording, self._part(buffer, size, 16))

    def _write(self, recording: Recording) -> None:
        program = self.program
        buffer = program.draw([each for each in program.buffers if each.kind is not HeapType.UPLOAD])
        program.write_immediate(recording, self._part(buffer, 4, 4))

    def _queries(self, recording: Recording) -> Queries:
        is_copy = recording.list.kind is COPY
        fitting = [each for each in self.program.queries if (each.kind is COPY) == is_copy]
        queries: Queries = self.program.draw(fitting)
        return queries

    def _query(self, recording: Recording) -> None:
        queries = self._queries(recording)
        self.program.end_query(recording, queries, self.program.random.randrange(len(queries.where) // 8))

    def _resolve(self, recording: Recording) -> None:
        program, queries = self.program, self._queries(recording)
        buffer = program.draw([each for each in program.buffers if each.kind is not HeapType.UPLOAD])
        program.resolve(recording, queries, self._part(buffer, 32, 8))

    def _barrier(self, recording: Recording) -> None:
        self.program.add_barrier(recording, self.program.draw(self.program.buffers))

    def _split(self, recording: Recording) -> None:
        self.program.begin_split(recording, self.program.draw(self.program.buffers))

    # --- executing ---

    @rule(luck=lucks, most=st.integers(1, 4))
    def execute(self, luck: Random, most: int) -> None:
        """Some lists of one type, and once more those that the GPU has done."""
        program = self.program
        program.random = luck
        if program.recordings:
            kind = luck.choice(program.recordings).list.kind
            fitting = [each for each in program.recordings if each.list.kind is kind]
            fresh = [each for each in fitting if not each.last]
            chosen = luck.sample(fitting if luck.random() < 0.3 else fresh or fitting, 1)
            chosen += [
                each for each in luck.sample(fitting, min(most - 1, len(fitting))) if each not in chosen
            ]
            program.wait_until_idle(*(each for each in chosen if each.last))
            self.run(luck, *chosen)

    @rule(luck=lucks)
    def synchronize(self, luck: Random) -> None:
        """Signals and waits that nobody needs, or somebody later."""
        program = self.program
        program.random = luck
        queue, other = luck.sample(program.queues, 2)
        way = luck.randrange(4)
        if way == 0:
            program.signal(queue)
        elif way == 1 and queue.signals:
            program.await_signal(queue, luck.choice(queue.signals))
        elif way == 2:
            program.queue_wait(queue, other)
        else:
            opened = [each for each in program.recordings if each.is_open]
            if opened:
                program.close(luck.choice(opened))

    # --- the CPU ---

    @rule(luck=lucks)
    def write(self, luck: Random) -> None:
        program = self.program
        program.random = luck
        kinds = (HeapType.UPLOAD, HeapType.UPLOAD, HeapType.CUSTOM)
        kind = luck.choice(kinds)
        buffer = luck.choice([each for each in program.buffers if each.kind is kind])
        part = self._part(buffer, luck.randint(1, min(128, buffer.width)))
        data = bytes(part.size) if luck.random() < 0.3 else luck.randbytes(part.size)
        program.host_write(buffer, part.offset, data)

    @rule(luck=lucks)
    def read(self, luck: Random) -> None:
        program = self.program
        program.random = luck
        kinds = (HeapType.READBACK, HeapType.CUSTOM)
        program.host_read(luck.choice([each for each in program.buffers if each.kind in kinds]))

    # --- giving up ---

    @rule(luck=lucks)
    def release(self, luck: Random) -> None:
        program = self.program
        program.random = luck
        rest = [each for each in program.buffers if each not in self.kept]
        if luck.random() < 0.3 and program.recordings:
            program.give_up(luck.choice(program.recordings))
        elif luck.random() < 0.5 and len(rest) > 6:
            program.release_buffer(luck.choice(rest))
        else:
            self._release_other(luck)

    def _release_other(self, luck: Random) -> None:
        program = self.program
        unused = [each for each in program.heaps if not program.is_used(each)]
        operators = program.operators if len(program.operators) > 4 else []
        row = luck.choice([operators, unused, program.queries, program.lists, program.allocators])
        if row:
            thing = luck.choice(row)
            if not program.is_recording(thing):
                program.release(thing, tell=luck.random() < 0.5)
                program.remove(thing)

    # --- what must hold ---

    @invariant()
    def no_report(self) -> None:
        check(self.program)

    def teardown(self) -> None:
        try:
            self.program.random = Random(1)
            self.program.finish()
            check(self.program)
        finally:
            self.program = None  # type: ignore[assignment]


def check(program: Program) -> None:
    """Nothing but remarks was said."""
    stored = [each for each in program.device.reports if not each.suppressed]
    serious = [each.text() for each in stored if each.report.severity <= Severity.WARNING]
    assert not serious, "\n\n".join(serious)
    told = [each.text() for each in program.device.info_queue if each.severity <= Severity.WARNING]
    assert not told, "\n\n".join(told)


POLICIES = {
    "lazy": Policy.LAZY,
    "eager": Policy.EAGER,
    "chaos": dmlemu.chaos(7),
    "more chaos": dmlemu.chaos(8),
}
each_policy = pytest.mark.parametrize("policy", POLICIES)


def run(policy: str, examples: int, steps: int) -> None:
    machine = type("Machine", (LegalPrograms,), {"policy": POLICIES[policy]})
    chosen = settings(
        max_examples=examples, deadline=None, stateful_step_count=steps, suppress_health_check=[*HealthCheck]
    )
    run_state_machine_as_test(machine, settings=chosen)


@each_policy
def test_legal_programs(policy: str) -> None:
    run(policy, examples=part_of(12), steps=40)


@pytest.mark.long
@pytest.mark.timeout(3600)
@each_policy
def test_many_legal_programs(policy: str) -> None:
    """10,000 steps each."""
    run(policy, examples=200, steps=50)
