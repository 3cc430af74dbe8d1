"""Attacks on the database of a campaign: each gives one clear error, and nothing is lost."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dmlemu import campaign
from dmlemu.campaign.database import Database
from dmlemu.campaign.model import Failure, Outcome, Piece, PieceResult, Spec, identity
from dmlemu.cli import main
from dmlemu.frontends.usage import UsageError
from processes import run, started

SPEC = Spec("operators", "operators", "", cases=10_000)


def piece(first: int, count: int = 10, message: str = "") -> PieceResult:
    result = PieceResult(Piece(first, count), seconds=1.0, machine="here")
    if message:
        result.add(Outcome([Failure(first, "GEMM", "reference", "NaN", message)]))
    return result


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """With two pieces."""
    file = tmp_path / "campaign.db"
    with Database(file, SPEC, identity()) as database:
        database.add([piece(0), piece(10, message="text")])
    yield file


def done(path: Path) -> list[Piece]:
    with Database(path, SPEC, identity()) as database:
        return list(database.done())


def refused(path: Path, words: str) -> None:
    """In Python and by the command, in one sentence; the file stays as it is."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(UsageError, match=words):
        Database(path, SPEC, identity())
    found = run(
        [sys.executable, "-m", "dmlemu", "campaign", "operators:GEMM", "--workers", "0", "--database", path],
        timeout=60,
        cwd=path.parent if path.parent.is_dir() else "/",
    )
    assert found.returncode == 2 and "Traceback" not in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1 and str(path) in found.stderr
    if before is not None:
        assert path.read_bytes() == before


# --- what is no such file ---


def test_a_damaged_file_is_named(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 - 2000)
        file.write(os.urandom(4000))
    refused(
        path,
        r"campaign\.db is not .* is damaged: .*malformed.*name another file with --database; 'sqlite3 FILE",
    )


