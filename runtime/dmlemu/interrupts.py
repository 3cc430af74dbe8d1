"""Ctrl-C where an exception in the middle would leave something half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["held"]


@contextmanager
def held() -> Iterator[Callable[[], None]]:
    """Ctrl-C inside of the block waits for its end, or for a call of what the block is given.

    Then the handler of before is called, which raises KeyboardInterrupt, if it is Python's.  Where Python
    does not handle SIGINT, and in threads, to which signals do not come, nothing is held.
    """
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    came: list[FrameType | None] = []

    def look() -> None:
        if came:
            frame = came.pop()
            came.clear()
            before(signal.SIGINT, frame)

    signal.signal(signal.SIGINT, lambda _, frame: came.append(frame))
    try:
        yield look
    finally:
        signal.signal(signal.SIGINT, before)
    look()
