"""Random graphs whose blocks also read and write memory, in phases with a barrier between two of them.

Within a phase a thread writes numbers of its own, in memory of one parity; it reads those, numbers of any
thread in memory of the other parity, which the phase before wrote, and numbers outside of buffers.  The last
two phases may be the rounds of a loop that all threads run equally often.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dmlemu.shaders import Constant, Value
from dmlemu.shaders.values import Block, Function, Instruction, Type

from .random_graphs import ALL, INT, THREADS, VOID, Graph, add, random_edges

__all__ = ["MEMORY", "MemoryGraph", "random_phases"]

_SLOTS = 4
_OWN = _SLOTS * THREADS
"""Numbers that threads have in memory of one parity."""
MEMORY = {"elements": _OWN, "bytes": 2 * _OWN, "numbers": _OWN, "sums": 8, "kept": 2 * _OWN}
"""Numbers in each: a structured, a raw, a typed buffer, a raw one that is added to, groupshared memory."""
_VIEWS = ("sums", "numbers", "bytes", "elements", "given")
"""In the order of the container's handles."""
_OF_BOTH = ("bytes", "kept")
_MANY = 31
"""Added to what is read of ``given``, which has fewer numbers: some are outside."""
_UNDEFINED = Constant(INT, None)


def random_phases(seed: int) -> tuple[list[list[int]], list[int]]:
    """Edges of three or four graphs one behind the other, and the first block of each.

    No thread returns before the end, where others would wait for it at a barrier.
    """
    numbers = random.Random(seed)
    edges: list[list[int]] = []
    begins = []
    for _ in range(numbers.choice([3, 3, 4])):
        begins.append(len(edges))
        part = random_edges(numbers, numbers.choice([3, 4, 5, 6, 8]))
        edges += [[begins[-1] + target for target in targets or [len(part) - 1]] for targets in part[:-1]]
        edges.append([len(edges) + 1])
    return [*edges, []], begins


@dataclass
class _Access:
    kind: str
    """store, load (of a number of the thread), other (of any thread), given, add."""
    where: str
    slot: int
    shift: int
    """Which bits of ``own`` choose the number; 32: ``slot`` does."""


