"""The lock of one GPU."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

_RLock = type(threading.RLock())


class Lock(_RLock):  # type: ignore[misc, valid-type]
    """Makes the public calls of one GPU take turns; the thread that holds it may enter again.

    Entering and leaving are C code: the handler of a signal may raise at any moment in Python code, and
    must find the lock either held by a ``with`` that gives it back, or free.

    Garbage collection may close an object at any moment, also while its own thread is inside:
    :meth:`run_last` puts such work off.
    """

    def __init__(self) -> None:
        self._last: deque[Callable[[], None]] = deque()

    def is_mine(self) -> bool:
        """Whether this thread holds the lock."""
        return bool(self._is_owned())

    def run_last(self, work: Callable[[], None]) -> None:
        """Runs ``work`` with the lock held, once nothing else of this thread is under way.

        Where something is, :meth:`settle` does it.  ``work`` may be called again when it was interrupted.
        """
        self.put_off(work)
        self.settle()

    def put_off(self, work: Callable[[], None]) -> None:
        """Has the next :meth:`settle` run ``work``."""
        self._last.append(work)

    def settle(self) -> None:
        """Does what was put off, unless this thread is in the middle of something."""
        if self._last and not self.is_mine():
            with self:
                while self._last:
                    self._last[0]()
                    self._last.popleft()
