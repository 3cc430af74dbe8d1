"""Which blocks of a shader the threads of a wave run together, and with what mask."""

from __future__ import annotations

import pytest

from dmlemu.shaders import MalformedShader, UnsupportedShader
from dmlemu.shaders.flow import Flow, Region, read_flow
from dmlemu.shaders.values import Block, Constant, Function, Instruction, Type, Value

VOID, BIT, INT = Type("void"), Type("int", 1), Type("int", 32)


class Graph:
    """A function of blocks that branch; ``!``: by a condition that differs between threads."""

    def __init__(self, *branches: str) -> None:
        self.blocks = [Block(number) for number in range(len(branches))]
        self.same, self.own = Instruction(BIT, "same"), Instruction(BIT, "own")
        self.blocks[0].instructions += [self.same, self.own]
        for block, branch in zip(self.blocks, branches, strict=True):
            targets = [self.blocks[int(each)] for each in branch.strip("!").split()]
            condition: list[Value] = [self.own if branch.endswith("!") else self.same]
            last = Instruction(VOID, "br", condition if len(targets) > 1 else [], targets=targets)
            block.instructions.append(last if targets else Instruction(VOID, "ret"))

    def flow(self) -> Flow:
        function = Function(Type("pointer", 0, (Type("function", 0, (VOID,)),)), blocks=self.blocks)
        return read_flow(
            function,
            lambda made, linear, varying: made.name == "own" or not varying.isdisjoint(made.operands),
        )

    def shape(self) -> str:
        """The blocks in their order, with [ ] around sides and ( ) around linear regions."""
        flow = self.flow()
        text, open_regions = "", [flow.region[self.blocks[0]]]
        for block in flow.order:
            region = flow.region[block]
            while region not in open_regions and not _holds(open_regions[-1], region):
                text += ")" if open_regions.pop().linear else "]"
            while open_regions[-1] is not region and region in open_regions:
                text += ")" if open_regions.pop().linear else "]"
            for inner in _between(open_regions[-1], region):
                text += "(" if inner.linear else "["
                open_regions.append(inner)
            text += str(block.number)
        for region in reversed(open_regions[1:]):
            text += ")" if region.linear else "]"
        return text


def _holds(outer: Region, inner: Region | None) -> bool:
    while inner is not None and inner is not outer:
        inner = inner.parent
    return inner is outer


def _between(outer: Region, inner: Region) -> list[Region]:
    found: list[Region] = []
    while inner is not outer:
        found.insert(0, inner)
        assert inner.parent is not None
        inner = inner.parent
    return found


@pytest.mark.parametrize(
    ("branches", "shape"),
    [
        (["1 2", "3", "3", ""], "0213"),  # all threads go one way
        (["1 2!", "3", "3", ""], "0[2][1]3"),
        (["1 2!", "2", ""], "0[1]2"),  # without else
        (["1", "1 2", ""], "012"),  # a loop that all threads leave together
        (["1", "1 2!", ""], "0(1)2"),
        (["1 4!", "2", "2 3", "4", ""], "0[123]4"),  # a loop for all in a side
        (["1 4!", "2", "2 3!", "4", ""], "0[1(2)3]4"),
        (["1", "2 4", "3 4!", "1", ""], "0(123)4"),  # break
        (["1", "2 3!", "3", "1 4", ""], "01[2]34"),  # continue, in a loop for all
        (["1 2!", "2 3!", "4", "4", ""], "0(132)4"),  # a || b: block 2 has two ways in
        (["1 3!", "2", "4", "4", ""], "0[3][12]4"),
        (["1 2!", "", ""], "0[2][1]"),  # no common end but that of the function
        (["1 2!", "3 4!", "5", "5", "5", ""], "0[2][1[4][3]]5"),
    ],
)
def test_regions(branches: list[str], shape: str) -> None:
    assert Graph(*branches).shape() == shape


def test_blocks_of_a_loop_stand_together() -> None:
    flow = Graph("1", "2 5", "3 4", "1", "6", "6", "").flow()
    places = [flow.order.index(block) for block in flow.order if block.number in (1, 2, 3)]
    assert places == [1, 2, 3]


def test_a_loop_with_two_entrances() -> None:
    with pytest.raises(UnsupportedShader, match="more than one entrance"):
        Graph("1 2", "2", "1 3", "").flow()


def test_a_value_that_is_used_before_it_is_computed() -> None:
    graph = Graph("1 2", "3", "3", "")
    made = Instruction(INT, "add", [Constant(INT, 1), Constant(INT, 2)])
    graph.blocks[1].instructions.insert(0, made)
    graph.blocks[2].instructions.insert(0, Instruction(INT, "add", [made, made]))
    with pytest.raises(MalformedShader, match="before it is computed"):
        graph.flow()


def test_an_endless_loop_has_an_order() -> None:
    assert [block.number for block in Graph("1", "1").flow().order] == [0, 1]
