"""Overlap: whether two elements of a strided tensor share an address, exact for every legal layout.

The question is whether integers d_i with |d_i| < size_i, not all zero, give sum(d_i * stride_i) = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

__all__ = ["shared_element"]

Index = tuple[int, ...]
_Array = np.ndarray[Any, np.dtype[np.int64]]


def shared_element(sizes: Sequence[int], strides: Sequence[int]) -> tuple[Index, Index] | None:
    """Two different indices with the same address, or None if there are none.

    Needs sizes >= 1 with fewer than 2**32 elements and addresses below 2**32 (rule TN3).  Nested layouts,
    the usual case, are decided immediately; all others by a search over at most about 2**20
    numbers.
    """
    dimensions = [i for i, size in enumerate(sizes) if size > 1]
    step = _steps([sizes[i] for i in dimensions], [strides[i] for i in dimensions])
    if step is None:
        return None
    first, second = [0] * len(sizes), [0] * len(sizes)
    for i, d in zip(dimensions, step, strict=True):
        first[i], second[i] = max(d, 0), max(-d, 0)
    return tuple(first), tuple(second)


def _steps(sizes: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """The d_i, not all zero, or None."""
    order = sorted(range(len(sizes)), key=lambda i: strides[i])
    while order:  # a stride that all smaller ones together cannot reach is not involved
        *rest, last = order
        if strides[last] <= sum((sizes[i] - 1) * strides[i] for i in rest):
            break
        if strides[last] == 0:
            break
        order = rest
    if not order:
        return None
    step = [0] * len(sizes)
    if strides[order[0]] == 0:
        step[order[0]] = 1
        return step
    found = _search([sizes[i] for i in order], [strides[i] for i in order])
    if found is None:
        return None
    for i, d in zip(order, found, strict=True):
        step[i] = d
    return step


def _search(sizes: list[int], strides: list[int]) -> list[int] | None:
    """Meet in the middle: the longest dimension is an arithmetic progression, the others form two groups.

    A solution is a + b + d * stride = 0 with a and b sums over the groups.  So b must lie in the
    residue class of -a, at most (size - 1) strides away; sorting b by (residue, quotient) makes that
    one binary search per a.  With fewer than 2**32 elements a balanced group has some 2**20 sums.
    """
    long = max(range(len(sizes)), key=lambda i: sizes[i])
    left, right = _balanced([i for i in range(len(sizes)) if i != long], sizes)
    a, b = _sums(left, sizes, strides), _sums(right, sizes, strides)
    stride, reach = strides[long], sizes[long] - 1

    quotients = int(max(np.abs(a).max(), np.abs(b).max())) // stride + reach + 2
    width = 2 * quotients + 1
    quotient, residue = np.divmod(b, stride)
    keys = residue * width + quotient + quotients
    order = np.argsort(keys, kind="stable")
    keys = keys[order]

    quotient, residue = np.divmod(-a, stride)
    base = residue * width + quotients
    low = np.searchsorted(keys, base + np.maximum(quotient - reach, -quotients), side="left")
    high = np.searchsorted(keys, base + np.minimum(quotient + reach, quotients), side="right")
    found = high - low
    found[len(a) // 2] -= 1  # all d = 0 is not a solution; the middle of a group is its d = 0
    if not found.any():
        return None
    # Solutions come in pairs, d and -d, so the first matching b belongs to one that is not all 0.
    i = int(np.flatnonzero(found)[0])
    j = int(order[low[i]])
    d = -(int(a[i]) + int(b[j])) // stride
    return _assemble(len(sizes), (left, i), (right, j), (long, d), sizes)


def _balanced(dimensions: list[int], sizes: list[int]) -> tuple[list[int], list[int]]:
    """Two groups whose larger number of sums is as small as possible (at most 7 dimensions: 64 ways)."""

    def cost(group: Sequence[int]) -> int:
        other = [i for i in dimensions if i not in group]
        return max(prod(2 * sizes[i] - 1 for i in group), prod(2 * sizes[i] - 1 for i in other))

    ways = [way for n in range(len(dimensions) + 1) for way in combinations(dimensions, n)]
    best = min(ways, key=cost)
    return list(best), [i for i in dimensions if i not in best]


def _sums(group: list[int], sizes: list[int], strides: list[int]) -> _Array:
    """sum(d_i * stride_i) for every d with |d_i| < size_i, in row-major order of d."""
    sums: _Array = np.zeros(1, np.int64)
    for i in group:
        steps = np.arange(1 - sizes[i], sizes[i], dtype=np.int64) * strides[i]
        sums = (sums[:, None] + steps).reshape(-1)
    return sums


def _assemble(
    count: int,
    left: tuple[list[int], int],
    right: tuple[list[int], int],
    long: tuple[int, int],
    sizes: list[int],
) -> list[int]:
    """The d of a solution, from the positions of its two sums."""
    step = [0] * count
    step[long[0]] = long[1]
    for group, position in (left, right):
        for i in reversed(group):
            position, digit = divmod(position, 2 * sizes[i] - 1)
            step[i] = digit - (sizes[i] - 1)
    return step
