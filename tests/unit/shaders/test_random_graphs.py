"""Control flow of every shape runs as it would for one thread after the other."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dmlemu.shaders import UnsupportedShader, compile_shader, native
from thorough import part_of

from .random_graphs import THREADS, Graph, random_edges
from .test_native import Call

pytest.importorskip("llvmlite")


def compare(graph: Graph, wave: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "read_module", lambda *_: graph.module)
    monkeypatch.setattr(native, "_compile", native._compile.__wrapped__)  # it would keep what it made
    shader = compile_shader(graph.container, wave=wave)
    given = np.random.default_rng(wave).integers(0, 1 << 32, THREADS + 1, np.uint32)
    found = np.zeros(THREADS, np.uint32)
    arrays = [given, found]
    assert [each.register for each in shader.ranges] == ["t0", "u0"]
    assert Call(shader.address, arrays, (1, 1, 1)).run() == 0
    uniform, *varying = map(int, given)
    assert found.tolist() == [graph.expected(each, uniform) for each in varying], graph.edges


@pytest.mark.parametrize(
    "edges",
    [
        # Threads come to a loop from the sides of a branch.
        [[2, 1], [2], [3], [4, 5], [2, 5], []],
        # They part to the place where they meet, and to blocks that others come to from above.
        [[1], [4, 2], [2, 3], [4, 6], [5], [6, 6], []],
        # A side begins with a loop and has no other block.
        [[3, 1], [1, 4], [], [4], [5], [6], [5, 7], []],
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_graphs_that_ran_wrongly(edges: list[list[int]], seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for wave in (4, 16):
        with monkeypatch.context() as patched:
            compare(Graph(edges, seed), wave, patched)


@pytest.mark.parametrize("block", range(part_of(12)))
def test_random_graphs(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = 0
    for seed in range(20 * block, 20 * block + 20):
        numbers = random.Random(seed)
        graph = Graph(random_edges(numbers, numbers.choice([4, 6, 8, 10, 12, 16])), seed)
        try:
            with monkeypatch.context() as patched:
                compare(graph, numbers.choice([4, 4, 8, 16]), patched)
            ran += 1
        except UnsupportedShader as refused:
            assert "more than one entrance" in str(refused)
    assert ran > 8
