"""What a worker does with a piece: it hands the cases to a process of its own, which any of them may end."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from .model import Configuration, Failure, Identity, Outcome, Piece, PieceResult, Spec, identity
from .subjects import Reduced, Unusable, hung

__all__ = ["Refused", "close", "reduce_failure", "run_piece"]

_DEATHS = 3  # of processes, by the same case
_MORE_TIME = 5.0  # seconds beyond the limit, for a case that ignores its signal
_OPENING = 600.0  # seconds, in which a subject must be open
_MOST_IDLE = 6  # processes of other configurations that wait for their next piece
_MOST_OUTPUT = 3000  # bytes of what a process printed last


class Refused(Exception):
    """A worker that is not to run this campaign: of another version or build, or without its input."""

    def __init__(self, worker: str, reason: str) -> None:
        super().__init__(worker, reason)
        self.worker, self.reason = worker, reason

    def __str__(self) -> str:
        return f"the worker {self.worker} is refused: {self.reason}"


class _Ended(Exception):
    """The process ended, or did not answer in time."""

    def __init__(self, status: int, output: str) -> None:
        super().__init__(status, output)
        self.status, self.output = status, output

    @property
    def is_hang(self) -> bool:
        return self.status == -signal.SIGALRM

    def __str__(self) -> str:
        if self.status >= 0:
            return f"the process ended with status {self.status}"
        try:
            name = signal.Signals(-self.status).name
        except ValueError:
            name = f"signal {-self.status}"
        more = ": killed, or out of memory" if self.status == -signal.SIGKILL else ""
        return f"the process was ended by {name}{more}"


class _EndedBefore(_Ended):
    """Before its first case: while the subject was opened, or ran without chaos."""


@dataclass(eq=False)
class _Process:
    """A process that runs cases in one configuration."""

    configuration: Configuration

    def __post_init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._output = TemporaryFile()  # noqa: SIM115  (as long as the process)
        with ours, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dmlemu.campaign.child", str(theirs.fileno())],
                env=self.configuration.environment(),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
            )
            self._connection: Any = Connection(ours.detach())

    def ask(self, *request: Any) -> None:
        try:
            self._connection.send(request)
        except OSError:
            raise self._ended() from None

    def answer(self, seconds: float) -> tuple[str, Any, float]:
        """The next answer; _Ended: there is none within these seconds."""
        try:
            if self._connection.poll(seconds):
                found: tuple[str, Any, float] = self._connection.recv()
                return found
        except (EOFError, OSError):
            raise self._ended() from None
        self._process.kill()
        self._process.wait()
        raise _Ended(-signal.SIGALRM, self._printed())

    def _ended(self) -> _Ended:
        try:
            status = self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        return _Ended(status, self._printed())

    def _printed(self) -> str:
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _MOST_OUTPUT))
        return self._output.read().decode(errors="replace").strip()

    def end(self) -> None:
        """Ends it, whatever it does."""
        with suppress(OSError):
            self._connection.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._output.close()


class _Pool:
    """The processes of this worker that wait for a piece."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Process] = []

    def take(self, configuration: Configuration) -> _Process:
        with self._lock:
            for each in self._idle:
                if each.configuration == configuration:
                    self._idle.remove(each)
                    return each
        return _Process(configuration)

    def give_back(self, process: _Process) -> None:
        with self._lock:
            self._idle.append(process)
            ended = self._idle.pop(0) if len(self._idle) > _MOST_IDLE else None
        if ended is not None:
            ended.end()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.end()


_pool = _Pool()
atexit.register(_pool.close)


def close() -> None:
    """Ends the processes that wait."""
    _pool.close()


def machine() -> str:
    """The name of this machine."""
    return socket.gethostname()


def _name() -> str:
    """The address of this worker, by which the scheduler knows it; elsewhere the machine's name."""
    try:
        from distributed import get_worker

        found: str = get_worker().address
    except (ImportError, ValueError):
        return machine()
    return found


def run_piece(spec: Spec, who: Identity, piece: Piece, limit: float) -> PieceResult:
    """Runs the cases of a piece.  A case that ends its process runs again, and what is behind it in a new
    process; the third time it is a failure of its own, as is one that takes longer than ``limit`` seconds.

    Raises :class:`Refused`.
    """
    _check(who)
    result = PieceResult(piece, machine=machine())
    at, deaths = piece.first, 0
    while at < piece.end:
        rest = Piece(at, piece.end - at)
        try:
            for outcome, seconds in _outcomes(spec, rest, limit):
                result.add(outcome)
                result.seconds += seconds
                at, deaths = at + 1, 0
        except _Ended as ended:
            deaths += 1
            if isinstance(ended, _EndedBefore):
                if ended.is_hang or deaths == _DEATHS:
                    raise Unusable(_unusable(spec, ended, limit)) from None
            elif ended.is_hang or deaths == _DEATHS:
                result.add(Outcome([_fatal(spec, at, ended, limit)]))
                at, deaths = at + 1, 0
    return result


def _outcomes(spec: Spec, piece: Piece, limit: float) -> Iterator[tuple[Outcome, float]]:
    process = _opened(spec, piece.first, "piece", piece, limit)
    try:
        for _ in range(piece.count):
            _, outcome, seconds = process.answer(limit + _MORE_TIME)
            yield outcome, seconds
    except BaseException:
        process.end()
        raise
    _pool.give_back(process)


def _opened(spec: Spec, index: int, what: str, given: Any, limit: float) -> _Process:
    """A process that has the subject open and begins with what it is given."""
    configuration = spec.configuration(index)
    process = _pool.take(configuration)
    try:
        process.ask(what, spec, configuration, given, limit)
        answer, text, _ = process.answer(_OPENING)
    except _Ended as ended:
        process.end()
        raise _EndedBefore(ended.status, ended.output) from None
    except BaseException:
        process.end()
        raise
    if answer == "opened":
        return process
    process.end()
    if answer == "refused":
        raise Refused(_name(), text)
    raise Unusable(text)


def _unusable(spec: Spec, ended: _Ended, limit: float) -> str:
    if ended.is_hang:
        return (
            f"{spec.what} does not come to its first case within {limit:g} seconds (--hang).\n{ended.output}"
        )
    return f"{spec.what}: {_DEATHS} times {ended} before the first case.\n{ended.output}"


def _fatal(spec: Spec, index: int, ended: _Ended, limit: float) -> Failure:
    where = f"  Case {index} of seed {spec.seed}, {spec.configuration(index)}.\n{ended.output}"
    name = Path(spec.what).name if os.sep in spec.what else spec.what
    if ended.is_hang:
        return hung(index, name, limit, where)
    return Failure(index, name, "does not end the process", "crash", f"{_DEATHS} times {ended}.{where}")


def reduce_failure(spec: Spec, failure: Failure, stem: str, limit: float) -> Reduced:
    """Reduces a failed case in a process of its configuration."""
    try:
        process = _opened(spec, failure.index, "reduce", (failure, stem), limit)
    except (_Ended, Unusable) as error:
        return Reduced(f"{failure.message}\nNot reduced: {error}")
    try:
        answer, found, _ = process.answer(limit)
    except _Ended as error:
        process.end()
        return Reduced(f"{failure.message}\nNot reduced: {error}")
    _pool.give_back(process)
    if answer == "failed":
        return Reduced(f"{failure.message}\nNot reduced:\n{found}")
    reduced: Reduced = found
    return reduced


def _check(who: Identity) -> None:
    ours = identity()
    if ours != who:
        raise Refused(_name(), f"it has {ours}; expected {who}")
