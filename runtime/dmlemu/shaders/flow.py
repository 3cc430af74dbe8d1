"""The control flow of a shader: which of its blocks the threads of a wave run together, and with what mask.

A branch that all threads of a wave take alike (a *uniform* one) stays a branch.  Where threads part, those of
one side wait at the block where the sides meet again, its immediate post-dominator, while the others run.  A
``Region`` is a set of blocks that is entered with one mask of threads:

- the *top*: the function, with all threads;
- a *side* of a branch whose sides have no block in common: it is run once, and inside control flow is as
  it was;
- a *linear* region, for what is not so plain (loops that threads leave at different times, conditions that
  share blocks): its blocks are run in their order, each with the threads that wait at it, and behind the last
  block of a loop control goes back to the first one while threads wait there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .errors import MalformedShader, UnsupportedShader
from .values import Block, Function, Instruction, Value

__all__ = ["Flow", "Region", "read_flow"]


@dataclass(eq=False)
class Region:
    parent: Region | None = None
    linear: bool = False
    blocks: list[Block] = field(default_factory=list)
    """In the order of ``Flow.order``; without those of regions inside."""


@dataclass
class Flow:
    order: list[Block]
    """The blocks that can be reached, each behind those that dominate it; the blocks of a loop stand
    together."""
    region: dict[Block, Region]
    sides: dict[Block, dict[Block, Region | None]]
    """Of a branch where threads part, by target; None: the side is empty, or in a linear region."""
    meeting: dict[Block, Block | None]
    """Immediate post-dominators; None: the end of the function."""
    varying: set[Value]
    """Values that may differ between the threads that run together."""
    loop_ends: dict[Block, list[Block]]
    """By the last block of loops in a linear region: their first blocks, those of inner loops first."""
    crossing: set[Instruction] = field(default_factory=set)
    """Values outside of linear regions that a block uses which is also come to without computing them: all
    lanes pass all blocks of a linear region, some for nothing."""


IsVarying = Callable[[Instruction, bool, set[Value]], bool]


def read_flow(function: Function, is_varying: IsVarying) -> Flow:
    """``is_varying(instruction, linear, varying)``: whether its result may differ between threads, where
    ``varying`` do.

    ``linear``: in a linear region, in which memory may have changed between the times that threads come by.
    Raises ``UnsupportedShader`` for a loop with more than one entrance, and ``MalformedShader`` for a
    value that is used where it may not have been computed: nothing that follows needs to expect that.
    """
    graph = _Graph(function.blocks[0])
    _check_values(graph)
    flow = _Analysis(graph, is_varying).flow()
    flow.crossing = _crossing(flow)
    return flow


def _crossing(flow: Flow) -> set[Instruction]:
    after = _passed_next(flow)
    order = _reverse_post_order(flow.order[0], after.__getitem__)
    before: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for other in after[block]:
            before[other].append(block)
    dominators = _dominators(order, before)
    home = {made: block for block in flow.order for made in block.instructions}
    found = set()
    for block in flow.order:
        for made in block.instructions:
            for number, operand in enumerate(made.operands if made.name == "phi" else made.used):
                user = made.targets[number] if made.name == "phi" else block
                where = home.get(operand) if isinstance(operand, Instruction) else None
                if where is not None and user in before and not _is_above(where, user, dominators):
                    found.add(operand)
    return {made for made in found if isinstance(made, Instruction) and not flow.region[home[made]].linear}


def _passed_next(flow: Flow) -> dict[Block, list[Block]]:
    """Where lanes go on from each block, if need be for nothing."""
    found: dict[Block, list[Block]] = {}
    for region in dict.fromkeys(flow.region.values()):
        if region.linear:
            found.update(_passed_in_linear(region.blocks))
    for block in flow.order:
        targets = found.get(block, [*block.successors])
        if block in flow.sides and (meeting := flow.meeting[block]) is not None:
            targets.append(meeting)  # a side that no lane takes is left out
        region = flow.region[block]
        found[block] = [_entered(flow, target, region) for target in targets]
    return found


def _passed_in_linear(blocks: list[Block]) -> dict[Block, list[Block]]:
    """All of them, in their order; lanes may leave each for what any of them leads to."""
    inside = set(blocks)
    out = [target for block in blocks for target in block.successors if target not in inside]
    found = {block: [following] for block, following in pairwise(blocks)}
    found[blocks[-1]] = list(dict.fromkeys(out))
    return found


def _entered(flow: Flow, target: Block, region: Region) -> Block:
    """The block that lanes pass first which go to ``target``."""
    other = flow.region[target]
    return other.blocks[0] if other.linear and other is not region else target


class _Graph:
    """Order, dominance and loops of the blocks that can be reached."""

    def __init__(self, entry: Block) -> None:
        order = _reverse_post_order(entry, lambda block: block.successors)
        self.after = {block: list(dict.fromkeys(block.successors)) for block in order}
        self.before: dict[Block, list[Block]] = {block: [] for block in order}
        for block in order:
            for after in self.after[block]:
                self.before[after].append(block)
        self.dominators = _dominators(order, self.before)
        place = {block: number for number, block in enumerate(order)}
        self.back_edges = {
            (block, after) for block in order for after in block.successors if place[after] <= place[block]
        }
        if any(not self.dominates(header, block) for block, header in self.back_edges):
            raise UnsupportedShader("a loop of the shader has more than one entrance")
        self.loops = self._loops()
        self.order = self._loops_together(order)
        self.place = {block: number for number, block in enumerate(self.order)}
        self.meeting = self._post_dominators()

    def dominates(self, above: Block, block: Block) -> bool:
        return _is_above(above, block, self.dominators)

    def _loops(self) -> dict[Block, set[Block]]:
        """The blocks of each loop, by its first block."""
        loops: dict[Block, set[Block]] = {}
        for last, header in self.back_edges:
            inside = loops.setdefault(header, {header})
            inside |= _reached([last], self.before, inside)
        return loops

    def _loops_together(self, order: list[Block]) -> list[Block]:
        """Puts the blocks of each loop next to each other: what is in the innermost open loop comes first."""
        waits_for = {
            block: sum((other, block) not in self.back_edges for other in self.before[block])
            for block in order
        }
        ready = [order[0]]
        place = {block: number for number, block in enumerate(order)}
        left = {header: len(inside) for header, inside in self.loops.items()}
        found: list[Block] = []
        while ready:
            opened = [inside for header, inside in self.loops.items() if 0 < left[header] < len(inside)]
            innermost = min(opened, key=len, default=None)
            inside = [block for block in ready if innermost is None or block in innermost]
            block = min(inside, key=place.__getitem__)
            ready.remove(block)
            found.append(block)
            for header, within in self.loops.items():
                left[header] -= block in within
            for after in dict.fromkeys(block.successors):
                if (block, after) not in self.back_edges:
                    waits_for[after] -= 1
                    if not waits_for[after]:
                        ready.append(after)
        return found

    def _post_dominators(self) -> dict[Block, Block | None]:
        """The dominators of the graph turned round.  A loop without an end counts as leading to the end."""
        end = Block(-1)
        after = {block: list(dict.fromkeys(block.successors)) for block in self.order}
        lasts = [block for block in self.order if not after[block]]
        reached = _reached(lasts, self.before)
        for block in reversed(self.order):
            if block not in reached:
                lasts.append(block)
                reached |= _reached([block], self.before)
        for block in lasts:
            after[block].append(end)
        turned = _reverse_post_order(end, lambda block: lasts if block is end else self.before[block])
        found = _dominators(turned, after)
        return {block: None if found[block] is end else found[block] for block in self.order}

    def side(self, start: Block, end: Block | None) -> set[Block]:
        """What can be reached from ``start`` without passing ``end``."""
        return _reached([start], self.after, {end} if end else None)


def _check_values(graph: _Graph) -> None:
    """Each value is computed before it is used, on every way."""
    home = {made: (block, at) for block in graph.order for at, made in enumerate(block.instructions)}
    for block in graph.order:
        for at, made in enumerate(block.instructions):
            for number, operand in enumerate(made.operands):
                if operand not in home:
                    continue
                where, place = home[operand]
                user, limit = block, at
                if made.name == "phi":  # used at the end of the block that it comes from
                    user, limit = made.targets[number], len(made.targets[number].instructions)
                    if user not in graph.place:
                        continue
                if not (place < limit if where is user else graph.dominates(where, user)):
                    raise MalformedShader(
                        f"block {block.number} uses a value before it is computed", "part DXIL"
                    )


class _Analysis:
    """Finds, until nothing changes, which values vary, where threads part, and what is linear."""

    def __init__(self, graph: _Graph, is_varying: IsVarying) -> None:
        self.graph, self.is_varying = graph, is_varying
        self.varying: set[Value] = set()
        self.met: set[Block] = set()
        """Blocks where threads meet that took different ways."""
        self.parts: dict[Block, dict[Block, set[Block]]] = {}
        """Where threads part: the blocks of each side, by target."""
        self.plain: set[Block] = set()
        """Those of them whose sides are regions: all of their blocks are reached by this branch alone."""
        self.linear: list[set[Block]] = []
        """Linear regions: no two have a block in common."""

    def flow(self) -> Flow:
        found = -1
        while found != len(self.varying):
            found = len(self.varying)
            self._pass()
        return self._regions()

    def _pass(self) -> None:
        for block in self.graph.order:
            linear = any(block in region for region in self.linear)
            for made in block.instructions:
                apart = made.name == "phi" and (linear or block in self.met)
                if apart or self.is_varying(made, linear, self.varying):
                    self.varying.add(made)
            last = block.instructions[-1]
            if last in self.varying and block not in self.parts:
                self._part(block)

    def _part(self, block: Block) -> None:
        targets = list(dict.fromkeys(block.successors))
        if len(targets) < 2:
            return
        graph = self.graph
        meeting = graph.meeting[block]
        sides = self.parts[block] = {target: graph.side(target, meeting) for target in targets}
        together = set().union(*sides.values())
        if meeting is not None:
            self.met.add(meeting)
        apart = sum(map(len, sides.values())) == len(together)
        if apart and block not in together and all(graph.dominates(block, other) for other in together):
            self.plain.add(block)
        else:
            for region in [region for region in self.linear if not region.isdisjoint(together)]:
                self.linear.remove(region)
                together |= region
            self.linear.append(together)

    def _regions(self) -> Flow:
        """Each block's region: a branch stands before its sides, and a side holds whole regions."""
        graph = self.graph
        inherited = dict.fromkeys(graph.order, Region())
        region: dict[Block, Region] = {}
        sides: dict[Block, dict[Block, Region | None]] = {}
        linear = {block: blocks for blocks in self.linear for block in blocks}
        for block in graph.order:
            if block in linear and not inherited[block].linear:
                inherited.update(dict.fromkeys(linear[block], Region(inherited[block], linear=True)))
            current = region[block] = inherited[block]
            current.blocks.append(block)
            if block in self.parts and not current.linear:
                sides[block] = {}
                for target, inside in self.parts[block].items():
                    side = sides[block][target] = Region(current) if inside and block in self.plain else None
                    if side is not None:
                        inherited.update(dict.fromkeys(inside, side))
        ends: dict[Block, list[Block]] = {}
        for header, inside in sorted(graph.loops.items(), key=lambda loop: len(loop[1])):
            within = [block for block in region[header].blocks if block in inside]
            if region[header].linear:
                ends.setdefault(within[-1], []).append(header)
        return Flow(graph.order, region, sides, graph.meeting, self.varying, ends)


