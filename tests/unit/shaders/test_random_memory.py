"""Blocks of every control flow read and write memory as one thread after the other would, up to barriers."""

from __future__ import annotations

import numpy as np
import pytest

from dmlemu.shaders import UnsupportedShader, compile_shader, native
from dmlemu_hw.shader_watch import Watch
from thorough import part_of

from .random_graphs import THREADS
from .random_memory import MEMORY, MemoryGraph, random_phases
from .test_native import OK, Call

pytest.importorskip("llvmlite")

FILL = 0xCD
WAVES = (4, 8, 16, 32)


def ran(seed: int, monkeypatch: pytest.MonkeyPatch, checked: bool = False, barriers: bool = True) -> set[str]:
    """Runs the graph of a seed and compares what it has written; the kinds of findings of a watched run."""
    graph = MemoryGraph(*random_phases(seed), seed)
    if not barriers:
        graph.leave_out_barriers()
    monkeypatch.setattr(native, "read_module", lambda *_: graph.module)
    monkeypatch.setattr(native, "_compile", native._compile.__wrapped__)  # it would keep what it made
    shader = compile_shader(graph.container, wave=WAVES[seed % 4], checked=checked)
    given = np.random.default_rng(seed).integers(0, 1 << 32, THREADS + 1, np.uint32)
    found = {name: np.zeros(MEMORY[name], np.uint32) for name in ("elements", "bytes", "numbers", "sums")}
    assert [each.register for each in shader.ranges] == ["t0", "u0", "u1", "u2", "u3"]
    made = Call(shader.address, [given, *found.values()], (1, 1, 1))
    made.call.shared_bytes, made.call.frame_bytes = shader.shared_bytes, shader.frame_bytes
    made.call.fill = FILL
    watch = Watch(THREADS, shader.wave, shader.shared_bytes) if checked else None
    if watch is not None:
        made.call.watch = watch.pointer
    assert made.run() == OK
    expected = graph.run(given, FILL * 0x01010101)
    for name, values in found.items() if barriers else ():
        assert values.tolist() == expected[name], (seed, name, graph.edges)
    return {each.kind for each in watch.finish()} if watch is not None else set()


def tried(seeds: range, monkeypatch: pytest.MonkeyPatch, **how: bool) -> list[set[str]]:
    """Of each seed whose graph is one that shaders may have."""
    found = []
    for seed in seeds:
        try:
            with monkeypatch.context() as patched:
                found.append(ran(seed, patched, **how))
        except UnsupportedShader as refused:
            assert "more than one entrance" in str(refused)
    assert len(found) > len(seeds) // 3
    return found


@pytest.mark.parametrize("block", range(part_of(24, parts=8)))
def test_random_memory(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tried(range(12 * block, 12 * block + 12), monkeypatch)


@pytest.mark.parametrize("block", range(part_of(12, parts=8)))
def test_no_race_is_told_but_where_barriers_are_left_out(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(6 * block, 6 * block + 6)
    right = tried(seeds, monkeypatch, checked=True)
    assert not [each for kinds in right for each in kinds if "RACE" in each]
    wrong = tried(seeds, monkeypatch, checked=True, barriers=False)
    assert [each for kinds in wrong for each in kinds if "RACE" in each]
