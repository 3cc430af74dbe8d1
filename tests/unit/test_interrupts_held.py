"""``held``: Ctrl-C waits for the end of a block; files that are written meanwhile are whole or not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu import files
from dmlemu.interrupts import held
from dmlemu.recording import file
from dmlemu.recording.model import Record
from processes import started


@pytest.fixture(autouse=True)
def handler() -> None:
    """A suite under nohup has inherited that SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_it_comes_at_the_end_once() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), held():
        for step in range(3):
            signal.raise_signal(signal.SIGINT)
            steps.append(step)
    assert steps == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_comes_where_the_block_looks() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), held() as look:
        look()
        signal.raise_signal(signal.SIGINT)
        steps.append(1)
        look()
        steps.append(2)
    assert steps == [1]


def test_blocks_may_lie_in_each_other() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), held():
        with held():
            signal.raise_signal(signal.SIGINT)
            steps.append(1)
        steps.append(2)
    assert steps == [1, 2]


def test_an_exception_of_the_block_comes_first() -> None:
    with pytest.raises(ValueError, match="this"), held():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("this")


def test_a_handler_of_the_program_is_called() -> None:
    called = []
    signal.signal(signal.SIGINT, lambda number, _: called.append(number))
    with held() as look:
        signal.raise_signal(signal.SIGINT)
        look()
        assert called == [signal.SIGINT]
    assert called == [signal.SIGINT]


def test_what_is_ignored_stays_so_and_threads_hold_nothing() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with held():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen = []

    def thread() -> None:
        with held() as look:
            look()
            seen.append(signal.getsignal(signal.SIGINT))

    one = threading.Thread(target=thread)
    one.start()
    one.join()
    assert seen == [signal.default_int_handler]


# --- files ---


def test_an_interrupted_record_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.dmlrec"
    path.write_bytes(b"old")
    header = file.npy_header

    def interrupted(*arguments: Any) -> bytes:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return header(*arguments)

    monkeypatch.setattr(file, "npy_header", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.write(Record({"a": np.zeros(1 << 22, np.uint8)}), path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["r.dmlrec"]


def test_an_interrupted_file_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), files.Output(tmp_path / "new").open() as new:
        new.write(b"half")
        raise KeyboardInterrupt
    assert not os.listdir(tmp_path)


PROGRAM = """
import signal, sys
from dmlemu import cli
def interrupted(*_):
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.raise_signal(signal.SIGINT)
cli._command = interrupted
sys.argv = ["dmlemu"]
from dmlemu.__main__ import main
code = main()
signal.raise_signal(signal.SIGINT)
sys.exit(code)
"""


def test_a_second_interrupt_ends_the_command_without_a_traceback() -> None:
    with started([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (130, "", "")