def _reached(
    starts: Sequence[Block], edges: dict[Block, list[Block]], without: set[Block] | None = None
) -> set[Block]:
    found: set[Block] = set()
    waiting = list(starts)
    while waiting:
        block = waiting.pop()
        if block not in found and not (without and block in without):
            found.add(block)
            waiting += edges[block]
    return found


def _reverse_post_order(entry: Block, successors: Callable[[Block], Sequence[Block]]) -> list[Block]:
    found: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(successors(entry)))]
    while stack:
        block, targets = stack[-1]
        following = next((target for target in targets if target not in seen), None)
        if following is None:
            found.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(successors(following))))
    return found[::-1]


def _is_above(above: Block, block: Block, dominators: dict[Block, Block]) -> bool:
    while block is not above and block is not dominators[block]:
        block = dominators[block]
    return block is above


def _dominators(order: list[Block], before: dict[Block, list[Block]]) -> dict[Block, Block]:
    """Immediate dominators, by the algorithm of Cooper, Harvey and Kennedy (2001); the first block's is
    itself."""
    place = {block: number for number, block in enumerate(order)}
    found = {order[0]: order[0]}

    def common(left: Block, right: Block) -> Block:
        while left is not right:
            if place[left] > place[right]:
                left = found[left]
            else:
                right = found[right]
        return left

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [other for other in before[block] if other in found]
            new = known[0]
            for other in known[1:]:
                new = common(new, other)
            changed |= found.get(block) is not new
            found[block] = new
    return found
