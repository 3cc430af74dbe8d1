"""The programs of a GPU, by the numbers that packets have."""

from __future__ import annotations

import weakref
from typing import Any


class Programs:
    """The programs (see ``programs``) of one GPU; those that nobody else refers to are gone."""

    def __init__(self) -> None:
        self._next = 1
        self._known: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def add(self, program: Any) -> None:
        """Gives the program its number."""
        program.serial, self._next = self._next, self._next + 1
        self._known[program.serial] = program

    def find(self, serial: int) -> Any:
        """The :class:`.Program`; None: there is none, or it is closed."""
        program = self._known.get(serial)
        return None if program is None or program.closed else program
