"""How far a long compilation or run is: a bar on the terminal, by rich."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO

from ..interrupts import held

__all__ = ["ProgressBar"]

_AFTER = 0.5  # seconds, in which most models are through
_WORDS = {"compile": "Compiling", "run": "Running"}


class ProgressBar:
    """A bar while a block runs, on a terminal, half a second after it began; it leaves nothing behind.

    :meth:`tell` is the ``progress`` of an InferenceSession.  Without rich (the extra ``cli``) there is none.
    Nothing may be printed inside of the block.
    """

    def __init__(self, stream: TextIO | None = None, after: float = _AFTER) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._after = after
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._bar: Any = None
        self._state = ("", 0, 0)

    def __enter__(self) -> ProgressBar:
        if self._stream.isatty():
            with suppress(ModuleNotFoundError):
                import rich.progress  # noqa: F401  (in this thread, where Ctrl-C comes)

                self._timer = threading.Timer(self._after, self._begin)
                self._timer.daemon = True
                self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with held(), self._lock:  # the cursor is shown again, whatever is pressed
            timer, self._timer = self._timer, None
            bar, self._bar = self._bar, None
            if timer is not None:
                timer.cancel()
            if bar is not None:
                with suppress(OSError):  # the terminal is gone
                    bar.stop()

    def tell(self, what: str, done: int, total: int) -> None:
        """``what`` is done now: ``compile``, ``run``, or by whom; ``done`` of ``total`` nodes are through."""
        self._state = (what, done, total)
        bar = self._bar
        if bar is not None:
            self._show(bar)

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._timer is not threading.current_thread():  # the block has ended
                return
            bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                TimeElapsedColumn(),
                console=Console(file=self._stream),
                refresh_per_second=5,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = bar.add_task("", total=None, count="")
            with suppress(OSError):
                bar.start()
            self._bar = bar
            self._show(bar)

    def _show(self, bar: Any) -> None:
        """A number of nodes that is not known moves by itself."""
        what, done, total = self._state
        bar.update(
            self._task,
            description=_WORDS.get(what, what),
            completed=done,
            total=total if done else None,
            count=f"{done} of {total} nodes" if done else "",
        )
