"""What repeats is looked up, not looked at: the answers are those of looking again every time."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from dmlemu import dml
from dmlemu.checks.analysis.access_history import physical
from dmlemu.checks.analysis.provenance import Author, Provenance, Write
from dmlemu.checks.analysis.visible import place_of
from dmlemu.checks.provenance import check as rule
from dmlemu.checks.provenance.check import WhoseBytes
from dmlemu.testing.stage import Stage, tensor

pytestmark = pytest.mark.dmlemu(expect=["*"])
SIZE = 256
LAYOUTS = [tensor([4, 4]), tensor([4, 4], [6, 1]), tensor([2, 8]), tensor([2, 4], [8, 2])]
OPERATORS = [dml.ActivationReluOperatorDesc, dml.ActivationSigmoidOperatorDesc]
PAIRS = [(a, b) for a in LAYOUTS for b in LAYOUTS if a.sizes == b.sizes]


def operator(stage: Stage, kind: Any, source: Any, target: Any, name: str) -> Any:
    compiled = stage.compile(kind(input_tensor=source, output_tensor=target), name)
    stage.initialize(compiled)
    return compiled


def dispatch(stage: Stage, compiled: Any, source: Any, target: Any) -> None:
    stage.use_descriptors(64)
    stage.dispatch(compiled, [source], [target])
    stage.run()


def test_memory_that_two_dispatches_write_in_turn() -> None:
    """The one that wrote last is named, and what was computed before comes from the one before."""
    stage = Stage()
    desc = tensor([16])
    relu, sigmoid, use = (
        operator(stage, kind, desc, desc, name)
        for kind, name in (*zip(OPERATORS, ("relu", "sigmoid"), strict=True), (OPERATORS[0], "use"))
    )
    image, scratch, result = (
        stage.filled("image", 64),
        stage.buffer("scratch", 64),
        stage.buffer("result", 64),
    )
    dispatch(stage, relu, image, scratch)
    dispatch(stage, use, scratch, result)
    dispatch(stage, sigmoid, image, scratch)
    assert "'relu'" in str(stage.device.lineage(result, 0))
    for _ in range(2):
        for compiled in (relu, sigmoid):
            dispatch(stage, compiled, image, scratch)
            assert f"'{compiled.name}'" in str(stage.device.lineage(scratch, 0))


def test_which_of_two_that_repeat_is_older() -> None:
    """Also when nothing else happened since, and what they read is not looked at."""
    stage = Stage()
    desc = tensor([16])
    relu, sigmoid, use = (
        operator(stage, kind, desc, desc, name)
        for kind, name in (*zip(OPERATORS, ("relu", "sigmoid"), strict=True), (OPERATORS[0], "use"))
    )
    image, halves, result = stage.filled("image", 64), stage.buffer("halves", 128), stage.buffer("result", 64)
    lower, middle, upper = (dml.BufferBinding(halves, begin, 64) for begin in (0, 32, 64))
    for _ in range(3):
        dispatch(stage, relu, image, lower)
        dispatch(stage, sigmoid, image, upper)
    dispatch(stage, use, middle, result)
    [message] = [each.report.message for each in stage.device.reports if each.report.id == "READ_MIXED"]
    assert message.index("'sigmoid'") < message.index("older, from") < message.index("'relu'")


@pytest.mark.parametrize("others", ["copies", "dispatches"])
def test_the_lineage_of_what_repeats_is_remembered(others: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many other commands there were since it was first executed."""
    monkeypatch.setattr(rule, "_AUTHORS", 4)
    stage = Stage()
    desc = tensor([16])
    relu = operator(stage, OPERATORS[0], desc, desc, "relu")
    image, result, other = stage.filled("image", 64), stage.buffer("result", 64), stage.filled("other", 1024)
    for i in range(8):
        dispatch(stage, relu, image, result)
        if others == "copies":
            stage.read(other, np.float32, [16])
        elif i < 7:
            dispatch(
                stage, relu, dml.BufferBinding(other, 64 * i, 64), dml.BufferBinding(other, 64 * i + 64, 64)
            )
    text = str(stage.device.lineage(result, 0))
    assert "no longer remembered" not in text and "CopyBufferRegion" in text


