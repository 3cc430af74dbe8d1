"""The GPU's clock: virtual time, so that two runs of one program read the same timestamps."""

from __future__ import annotations

COMMAND_TICKS = 1000  # fixed cost of a command, in ticks
BYTES_PER_TICK = 64


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
