"""``campaign.db``: what a campaign has done, in one SQLite file that travels."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from ..frontends.usage import UsageError
from .model import Failure, Identity, Piece, PieceResult, Spec

__all__ = ["Cause", "Database"]

_FORMAT = 1
_SCHEMA = f"""
CREATE TABLE campaigns (
    id INTEGER PRIMARY KEY, key TEXT, version TEXT, build TEXT, cpu TEXT, what TEXT, spec TEXT, started TEXT,
    UNIQUE (key, version, build, cpu));
CREATE TABLE pieces (
    campaign INTEGER REFERENCES campaigns, first INTEGER, count INTEGER, seconds REAL, machine TEXT,
    finished TEXT, worst REAL, at TEXT, PRIMARY KEY (campaign, first)) WITHOUT ROWID;
CREATE TABLE failures (
    campaign INTEGER REFERENCES campaigns, case_index INTEGER, subject TEXT, rule TEXT, kind TEXT,
    message TEXT, size INTEGER, PRIMARY KEY (campaign, case_index, subject, rule, kind)) WITHOUT ROWID;
CREATE TABLE coverage (
    campaign INTEGER REFERENCES campaigns, operator TEXT, level TEXT, tensor TEXT, data_type TEXT,
    layout TEXT, rank INTEGER,
    PRIMARY KEY (campaign, operator, level, tensor, data_type, layout, rank)) WITHOUT ROWID;
PRAGMA user_version = {_FORMAT};
"""
_MOST_TEXT = 4000  # characters of a message


class Cause(NamedTuple):
    """The failures of one cause: how many cases, and the smallest of them."""

    count: int  # type: ignore[assignment]  # not the method of tuples
    smallest: Failure


class Database:
    """The file, open for one campaign of it; nobody else writes meanwhile.

    UsageError: it is no such file, of another format, in use, or cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], spec: Spec, who: Identity) -> None:
        self.path, self.spec = Path(path), spec
        self._lock = _locked(self.path)
        try:
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=60)
            self._prepare()
            self._id = self._campaign(who)
        except sqlite3.Error as error:
            os.close(self._lock)
            raise UsageError(
                f"{self.path} is not the database of a campaign, or not usable: {error}"
            ) from None
        except BaseException:
            os.close(self._lock)
            raise

    def _prepare(self) -> None:
        (found,) = self._connection.execute("PRAGMA user_version").fetchone()
        if found == 0 and not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            self._connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
        elif found != _FORMAT:
            raise UsageError(
                f"{self.path} is not the database of a campaign of this version of dmlemu "
                f"(format {found}, expected {_FORMAT}); name another file with --database"
            )
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def _campaign(self, who: Identity) -> int:
        spec = self.spec
        row = (spec.key, *who, spec.what, spec.json(), _now())
        self._connection.execute(
            "INSERT OR IGNORE INTO campaigns (key, version, build, cpu, what, spec, started) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        found = self._connection.execute(
            "SELECT id FROM campaigns WHERE key = ? AND version = ? AND build = ? AND cpu = ?", row[:4]
        )
        return int(found.fetchone()[0])

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Everything added is in the file."""
        self._connection.close()
        os.close(self._lock)  # last: closing a file gives up all locks of SQLite on it

    def add(self, results: Iterable[PieceResult]) -> None:
        """Adds pieces that are done, in one transaction; a piece that is there stays as it is."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            for each in results:
                row = (*each.piece, each.seconds, each.machine, _now(), each.worst, each.at)
                done = execute(
                    "INSERT OR IGNORE INTO pieces VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (self._id, *row)
                )
                if done.rowcount == 0:
                    continue
                for failure in each.failures:
                    text = failure.message[:_MOST_TEXT]
                    values = (self._id, failure.index, *failure.cause, text, failure.size)
                    execute("INSERT OR IGNORE INTO failures VALUES (?, ?, ?, ?, ?, ?, ?)", values)
                for cell in each.cells:
                    execute("INSERT OR IGNORE INTO coverage VALUES (?, ?, ?, ?, ?, ?, ?)", (self._id, *cell))
            execute("COMMIT")
        except BaseException:
            execute("ROLLBACK")
            raise

    # --- what there is ---

    def done(self) -> Iterator[Piece]:
        """The pieces that are done, in order."""
        rows = self._connection.execute(
            "SELECT first, count FROM pieces WHERE campaign = ? ORDER BY first", (self._id,)
        )
        yield from map(Piece._make, rows.fetchall())

    def failures(self) -> list[Failure]:
        """All failures, by case."""
        return [_failure(row) for row in self._failed("ORDER BY case_index, subject, rule, kind")]

    def causes(self) -> list[Cause]:
        """The failures by cause, the most frequent cause first."""
        counts = self._connection.execute(
            "SELECT subject, rule, kind, count(*) FROM failures WHERE campaign = ? "
            "GROUP BY subject, rule, kind ORDER BY count(*) DESC, subject, rule, kind",
            (self._id,),
        )
        return [
            Cause(count, _failure(*self._failed(_SMALLEST, *cause))) for *cause, count in counts.fetchall()
        ]

    def _failed(self, rest: str, *values: str) -> list[Any]:
        columns = "case_index, subject, rule, kind, message, size"
        found = self._connection.execute(
            f"SELECT {columns} FROM failures WHERE campaign = ? {rest}", (self._id, *values)
        )
        return found.fetchall()

    def worst(self) -> tuple[float, str] | None:
        """The largest error that was measured, and where."""
        row = self._connection.execute(
            "SELECT worst, at FROM pieces WHERE campaign = ? AND worst IS NOT NULL "
            "ORDER BY worst DESC, first LIMIT 1",
            (self._id,),
        ).fetchone()
        return None if row is None else (float(row[0]), str(row[1]))

    def seconds(self) -> float:
        """What the cases took, of all workers together."""
        row = self._connection.execute("SELECT total(seconds) FROM pieces WHERE campaign = ?", (self._id,))
        return float(row.fetchone()[0])

    def machines(self) -> list[str]:
        """Where pieces were done."""
        rows = self._connection.execute(
            "SELECT DISTINCT machine FROM pieces WHERE campaign = ? ORDER BY machine", (self._id,)
        )
        return [name for (name,) in rows.fetchall()]


_SMALLEST = "AND subject = ? AND rule = ? AND kind = ? ORDER BY size, case_index LIMIT 1"


def _failure(row: Any) -> Failure:
    return Failure(*row)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _locked(path: Path) -> int:
    """The file, created if need be and locked; UsageError: another campaign writes it, or it cannot be."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise UsageError(
            f"another campaign is writing {path}; name another file with --database, or wait"
        ) from None
    return handle
