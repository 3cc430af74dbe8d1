"""Campaigns on workers of Dask: on this machine, and while workers and the scheduler die."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dmlemu import campaign
from dmlemu.campaign.model import Identity, Piece, PieceResult, Spec, identity
from dmlemu.frontends.usage import UsageError
from processes import run, started
from thorough import THOROUGH

pytest.importorskip("distributed")
PROGRAMS = Path(__file__).with_name("programs.py")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    return Path(shutil.copy(PROGRAMS, tmp_path))


def pieces_of(database: Path) -> list[tuple[int, int]]:
    with sqlite3.connect(database) as connection:
        return connection.execute("SELECT first, count FROM pieces ORDER BY first").fetchall()


def assert_each_case_once(database: Path, total: int) -> None:
    at = 0
    for first, count in pieces_of(database):
        assert first == at
        at += count
    assert at == total


def test_two_workers_find_what_one_process_finds(programs: Path, tmp_path: Path) -> None:
    what, configurations = f"{programs}::test_wrong", {"isa": ["generic", "generic"]}
    there = campaign.run(
        what, layouts=20, workers=2, piece=0.05, database=tmp_path / "a.db", tell=print, **configurations
    )
    here = campaign.run(what, layouts=20, workers=0, database=tmp_path / "b.db")

    assert there.total == 40
    assert [each for each in there.failures if each.index < 20] == here.failures != []
    assert_each_case_once(tmp_path / "a.db", 40)


def test_a_worker_of_another_build_is_refused_by_its_address(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = identity()._replace(build="0123456789ab")
    monkeypatch.setattr("dmlemu.campaign.campaign.identity", lambda: other)
    told: list[str] = []

    def stop(state: campaign.State) -> None:
        if len(told) == 2:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"database": tmp_path / "a.db", "workers": 1, "layouts": 3}
    found = campaign.run(f"{programs}::test_right", tell=told.append, progress=stop, **options)

    assert found.done == 0
    assert re.match(
        r"the worker inproc://\S+ is refused: it has dmlemu .*; expected .* 0123456789ab", told[0]
    )
    assert told[1] == "no worker is left that may run this campaign; waiting for one"


def test_a_case_that_ends_workers_is_set_aside(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler says that a piece has killed too many; the others of the piece are done."""
    from distributed.scheduler import KilledWorker

    def piece(spec: Spec, who: Identity, piece: Piece, limit: float) -> PieceResult:
        if piece.first <= 5 < piece.end:
            raise KilledWorker("a piece", SimpleNamespace(address="tcp://gone"), 3)  # type: ignore[arg-type]
        return PieceResult(piece, seconds=0.01)

    monkeypatch.setattr("dmlemu.campaign.executors.run_piece", piece)
    options: dict[str, Any] = {"database": tmp_path / "a.db", "workers": 1, "layouts": 30}
    found = campaign.run(f"{programs}::test_right", **options)

    assert [(each.index, each.rule) for each in found.failures] == [(5, "does not end the worker")]
    assert_each_case_once(tmp_path / "a.db", 30)


# --- a scheduler and workers as processes, which die ---


class Site:
    """A scheduler and two workers on the loopback; whichever dies is started again.  ``without``: those that
    cannot import dmlemu."""

    def __init__(self, folder: Path, without: Sequence[str] = ()) -> None:
        self._without = without
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self._folder = folder
        self._processes: dict[str, Any] = {}
        self._stack = ExitStack()
        self._over = threading.Event()
        self.killed = self.done = 0  # processes, and cases, as the campaign tells
        self.random = random.Random(1)

    def __enter__(self) -> Site:
        self._watch = threading.Thread(target=self._keep)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()
        self._stack.close()

    def _keep(self) -> None:
        commands = {
            "scheduler": ["scheduler", "--host", "127.0.0.1", "--port", self.address.rpartition(":")[2]],
            "one": ["worker", self.address],
            "two": ["worker", self.address],
        }
        for name in ("one", "two"):
            commands[name] += ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "20"]
        commands["scheduler"] += ["--no-dashboard"]
        while not self._over.is_set():
            for name, command in commands.items():
                process = self._processes.get(name)
                if process is None or process.poll() is not None:
                    log = self._stack.enter_context((self._folder / f"{name}.log").open("a"))
                    self._processes[name] = self._stack.enter_context(
                        started(
                            [sys.executable, "-c", self._program(name, command[0]), *command[1:]],
                            stdout=log,
                            stderr=log,
                            cwd=self._folder,
                        )
                    )
            self._over.wait(0.1)

    def _program(self, name: str, command: str) -> str:
        hide = "sys.modules['dmlemu'] = None; " if name in self._without else ""
        module = f"distributed.cli.dask_{command}"
        return f"import runpy, sys; {hide}runpy.run_module({module!r}, run_name='__main__')"

    def kill(self, name: str) -> None:
        """The process alone: what it has started must end by itself."""
        process = self._processes.get(name)
        if process is not None and process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            self.killed += 1


