"""Signals of a host whose threads block them while they are in here: work that takes long lets them in."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["OFTEN", "look"]

OFTEN = 0.05  # seconds that commands run between two looks

let_in: Callable[[], None] | None = None  # set by a front end whose callers block signals


def look() -> None:
    """Lets signals in that have come; called while a thread waits, and between pieces of what it runs."""
    if let_in is not None:
        let_in()
