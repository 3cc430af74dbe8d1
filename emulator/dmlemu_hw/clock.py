"""The GPU's clock: virtual time, so that two runs of one program read the same timestamps."""

from __future__ import annotations

COMMAND_TICKS = 1000  # what any command costs, in ticks
BYTES_PER_TICK = 64


class Clock:
    """Counts ticks of a virtual GPU; only executed work moves it.

    The cost model is simple on purpose: a fixed cost per command plus the bytes that it moves.  It
    orders events and makes timing code run; it predicts no real device.
    """

    frequency = 1_000_000_000  # ticks per second

    def __init__(self) -> None:
        self.now = 0

    def advance(self, moved: int = 0) -> None:
        """Adds the cost of one command that moves ``moved`` bytes."""
        self.now += COMMAND_TICKS + (moved + BYTES_PER_TICK - 1) // BYTES_PER_TICK
