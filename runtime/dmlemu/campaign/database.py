"""``campaign.db``: what a campaign has done, in one SQLite file that travels."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from ..frontends.usage import UsageError
from .model import JUDGES, Dissent, Failure, Identity, Piece, PieceResult, Spec

__all__ = ["Cause", "Database", "Judged"]

_FORMAT = 2
_DISSENTS = """
CREATE TABLE dissents (
    campaign INTEGER REFERENCES campaigns, case_index INTEGER, oracle TEXT, message TEXT,
    PRIMARY KEY (campaign, case_index, oracle)) WITHOUT ROWID;
"""
_SCHEMA = f"""
CREATE TABLE campaigns (
    id INTEGER PRIMARY KEY, key TEXT, version TEXT, build TEXT, cpu TEXT, what TEXT, spec TEXT, started TEXT,
    UNIQUE (key, version, build, cpu));
CREATE TABLE pieces (
    campaign INTEGER REFERENCES campaigns, first INTEGER, count INTEGER, seconds REAL, machine TEXT,
    finished TEXT, worst REAL, at TEXT, undrawn INTEGER DEFAULT 0, judges TEXT,
    PRIMARY KEY (campaign, first)) WITHOUT ROWID;
CREATE TABLE failures (
    campaign INTEGER REFERENCES campaigns, case_index INTEGER, subject TEXT, rule TEXT, kind TEXT,
    message TEXT, size INTEGER, place TEXT DEFAULT '',
    PRIMARY KEY (campaign, case_index, subject, rule, kind)) WITHOUT ROWID;
