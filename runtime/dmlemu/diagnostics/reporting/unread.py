"""What devices have reported and the program has not read: one line at its end."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress

from ..report import Severity

__all__ = ["Unread", "at_end", "end_run", "forget"]

at_end: list[Callable[[], None]] = []
"""Called when the program ends, before files are closed: the layers above report what is known only then."""


class Unread:
    """The reports of one device that are kept and unread; a line at the end of the program counts them."""

    def __init__(self) -> None:
        self._severities: dict[Hashable, Severity] = {}
        self._is_read = False
        _living.add(self)

    def add(self, key: Hashable, severity: Severity) -> None:
        """A report is kept."""
        if not self._is_read and severity <= Severity.INFO:
            self._severities[key] = severity

    def remove(self, key: Hashable) -> None:
        """It was raised, or issued as a Python warning."""
        self._severities.pop(key, None)

    def read(self) -> None:
        """The program has asked for the reports; it knows where they are."""
        self._is_read = True
        self._severities.clear()

    def count(self) -> Counter[Severity]:
        """How many of each severity."""
        return Counter(list(self._severities.values()))

    def __del__(self) -> None:
        _gone.update(self.count())


_living: weakref.WeakSet[Unread] = weakref.WeakSet()
_gone: Counter[Severity] = Counter()  # of devices that are gone


def forget() -> None:
    """No line is needed: somebody else shows the reports, or they are of another process."""
    for each in list(_living):
        each.read()
    _gone.clear()


def end_run() -> None:
    """The program ends.  After an exception that ended it, what it has not done is not a mistake."""
    if getattr(sys, "last_value", None) is None:
        for each in at_end:
            each()


def _tell() -> None:
    end_run()
    counts = sum((each.count() for each in list(_living)), Counter(_gone))
    found = [f"{counts[each]} {each.name}" for each in Severity if counts[each]]
    is_wrong = any(each <= Severity.WARNING for each in counts)  # what is only INFO is not a mistake
    if is_wrong and sys.stderr is not None:
        with suppress(OSError, ValueError):  # it is closed
            print(
                f"dmlemu: {', '.join(found)}: nobody has read device.reports; "
                "DMLEMU_REPORT=FILE writes them.",
                file=sys.stderr,
            )


atexit.register(_tell)
os.register_at_fork(after_in_child=forget)
