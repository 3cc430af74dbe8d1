"""The bar of long compilations and runs: only on a terminal, only after a while, and it leaves nothing."""

from __future__ import annotations

import io
import signal
import sys
import time
from typing import Any

import pytest

from dmlemu.frontends.progress import ProgressBar

pytest.importorskip("rich", reason="the extra cli is not installed")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def wait_for(terminal: Terminal, text: str) -> None:
    end = time.monotonic() + 20
    while text not in terminal.getvalue():
        assert time.monotonic() < end, repr(terminal.getvalue())
        time.sleep(0.02)


def is_as_before(terminal: Terminal) -> bool:
    """The cursor is shown, and the bar's line is removed."""
    text = terminal.getvalue()
    return text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l") and text.endswith("\x1b[2K")


def test_it_says_what_is_done_and_of_how_many(terminal: Terminal) -> None:
    with ProgressBar(terminal, after=0) as bar:
        bar.tell("compile", 3, 12)
        wait_for(terminal, "3 of 12 nodes")
        assert "Compiling" in terminal.getvalue()
        bar.tell("run", 0, 12)
        wait_for(terminal, "Running")
        bar.tell("onnxruntime", 0, 12)
        wait_for(terminal, "onnxruntime")
    assert is_as_before(terminal)


def test_it_may_be_used_again(terminal: Terminal) -> None:
    bar = ProgressBar(terminal, after=0)
    for count in (3, 4):
        with bar:
            bar.tell("compile", count, 12)
            wait_for(terminal, f"{count} of 12 nodes")
        assert is_as_before(terminal)


def test_a_short_run_shows_none(terminal: Terminal) -> None:
    with ProgressBar(terminal, after=30) as bar:
        bar.tell("compile", 3, 12)
    assert terminal.getvalue() == ""


def test_what_is_no_terminal_gets_none() -> None:
    stream = io.StringIO()
    with ProgressBar(stream, after=0) as bar:
        bar.tell("compile", 3, 12)
        time.sleep(0.1)
    assert stream.getvalue() == ""


def test_without_rich_there_is_none(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with ProgressBar(terminal, after=0) as bar:
        bar.tell("compile", 3, 12)
        time.sleep(0.1)
    assert terminal.getvalue() == ""


def test_interrupts_leave_nothing_behind(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """One ends the block, a second one comes while the bar is removed."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), ProgressBar(terminal, after=0) as bar:
        bar.tell("run", 3, 12)
        wait_for(terminal, "3 of 12 nodes")
        stop = bar._bar.stop

        def interrupted(*_: Any) -> None:
            signal.raise_signal(signal.SIGINT)
            stop()

        monkeypatch.setattr(bar._bar, "stop", interrupted)
        signal.raise_signal(signal.SIGINT)
    assert is_as_before(terminal)