def steps_of(rng: random.Random) -> list[list[tuple[Any, ...]]]:
    """Frames of a program: few different steps over three buffers, repeated."""

    def place() -> tuple[int, int]:
        return rng.randrange(3), 32 * rng.randrange(2)

    def step() -> tuple[Any, ...]:
        kind = rng.choice(["dispatch"] * 5 + ["copy", "write", "look"])
        if kind == "dispatch":
            return kind, rng.randrange(2), rng.randrange(len(PAIRS)), place(), place()
        if kind == "copy":
            return kind, place(), place(), rng.choice([16, 32, 64])
        return kind, place(), rng.choice([4, 8, 16])

    steps = [step() for _ in range(rng.randint(2, 6))]
    frames = [rng.choices(steps, k=rng.randint(1, 5)) for _ in range(rng.randint(1, 3))]
    return rng.choices(frames, k=rng.randint(3, 6))


def run(frames: list[list[tuple[Any, ...]]]) -> tuple[list[Any], set[Any]]:
    """The last writer of all bytes after each frame, and what is reported of reads."""
    stage = Stage()
    check: Any = stage.device.checks._checks[WhoseBytes]
    buffers = [stage.upload(f"b{i}", np.zeros(SIZE, np.float32)) for i in range(3)]
    stage.run()
    places = [place_of(buffer) for buffer in buffers]
    begins = [physical(place.heap + place.offset, 1)[0] for place in places]
    operators: dict[tuple[int, int], Any] = {}
    found = []
    for frame in frames:
        for kind, *step in frame:
            if kind == "dispatch":
                of, pair, (source, from_), (target, to) = step
                source = (target + 1) % 3 if source == target else source
                ends = PAIRS[pair]
                if (of, pair) not in operators:
                    operators[of, pair] = operator(stage, OPERATORS[of], *ends, f"operator {of} {pair}")
                where = ((buffers[source], from_), (buffers[target], to))
                bindings = [
                    dml.BufferBinding(*at, desc.size_in_bytes) for at, desc in zip(where, ends, strict=True)
                ]
                dispatch(stage, operators[of, pair], *bindings)
            elif kind == "copy":
                (source, from_), (target, to), size = step
                source = (target + 1) % 3 if source == target else source
                stage.list.copy_buffer_region(buffers[target], to, buffers[source], from_, size)
                stage.run()
            elif kind == "write":
                (target, to), count = step
                stage.write(buffers[target], np.zeros(count, np.float32), to)
                stage.run()
            else:
                (source, from_), count = step
                stage.read(buffers[source], np.float32, [count], from_)
        check._enter_due()
        found += [told(check._memory.at(begin + byte)) for begin in begins for byte in range(0, SIZE, 4)]
    return found, {
        (each.report.id, each.report.severity, re.sub(r"#\d+", "#", each.report.message))
        for each in stage.device.reports
        if each.report.id in ("LAYOUT_HANDOVER", "READ_MIXED")
    }


def told(write: Write | None) -> Any:
    """Who wrote, and from whose bytes."""
    if write is None:
        return None
    author = write.author
    sources = [
        (each.operand, {(source.write and named(source.write.author), source[1:]) for source in each.sources})
        for each in author.inputs or ()
    ]
    return named(author), author.before and named(author.before), write.tensor, sources


def named(author: Author) -> str:
    return author.command.name if author.command is not None else str(author.commands is None)


@pytest.mark.parametrize("seed", range(24))
def test_what_repeats(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs over few buffers, with and without what is remembered of their earlier frames."""
    frames = steps_of(random.Random(seed))
    copy = Provenance.copy

    def copy_anew(memory: Provenance, *step: Any) -> None:
        memory._copies.clear()
        copy(memory, *step)

    nothing = property(lambda check: {}, lambda check, known: None)
    answers = []
    for remembers in (True, False):
        if not remembers:
            monkeypatch.setattr(WhoseBytes, "_known", nothing, raising=False)
            monkeypatch.setattr(Provenance, "copy", copy_anew)
            monkeypatch.setattr(Write, "is_again", lambda write, older: False)
        answers.append(run(frames))
    assert answers[0] == answers[1]
