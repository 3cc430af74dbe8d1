"""Where pieces are run: in this process, or by the workers of a Dask scheduler."""

from __future__ import annotations

import asyncio
import inspect
import logging
import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..frontends.usage import UsageError
from .child import Opened, run_cases
from .model import Configuration, Failure, Identity, Outcome, Piece, PieceResult, Spec
from .subjects import Reduced, Unusable
from .worker import Refused, close, machine, reduce_failure, run_piece

__all__ = ["Cluster", "Executor", "Here", "fits_this_process"]

Tell = Callable[[str], None]

_AHEAD = 2  # pieces that each worker has besides the one that it runs
_RETRY = 1.0  # seconds, until the scheduler is looked for again, or asked for its workers
_PATIENCE = 30.0  # seconds, until a result that is done has come
_UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
}


class Executor(ABC):
    """Takes pieces and gives results, in any order."""

    workers = 1

    @abstractmethod
    def running(self) -> int:
        """How many pieces it has."""

    @abstractmethod
    def room(self) -> int:
        """How many pieces more it takes now."""

    @abstractmethod
    def submit(self, pieces: Sequence[Piece]) -> None:
        """Begins with pieces, now or later."""

    @abstractmethod
    def results(self, seconds: float) -> list[PieceResult | Piece]:
        """What is done within these seconds; a piece is one that nobody runs any more."""

    @abstractmethod
    def reduce(self, failure: Failure, stem: str, limit: float) -> Reduced:
        """Reduces a failure."""

    @abstractmethod
    def close(self) -> None:
        """Ends at once, whatever runs."""


class Here(Executor):
    """In this process, one case after the other: for a debugger, and as what other ways are measured by.

    UsageError: the process would have to be started with other variables.
    """

    def __init__(self, spec: Spec, limit: float) -> None:
        self._spec, self._limit = spec, limit
        self._opened, self._next = Opened(), list[Piece]()
        for each in spec.configurations:
            if not fits_this_process(each):
                raise UsageError(
                    f"with --workers 0 the cases run in this process, which cannot have {each}: set "
                    "DMLEMU_ISA and OMP_NUM_THREADS, or leave --workers out"
                )

    def running(self) -> int:
        """One or none."""
        return len(self._next)

    def room(self) -> int:
        """One at a time."""
        return 1 - len(self._next)

    def submit(self, pieces: Sequence[Piece]) -> None:
        """They run when results are asked for."""
        self._next += pieces

    def results(self, seconds: float) -> list[PieceResult | Piece]:
        """Runs the piece."""
        if not self._next:
            return []
        piece = self._next.pop()
        result = PieceResult(piece, machine=machine())
        try:
            subject = self._opened.of(self._spec, self._spec.configuration(piece.first), self._limit)
        except Unusable as error:
            raise UsageError(str(error)) from None
        for outcome, taken in run_cases(subject, piece, self._limit):
            result.add(outcome)
            result.seconds += taken
        return [result]

    def reduce(self, failure: Failure, stem: str, limit: float) -> Reduced:
        """In a process of its own all the same: devices of this one stay as they are."""
        return reduce_failure(self._spec, failure, stem, limit)

    def close(self) -> None:
        """Also of processes that reduced."""
        close()


def fits_this_process(configuration: Configuration) -> bool:
    """Whether the process was started as cases of the configuration need it."""
    from dmlemu_hw import kernels

    return (configuration.isa or kernels.instructions()) == kernels.instructions() and (
        configuration.threads or kernels.threads()
    ) == kernels.threads()


