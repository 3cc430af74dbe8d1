"""Runs programs of any kind and keeps what devices do."""

from __future__ import annotations

import runpy
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from .. import d3d12
from ..errors import Error, Strictness
from ..frontends.capi.runs import load_run
from ..frontends.dxdispatch import ModelError, Options, read_model, run_model
from ..frontends.usage import UsageError
from ..stepping import LIMIT, Run, observe

__all__ = ["is_native", "observe_program"]

_OURS = (".json", ".py", ".dmlrec")  # which are run in this process


def is_native(program: str | Path) -> bool:
    """Whether it is run as ``dmlemu exec`` runs it."""
    return Path(program).suffix.lower() not in _OURS


def observe_program(
    program: str | Path,
    arguments: Sequence[str] = (),
    *,
    strictness: Strictness | None = None,
    limit: int = LIMIT,
) -> Run:
    """Runs a DxDispatch model, a Python script, a record or a native program to its end or its failure; the
    run.

    What fails is in the run, as a report or as a note; so is an interrupt.  ``arguments`` are those of the
    script or program.  ``strictness``: of the device, for all but a script, which chooses its own.
    ``limit``: bytes that the run keeps, not of a native program's.  UsageError: no such file, or of another
    kind.  ModelError: the model failed before a device did anything.
    """
    path = Path(program)
    if is_native(path):
        return _run_native(str(program), arguments, strictness or Strictness.STRICT)
    if not path.is_file():
        raise UsageError(f"{path} is not a regular file" if path.exists() else f"{path} does not exist")
    kind = path.suffix.lower()
    if kind == ".py" and strictness is not None:
        raise UsageError("--strictness is for models and records; a script gives its own to create_device")
    if kind != ".py" and arguments:
        raise UsageError(
            f"{path} takes no arguments ({' '.join(arguments)}), only a script does; "
            "options of dmlemu step go before PROGRAM"
        )
    observation = observe(None, limit=limit)
    run = observation.run
    try:
        with observation:
            if kind == ".json":
                _run_model(path, strictness or Strictness.STRICT)
            elif kind == ".py":
                _run_script(path, arguments, run)
            else:
                _replay(path, strictness or Strictness.STRICT)
    except Error as error:
        run.fail(f"The program ended with {error.report.id}: {error.report.message}")
    except ModelError as error:
        if not run.moments:
            raise
        run.fail(f"The model cannot be run: {error}")
    except KeyboardInterrupt:  # of a program that hangs, for instance: what it did so far is of interest
        if not run.moments:
            raise
        run.fail("The program was interrupted.")
    return run


def _run_native(program: str, arguments: Sequence[str], strictness: Strictness) -> Run:
    """The run that the process of the program has kept."""
    from ..frontends.capi.command import NotStarted, run_program

    with TemporaryDirectory(prefix="dmlemu-step-") as folder:
        file = Path(folder) / "run"
        options = {"DMLEMU_STRICTNESS": strictness.value, "DMLEMU_RUN": str(file)}
        try:
            status, noted = run_program(program, arguments, options, Path(folder))
        except NotStarted as error:
            raise UsageError(str(error)) from None
        run = load_run(file)
    if run is None:
        run = Run()
        why = "" if "started" in noted else " The emulator was not started."
        run.notes.append(f"The program has left nothing to step through.{why}")
    if status < 0:
        run.fail(f"The program ended by {_signal_name(-status)}.")
    elif status:
        run.fail(f"The program ended with exit code {status}.")
    return run


def _signal_name(number: int) -> str:
    """``SIGSEGV``; those for real time have no names."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _run_model(path: Path, strictness: Strictness) -> None:
    options = Options(model=path, strictness=strictness)
    adapter = d3d12.create_adapter_list()[0]
    run_model(read_model(path), adapter, options, print)


def _replay(path: Path, strictness: Strictness) -> None:
    from ..recording import RecordError, replay

    try:
        replay(path, strictness=strictness)
    except RecordError as error:
        raise UsageError(str(error)) from None


def _run_script(path: Path, arguments: Sequence[str], run: Run) -> None:
    """As ``python SCRIPT ARGS`` does; what it raises is printed, as Python does, and noted."""
    with _arguments(path, arguments):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except (Error, KeyboardInterrupt):
            raise
        except SystemExit as error:
            if error.code not in (None, 0):
                run.fail(f"The program ended with {_exit_text(error.code)}")
        except BaseException as error:
            traceback.print_exc()
            run.fail(f"The program ended with {type(error).__name__}: {error}")


def _exit_text(code: object) -> str:
    """The exit code, or the message that stands for exit code 1, which Python prints."""
    if isinstance(code, int):
        return f"exit code {code}."
    print(code, file=sys.stderr)
    return f"exit code 1: {code}"


@contextmanager
def _arguments(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """What a script finds in ``sys``."""
    argv, folders = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, folders
