"""A program's function that does not return, and a thread that is cancelled, do not unwind Python."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from toolchain import DMLEMU, compiled, marked_lines, needs_compiler, reported, run

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("unwinding.cpp", tmp_path_factory.mktemp("unwinding") / "unwinding")


@pytest.mark.parametrize("how", ["throw", "exit"])
def test_a_callback_that_does_not_return_ends_the_process(program: Path, how: str) -> None:
    done = run(*DMLEMU, "exec", program, how)
    assert (done.stdout, done.returncode) == ("", 128 + signal.SIGABRT)
    functions = "a callback, a method of private data, or a handler of a signal"
    assert f"({functions}) threw an exception or ended its thread" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cancelled_thread_leaves_python_first(program: Path) -> None:
    done = run(*DMLEMU, "exec", program, "cancel")
    assert (done.stdout, reported(done.stderr), done.returncode) == ("waited\ndone\n", "", 0)


def test_callbacks_of_small_threads_run_on_them(program: Path) -> None:
    done = run(*DMLEMU, "exec", program, "small")
    assert (done.stdout, done.returncode) == ("on the caller's thread\n" * 2 + "done\n", 1), done.stderr
    assert "Close" in done.stderr


def test_our_own_frames_are_not_named(program: Path) -> None:
    """A call in a callback: Python and our extension are between it and main."""
    done = run(*DMLEMU, "exec", program, "large")
    line = marked_lines("unwinding.cpp")["wrong in the callback"][0]
    assert f"While calling SetName at unwinding.cpp:{line} in note" in done.stderr, done.stderr
    for name in ("_capi", "_cffi_backend", "libpython"):
        assert name not in done.stderr, done.stderr
