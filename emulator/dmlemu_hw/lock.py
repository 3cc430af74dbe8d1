"""The lock of one GPU."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

_RLock = type(threading.RLock())


class Lock(_RLock):  # type: ignore[misc, valid-type]
    """Serializes the public calls of one GPU; reentrant.

    Entering and leaving are C code: a signal handler may raise at any moment in Python code, and the lock
    must then be either free or held by a ``with`` that releases it.

    Garbage collection may close an object at any moment, even while its thread holds the lock:
    :meth:`run_last` defers such work.
    """

    def __init__(self) -> None:
        self._last: deque[Callable[[], None]] = deque()

    def is_mine(self) -> bool:
        """Whether this thread holds the lock."""
        return bool(self._is_owned())

    def run_last(self, work: Callable[[], None]) -> None:
        """Runs ``work`` with the lock held, once this thread does nothing else under the lock.

        Until then it is deferred to :meth:`settle`.  ``work`` may be called again after an interruption.
        """
        self.put_off(work)
        self.settle()

    def put_off(self, work: Callable[[], None]) -> None:
        """Defers ``work`` to the next :meth:`settle`."""
        self._last.append(work)

    def settle(self) -> None:
        """Runs deferred work, unless this thread is inside another call."""
        if self._last and not self.is_mine():
            with self:
                while self._last:
                    self._last[0]()
                    self._last.popleft()
