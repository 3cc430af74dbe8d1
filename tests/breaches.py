"""Which breaches of rules the tests raise.

``--every-breach``: the run fails although its tests pass if they have not raised every breach of every rule.
``--breaches-at-runtime=FILE``: all devices are as on Windows without a debug layer, and the names of the
breaches that have an effect there are written to the file; the tests themselves may fail.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import pytest

from dmlemu import Error, Strictness
from dmlemu.d3d12.core.device_context import DeviceContext
from dmlemu.d3d12.device import device_creation
from dmlemu.diagnostics.catalogue import rules
from dmlemu.diagnostics.rule import ALL_RULES, Breach

__dmlemu_helper__ = True  # reports name the lines that call what is replaced here


def all_breaches() -> dict[str, Breach]:
    """All by name, ``Q2.open``.  What several rules share is raised through each of them."""
    rules()
    broken = [rule for rule in ALL_RULES if not rule.__subclasses__()]
    return {name_of(breach): breach for rule in broken for breach in rule.breaches()}


def name_of(breach: Breach) -> str:
    return f"{breach.rule.__name__}.{breach.name}"


def on_breach(note: Callable[[Breach, Error], None]) -> None:
    """Calls ``note`` with each error that a breach makes."""
    make: Callable[..., Error] = Breach.__call__

    @wraps(make)
    def noting(breach: Breach, *arguments: Any, **named: Any) -> Error:
        error = make(breach, *arguments, **named)
        note(breach, error)
        return error

    Breach.__call__ = noting  # type: ignore[assignment, method-assign]


class EveryBreach:
    """Notes what is raised in a file, which workers of pytest-xdist and forked processes write, too."""

    def __init__(self, config: pytest.Config) -> None:
        given: str | None = getattr(config, "workerinput", {}).get("breaches")
        if given is None:
            file, self._path = mkstemp(prefix="breaches-")
            os.close(file)
        else:
            self._path = given
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND)  # now: a test may leave no open files
        self._is_worker = given is not None
        self._noted: set[str] = set()
        self._missing: list[str] = []
        on_breach(self._note)

    def _note(self, breach: Breach, _error: Error) -> None:
        name = name_of(breach)
        if name not in self._noted:
            self._noted.add(name)
            os.write(self._file, f"{name}\n".encode())  # in one piece, whoever else appends to it

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["breaches"] = self._path

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        os.close(self._file)
        if self._is_worker:
            return
        raised = Path(self._path).read_text(encoding="utf-8").split()
        os.unlink(self._path)
        if exitstatus == pytest.ExitCode.OK:
            self._missing = sorted(set(all_breaches()) - set(raised))
        if self._missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._missing:
            terminalreporter.section("breaches that no test has raised", red=True)
            terminalreporter.write_line("\n".join(self._missing))


class BreachesAtRuntime:
    """Writes which breaches have an effect on devices of strictness runtime."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._made: Counter[str] = Counter()
        self._ignored: Counter[str] = Counter()
        self._latest: Error | None = None
        on_breach(self._note)
        awaiting = type(pytest.raises(Error))
        self._leave: Callable[..., Any] = awaiting.__exit__
        awaiting.__exit__ = lambda manager, *raised: self._left(manager, *raised)  # type: ignore[method-assign]
        DeviceContext.object_to = DeviceContext.inform = self._ignore  # type: ignore[assignment, method-assign]
        self._new_device = device_creation._new_device
        device_creation._new_device = self._new_runtime  # type: ignore[assignment]

    def _left(self, manager: Any, kind: Any, error: Any, traceback: Any) -> Any:
        """A test that awaits an error goes on where the call failed a list or removed the device instead."""
        latest, self._latest = self._latest, None
        if kind is None and latest is not None:
            kind, error = type(latest), latest
        return self._leave(manager, kind, error, traceback)

    def _new_runtime(self, adapter: Any, _strictness: Strictness, raises: bool) -> Any:
        return self._new_device(adapter, Strictness.RUNTIME, raises)

    def _note(self, breach: Breach, error: Error) -> None:
        self._latest = error
        error.__dict__["breach"] = name_of(breach)
        self._made[name_of(breach)] += 1

    def _ignore(self, error: Error, *_severity: object) -> None:
        """In place of what does nothing at runtime."""
        self._latest = None
        self._ignored[error.__dict__.get("breach", "")] += 1

    def pytest_sessionfinish(self) -> None:
        found = sorted(name for name, made in self._made.items() if made > self._ignored[name])
        Path(self._path).write_text("\n".join(found), encoding="utf-8")


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-breach", action="store_true", help="fail unless each breach of a rule is raised"
    )
    parser.addoption(
        "--breaches-at-runtime", metavar="FILE", help="write which have an effect without a layer"
    )


def register(config: pytest.Config) -> None:
    if config.getoption("every_breach"):
        config.pluginmanager.register(EveryBreach(config))
    if config.getoption("breaches_at_runtime") is not None:
        config.pluginmanager.register(BreachesAtRuntime(config.getoption("breaches_at_runtime")))