def _distributed() -> Any:
    """The package; UsageError: it is not installed."""
    try:
        import distributed
    except ModuleNotFoundError:
        raise UsageError(
            "campaigns are scheduled by Dask: pip install 'distributed>=2024.1', or run them in this process "
            "with --workers 0"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    return distributed


class Cluster(Executor):
    """The workers of a Dask scheduler: of the one at ``address``, which may go and come back, or of one in
    this process with ``workers`` of them, whose cases run in processes anyway."""

    def __init__(
        self, spec: Spec, who: Identity, limit: float, address: str | None, workers: int, tell: Tell
    ) -> None:
        self._spec, self._who, self._limit, self._address, self._tell = spec, who, limit, address, tell
        self._distributed = _distributed()
        self._refused: dict[str, str] = {}
        self._running: dict[Any, Piece] = {}
        self._allowed: dict[Any, frozenset[str]] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._client: Any = None
        self._cluster: Any = None
        of_info = inspect.signature(self._distributed.Client.scheduler_info).parameters
        self._all_workers = {"n_workers": -1} if "n_workers" in of_info else {}
        self._known: frozenset[str] = frozenset()
        self._last: frozenset[str] | None = None  # of the workers that pieces were looked at with
        self._ask_again = 0.0
        self._attempt = 0
        self._told = ""
        if address is None:
            self._cluster = self._local(workers)
        self._connect()

    def _local(self, workers: int) -> Any:
        """A cluster in this process.  What watches it, many times a second, nobody looks at."""
        import dask

        with dask.config.set(_UNWATCHED):
            return self._distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=False,
                dashboard_address=":0",
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            )

    # --- the connection ---

    def _connect(self) -> bool:
        try:
            self._client = self._distributed.Client(
                self._cluster or self._address,
                timeout=_RETRY * 5 if self._cluster is None else _PATIENCE,
                set_as_default=False,
            )
        except ValueError as error:  # no address
            raise UsageError(f"--scheduler {self._address}: {error}") from None
        except OSError:
            self._client = None
            self._say(f"no scheduler answers at {self._address or 'this machine'}; waiting for it")
        else:
            self._say("")
        return self._client is not None

    def _say(self, text: str) -> None:
        """Once."""
        if text and text != self._told:
            self._tell(text)
        self._told = text

    def _is_connected(self) -> bool:
        return self._client is not None and self._client.status == "running"

    def _lose(self) -> list[PieceResult | Piece]:
        """The scheduler is gone: what it had is run again."""
        lost = list(self._running.values())
        self._running, self._allowed = {}, {}
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                client.close(timeout=1)
        return list(lost)

    def _addresses(self) -> frozenset[str]:
        """Of the workers that may run pieces; asked for once a second."""
        if time.monotonic() >= self._ask_again:
            self._ask_again = time.monotonic() + _RETRY
            # KeyError: a client that is just losing its scheduler knows nothing of it.
            with suppress(OSError, KeyError, asyncio.CancelledError):
                there = frozenset(self._client.scheduler_info(**self._all_workers)["workers"])
                self._known = (self._known & there) | self._usable(there - self._known - self._refused.keys())
        return self._known - self._refused.keys()

    def _usable(self, new: frozenset[str]) -> frozenset[str]:
        """Those of new workers that have dmlemu.  The others would end when they get a piece, and the piece
        would be taken for what has ended them."""
        answers = self._client.run(_nothing, workers=list(new), on_error="return") if new else {}
        for address, answer in answers.items():
            if "ModuleNotFoundError" in repr(answer):  # some versions wrap it in an Exception
                self._refuse(Refused(address, f"dmlemu cannot be imported there: {answer}"))
        return frozenset(each for each, answer in answers.items() if answer is None)

    # --- pieces ---

    def running(self) -> int:
        """With those that wait at the scheduler."""
        return len(self._running)

    def room(self) -> int:
        """A few pieces for each worker, so that none waits for this process."""
        if not self._is_connected():
            return 0
        there = self._addresses()
        self.workers = len(there)
        return max(0, (1 + _AHEAD) * self.workers - len(self._running))

    def submit(self, pieces: Sequence[Piece]) -> None:
        """To any worker that is known and has not been refused; all in one message."""
        self._attempt += 1
        there = self._addresses()
        of_this = f"dmlemu-{self._spec.key}-{self._attempt}-{time.time_ns()}"
        futures = self._client.map(
            _run,
            pieces,
            key=[f"{of_this}-{each.first}-{each.count}" for each in pieces],
            pure=False,
            # Into a cluster of our own nobody comes who might not have dmlemu.
            workers=(sorted(there) or None) if self._cluster is None else None,
            spec=self._spec,
            who=self._who,
            limit=self._limit,
        )
        for future, piece in zip(futures, pieces, strict=True):
            self._running[future] = piece
            self._allowed[future] = there
            future.add_done_callback(self._done.put)

    def results(self, seconds: float) -> list[PieceResult | Piece]:
        """Pieces of workers that died, were refused or lost their scheduler come back."""
        if not self._is_connected():
            lost = self._lose()
            if not self._connect():
                time.sleep(_RETRY)
            return lost
        done: dict[Any, Piece] = {}
        wait = seconds
        while True:
            try:
                future = self._done.get(timeout=wait)
            except queue.Empty:
                break
            wait = 0
            piece = self._running.pop(future, None)
            self._allowed.pop(future, None)
            if piece is not None:
                done[future] = piece
        together = self._gathered([each for each in done if each.status == "finished"])
        found: list[PieceResult | Piece] = list(together.values())
        for future, piece in done.items():
            if future not in together:
                found += self._result(future, piece)
        return found + self._stranded()

    def _gathered(self, finished: list[Any]) -> dict[Any, PieceResult]:
        """The results of many in one round; empty where one of them cannot be had."""
        try:
            found = self._client.sync(self._client._gather, finished, callback_timeout=_PATIENCE)
        except Exception:  # the worker or the scheduler is gone meanwhile: each is asked for alone
            return {}
        return dict(zip(finished, found, strict=True))

    def _result(self, future: Any, piece: Piece) -> list[PieceResult | Piece]:
        if future.status not in ("finished", "error"):  # cancelled, or lost with the scheduler
            return [piece]
        try:
            error = future.exception(timeout=_PATIENCE)
            if error is None:
                return [future.result(timeout=_PATIENCE)]
        except (OSError, asyncio.CancelledError, asyncio.TimeoutError):  # meanwhile
            return [piece]
        if isinstance(error, Refused):
            self._refuse(error)
            return [piece]
        if isinstance(error, self._distributed.scheduler.KilledWorker):
            return self._killed(piece)
        if isinstance(error, Unusable):
            raise UsageError(str(error))
        if "deserialization of the task graph" in str(error):
            raise UsageError(
                f"the scheduler at {self._address} cannot import dmlemu, or has another Python or "
                f"distributed: {error.__cause__ or error}"
            )
        raise RuntimeError(f"The cases {piece.first} to {piece.end - 1} cannot be run.") from error

    def _killed(self, piece: Piece) -> list[PieceResult | Piece]:
        """As often as the scheduler allows, a worker died that had the piece: its halves are tried, and a
        single case is set aside."""
        if piece.count > 1:
            return list(piece.halves())
        name, where = self._spec.what, f"seed {self._spec.seed}, {self._spec.configuration(piece.first)}"
        text = f"Worker after worker died that ran this case: case {piece.first} of {where}."
        result = PieceResult(piece)
        result.add(Outcome([Failure(piece.first, name, "does not end the worker", "crash", text)]))
        return [result]

    def _stranded(self) -> list[PieceResult | Piece]:
        """Pieces whose workers are all gone."""
        there, found = self._addresses(), list[PieceResult | Piece]()
        for future, allowed in list(self._allowed.items()) if there != self._last else ():
            if allowed and allowed.isdisjoint(there):
                found.append(self._running.pop(future))
                del self._allowed[future]
                with suppress(Exception):
                    future.cancel()
        self._last = there
        if self._refused and not there:
            self._say("no worker is left that may run this campaign; waiting for one")
        return found

    # --- who may not take part ---

    def _refuse(self, error: Refused) -> None:
        """By its address."""
        if error.worker not in self._refused:
            self._refused[error.worker] = error.reason
            self._tell(str(error))
        elif not self._addresses():
            time.sleep(_RETRY)

    def reduce(self, failure: Failure, stem: str, limit: float) -> Reduced:
        """On this machine, where the files are to be."""
        return reduce_failure(self._spec, failure, stem, limit)

    def close(self) -> None:
        """What runs on other machines is cancelled, and ends with its piece."""
        with suppress(Exception):
            if self._client is not None:
                self._client.cancel(list(self._running), force=True)
                self._client.close(timeout=2)
        close()
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.close(timeout=2)


def _run(piece: Piece, *, spec: Spec, who: Identity, limit: float) -> PieceResult:
    """What a worker runs."""
    return run_piece(spec, who, piece, limit)


def _nothing() -> None:
    """What a worker can run that has dmlemu."""
