"""Memory of temporary tensors: those never needed at once share bytes.

The calls of a dispatch run one after the other, so a tensor needs its bytes from the first call that uses it
to the last.  Placing such intervals in as little memory as possible is NP-hard.  They are placed one by one,
each in the smallest gap among those it overlaps in time, in several orders; the best result counts.  No plan
can be smaller than the largest sum of tensors needed by one call, so a plan of that size ends the search.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ...frozen import changed
from ..tensor_desc import TEMPORARY_BUFFER_ALIGNMENT
from .compile import TEMPORARY, Lowered, Operand, align

__all__ = ["Block", "place", "plan_memory"]

_TRIES = 20  # orders tried after the first three
_MANY = 500  # blocks; from here on only the first order is tried
_MOST = 1 << 60  # bytes that are planned; no device has as many


class Block(NamedTuple):
    """A temporary tensor: its bytes, and the calls that use it, first and last."""

    size: int
    first: int
    last: int


class _Plan(NamedTuple):
    """Where the blocks are, and the bytes that they take."""

    offsets: list[int]
    size: int


def plan_memory(lowered: Lowered, fused: Sequence[bool] = ()) -> None:
    """Moves the temporary tensors of a program, and shrinks its temporary resource.

    ``fused``: of each call, whether the next one may run together with it; none given: none may.
    """
    if lowered.temporary_size >= _MOST:
        return
    starts = [offset for offset, _ in lowered.temporaries]
    used: dict[int, tuple[int, int]] = {}  # tensor: first and last call
    first = 0  # of the calls that run together with the current one
    for at, call in enumerate(lowered.calls):
        first = first if at and any(fused[at - 1 : at]) else at
        for operand in call.operands:
            if operand.slot == TEMPORARY:
                tensor = bisect_right(starts, operand.offset) - 1
                used[tensor] = (used.get(tensor, (first,))[0], at)
    blocks = [
        Block(align(lowered.temporaries[tensor][1], TEMPORARY_BUFFER_ALIGNMENT), *when)
        for tensor, when in used.items()
    ]
    offsets, lowered.temporary_size = place(blocks)
    moved = {starts[tensor]: offset for tensor, offset in zip(used, offsets, strict=True)}

    def move(operand: Operand) -> Operand:
        if operand.slot != TEMPORARY:
            return operand
        start = starts[bisect_right(starts, operand.offset) - 1]
        return changed(operand, offset=operand.offset - start + moved[start])

    lowered.calls = [changed(call, operands=tuple(map(move, call.operands))) for call in lowered.calls]
    lowered.temporaries = list(zip(offsets, (block.size for block in blocks), strict=True))


def place(blocks: Sequence[Block]) -> _Plan:
    """The offset of each block, and the size of all."""
    if not blocks:
        return _Plan([], 0)
    least = _most_at_once(blocks)
    best = _Plan([], 1 << 62)
    for order in _first_orders(blocks):
        plan = _place_in(order, blocks)
        if plan.size < best.size:
            best, best_order = plan, order
        if best.size == least or len(blocks) >= _MANY:
            return best
    order, plan = best_order, best
    for _ in range(_TRIES):
        top = max(order, key=lambda i: plan.offsets[i] + blocks[i].size)
        at = order.index(top)
        order.insert(at // 2, order.pop(at))
        plan = _place_in(order, blocks)
        best = min(best, plan, key=lambda each: each.size)
        if best.size == least:
            break
    return best


def _most_at_once(blocks: Sequence[Block]) -> int:
    changes = [0] * (max(block.last for block in blocks) + 2)
    for block in blocks:
        changes[block.first] += block.size
        changes[block.last + 1] -= block.size
    return max(accumulate(changes))


def _first_orders(blocks: Sequence[Block]) -> Iterator[list[int]]:
    """The numbers of the blocks: large ones first, large and long ones first, long ones first."""
    calls = [block.last - block.first + 1 for block in blocks]
    for key in (
        [(-block.size, block.first) for block in blocks],
        [(-block.size * count, block.first) for block, count in zip(blocks, calls, strict=True)],
        [(-count, -block.size) for block, count in zip(blocks, calls, strict=True)],
    ):
        yield sorted(range(len(blocks)), key=key.__getitem__)


def _place_in(order: Sequence[int], blocks: Sequence[Block]) -> _Plan:
    """Places the blocks in this order, each in the smallest gap that holds it, or behind all."""
    # Those placed, by offset: start, end, first and last call.
    placed = np.zeros((4, len(blocks)), np.int64)
    offsets = [0] * len(blocks)
    for count, number in enumerate(order):
        size, first, last = blocks[number]
        start, end, begins, ends = placed[:, :count]
        meets = (begins <= last) & (ends >= first)
        gaps = np.concatenate(([0], np.maximum.accumulate(end[meets])))
        room = start[meets] - gaps[:-1]
        fits = np.flatnonzero(room >= size)
        offset = int(gaps[fits[np.argmin(room[fits])]] if len(fits) else gaps[-1])
        at = int(np.searchsorted(start, offset))
        placed[:, at + 1 : count + 1] = placed[:, at:count].copy()
        placed[:, at] = offset, offset + size, first, last
        offsets[number] = offset
    return _Plan(offsets, int(placed[1].max()))
