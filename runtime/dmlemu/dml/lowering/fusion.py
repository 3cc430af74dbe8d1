"""Fusion: element-wise calls that run on each piece of a product's output while that is in the cache.

The calls stay as they are, one packet each.  A flag lets the kernel of a packet run the next one too, on each
piece of its output; it does where both touch the same elements, and gives the same bits.  The result of a
product that only such calls read takes the memory of the last one's result, so that it needs none of its own.

Likewise, a convolution of bytes scales its sums to bytes while they are in the cache.  Then it does not write
the sums, which only the call that scales them reads.  Or a product of bytes runs the calls behind it that
convert its sums to FLOAT32, scale them, add a number and a tensor, bound and quantize them; what is
``passed``, read by the next call alone, is not written.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, lru_cache

from dmlemu_hw import kernels

from ...frozen import changed
from ..enums import ExecutionFlags
from .compile import TEMPORARY, KernelCall, Lowered, Operand

__all__ = ["fused_calls", "may_fuse", "share_memory"]

_PRODUCTS = ("convolution_float", "gemm")
_CONVOLUTION_OF_BYTES = "convolution_integer"
_PRODUCTS_OF_BYTES = (_CONVOLUTION_OF_BYTES, "multiply_integers")
_SCALING = "scale_sums"  # behind a convolution alone
_CONVERSION, _QUANTIZATION = "cast", "quantize"  # the first and the last function behind such a product
_VARIABLE, _VALUES = "DMLEMU_FUSION", ("on", "off")


def may_fuse(flags: ExecutionFlags) -> bool:
    """Whether calls are fused: not with DISABLE_META_COMMANDS, nor if DMLEMU_FUSION is ``off``."""
    value = os.environ.get(_VARIABLE, "on")
    if value not in _VALUES:
        raise ValueError(f"{_VARIABLE} is {value!r}; expected {' or '.join(_VALUES)}.")
    return value == "on" and not flags & ExecutionFlags.DISABLE_META_COMMANDS


def fused_calls(calls: Sequence[KernelCall]) -> list[bool]:
    """Of each call, whether the next one may run together with it."""
    fused = [False] * len(calls)
    first = 0  # of the calls that run together with the one before
    for at in range(1, len(calls)):
        first = first if at > 1 and fused[at - 2] else at - 1
        before, call = calls[at - 1], calls[at]
        if calls[first].kernel in _PRODUCTS:
            fused[at - 1] = _is_element_wise(call.kernel) and _follows(call, before.operands[-1])
        elif calls[first].kernel in _PRODUCTS_OF_BYTES:
            fused[at - 1] = _finishes(call, before)
    return fused


def _finishes(call: KernelCall, before: KernelCall) -> bool:
    """Whether it may finish sums of bytes that the call before it computes, or has begun to finish."""
    if before.kernel in _PRODUCTS_OF_BYTES:
        if call.kernel == _SCALING:
            return before.kernel == _CONVOLUTION_OF_BYTES
        is_possible = call.kernel == _CONVERSION
    else:
        is_last = before.kernel in (_SCALING, _QUANTIZATION)
        is_possible = not is_last and (call.kernel == _QUANTIZATION or _is_element_wise(call.kernel))
    return is_possible and _follows(call, before.operands[-1])


def share_memory(lowered: Lowered) -> None:
    """Lets a product write where the last call fused with it writes, if nothing else reads its result; notes
    which results only the next call reads."""
    tensors, fused, first = _Tensors(lowered), fused_calls(lowered.calls), 0
    for at, call in enumerate(lowered.calls):
        first = first if at and fused[at - 1] else at
        for i in range(len(call.operands) - 1 if first < at else 0):
            tensors.merge(lowered.calls[at].operands[i], first, at)
    for at, call in enumerate(lowered.calls):
        if fused[at] and tensors.ends(call.operands[-1], at + 1):
            lowered.calls[at] = changed(call, passed=True)


class _Tensors:
    """The tensors of a program and the calls that use them: temporary ones by number, others by slot."""

    def __init__(self, lowered: Lowered) -> None:
        self._calls = lowered.calls
        self._starts = [offset for offset, _ in lowered.temporaries]
        self._users: dict[tuple[int, int], list[int]] = defaultdict(list)
        for at, call in enumerate(lowered.calls):
            for operand in call.operands:
                self._users[self._of(operand)].append(at)

    def _of(self, operand: Operand) -> tuple[int, int]:
        if operand.slot != TEMPORARY:
            return operand.slot, 0
        return TEMPORARY, bisect_right(self._starts, operand.offset) - 1

    def ends(self, operand: Operand, last: int) -> bool:
        """Whether no call after ``last`` uses a temporary tensor."""
        return operand.slot == TEMPORARY and self._users[self._of(operand)][-1] <= last

    def merge(self, operand: Operand, first: int, last: int) -> None:
        """Moves a tensor that only calls ``first`` to ``last`` use to the one that the last writes."""
        source = self._of(operand)
        using = self._users[source]
        if source[0] != TEMPORARY or using[0] < first or using[-1] > last:
            return
        target, using = self._calls[last].operands[-1], list(dict.fromkeys(using))
        users, layout = self._users[self._of(target)], _layout(target)
        if users[0] < last:
            return
        places = [each for at in using for each in self._calls[at].operands if self._of(each) == source]
        if any(each.data_type is not target.data_type or _layout(each) != layout for each in places):
            return

        def moved(each: Operand) -> Operand:
            if self._of(each) != source:
                return each
            name = each.name if target.slot == TEMPORARY else target.name
            return changed(
                each, slot=target.slot, offset=target.offset, byte_size=target.byte_size, name=name
            )

        for at in using:
            self._calls[at] = changed(self._calls[at], operands=tuple(map(moved, self._calls[at].operands)))
        users[:0] = self._users.pop(source)


def _follows(call: KernelCall, before: Operand) -> bool:
    """Whether an element-wise call computes elements from those of the same index of a tensor, of others in
    its layout, and of numbers that are the same for all elements."""
    alike = _layout(before)
    layouts = (alike, tuple([(size, 0) for size, _ in alike]))
    return (
        any((each.slot, each.offset) == (before.slot, before.offset) for each in call.operands[:-1])
        and all(_layout(each) in layouts for each in call.operands[:-1])
        and _layout(call.operands[-1]) == alike
    )


@cache
def _is_element_wise(kernel: str) -> bool:
    return kernels.family(kernel) == "element_wise"


def _layout(operand: Operand) -> tuple[tuple[int, int], ...]:
    """Sizes and strides of the axes that have more than one index."""
    return _axes(operand.sizes, operand.strides)


@lru_cache(maxsize=1024)  # networks repeat few shapes
def _axes(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple([each for each in zip(sizes, strides, strict=True) if each[0] > 1])
