"""Commands that nobody needs to look at run together: the reports are those of looking at each of them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from dmlemu import Error, d3d12, dml
from dmlemu.checks.analysis.provenance import Author, Provenance, Write
from dmlemu.testing.stage import Stage, chain, tensor
from dmlemu_hw import packets
from dmlemu_hw.events import Accessing, Foresight
from dmlemu_hw.processor import Processor

pytestmark = pytest.mark.dmlemu(expect=["*"])
LAYOUTS = [tensor([4, 4]), tensor([4, 4], [6, 1]), tensor([4, 4], [1, 4])]


def relu_of(source: dml.BufferTensorDesc, target: dml.BufferTensorDesc) -> dml.OperatorDesc:
    return dml.ActivationReluOperatorDesc(input_tensor=source, output_tensor=target)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch, *, looks_at_each: bool = False) -> Iterator[list[int]]:
    """How many packets were run together, each time; with ``looks_at_each`` none are."""
    counts: list[int] = []
    run = Processor._run_ahead

    def run_ahead(processor: Processor, *arguments: Any) -> bool:
        is_done = not looks_at_each and run(processor, *arguments)
        if is_done:
            counts.append(processor._fault.ran)
        return is_done

    with monkeypatch.context() as patch:
        patch.setattr(Processor, "_run_ahead", run_ahead)
        yield counts


class Program:
    """A stage with a list for each part of a program; the lists are executed again and again."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.stage.use_descriptors(256)
        self.kept: list[Any] = []

    def record(self) -> Any:
        """Ends the list that is recorded; the next one is the stage's."""
        stage = self.stage
        done, kind = stage.list, d3d12.CommandListType.COMPUTE
        done.close()
        self.kept.append(stage.allocator)
        stage.allocator = stage.device.create_command_allocator(kind)
        stage.list = stage.device.create_command_list(0, kind, stage.allocator)
        stage.list.set_descriptor_heaps([stage.descriptors])
        return done

    def execute(self, *lists: Any) -> None:
        stage = self.stage
        stage.queue.execute_command_lists(list(lists))
        stage.fence_value += 1
        stage.queue.signal(stage.fence, stage.fence_value)
        while True:
            with suppress(Error):  # which is kept as a report; the GPU goes on
                stage.fence.wait(stage.fence_value)
                return

    def told(self) -> list[tuple[str, str, int]]:
        return [
            (each.report.id, re.sub(r"#\d+", "#", str(each.report.message)), each.count)
            for each in self.stage.device.reports
        ]


def test_a_list_that_repeats_runs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program()
    stage = program.stage
    relu = stage.compile(relu_of(tensor([16]), tensor([16])), "relu")
    stage.initialize(relu)
    image, middle, result = stage.filled("image", 64), stage.buffer("middle", 64), stage.buffer("result", 64)
    stage.run()
    for source, target in ((image, middle), (middle, result)):
        stage.dispatch(relu, [source], [target])
        stage.barrier()
    recorded = program.record()
    with counted(monkeypatch) as counts:
        for _ in range(8):
            program.execute(recorded)
    assert counts[-3:] == [4, 4, 4]
    assert "relu" in str(stage.device.lineage(result, 0))
    image_again = np.frombuffer(stage.read(result, np.float32, [16]), np.float32)
    assert image_again.tolist() == list(range(1, 17))


