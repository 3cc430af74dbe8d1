"""Programs that tests start: signals are as in the foreground of a shell, and no process is left."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

__all__ = ["run", "started"]


def _default_signals() -> None:
    """A suite under nohup or in the background of a shell has inherited that some are ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def started(
    command: Sequence[str | os.PathLike[str]], *, on_terminal: bool = False, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """A program while the block runs; then it and all that it has started are killed.

    ``on_terminal``: the terminal that its stdin is sends it signals.
    """

    def prepare() -> None:
        _default_signals()
        if on_terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process: subprocess.Popen[str] = subprocess.Popen(
        command, text=True, start_new_session=True, preexec_fn=prepare, **options
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def run(
    command: Sequence[str | os.PathLike[str]], *, timeout: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; its output is captured.  TimeoutExpired."""
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, process.returncode, out, err)
