"""Memory of temporary tensors: no two that are needed at once share bytes, and little is wasted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations

import pytest

from dmlemu.dml.lowering.memory_plan import Block, place


def check(blocks: Sequence[Block]) -> int:
    """The size of a plan, which must be right."""
    offsets, size = place(blocks)
    assert size == max((o + b.size for o, b in zip(offsets, blocks, strict=True)), default=0)
    placed = sorted(zip(offsets, blocks, strict=True))
    for i, (start, block) in enumerate(placed):
        assert start >= 0
        for later, other in placed[i + 1 :]:
            if later >= start + block.size:
                break
            assert other.first > block.last or other.last < block.first, (block, other)
    return size


def most_at_once(blocks: Sequence[Block]) -> int:
    """No plan is smaller."""
    return max(sum(b.size for b in blocks if b.first <= at <= b.last) for at in {b.first for b in blocks})


def best(blocks: Sequence[Block]) -> int:
    """The size of the best plan: placing each block as low as it fits finds it, in one of the orders."""

    def size(order: Sequence[Block]) -> int:
        placed: list[tuple[int, Block]] = []
        for block in order:
            at = 0
            for start, other in sorted(placed):
                meets = other.first <= block.last and other.last >= block.first
                if meets and start < at + block.size and start + other.size > at:
                    at = start + other.size
            placed.append((at, block))
        return max(at + block.size for at, block in placed)

    return min(map(size, permutations(blocks)))


def test_nothing() -> None:
    assert place([]) == ([], 0)


def test_a_chain_takes_two_tensors() -> None:
    assert check([Block(256, i, i + 1) for i in range(50)]) == 512


def test_residual_blocks() -> None:
    """Each third tensor is added to the one three later, as in a residual network."""
    blocks = [Block(256, i, i + (4 if i % 3 == 0 else 1)) for i in range(60)]
    assert check(blocks) == most_at_once(blocks) == 3 * 256


@pytest.mark.parametrize("seed", range(25))
def test_within_a_tenth_of_the_best(seed: int) -> None:
    chance = random.Random(seed)
    blocks = []
    for _ in range(6):
        first = chance.randrange(6)
        blocks.append(Block(256 * chance.randint(1, 30), first, first + chance.randrange(4)))
    assert check(blocks) <= 1.1 * best(blocks)


@pytest.mark.parametrize("seed", range(12))
def test_networks_are_within_a_tenth_of_what_one_call_needs(seed: int) -> None:
    """Chains with branches and shortcuts."""
    chance = random.Random(seed)
    blocks = []
    for i in range(chance.choice([10, 40, 120])):
        length = 1 if chance.random() < 0.8 else chance.randint(2, 6)
        blocks.append(Block(256 * 4 ** chance.randint(0, 3), i, i + length))
    assert check(blocks) <= 1.1 * most_at_once(blocks)


def test_many_tensors() -> None:
    chance = random.Random(1)
    blocks = [Block(256 * chance.randint(1, 99), i, i + chance.randint(1, 9)) for i in range(2000)]
    assert check(blocks) <= 1.3 * most_at_once(blocks)
