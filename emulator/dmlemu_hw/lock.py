"""The lock of one GPU."""

from __future__ import annotations

import threading

_RLock = type(threading.RLock())


class Lock(_RLock):  # type: ignore[misc, valid-type]
    """Serializes the public calls of one GPU; reentrant.

    Entering and leaving are C code: a signal handler may raise at any moment in Python code, and the lock
    must then be either free or held by a ``with`` that releases it.
    """

    def is_mine(self) -> bool:
        """Whether this thread holds the lock."""
        return bool(self._is_owned())
