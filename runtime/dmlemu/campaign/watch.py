"""How far a campaign is, on the terminal by rich, elsewhere as a line now and then."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO

from .campaign import State

__all__ = ["Watch", "spell_seconds"]

_EVERY = 10.0  # seconds between two lines where there is no terminal


class Watch:
    """Shows pieces, rate, failures and the time left while a block runs; :meth:`tell` is the ``progress`` of
    a campaign.  On a terminal it is one line that stays up to date, else one every 10 seconds."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._stream = sys.stderr if stream is None else stream
        self._bar: Any = None
        self._task: Any = None
        self._next = time.monotonic() + _EVERY

    def __enter__(self) -> Watch:
        if self._stream.isatty():
            with suppress(ModuleNotFoundError):
                self._begin()
        return self

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>5.1f} %"),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            console=Console(file=self._stream),
            refresh_per_second=4,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(self._what, total=None, state="starting")
        self._bar.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            with suppress(OSError):
                self._bar.stop()

    def tell(self, state: State) -> None:
        """Shows it."""
        if self._bar is not None:
            self._bar.update(self._task, completed=state.done, total=state.total, state=_spelled(state))
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            print(
                f"{self._what}: {state.done} of {state.total} cases, {_spelled(state)}",
                file=self._stream,
                flush=True,
            )

    def say(self, text: str) -> None:
        """A line above."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self._stream, flush=True)


def _spelled(state: State) -> str:
    failures = f"{state.failures} failures"
    if state.failures:
        failures += f" of {state.causes} cause{'s' * (state.causes > 1)}"
    workers = f"{state.workers} worker{'s' * (state.workers != 1)}"
    left = "" if state.left is None else f", {spell_seconds(state.left)} left"
    return f"{state.pieces} pieces, {state.rate:.4g} cases/s, {failures}, {workers}{left}"


def spell_seconds(seconds: float) -> str:
    """``2 h 5 min``, ``12 min``, ``40 s``."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60} min" if whole >= 120 else f"{whole} s"
