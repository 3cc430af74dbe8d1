"""Chaos: what the documents leave open is decided by a seed instead of always in the same way.

A program that is right does not notice.  One that relies on what nobody promised computes something else,
and the seed repeats that, bit by bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import Enum
from operator import index
from random import Random
from typing import SupportsIndex

import numpy as np

from .frozen import Frozen

_PATTERN = 65536  # bytes that are drawn; longer ranges repeat them


class Mode(str, Enum):
    """One thing that the documents leave open.

    ``order``: commands between which no barrier, fence or queue stands run in any order.
    ``poison``: memory holds any bytes until something defines them.
    ``placement``: addresses and offsets are aligned no better than they must be.
    ``weights``: the persistent resource holds weights in a layout of its own.
    ``visibility``: CPU and GPU see what the other wrote only when the documents say so.
    ``padding``: bytes after the last element of an output, up to TotalTensorSizeInBytes, are overwritten.
    """

    ORDER = "order"
    POISON = "poison"
    PLACEMENT = "placement"
    WEIGHTS = "weights"
    VISIBILITY = "visibility"
    PADDING = "padding"


class Chaos(Frozen):
    """A policy for a GPU; made by :func:`chaos`.  ``is_fresh``: the seed was drawn, not given."""

    seed: int
    modes: frozenset[Mode] = frozenset(Mode)
    is_fresh: bool = False

    def random(self, mode: Mode) -> Random | None:
        """New random numbers for one mode, the same whatever the others are; None: the mode is off."""
        return Random(f"{self.seed} {mode.value}") if mode in self.modes else None

    def __str__(self) -> str:
        """How it is written in Python."""
        if self.modes == frozenset(Mode):
            return f"chaos({self.seed})"
        names = ", ".join(repr(mode.value) for mode in Mode if mode in self.modes)
        return f"chaos({self.seed}, modes={{{names}}})" if names else f"chaos({self.seed}, modes=())"


def chaos(seed: SupportsIndex | None = None, modes: Iterable[Mode | str] | None = None) -> Chaos:
    """A policy under which everything that the documents leave open is drawn by lot.

    The same program with the same seed does the same, bit by bit; None draws a seed, which every device
    then prints.  ``modes``: what is drawn, by default everything (:class:`Mode`).  ValueError: no such mode.
    """
    drawn = int.from_bytes(os.urandom(4), "little") if seed is None else _seed(seed)
    return Chaos(drawn, frozenset(Mode) if modes is None else _modes(modes), seed is None)


def _seed(seed: SupportsIndex) -> int:
    if isinstance(seed, bool) or not isinstance(seed, SupportsIndex):
        raise TypeError(f"seed must be an int or None, not {type(seed).__name__}.")
    return index(seed)


def _modes(modes: Iterable[Mode | str]) -> frozenset[Mode]:
    if isinstance(modes, str) or not isinstance(modes, Iterable):
        what = "a str" if isinstance(modes, str) else type(modes).__name__
        raise TypeError(f"modes must be a collection of modes, not {what}.")
    known = {mode.value: mode for mode in Mode}
    given = list(modes)
    for each in given:
        if not isinstance(each, str) or each not in known:
            raise ValueError(f"{each!r} is no mode of chaos; there are {', '.join(known)}.")
    return frozenset(Mode(each) for each in given)


def fill(memory: memoryview, random: Random) -> None:
    """Overwrites the bytes with random ones."""
    pattern = np.frombuffer(random.randbytes(min(len(memory), _PATTERN)), np.uint8)
    target = np.frombuffer(memory, np.uint8)
    for start in range(0, len(target), _PATTERN):
        part = target[start : start + _PATTERN]
        part[:] = pattern[: len(part)]