def test_a_subscriber_without_foresight_sees_each_command(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program()
    stage = program.stage
    relu = stage.compile(relu_of(tensor([16]), tensor([16])), "relu")
    stage.initialize(relu)
    image, result = stage.filled("image", 64), stage.buffer("result", 64)
    stage.run()
    for _ in range(2):
        stage.dispatch(relu, [image], [result])
        stage.barrier()
    recorded = program.record()
    for _ in range(6):
        program.execute(recorded)
    seen: list[Any] = []
    with counted(monkeypatch) as counts, stage.device.events.subscribe(seen.append, Accessing):
        program.execute(recorded)
    assert [each.opcode for each in seen] == [packets.Opcode.DISPATCH] * 2 and not counts
    seen.clear()
    with stage.device.events.subscribe(seen.append, Accessing, foresight=Foresight()):
        program.execute(recorded)
    assert not seen


@pytest.mark.parametrize("change", ["nothing", "copied"])
def test_what_changes_between_is_found(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After lists that ran together, what they read is overwritten, or no longer written."""
    answers = []
    for looks_at_each in (False, True):
        program = Program()
        stage = program.stage
        plain, padded = tensor([4, 4]), tensor([4, 4], [6, 1])
        operators = [
            stage.compile(relu_of(a, b), name)
            for a, b, name in ((plain, plain, "plain"), (padded, plain, "padded"))
        ]
        stage.initialize(*operators)
        image, middle, result = (
            stage.filled("image", 128),
            stage.buffer("middle", 128),
            stage.buffer("result", 64),
        )
        stage.run()
        for source, target in ((image, middle), (middle, result)):
            stage.dispatch(operators[0], [source], [target])
            stage.barrier()
        good = program.record()
        stage.dispatch(operators[1], [middle], [result])
        stage.barrier()
        bad = program.record()
        stage.list.copy_buffer_region(middle, 0, image, 64, 64)
        changing = program.record()
        with counted(monkeypatch, looks_at_each=looks_at_each):
            for _ in range(6):
                program.execute(good)
            if change != "nothing":
                program.execute(changing)
            program.execute(bad, good)
        stage.device.checks.end()
        answers.append(program.told())
    assert answers[0] == answers[1]


@pytest.mark.parametrize("seed", range(12))
def test_programs_are_told_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random lists over few buffers, executed in random order, with copies between them."""
    answers, together = [], 0
    for looks_at_each in (False, True):
        rng = random.Random(seed)
        program = Program()
        stage = program.stage
        pairs = [(rng.choice(LAYOUTS), rng.choice(LAYOUTS)) for _ in range(3)]
        operators = [stage.compile(relu_of(*pair), f"relu {i}") for i, pair in enumerate(pairs)]
        graph = stage.dml.compile_graph(chain(stage, LAYOUTS[0], LAYOUTS[0]))
        stage.initialize(*operators, graph)
        buffers = [stage.filled("image", 128), *(stage.buffer(f"b{i}", 128) for i in range(3))]
        stage.run()
        lists = []
        for _ in range(2):
            for _ in range(rng.randint(2, 8)):
                source, target = rng.sample(buffers, 2)
                stage.dispatch(rng.choice([*operators, graph]), [source], [target])
                if rng.random() < 0.9:
                    stage.barrier()
            lists.append(program.record())
        source, target = rng.sample(buffers, 2)
        stage.list.copy_buffer_region(target, 0, source, 64 * rng.randrange(2), 64)
        lists.append(program.record())
        with counted(monkeypatch, looks_at_each=looks_at_each) as counts:
            for _ in range(24):
                program.execute(rng.choices(lists, [8, 4, 1])[0])
        together += sum(counts)
        stage.device.checks.end()
        whence = [str(stage.device.lineage(each, byte)) for each in buffers for byte in range(0, 128, 4)]
        answers.append((program.told(), whence))
    assert answers[0] == answers[1]
    assert together or answers[0][0]  # what is reported each time does not run together


@pytest.mark.parametrize("starts_over", [False, True])
def test_commands_in_place_are_told_the_same(starts_over: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that reads what it wrote before: whether that was read does not depend on who looks."""
    answers = []
    for looks_at_each in (False, True):
        program = Program()
        stage = program.stage
        relu = stage.compile(relu_of(tensor([16]), tensor([16])), "relu")
        again = stage.compile(relu_of(tensor([16]), tensor([16])), "again")
        stage.initialize(relu, again)
        image, state = stage.filled("image", 64), stage.filled("state", 64)
        stage.run()
        for _ in range(2):
            stage.dispatch(again, [state], [state])
            stage.barrier()
        in_place = program.record()
        stage.dispatch(relu, [image], [state])
        stage.barrier()
        over = program.record()
        with counted(monkeypatch, looks_at_each=looks_at_each) as counts:
            for _ in range(8):
                program.execute(*([over, in_place] if starts_over else [in_place]))
        assert bool(counts) != looks_at_each
        whence = str(stage.device.lineage(state, 0))
        program.execute(over)
        stage.read(state, np.float32, [16])
        stage.device.checks.end()
        answers.append((program.told(), whence))
    assert answers[0] == answers[1]
    assert "from 1" in answers[0][1]


def test_a_report_is_counted_once_for_each_state_of_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gaps of its own output are no other state for the command that reads a mixture."""
    answers = []
    for looks_at_each in (False, True):
        program, lists = Program(), []
        stage = program.stage
        half = stage.compile(relu_of(tensor([2, 4]), tensor([2, 4])), "half")
        whole = stage.compile(relu_of(tensor([4, 4]), tensor([4, 4], [6, 1])), "whole")
        stage.initialize(half, whole)
        image, mixed = stage.filled("image"), stage.filled("mixed")
        other, result = stage.buffer("other"), stage.buffer("result")
        old, copy = stage.filled("old", 64), stage.copy_operator("all")
        stage.dispatch(copy, [old], [dml.BufferBinding(mixed, 0, 64)])
        stage.run()
        for operator, size in ((copy, 64), (half, 32)):  # the second one hides a part of the first
            stage.dispatch(operator, [dml.BufferBinding(image, 0, size)], [dml.BufferBinding(other, 0, size)])
            stage.barrier()
        stage.dispatch(half, [dml.BufferBinding(image, 0, 32)], [dml.BufferBinding(mixed, 0, 32)])
        stage.barrier()
        for _ in range(2):
            stage.dispatch(whole, [dml.BufferBinding(mixed, 0, 64)], [dml.BufferBinding(result, 0, 88)])
            stage.barrier()
            lists.append(program.record())
        with counted(monkeypatch, looks_at_each=looks_at_each) as counts:
            for _ in range(8):
                program.execute(lists[0])
            program.execute(lists[1])
        assert bool(counts) != looks_at_each
        answers.append(program.told())
    assert answers[0] == answers[1]
    assert [count for id, _, count in answers[0] if id == "READ_MIXED"] == [1]


def test_a_rehearsal_leaves_intervals_as_they_were() -> None:
    """Where they are split is a part of the state of the memory."""
    memory = Provenance()
    memory.write(Write(Author(), 0, 0, 64, None, None, 1))
    state, version, saved = memory.state([(0, 64)]), memory.version, memory.saved()
    memory.write(Write(Author(), 0, 16, 32, None, None, 2))
    assert memory.state([(0, 64)]) != state
    memory.restore(saved)
    assert (memory.state([(0, 64)]), memory.version) == (state, version)


def test_the_order_of_writes_to_two_tensors_is_no_other_state() -> None:
    """The order matters where one read meets both."""
    memory = Provenance()
    first, second = (Write(Author(), 0, begin, begin + 64, None, None, 0) for begin in (0, 64))

    def state_after(*writes: Write) -> list[Any]:
        for number, each in enumerate(writes, 1):
            each.number = number
            memory.write(each)
        return [memory.state(spans) for spans in ([(0, 64), (64, 128)], [(0, 128)])]

    apart, together = state_after(first, second)
    apart_again, together_again = state_after(second, first)
    assert apart == apart_again and together != together_again
