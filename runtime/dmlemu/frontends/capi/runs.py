"""What a C++ program did, kept by its own process: for ``dmlemu step``, or as a page.

``dmlemu step`` reads the run from a file that the program leaves in a folder of its own.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

from ...files import Output
from ...stepping import Run, observe
from .sites import want_frames

__all__ = ["keep_run", "load_run", "write_page"]


def write_page(path: str) -> Callable[[], None]:
    """Observes all devices from here on; what ends that and writes a page.  OSError."""
    from ...stepping.page import page

    output, end = Output(path), _observed()
    return lambda: output.write(page(end(), _program_name()))


def keep_run(path: str) -> Callable[[], None]:
    """Observes all devices from here on; what ends that and leaves the run to :func:`load_run`.  OSError."""
    output, end = Output(path), _observed()

    def write() -> None:
        with output.open() as file:
            pickle.dump(end(), file, pickle.HIGHEST_PROTOCOL)

    return write


def load_run(path: Path) -> Run | None:
    """The run that a program has left; None: it left none."""
    if not path.exists():
        return None
    with open(path, "rb") as file:
        run = pickle.load(file)  # written by this package, into a folder of this process
    assert isinstance(run, Run)
    return run


def _observed() -> Callable[[], Run]:
    observation = observe(None)
    observation.__enter__()
    want_frames()

    def end() -> Run:
        observation.__exit__(None, None, None)
        observation.run.spell()
        return observation.run

    return end


def _program_name() -> str:
    """The name of the program; of a script, where a Python runs one."""
    with open("/proc/self/cmdline", "rb") as file:
        words = os.fsdecode(file.read()).split("\0")
    script = next((each for each in words if each.endswith(".py")), words[0])
    return os.path.basename(script)
