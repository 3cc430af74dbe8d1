"""The lock of one GPU."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType


class Lock:
    """Makes the public calls of one GPU take turns; the thread that holds it may enter again.

    Garbage collection may close an object at any moment, also while its own thread is inside:
    :meth:`run_last` puts such work off until the lock is about to be given up.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._last: deque[Callable[[], None]] = deque()

    def __enter__(self) -> Lock:
        self._lock.acquire()
        self._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._depth == 1:
                while self._last:
                    self._last.popleft()()
        finally:
            self._depth -= 1
            self._lock.release()

    def run_last(self, work: Callable[[], None]) -> None:
        """Runs ``work`` with the lock held, once nothing else of this thread is under way."""
        with self:
            self._last.append(work)