class MemoryGraph(Graph):
    container_name = "memory"

    def __init__(self, edges: Sequence[Sequence[int]], begins: Sequence[int], seed: int) -> None:
        self.begins, self.loops = begins, seed % 3 == 0
        self.barriers = frozenset(begins[1:])
        self.header = begins[-2]
        if self.loops:  # of two phases, so that the parity of each stays
            self.latch = len(edges) - 2
            edges = [*edges[:-2], [self.header, len(edges) - 1], []]
        chooser = random.Random(seed)
        self.accesses = {number: self._accesses(number, chooser) for number in range(len(edges) - 1)}
        super().__init__(edges, seed)

    def _parity(self, number: int) -> int:
        return sum(number >= begin for begin in self.begins) % 2

    def _accesses(self, number: int, chooser: random.Random) -> list[_Access]:
        made = []
        for _ in range(chooser.choice([0, 1, 1, 2, 3])):
            kind = chooser.choice(["store", "store", "load", "other", "given", "add"])
            where = {"other": chooser.choice(_OF_BOTH), "given": "given", "add": "sums"}.get(
                kind, chooser.choice(["elements", "bytes", "numbers", "kept"])
            )
            made.append(_Access(kind, where, chooser.randrange(_SLOTS), chooser.choice([0, 3, 9, 32])))
        return made

    # --- as instructions ---

    def _begin(self, given: list[Instruction]) -> tuple[list[Instruction], tuple[Value, Value]]:
        """Handles, the number of the thread, and two loads of ``given``."""
        loads = [made for made in given if made.name == "extractvalue"][:2]
        calls: dict[str, Function] = {}
        for made in given:
            if made.name == "call" and isinstance(made.operands[0], Function):
                calls.setdefault(made.operands[0].name.split(".")[2], made.operands[0])
        self.functions = calls
        handles = [made for made in given if made.type.name == "dx.types.Handle"]
        self.handles = dict(zip(_VIEWS, handles, strict=True))
        self.thread = next(made for made in given if made.operands[0] is calls["flattenedThreadIdInGroup"])
        pointer = next(made for made in given if made.name == "getelementptr")
        self.shared, self.pointer = pointer.operands[0], pointer.type
        varying, uniform = loads
        self.uniform = uniform
        return given[: given.index(uniform) + 1], (varying, uniform)

    def _call(self, block: Block, name: str, opcode: int, *operands: Value) -> Instruction:
        function = self.functions[name]
        made = Instruction(function.signature.element, "call", [function, Constant(INT, opcode), *operands])
        block.instructions.append(made)
        return made

    def _numbers(self, block: Block, come: list[Value], made: dict[int, list[Value]]) -> list[Value]:
        if block.number in self.barriers:
            self._call(block, "barrier", 80, Constant(INT, 11))
        return super()._numbers(block, come, made)

    def _act(self, block: Block, own: Value) -> Value:
        for access in self.accesses.get(block.number, []):
            own = self._access(block, access, own)
        return own

    def _access(self, block: Block, access: _Access, own: Value) -> Value:
        bits = add(block, "lshr", [own, access.shift]) if access.shift < 32 else Constant(INT, access.slot)
        if access.kind == "add":
            at = add(block, "shl", [add(block, "and", [bits, 7]), 2])
            self._call(
                block,
                "atomicBinOp",
                78,
                self.handles["sums"],
                Constant(INT, 0),
                at,
                _UNDEFINED,
                _UNDEFINED,
                own,
            )
            return own
        if access.kind == "given":
            return add(block, "xor", [own, self._load(block, "given", add(block, "and", [bits, _MANY]))])
        place = self._place(block, access, bits)
        if access.kind == "store":
            self._store(block, access.where, place, own)
            return own
        return add(block, "add", [own, self._load(block, access.where, place)])

    def _place(self, block: Block, access: _Access, bits: Value) -> Value:
        parity = self._parity(block.number)
        if access.kind == "other":
            return add(block, "add", [add(block, "urem", [bits, _OWN]), (1 - parity) * _OWN])
        slot = add(block, "and", [bits, _SLOTS - 1])
        own = add(block, "add", [add(block, "mul", [self.thread, _SLOTS]), slot])
        return add(block, "add", [own, parity * _OWN]) if access.where in _OF_BOTH else own

    def _load(self, block: Block, where: str, place: Value) -> Instruction:
        if where == "kept":
            loaded = Instruction(INT, "load", [self._pointer(block, place)])
        else:
            row = self._call(
                block, "bufferLoad", 68, self.handles[where], *self._address(block, where, place)
            )
            loaded = Instruction(INT, "extractvalue", [row], indices=(0,))
        block.instructions.append(loaded)
        return loaded

    def _store(self, block: Block, where: str, place: Value, value: Value) -> None:
        if where == "kept":
            block.instructions.append(Instruction(VOID, "store", [self._pointer(block, place), value]))
            return
        typed = where == "numbers"
        rest = [value if typed else _UNDEFINED] * 3
        mask = Constant(Type("int", 8), 15 if typed else 1)
        address = self._address(block, where, place)
        self._call(block, "bufferStore", 69, self.handles[where], *address, value, *rest, mask)

    def _address(self, block: Block, where: str, place: Value) -> tuple[Value, Value]:
        if where == "bytes":
            return add(block, "shl", [place, 2]), _UNDEFINED
        return place, _UNDEFINED if where == "numbers" else Constant(INT, 0)

    def _pointer(self, block: Block, place: Value) -> Instruction:
        made = Instruction(self.pointer, "getelementptr", [self.shared, Constant(INT, 0), place])
        block.instructions.append(made)
        return made

    def _end(self, block: Block, blocks: dict[int, Block], by: Value, made: list[Value]) -> None:
        if block.number != self.latch:
            super()._end(block, blocks, by, made)
            return
        header, before = blocks[self.header], blocks[self.header - 1]
        count = Instruction(INT, "phi", [])
        header.instructions.insert(0, count)
        more = add(block, "add", [count, 1])
        count.operands, count.targets = [Constant(INT, 0), more], [before, block]
        again = add(block, "icmp", [more, add(block, "and", [self.uniform, 3])], "ule")
        targets = [header, blocks[self.latch + 1]]
        block.instructions.append(Instruction(VOID, "br", [again], targets=targets))

    def _store_result(self, block: Block, result: Value) -> None:
        self._store(block, "elements", add(block, "mul", [self.thread, _SLOTS]), result)

    def leave_out_barriers(self) -> None:
        for function in self.module.functions:
            for block in function.blocks:
                block.instructions = [
                    made for made in block.instructions if self.functions["barrier"] not in made.operands
                ]

    # --- thread by thread ---

    def run(self, given: npt.NDArray[np.uint32], shared: int) -> dict[str, list[int]]:
        """What the buffers hold afterwards; ``shared``: what groupshared memory holds before."""
        memory = {name: [shared if name == "kept" else 0] * count for name, count in MEMORY.items()}
        memory["given"] = [int(number) for number in given]
        walks = {thread: self._walk_of(thread, memory) for thread in range(THREADS)}
        while walks:
            for thread, walk in list(walks.items()):
                try:
                    next(walk)
                except StopIteration as end:
                    memory["elements"][_SLOTS * thread] = end.value
                    del walks[thread]
        return memory

    def _walk_of(self, thread: int, memory: dict[str, list[int]]) -> Generator[None, None, int]:
        given = memory["given"]
        rounds = 0

        def act(number: int, own: int) -> int:
            for access in self.accesses.get(number, []):
                own = self._done(number, access, own, thread, memory)
            return own

        def again() -> bool:
            nonlocal rounds
            rounds += 1
            return rounds <= given[0] & 3

        return self.walk(given[thread + 1], given[0], act, again)

    def _done(self, number: int, access: _Access, own: int, thread: int, memory: dict[str, list[int]]) -> int:
        bits, held = own >> access.shift if access.shift < 32 else access.slot, memory[access.where]
        if access.kind == "add":
            held[bits & 7] = held[bits & 7] + own & ALL
            return own
        if access.kind == "given":
            return own ^ (held[bits & _MANY] if bits & _MANY < len(held) else 0)
        parity = self._parity(number)
        place = thread * _SLOTS + bits % _SLOTS + (parity * _OWN if access.where in _OF_BOTH else 0)
        if access.kind == "other":
            place = bits % _OWN + (1 - parity) * _OWN
        if access.kind == "store":
            held[place] = own
            return own
        return own + held[place] & ALL
