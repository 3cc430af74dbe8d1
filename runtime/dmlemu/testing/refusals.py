"""Refusals swallowed by the program: errors of refused calls that the test did not see.

An exception raised by dmlemu has reached the program once a frame of the program is in its
traceback.  This is checked when the exception is released, or when a phase of the test ends: a reference
to it would keep alive what its frames hold.
"""

from __future__ import annotations

import unittest
from collections.abc import Callable
from types import TracebackType
from typing import Any
from weakref import WeakSet

import pytest

from ..errors import Error, HResult, program_entry

__all__ = ["Refusals"]

_ANSWERS = frozenset(
    {
        HResult.E_NOINTERFACE,
        HResult.E_NOTIMPL,
        HResult.E_OUTOFMEMORY,
        HResult.DXGI_ERROR_NOT_FOUND,
        HResult.DXGI_ERROR_MORE_DATA,
        HResult.DXGI_ERROR_UNSUPPORTED,
        HResult.DXGI_ERROR_SDK_COMPONENT_MISSING,
        HResult.DXGI_ERROR_DEVICE_REMOVED,
        HResult.DXGI_ERROR_DEVICE_HUNG,
        HResult.DXGI_ERROR_DEVICE_RESET,
    }
)  # errors a correct program may meet and handle

_Exit = Callable[..., Any]


class Refusals:
    """Reports each error that reached the program: ``report(error, is_mistake)``.

    ``is_mistake``: the call was wrong, and neither ``pytest.raises`` nor ``assertRaises`` expected it.
    """

    def __init__(self, report: Callable[[Error, bool], None]) -> None:
        self._report = report
        self._live: WeakSet[Error] = WeakSet()
        self._exits: list[tuple[type, _Exit]] = []

    def start(self) -> None:
        self._before, Error._watch = Error._watch, self
        for awaiting in (pytest.raises(Error), unittest.TestCase().assertRaises(Error)):
            self._watch_exit(type(awaiting))

    def stop(self) -> None:
        Error._watch = self._before
        for kind, leave in self._exits:
            kind.__exit__ = leave  # type: ignore[attr-defined]

    def _watch_exit(self, kind: type) -> None:
        """Makes the context manager report which exceptions it expects."""
        original: _Exit = kind.__exit__  # type: ignore[attr-defined]
        self._exits.append((kind, original))

        def leave(
            manager: Any,
            type: type[BaseException] | None,
            error: BaseException | None,
            traceback: TracebackType | None,
        ) -> Any:
            __tracebackhide__ = True
            is_awaited = original(manager, type, error, traceback)
            if is_awaited:
                self.seen(error)
            return is_awaited

        kind.__exit__ = leave  # type: ignore[attr-defined]

    def created(self, error: Error) -> None:
        error._watched_by = self
        self._live.add(error)

    def forgotten(self, error: Error) -> None:
        self._look_at(error, is_seen=False)

    def look(self) -> None:
        """Checks the errors that are still referenced."""
        for error in list(self._live):
            self._look_at(error, is_seen=False)

    def seen(self, error: BaseException | None) -> None:
        """The test expected it, or failed by it; its causes count as seen too."""
        while error is not None:
            if isinstance(error, Error):
                self._look_at(error, is_seen=True)
            error = error.__cause__ or error.__context__

    def _look_at(self, error: Error, *, is_seen: bool) -> None:
        if error._watched_by is self and program_entry(error) is not None:
            error._watched_by = None
            self._report(error, not is_seen and error.hresult not in _ANSWERS)
