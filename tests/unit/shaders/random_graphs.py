"""Functions of blocks that branch in ways that no compiler makes, and what they mean thread by thread.

Each block makes three numbers of those that it is come to with: ``own``, which differs between threads,
``same``, which threads that took the same way have alike, and ``steps``.  What the last block makes of them
tells which blocks a thread passed, and in what order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from dmlemu.shaders import Constant, Module, Value, read_container, read_module
from dmlemu.shaders.values import Block, Function, Instruction, Type

__all__ = ["ALL", "INT", "THREADS", "VOID", "Graph", "add", "random_edges"]

THREADS = 20
"""Of the container's group."""
INT, _BIT, VOID = Type("int", 32), Type("int", 1), Type("void")
_MOST_STEPS = 40
ALL = 0xFFFFFFFF


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
    """``barriers``: blocks that all threads come to, and wait at their beginning for the others.  ``latch``:
    a block from which all threads go on, or back, together."""

    container_name = "graph"
    barriers: frozenset[int] = frozenset()
    latch = -1

    def __init__(self, edges: Sequence[Sequence[int]], seed: int) -> None:
        self.edges = edges
        self.numbers = random.Random(seed)
        file = Path(__file__).parent / "containers" / f"{self.container_name}.dxil"
        self.container = read_container(file.read_bytes())
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
        given, loaded = self._begin(function.blocks[0].instructions)
        blocks = {number: Block(number) for number in self.before}
        blocks[0].instructions += given
        come: dict[int, list[Value]] = {0: [*loaded, Constant(INT, 0)]}
        for number, block in blocks.items():
            if number:
                come[number] = [add(block, "phi", []) for _ in range(3)]
        made: dict[int, list[Value]] = {}
        for number, block in blocks.items():
            made[number] = self._numbers(block, come[number], made)
            deciding = {"own": made[number][0], "same": made[number][1]}
            deciding["varying"], deciding["uniform"] = loaded
            self._end(block, blocks, deciding[self.plans[number].by], made[number])
        for number, before in self.before.items():
            for place, phi in enumerate(come[number] if number else []):
                assert isinstance(phi, Instruction)
                phi.operands = [made[each][place] for each in before]
                phi.targets = [blocks[each] for each in before]
        function.blocks = list(blocks.values())

    def _begin(self, given: list[Instruction]) -> tuple[list[Instruction], tuple[Value, Value]]:
        """What of the container's instructions stays, and the varying and the uniform number among them.

        The shader divides two numbers that it loads and stores that.
        """
        quotient = next(made for made in given if made.name == "udiv")
        store = next(made for made in given if quotient in made.operands)
        self.template = store, quotient
        varying, uniform = quotient.operands
        return [made for made in given if made not in (quotient, store, given[-1])], (varying, uniform)

    def _store_result(self, block: Block, result: Value) -> None:
        made, quotient = self.template
        store = copy(made)
        store.operands = [result if each is quotient else each for each in store.operands]
        block.instructions.append(store)

    def _act(self, block: Block, own: Value) -> Value:
        """What else a block does; gives what ``own`` is then."""
        return own

    def _numbers(self, block: Block, come: list[Value], made: dict[int, list[Value]]) -> list[Value]:
        plan = self.plans[block.number]
        own, same, steps = come
        scaled = add(block, "add", [add(block, "mul", [own, plan.factor]), plan.term])
        mixed = add(block, "xor", [scaled, own if plan.taken == block.number else made[plan.taken][0]])
        return [
            self._act(block, add(block, "xor", [mixed, add(block, "lshr", [mixed, 7])])),
            add(block, "add", [add(block, "mul", [same, plan.factor]), block.number]),
            add(block, "add", [steps, 1]),
        ]

    def _end(self, block: Block, blocks: dict[int, Block], by: Value, made: list[Value]) -> None:
        targets = [blocks[number] for number in self.edges[block.number]]
        if not targets:
            self._store_result(block, add(block, "add", [add(block, "mul", [made[1], 77]), made[0]]))
            block.instructions.append(Instruction(VOID, "ret"))
            return
        if len(targets) == 1:
            block.instructions.append(Instruction(VOID, "br", targets=targets))
            return
        bits = add(block, "lshr", [by, self.plans[block.number].shift])
        if len(targets) == 3:
            low = add(block, "and", [bits, 3])
            block.instructions.append(Instruction(VOID, "switch", [low], targets=targets, indices=(1, 2)))
            return
        condition = add(block, "icmp", [add(block, "and", [bits, 1]), 0], "ne")
        if targets[0].number <= block.number:
            more = add(block, "icmp", [made[2], _MOST_STEPS], "ult")
            condition = add(block, "and", [condition, more], type=_BIT)
        block.instructions.append(Instruction(VOID, "br", [condition], targets=targets))

    # --- thread by thread ---

    def expected(self, varying: int, uniform: int) -> int:
        """What a thread stores that loads these numbers."""
        walk = self.walk(varying, uniform, lambda number, own: own, lambda: False)
        while True:
            try:
                next(walk)
            except StopIteration as end:
                return int(end.value)

    def walk(
        self, varying: int, uniform: int, act: Callable[[int, int], int], again: Callable[[], bool]
    ) -> Generator[None, None, int]:
        """Goes a thread's way, waiting at barriers.  ``act(number, own)``: what ``_act`` makes of ``own``;
        ``again()``: whether it goes back at the latch."""
        number, own, same, steps = 0, varying, uniform, 0
        made: dict[int, int] = {}
        while True:
            if number in self.barriers:
                yield
            plan, targets = self.plans[number], self.edges[number]
            own = (own * plan.factor + plan.term & ALL) ^ (own if plan.taken == number else made[plan.taken])
            own = act(number, own ^ own >> 7)
            made[number] = own
            same, steps = same * plan.factor + number & ALL, steps + 1
            if not targets:
                return same * 77 + own & ALL
            decides = {"own": own, "same": same, "varying": varying, "uniform": uniform}[plan.by]
            if number == self.latch:
                number = targets[0 if again() else 1]
            else:
                number = self._next(number, decides >> plan.shift, steps)

    def _next(self, number: int, bits: int, steps: int) -> int:
        targets = self.edges[number]
        if len(targets) == 3:
            return targets[bits & 3 if bits & 3 < 3 else 0]
        if len(targets) == 2:
            more = targets[0] > number or steps < _MOST_STEPS
            return targets[0] if bits & 1 and more else targets[1]
        return targets[0]


def add(
    block: Block, name: str, operands: Sequence[Value | int], predicate: str = "", type: Type = INT
) -> Instruction:
    values = [Constant(INT, each) if isinstance(each, int) else each for each in operands]
    made = Instruction(_BIT if name == "icmp" else type, name, values, predicate)
    block.instructions.append(made)
    return made
