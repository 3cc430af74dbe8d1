"""The GPU's clock: virtual time, so that two runs of one program read the same timestamps."""

from __future__ import annotations

from .kernels import lib

COMMAND_TICKS = 1000  # fixed cost of a command, in ticks
BYTES_PER_TICK: int = lib.DMLK_BYTES_PER_TICK


class Clock:
    """Counts ticks of a virtual GPU; only executed work advances it.

    The cost model is deliberately simple: a fixed cost per command plus the bytes that it moves.  It orders
    events and lets timing code run; it does not predict the timing of any real device.
    """

    frequency = 1_000_000_000  # ticks per second

    def __init__(self) -> None:
        self.now = 0

    def advance(self, moved: int = 0) -> None:
        """Adds the cost of one command that moves ``moved`` bytes."""
        self.now += COMMAND_TICKS + (moved + BYTES_PER_TICK - 1) // BYTES_PER_TICK

    def advance_by(self, commands: int, ticks: int) -> None:
        """Adds the cost of commands that move what takes so many ticks."""
        self.now += commands * COMMAND_TICKS + ticks
