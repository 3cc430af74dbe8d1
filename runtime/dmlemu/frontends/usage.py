"""What commands share: their summaries, the error of wrong arguments, options and files."""

from __future__ import annotations

import os
import stat
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from ..errors import shorten
from ..reporting import form_of

__all__ = ["HELP", "UsageError", "add_record_options", "check_distinct", "report_file"]

# All commands, in the order of `dmlemu --help`, which imports none of them.
HELP = {
    "run": "run a DxDispatch JSON model or an ONNX model",
    "diff": "find the first dispatch whose output differs",
    "replay": "run the dispatches of a record again",
    "reduce": "find the smallest program that still shows a report",
    "exec": "run a C++ program, or one of PyTorch, TensorFlow or PyDirectML, on the emulator",
    "capi": "print the options for compiling, linking and examining C++ programs",
    "layout": "draw where the elements of a tensor lie in memory",
    "shader": "list a compiled compute shader (DXIL)",
    "step": "step through what the GPU did",
    "campaign": "try every layout, seed or operator, on all CPUs or a cluster",
    "adapters": "list the emulated adapters",
    "explain": "describe an operator, a check or a rule, or list the operators",
    "checks": "list the checks, or explain one",
}


class UsageError(Exception):
    """A name given on the command line does not exist."""

    def __str__(self) -> str:
        return f"dmlemu: error: {shorten(self.args[0], 2000)}"


def report_file(text: str) -> Path:
    """The value of ``--report``."""
    try:
        form_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return Path(text)


def add_record_options(parser: ArgumentParser) -> None:
    """``--record`` and what is recorded."""
    parser.add_argument(
        "--record", type=Path, metavar="FILE.dmlrec", help="write what each dispatch reads and writes"
    )
    parser.add_argument(
        "--record-only",
        default="*",
        metavar="PATTERN",
        help="record only operators whose names match, such as conv*",
    )
    parser.add_argument(
        "--record-limit",
        type=_bytes,
        metavar="SIZE",
        help="most bytes of elements in the record: 64M, 2G (default: 1G); a warning lists what was left out",
    )


def _bytes(text: str) -> int:
    """``64M``: bytes, with a binary unit."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not number.isascii() or not number.isdecimal() or unit not in ("", "K", "M", "G"):
        raise ArgumentTypeError(f"{shorten(text)} is not a size such as 64M")
    return int(number) << 10 * ("", "K", "M", "G").index(unit)


def check_distinct(files: dict[str, Path | None]) -> None:
    """UsageError: two of these options name one file.  Pipes and devices may serve two."""
    seen: dict[object, str] = {}
    for name, path in files.items():
        if path is None:
            continue
        try:
            state = path.stat()
            key: object = (state.st_dev, state.st_ino)
            if not stat.S_ISREG(state.st_mode):
                continue
        except (OSError, ValueError):  # not there yet, or no name of a file
            key = os.path.abspath(path)
        if key in seen:
            raise UsageError(f"{seen[key]} and {name} name one file, {path}; each needs its own")
        seen[key] = name