CREATE TABLE coverage (
    campaign INTEGER REFERENCES campaigns, operator TEXT, level TEXT, tensor TEXT, data_type TEXT,
    layout TEXT, rank INTEGER,
    PRIMARY KEY (campaign, operator, level, tensor, data_type, layout, rank)) WITHOUT ROWID;
{_DISSENTS}
PRAGMA user_version = {_FORMAT};
"""
_FROM_1 = f"""
ALTER TABLE pieces ADD COLUMN undrawn INTEGER DEFAULT 0;
ALTER TABLE pieces ADD COLUMN judges TEXT;
ALTER TABLE failures ADD COLUMN place TEXT DEFAULT '';
{_DISSENTS}
PRAGMA user_version = {_FORMAT};
"""
_MOST_TEXT = 4000  # characters of a message


class Cause(NamedTuple):
    """The failures of one cause: how many cases, and the smallest of them."""

    count: int  # type: ignore[assignment]  # not the method of tuples
    smallest: Failure


class Judged(NamedTuple):
    """What an oracle has judged: how many cases, how often it differs from the reference, and the first of
    these."""

    oracle: str
    cases: int
    dissents: int
    first: Dissent | None


class Database:
    """The file, open for one campaign of it; nobody else writes meanwhile.

    UsageError, also of every method: it is no such file, of another format, damaged, in use, or cannot be
    written. What was added before stays.
    """

    def __init__(self, path: str | os.PathLike[str], spec: Spec, who: Identity) -> None:
        self.path, self.spec = Path(path), spec
        self._lock = _locked(self.path)
        try:
            with self._spoken():
                # By its absolute path: ":memory:" is no file otherwise.
                self._connection = sqlite3.connect(self.path.absolute(), isolation_level=None, timeout=60)
                self._prepare()
                self._id = self._campaign(who)
        except BaseException:
            os.close(self._lock)
            raise

    @contextmanager
    def _spoken(self) -> Iterator[None]:
        """Errors of SQLite as what the user can do."""
        try:
            yield
        except sqlite3.Error as error:
            reason = str(error)
            if "full" in reason:
                what = "cannot be written"
                hint = "make room and give the same command again: it goes on behind what is in the file"
            elif "readonly" in reason or "unable to open" in reason:
                what = "cannot be written"
                hint = "the file and its folder must be writable: SQLite keeps a journal beside it"
            else:
                what = "is not the database of a campaign, or is damaged"
                hint = "name another file with --database"
                if "malformed" in reason:
                    hint += "; 'sqlite3 FILE .recover' saves what a damaged one has"
            raise UsageError(f"{self.path} {what}: {reason}; {hint}") from None

    def _prepare(self) -> None:
        execute = self._connection.execute
        (found,) = execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and not {"campaigns", "pieces", "failures", "coverage"} <= tables:
            raise UsageError(
                f"{self.path} is a database of something else, with tables {', '.join(sorted(tables)[:4])}; "
                "name another file with --database"
            )
        if not tables and not found:
            self._connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
        elif found == 1:
            self._connection.executescript(f"BEGIN; {_FROM_1} COMMIT;")
        elif found != _FORMAT:
            raise UsageError(
                f"{self.path} is not the database of a campaign of this version of dmlemu "
                f"(format {found}, expected {_FORMAT}); name another file with --database"
            )
        (problem,) = execute("PRAGMA quick_check(1)").fetchone()
        if problem != "ok":
            raise sqlite3.DatabaseError(f"database disk image is malformed: {problem}")
        execute("PRAGMA synchronous = NORMAL")

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
        with self._spoken():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for each in results:
                    self._add(each)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite ends it itself where the disk is full
                    self._connection.execute("ROLLBACK")
                raise

    def _add(self, each: PieceResult) -> None:
        execute, id = self._connection.execute, self._id
        judges = each.judges if each.judges.strip("0") else None
        row = (*each.piece, each.seconds, each.machine, _now(), each.worst, each.at, each.undrawn, judges)
        done = execute("INSERT OR IGNORE INTO pieces VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (id, *row))
        if done.rowcount == 0:
            return
        many = self._connection.executemany
        many(
            "INSERT OR IGNORE INTO failures VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(id, f.index, *f.cause, f.message[:_MOST_TEXT], f.size, f.place) for f in each.failures],
        )
        many(
            "INSERT OR IGNORE INTO coverage VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(id, *cell) for cell in each.cells],
        )
        many(
            "INSERT OR IGNORE INTO dissents VALUES (?, ?, ?, ?)",
            [(id, d.index, d.oracle, d.message[:_MOST_TEXT]) for d in each.dissents],
        )

    # --- what there is ---

    def _rows(self, query: str, *values: Any) -> list[Any]:
        """Of this campaign, which is the first parameter of the query."""
        with self._spoken():
            return self._connection.execute(query, (self._id, *values)).fetchall()

    def done(self) -> Iterator[Piece]:
        """The pieces that are done, in order."""
        rows = self._rows("SELECT first, count FROM pieces WHERE campaign = ? ORDER BY first")
        yield from map(Piece._make, rows)

    def failures(self) -> list[Failure]:
        """All failures, by case."""
        return [_failure(row) for row in self._failed("ORDER BY case_index, subject, rule, kind")]

    def causes(self) -> list[Cause]:
        """The failures by cause, the most frequent cause first."""
        counts = self._rows(
            "SELECT subject, rule, kind, count(*) FROM failures WHERE campaign = ? "
            "GROUP BY subject, rule, kind ORDER BY count(*) DESC, subject, rule, kind"
        )
        return [Cause(count, _failure(*self._failed(_SMALLEST, *cause))) for *cause, count in counts]

    def _failed(self, rest: str, *values: str) -> list[Any]:
        columns = "case_index, subject, rule, kind, message, size, place"
        return self._rows(f"SELECT {columns} FROM failures WHERE campaign = ? {rest}", *values)

    def worst(self) -> tuple[float, str] | None:
        """The largest error that was measured, and where."""
        rows = self._rows(
            "SELECT worst, at FROM pieces WHERE campaign = ? AND worst IS NOT NULL "
            "ORDER BY worst DESC, first LIMIT 1"
        )
        return (float(rows[0][0]), str(rows[0][1])) if rows else None

    def undrawn(self) -> int:
        """How many cases were none: hypothesis found nothing legal in their bytes."""
        return int(self._rows("SELECT total(undrawn) FROM pieces WHERE campaign = ?")[0][0])

    def judged(self) -> list[Judged]:
        """What each oracle of the campaign has judged."""
        texts = self._rows("SELECT judges FROM pieces WHERE campaign = ? AND judges IS NOT NULL")
        digits = Counter("".join(text for (text,) in texts))
        found = []
        for place, oracle in enumerate(self.spec.oracles):
            cases = sum(count for digit, count in digits.items() if JUDGES.index(digit) >> place & 1)
            rows = self._rows(
                "SELECT case_index, oracle, message FROM dissents WHERE campaign = ? AND oracle = ? "
                "ORDER BY case_index",
                oracle,
            )
            found.append(Judged(oracle, cases, len(rows), Dissent._make(rows[0]) if rows else None))
        return found

    def seconds(self) -> float:
        """What the cases took, of all workers together."""
        return float(self._rows("SELECT total(seconds) FROM pieces WHERE campaign = ?")[0][0])

    def machines(self) -> list[str]:
        """Where pieces were done."""
        rows = self._rows("SELECT DISTINCT machine FROM pieces WHERE campaign = ? ORDER BY machine")
        return [name for (name,) in rows]


_SMALLEST = "AND subject = ? AND rule = ? AND kind = ? ORDER BY size, case_index LIMIT 1"


def _failure(row: Any) -> Failure:
    return Failure(*row)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _locked(path: Path) -> int:
    """The file, created if need be and locked; UsageError: another campaign writes it, or it cannot be."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    except ValueError as error:  # of a name that no file can have
        raise UsageError(f"--database {str(path)!r} cannot be the name of a file: {error}") from None
    except OSError as error:
        hint = "" if path.parent.is_dir() else f": the folder {path.parent} does not exist"
        raise UsageError(f"{path} cannot be written: {error.strerror}{hint}") from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UsageError(f"{path} is no regular file; name another one with --database")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise UsageError(
            f"another campaign is writing {path}; name another file with --database, or wait"
        ) from None
    except OSError as error:
        os.close(handle)
        raise UsageError(
            f"{path} cannot be locked: {error.strerror}; name a file on a local disk with --database"
        ) from None
    except BaseException:
        os.close(handle)
        raise
    return handle