def test_half_a_file_is_named(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    refused(path, "name another file with --database")


def test_a_file_of_zeros_is_named(tmp_path: Path) -> None:
    file = tmp_path / "zeros.db"
    file.write_bytes(bytes(8192))
    refused(file, "file is not a database; name another file")


@pytest.mark.parametrize("version", [0, 1, 2, 77])
def test_a_database_of_something_else_is_named(tmp_path: Path, version: int) -> None:
    file = tmp_path / "notes.db"
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE notes (text)")
        other.execute(f"PRAGMA user_version = {version}")
    refused(file, "is a database of something else, with tables notes; name another file")


def test_another_format_is_named(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    refused(path, r"\(format 99, expected 2\); name another file with --database")


def test_a_file_of_the_first_format_goes_on(path: Path) -> None:
    with sqlite3.connect(path) as old:
        for table, columns in (("pieces", ("undrawn", "judges")), ("failures", ("place",))):
            for column in columns:
                old.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        old.execute("DROP TABLE dissents")
        old.execute("PRAGMA user_version = 1")
    with Database(path, SPEC, identity()) as database:
        assert list(database.done()) == [Piece(0, 10), Piece(10, 10)]
        database.add([piece(20)])
        assert database.undrawn() == 0 and database.failures()[0].place == ""


@pytest.mark.parametrize(
    "name", ["missing/campaign.db", "", "folder", "fifo", "/dev/null", "/sys/campaign.db"]
)
def test_what_cannot_be_a_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    refused(tmp_path / name, "cannot be written|is no regular file")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the folder .*missing does not exist"):
        Database(tmp_path / "missing" / "campaign.db", SPEC, identity())
    with pytest.raises(UsageError, match="cannot be the name of a file"):
        Database("a\0b", SPEC, identity())


# --- names that are odd, and good ---


@pytest.mark.parametrize(
    "name",
    [
        "two words.db",
        'it\'s "so".db',
        "a?mode=memory#b.db",
        "ünïcødé 数.db",
        ":memory:",
        "file:x.db",
        "a\nb",
        "%41",
    ],
)
def test_any_name_of_a_file_is_good(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Database(name, SPEC, identity()) as database:
        database.add([piece(0)])
    assert done(Path(name)) == [Piece(0, 10)]
    assert sorted(os.listdir()) == [name]


def test_a_link_is_the_file(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with (
        Database(path, SPEC, identity()),
        pytest.raises(UsageError, match=r"another campaign is writing .*link\.db"),
    ):
        Database(link, SPEC, identity())
    assert done(link) == [Piece(0, 10), Piece(10, 10)] and link.is_symlink()


# --- while it is written ---


def test_a_full_disk_loses_nothing(path: Path) -> None:
    with Database(path, SPEC, identity()) as database:
        (pages,) = database._connection.execute("PRAGMA page_count").fetchone()
        database._connection.execute(f"PRAGMA max_page_count = {pages}")
        rest = [piece(10 * number, message="x" * 3000) for number in range(2, 50)]
        with pytest.raises(UsageError, match=r"disk is full; make room and give the same command again"):
            database.add(rest)
        assert list(database.done()) == [Piece(0, 10), Piece(10, 10)]
        database._connection.execute("PRAGMA max_page_count = 100000")
        database.add(rest)  # as the next command would
    assert len(done(path)) == 50


def test_a_file_that_becomes_unusable_ends_the_campaign(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says it in a sentence, and goes on the next time."""
    file = tmp_path / "other.db"
    command = ["campaign", "operators:GEMM", "--layouts", "3", "--workers", "0", "--oracles", "none"]
    add = Database.add

    def full(self: Database, results: Any) -> None:
        self._connection.execute("PRAGMA max_page_count = 1")
        add(
            self,
            [
                *results,
                piece(5000, message="x" * 100_000),
                *(piece(n, message="y" * 4000) for n in range(6000, 6100, 10)),
            ],
        )

    monkeypatch.setattr(Database, "add", full)
    assert main([*command, "--database", str(file)]) == 2
    assert "disk is full; make room and give the same command again" in capsys.readouterr().err
    monkeypatch.setattr(Database, "add", add)
    assert main([*command, "--database", str(file)]) == 0
    assert "3 of 3 cases" in capsys.readouterr().out


def test_a_command_that_is_killed_goes_on(tmp_path: Path) -> None:
    """With SIGKILL, in the middle, the client; what it has started ends by itself."""
    pytest.importorskip("distributed")
    file = tmp_path / "campaign.db"
    command = [
        sys.executable,
        "-m",
        "dmlemu",
        "campaign",
        "operators",
        "--layouts",
        "50",
        "--oracles",
        "none",
    ]
    command += ["--piece", "0.1s", "--output", ""]
    with started([*command, "--workers", "2"], cwd=tmp_path) as process:
        deadline = time.monotonic() + 100
        while counted(file) < 20:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        children = descendants(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = counted(file)
    assert kept >= 20 and children
    deadline = time.monotonic() + 60
    while any(is_alive(each) for each in children):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    again = run([*command, "--workers", "0", "--budget", "0.001s"], cwd=tmp_path, timeout=60)
    found = re.search(r": (\d+) of \d+ cases", again.stdout)
    assert again.returncode == 0 and found is not None and int(found[1]) >= kept
    with sqlite3.connect(file) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def counted(file: Path) -> int:
    """Cases that are done, while another process writes."""
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT total(count) FROM pieces").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def descendants(process: int) -> list[int]:
    """Of a process, by Linux."""
    found, new = list[int](), [process]
    while new:
        text = "".join(
            each.read_text() for each in Path(f"/proc/{new.pop()}/task").glob("*/children") if each.exists()
        )
        new += map(int, text.split())
        found += map(int, text.split())
    return found


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- options out of range ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layouts": -1}, "--layouts is -1; expected a whole number from 1 to"),
        ({"layouts": 1.5}, "--layouts is 1.5; expected a whole number"),
        ({"layouts": True}, "--layouts is True"),
        ({"layouts": 1 << 41}, "--layouts is 2199023255552"),
        ({"seeds": 0}, "--seeds is 0"),
        ({"layouts": 1 << 40, "seeds": 1 << 40}, "at most 4611686018427387904 are possible"),
        ({"seed": -1}, "--seed is -1; expected a whole number from 0"),
        ({"seed": 1 << 40}, "--seed is 1099511627776"),
        ({"threads": [0]}, "--threads is 0; expected a whole number from 1 to 1024"),
        ({"workers": -1}, "--workers is -1; expected a whole number from 0 to 1024"),
        ({"budget": 0}, "--budget is 0; expected more than 0"),
        ({"budget": float("nan")}, "--budget is nan; expected more than 0"),
        ({"hang": float("inf")}, "--hang is inf; expected more than 0 and at most 1000000000"),
        ({"piece": -1.0}, "--piece is -1.0"),
    ],
)
def test_numbers_out_of_range_are_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        campaign.run("operators:GEMM", database=tmp_path / "a.db", **options)
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--layouts", "0", "0 is not a number of cases"),
        ("--layouts", "1" * 400, "is not a number of cases"),
        ("--budget", "nan", "nan is not a time such as 90s, 10m or 2h"),
        ("--budget", "-3s", "is not a time"),
        ("--hang", "9" * 400 + "d", "is more than 30 years"),
        ("--workers", "1025", "is not a number of workers"),
        ("--seed", "-1", "--seed is -1; expected a whole number from 0"),
    ],
)
def test_options_out_of_range_are_named(
    tmp_path: Path, option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["campaign", "operators:GEMM", "--database", str(tmp_path / "a.db"), f"{option}={value}"]
    try:
        status = main(command)
    except SystemExit as error:
        status = error.code
    assert status == 2 and message in capsys.readouterr().err
