"""Functions of blocks that branch in ways that no compiler makes, and what they mean thread by thread.

Each block makes three numbers of those that it is come to with: ``own``, which differs between threads,
``same``, which threads that took the same way have alike, and ``steps``.  What the last block makes of them
tells which blocks a thread passed, and in what order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from dmlemu.shaders import Constant, Module, Value, read_container, read_module
from dmlemu.shaders.values import Block, Function, Instruction, Type

__all__ = ["THREADS", "Graph", "random_edges"]

THREADS = 20
"""Of the container's group."""
_INT, _BIT, _VOID = Type("int", 32), Type("int", 1), Type("void")
_MOST_STEPS = 40
_ALL = 0xFFFFFFFF


def random_edges(numbers: random.Random, count: int) -> list[list[int]]:
    """Where each of ``count`` blocks branches to; the first target may be before it."""

    def further(number: int) -> int:
        return min(count - 1, number + 1 + int(numbers.expovariate(0.6)))

    edges = []
    for number in range(count - 1):
        on, some, others = number + 1, further(number), numbers.random()
        back = numbers.randint(max(1, number - 6), number) if number else on
        kinds = [[some], [on, some], [some, on], [some, further(number), on], [back, on], [back, some], []]
        weights = [0.28, 0.17, 0.17, 0.1, 0.15, 0.08, 0.05 if number else 0]
        edges.append(numbers.choices(kinds, weights)[0] if others else [on])
    return [*edges, []]


@dataclass
class _Plan:
    factor: int
    term: int
    taken: int
    """A block that dominates it, whose number it takes part of; its own: what it is come to with."""
    by: str
    """Which number decides where it branches."""
    shift: int


class Graph:
    def __init__(self, edges: Sequence[Sequence[int]], seed: int) -> None:
        self.edges = edges
        self.numbers = random.Random(seed)
        self.container = read_container((Path(__file__).parent / "containers" / "graph.dxil").read_bytes())
        self.module: Module = read_module(self.container.program.bitcode)
        self.before = self._before()
        self.plans = self._plans()
        self._write(next(function for function in self.module.functions if function.blocks))

    def _before(self) -> dict[int, list[int]]:
        """The blocks that can be reached, and from which ones."""
        before: dict[int, list[int]] = {0: []}
        waiting = [0]
        while waiting:
            number = waiting.pop()
            for after in dict.fromkeys(self.edges[number]):
                if after not in before:
                    before[after] = []
                    waiting.append(after)
                before[after].append(number)
        return dict(sorted(before.items()))

    def _plans(self) -> dict[int, _Plan]:
        above = {number: set(self.before) if number else {0} for number in self.before}
        for _pass in self.before:
            for number, before in self.before.items():
                if number:
                    above[number] = {number}.union(set.intersection(*(above[each] for each in before)))
        choose = self.numbers
        return {
            number: _Plan(
                2 * choose.randrange(1, 500) + 1,
                choose.randrange(10000),
                choose.choice(sorted(each for each in above[number] if each <= number)),
                choose.choice(["own", "own", "same", "uniform", "varying"]),
                choose.randrange(9),
            )
            for number in self.before
        }

    # --- as instructions ---

    def _write(self, function: Function) -> None:
        """In the function of the container, which divides two numbers that it loads and stores that."""
        given = function.blocks[0].instructions
        quotient = next(made for made in given if made.name == "udiv")
        store = next(made for made in given if quotient in made.operands)
        varying, uniform = quotient.operands
        blocks = {number: Block(number) for number in self.before}
        left_out = (quotient, store, given[-1])
        blocks[0].instructions += [made for made in given if made not in left_out]
        come: dict[int, list[Value]] = {0: [varying, uniform, Constant(_INT, 0)]}
        for number, block in blocks.items():
            if number:
                come[number] = [_add(block, "phi", []) for _ in range(3)]
        made: dict[int, list[Value]] = {}
        for number, block in blocks.items():
            made[number] = self._numbers(block, come[number], made)
            loaded = {"own": made[number][0], "same": made[number][1], "varying": varying, "uniform": uniform}
            self._end(block, blocks, loaded[self.plans[number].by], made[number], (store, quotient))
        for number, before in self.before.items():
            for place, phi in enumerate(come[number] if number else []):
                assert isinstance(phi, Instruction)
                phi.operands = [made[each][place] for each in before]
                phi.targets = [blocks[each] for each in before]
        function.blocks = list(blocks.values())

    def _numbers(self, block: Block, come: list[Value], made: dict[int, list[Value]]) -> list[Value]:
        plan = self.plans[block.number]
        own, same, steps = come
        scaled = _add(block, "add", [_add(block, "mul", [own, plan.factor]), plan.term])
        mixed = _add(block, "xor", [scaled, own if plan.taken == block.number else made[plan.taken][0]])
        return [
            _add(block, "xor", [mixed, _add(block, "lshr", [mixed, 7])]),
            _add(block, "add", [_add(block, "mul", [same, plan.factor]), block.number]),
            _add(block, "add", [steps, 1]),
        ]

    def _end(
        self,
        block: Block,
        blocks: dict[int, Block],
        by: Value,
        made: list[Value],
        template: tuple[Instruction, Instruction],
    ) -> None:
        targets = [blocks[number] for number in self.edges[block.number]]
        if not targets:
            result = _add(block, "add", [_add(block, "mul", [made[1], 77]), made[0]])
            store = copy(template[0])
            store.operands = [result if each is template[1] else each for each in store.operands]
            block.instructions += [store, Instruction(_VOID, "ret")]
            return
        if len(targets) == 1:
            block.instructions.append(Instruction(_VOID, "br", targets=targets))
            return
        bits = _add(block, "lshr", [by, self.plans[block.number].shift])
        if len(targets) == 3:
            low = _add(block, "and", [bits, 3])
            block.instructions.append(Instruction(_VOID, "switch", [low], targets=targets, indices=(1, 2)))
            return
        condition = _add(block, "icmp", [_add(block, "and", [bits, 1]), 0], "ne")
        if targets[0].number <= block.number:
            more = _add(block, "icmp", [made[2], _MOST_STEPS], "ult")
            condition = _add(block, "and", [condition, more], type=_BIT)
        block.instructions.append(Instruction(_VOID, "br", [condition], targets=targets))

    # --- thread by thread ---

    def expected(self, varying: int, uniform: int) -> int:
        """What a thread stores that loads these numbers."""
        number, own, same, steps = 0, varying, uniform, 0
        made: dict[int, int] = {}
        while True:
            plan, targets = self.plans[number], self.edges[number]
            own = (own * plan.factor + plan.term & _ALL) ^ (own if plan.taken == number else made[plan.taken])
            own ^= own >> 7
            made[number] = own
            same, steps = same * plan.factor + number & _ALL, steps + 1
            if not targets:
                return same * 77 + own & _ALL
            bits = {"own": own, "same": same, "varying": varying, "uniform": uniform}[plan.by] >> plan.shift
            if len(targets) == 3:
                number = targets[bits & 3 if bits & 3 < 3 else 0]
            elif len(targets) == 2:
                more = targets[0] > number or steps < _MOST_STEPS
                number = targets[0] if bits & 1 and more else targets[1]
            else:
                number = targets[0]


def _add(
    block: Block, name: str, operands: Sequence[Value | int], predicate: str = "", type: Type = _INT
) -> Instruction:
    values = [Constant(_INT, each) if isinstance(each, int) else each for each in operands]
    made = Instruction(_BIT if name == "icmp" else type, name, values, predicate)
    block.instructions.append(made)
    return made
