"""Runs programs of any kind and keeps what devices do."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .. import d3d12
from ..errors import Error, Strictness
from ..frontends.dxdispatch import ModelError, Options, read_model, run_model
from ..frontends.usage import UsageError
from ..stepping import LIMIT, Run, observe

__all__ = ["observe_program"]


def observe_program(
    path: Path,
    arguments: Sequence[str] = (),
    *,
    strictness: Strictness | None = None,
    limit: int = LIMIT,
) -> Run:
    """Runs a DxDispatch model, a Python script or a record to its end or its failure; the run.

    What fails is in the run, as a report or as a note; so is an interrupt.  ``arguments`` are the script's.
    ``strictness``: of the device for a model or a record; a script chooses its own.  UsageError: no such
    file, or of another kind.  ModelError: the model failed before a device did anything.
    """
    if not path.is_file():
        raise UsageError(f"{path} is not a regular file" if path.exists() else f"{path} does not exist")
    kind = path.suffix.lower()
    if kind not in (".json", ".py", ".dmlrec"):
        raise UsageError(f"{path} is not a MODEL.json, SCRIPT.py or RECORD.dmlrec")
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
