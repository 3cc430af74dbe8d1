"""The process that runs cases: started by a worker with one configuration, and ended by whatever a case does.

It answers on a socket, whose number is its argument.  Each case has a timer of its own, whose signal ends the
process: a case that hangs ends with it, also where nobody is left to watch.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..frontends.usage import UsageError
from .model import Configuration, Failure, Outcome, Piece, Spec
from .subjects import Subject, Unusable, open_subject

__all__ = ["Opened", "main", "run_cases"]


class Opened:
    """The subject that this process has open: opening may take long, and most pieces need the same.

    ``limited``: ends the process where what runs in it takes too long.
    """

    def __init__(self, limited: Callable[[float], AbstractContextManager[Any]] = nullcontext) -> None:
        self._limited = limited
        self._key: tuple[str, Configuration] | None = None
        self._subject: Subject | None = None

    def of(self, spec: Spec, configuration: Configuration, limit: float) -> Subject:
        """Of a spec, in a configuration.  UsageError: its file is another one here, or is not there.
        Unusable: no case of it would tell anything."""
        from ..errors import Strictness
        from ..reporting import defaults
        from .subjects import plan_again

        if (spec.key, configuration) != self._key or self._subject is None:
            defaults.strictness = Strictness(configuration.strictness or "strict")
            plan_again(spec)
            self._subject = open_subject(spec)
            with self._limited(limit), only_here():
                self._subject.check(limit)
            self._key = spec.key, configuration
        return self._subject


def run_cases(subject: Subject, piece: Piece, limit: float) -> Iterator[tuple[Outcome, float]]:
    """The outcome of each case, in order, and the seconds that it took."""
    for index in range(piece.first, piece.end):
        start = time.perf_counter()
        try:
            with only_here():
                outcome = subject.run(index, limit)
        except Exception as error:  # a mistake of the subject itself: it fails, and the campaign goes on
            text = traceback.format_exc()
            failure = Failure(index, subject.spec.what, type(error).__name__, "could not be run", text)
            outcome = Outcome([failure])
        yield outcome, time.perf_counter() - start


@contextmanager
def only_here() -> Iterator[None]:
    """Ends processes that the case has made by fork and that come back from it as this one does."""
    own = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != own:
            os._exit(0)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _serve(connection: Any) -> None:
    opened = Opened(_limited)
    while True:
        what, spec, configuration, given, limit = connection.recv()
        try:
            subject = opened.of(spec, configuration, limit)
        except UsageError as error:
            connection.send(("refused", str(error), 0.0))
            continue
        except Unusable as error:
            connection.send(("unusable", str(error), 0.0))
            continue
        except Exception:
            text = f"{spec.what} cannot be opened: {traceback.format_exc()}"
            connection.send(("unusable", text, 0.0))
            continue
        connection.send(("opened", None, 0.0))
        if what == "reduce":
            failure, stem = given
            try:
                connection.send(("reduced", subject.reduce(failure, Path(stem)), 0.0))
            except Exception:
                connection.send(("failed", traceback.format_exc(), 0.0))
            continue
        cases = run_cases(subject, given, limit)
        for _ in range(given.count):
            with _limited(limit):
                outcome, seconds = next(cases)
            connection.send(("case", outcome, seconds))


def main() -> None:
    """Serves until the worker is gone."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the worker ends this process
    connection: Any = Connection(int(sys.argv[1]))
    with suppress(EOFError, OSError):  # the worker is gone
        _serve(connection)


if __name__ == "__main__":
    main()
