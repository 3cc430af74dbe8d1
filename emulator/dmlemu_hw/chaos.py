"""Chaos: behaviour that the specification leaves undefined is drawn from a seed instead of being fixed.

A correct program gives the same results.  A program that relies on undefined behaviour computes something
else; the same seed reproduces it bit by bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import Enum
from operator import index
from random import Random
from typing import NamedTuple, SupportsIndex

import numpy as np

_PATTERN = 65536  # random bytes; longer ranges repeat them


class Mode(str, Enum):
    """One kind of undefined behaviour.

    ``order``: commands that no barrier, fence or queue orders run in any order, and a scatter writes its
    updates in any order.
    ``poison``: memory holds arbitrary bytes until it is written.
    ``placement``: addresses and offsets have no more than the guaranteed alignment.
    ``weights``: the persistent resource stores weights in a private layout.
    ``visibility``: CPU and GPU see each other's writes only when the specification guarantees it.
    ``padding``: bytes after the last element of an output, up to TotalTensorSizeInBytes, are overwritten.
    ``waves``: waves of a shader have any size that it allows, and denormal numbers are kept or flushed.
    """

    ORDER = "order"
    POISON = "poison"
    PLACEMENT = "placement"
    WEIGHTS = "weights"
    VISIBILITY = "visibility"
    PADDING = "padding"
    WAVES = "waves"


class Chaos(NamedTuple):
    """Chaos policy of a GPU, created by :func:`chaos`.  ``is_fresh``: the seed was drawn, not given."""

    seed: int
    modes: frozenset[Mode] = frozenset(Mode)
    is_fresh: bool = False

    def random(self, mode: Mode) -> Random | None:
        """A random generator for one mode, independent of the other modes; None: the mode is off."""
        return Random(f"{self.seed} {mode.value}") if mode in self.modes else None

    def __str__(self) -> str:
        """The Python expression that creates it."""
        if self.modes == frozenset(Mode):
            return f"chaos({self.seed})"
        names = ", ".join(repr(mode.value) for mode in Mode if mode in self.modes)
        return f"chaos({self.seed}, modes={{{names}}})" if names else f"chaos({self.seed}, modes=())"


def chaos(seed: SupportsIndex | None = None, modes: Iterable[Mode | str] | None = None) -> Chaos:
    """A policy under which behaviour that the specification leaves undefined is random.

    The same program with the same seed gives the same results, bit by bit; None draws a seed, which every
    device prints.  ``modes``: the enabled modes, by default all (:class:`Mode`).  ValueError: no such mode.
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
            raise ValueError(f"{each!r} is not a mode of chaos; there are {', '.join(known)}.")
    return frozenset(Mode(each) for each in given)


def fill(memory: memoryview, random: Random) -> None:
    """Overwrites the bytes with random ones."""
    pattern = np.frombuffer(random.randbytes(min(len(memory), _PATTERN)), np.uint8)
    target = np.frombuffer(memory, np.uint8)
    for start in range(0, len(target), _PATTERN):
        part = target[start : start + _PATTERN]
        part[:] = pattern[: len(part)]