def test_a_worker_without_dmlemu_is_refused_by_its_address(programs: Path, tmp_path: Path) -> None:
    told: list[str] = []

    def stop(state: campaign.State) -> None:
        if any("is refused" in text for text in told) and state.done:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"layouts": 1_000_000, "piece": 0.1, "progress": stop, "tell": told.append}
    with Site(tmp_path, without=["one"]) as site:
        found = campaign.run(
            f"{programs}::test_right", scheduler=site.address, database=tmp_path / "a.db", **options
        )

    assert found.done and not found.causes
    (text,) = [each for each in told if "is refused" in each]  # before, the scheduler may not answer yet
    assert re.match(r"the worker tcp://\S+ is refused: dmlemu cannot be imported there: ", text)


def test_a_scheduler_without_dmlemu_is_named(programs: Path, tmp_path: Path) -> None:
    with (
        Site(tmp_path, without=["scheduler"]) as site,
        pytest.raises(UsageError, match=f"the scheduler at {site.address} cannot import dmlemu"),
    ):
        campaign.run(f"{programs}::test_right", layouts=5, scheduler=site.address, database=tmp_path / "a.db")


@contextmanager
def chaos(site: Site, every: float) -> Iterator[None]:
    """Kills a worker now and then, and the scheduler once.  Whoever is killed has had time to do something,
    also on a busy machine, where workers start slowly."""
    over = threading.Event()

    def kill() -> None:
        number = before = 0
        while not over.wait(every):
            if site.done == before:
                continue
            number, before = number + 1, site.done
            site.kill("scheduler" if number == 3 else site.random.choice(["one", "two"]))

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_nothing_is_lost_while_workers_and_the_scheduler_die(programs: Path, tmp_path: Path) -> None:
    """A worker is killed every two seconds, for a minute where the tests are thorough, else for 20 s."""
    seconds, what = 60 if THOROUGH else 20, f"{programs}::test_wrong"
    database, layouts, begin = tmp_path / "a.db", 100_000, time.monotonic()

    options: dict[str, Any] = {"layouts": layouts, "database": database, "piece": 0.3}
    with Site(tmp_path) as site:

        def stop(state: campaign.State) -> None:
            site.done = state.done
            if time.monotonic() > begin + seconds + 10 and site.killed >= seconds / 2 / 2:
                raise KeyboardInterrupt

        with chaos(site, every=2):
            found = campaign.run(what, scheduler=site.address, progress=stop, **options)
        assert found.is_interrupted and found.done > 0
    done = found.done
    by_piece = pieces_of(database)
    assert sum(count for _, count in by_piece) == done
    assert all(a + n <= b for (a, n), (b, _) in pairwise(by_piece))

    alone = tmp_path / "b.db"
    most = max(first + count for first, count in by_piece)
    here = campaign.run(what, layouts=layouts, database=alone, workers=0, piece=0.3, progress=until(most))
    covered = {index for first, count in by_piece for index in range(first, first + count)}
    assert [each for each in found.failures if each.kind == "crash"] == []
    assert found.failures == [each for each in here.failures if each.index in covered]


def until(most: int) -> Any:
    def stop(state: campaign.State) -> None:
        if state.done >= most:
            raise KeyboardInterrupt

    return stop


def test_a_worker_and_the_scheduler_die_once(programs: Path, tmp_path: Path) -> None:
    """The short form of the test above, to the end."""
    what, killed = f"{programs}::test_wrong", list[str]()
    told: list[str] = []
    with Site(tmp_path) as site:

        def kill(state: campaign.State) -> None:
            for name, done in (("one", 20), ("scheduler", 60)):
                if state.done >= done and name not in killed:
                    killed.append(name)
                    site.kill(name)

        found = campaign.run(
            what,
            layouts=150,
            scheduler=site.address,
            database=tmp_path / "a.db",
            piece=0.1,
            progress=kill,
            tell=told.append,
        )
    here = campaign.run(what, layouts=150, workers=0, database=tmp_path / "b.db")

    assert killed == ["one", "scheduler"] and site.killed == 2
    assert found.failures == here.failures != []
    assert_each_case_once(tmp_path / "a.db", 150)


def test_the_command_ends_at_ctrl_c_and_goes_on(programs: Path, tmp_path: Path) -> None:
    what = f"{programs}::test_right"
    command = [sys.executable, "-m", "dmlemu", "campaign", what, "--layouts", "4000", "--workers", "2"]
    database = tmp_path / "campaign.db"
    with started(
        [*command, "--watch"], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        while not (database.exists() and len(pieces_of_open(database)) > 3):
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert process.returncode == 130 and "Traceback" not in err
    assert "cases were not reached; the same command goes on with them." in out
    before = sum(count for _, count in pieces_of(database))
    again = run([*command, "--budget", "0.001"], cwd=tmp_path, timeout=60)
    assert f": {before} of 4000 cases" in again.stdout and again.returncode == 0


def pieces_of_open(database: Path) -> list[tuple[int, int]]:
    """While another process writes."""
    try:
        return pieces_of(database)
    except sqlite3.OperationalError:
        return []


def test_a_client_that_loses_its_scheduler_keeps_what_it_knows() -> None:
    """It then has no information about workers at all."""
    from dmlemu.campaign.executors import Cluster

    cluster = Cluster(Spec("operators", "operators", "", cases=10), identity(), 60, None, 1, print)
    try:
        while not (known := cluster._addresses()):
            time.sleep(0.1)
        cluster._ask_again = 0.0
        client = cluster._client
        cluster._client = SimpleNamespace(scheduler_info=lambda **_: {})
        assert cluster._addresses() == known
        cluster._client = client
    finally:
        cluster.close()
